"""Reads capacity_table.txt, and runs its lines on a server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.rules.global_indexes.game_scores import eventually, global_index
from tests.rules.local_indexes.thread import Item, Units, consumed_units, units
from tests.support.clients.clients import WireClient
from tests.support.tables.tables import local_index

PATH = Path(__file__).with_suffix(".txt")
TABLE_KEYS = ("p:S", "s:S", "a:S", "k:S", "i:S", "g:S", "h:S", "j:S")
TABLE_INDEXES = (
    local_index("by-all", "p", "a", "ALL"),
    local_index("by-keys", "p", "k", "KEYS_ONLY"),
    local_index("by-some", "p", "i", "INCLUDE", ("x",)),
)
TABLE_GLOBAL_INDEXES = (
    global_index("gsi-all", "p", "g"),
    global_index("gsi-keys", "h", projection="KEYS_ONLY"),
    global_index("gsi-some", "p", "j", include=("x",)),
)
GLOBAL_INDEX_KEYS = {"gsi-all": "g", "gsi-keys": "h", "gsi-some": "j"}
KEY_BYTES = 100

_LINE = re.compile(
    r"(?P<operation>[\w-]+)(?P<options>[^:]*): (?P<before>.+) -> (?P<after>.+) = (.+)"
)
_REPEATED = re.compile(r"(\d+)\*\((.+)\)")
_SIZED = re.compile(r"(\w)=(\d+)(\w?)")


class Case(NamedTuple):
    """A line of the table."""

    line_number: int
    text: str
    operation: str
    options: dict[str, str]
    before: str
    after: str
    expected: Units
    differs_from_dynamodb_local: bool


def cases() -> Iterator[Case]:
    """All lines, in order."""
    for number, line in enumerate(PATH.read_text().splitlines(), 1):
        text, _, why = line.partition("#")
        if text.strip():
            yield _case(number, text.strip(), differs="not DynamoDB Local" in why)


def _case(number: int, text: str, *, differs: bool) -> Case:
    found = _LINE.fullmatch(text)
    assert found is not None, f"line {number} can't be read: {text}"
    parts = dict(part.rsplit(" ", 1) for part in found[5].split(", "))
    expected = {name: float(count) for name, count in parts.items()}
    table = expected.pop("Table", 0.0)
    options = [option.partition("=") for option in found["options"].split()]
    return Case(
        number,
        text,
        found["operation"],
        {name: given for name, _, given in options},
        found["before"],
        found["after"],
        Units(table + sum(expected.values()), table, expected),
        differs,
    )


def items_of(text: str, partition: str) -> list[Item]:
    """The items that a part of a line describes."""
    if text == "-":
        return []
    described: list[str] = []
    for part in text.split("; "):
        repeated = _REPEATED.fullmatch(part)
        described += [repeated[2]] * int(repeated[1]) if repeated else [part]
    return [_item(part, number, partition) for number, part in enumerate(described)]


def extract_key(number: int, partition: str) -> Item:
    """The key of the item with that number: 100 bytes including names."""
    return {"p": {"S": partition}, "s": {"S": f"{number:0{KEY_BYTES - 2 - len(partition)}}"}}


def _item(text: str, number: int, partition: str) -> Item:
    item = extract_key(number, partition)
    for attribute in text.split():
        if sized := _SIZED.fullmatch(attribute):
            name, size_bytes, filler = sized.groups()
            item[name] = {"S": (filler or "x") * (int(size_bytes) - 1)}
        else:
            name, _, value = attribute.partition(":")
            item[name] = json.loads(value)
    return item


class Bench:
    """Runs cases in one partition of one table and returns the consumed units of each."""

    def __init__(self, wire: WireClient, table_name: str, partition: str) -> None:
        self._call = wire
        self._table = table_name
        self._partition = partition

    def run(self, case: Case) -> Units:
        """Put the initial items, send the request, and check the result; returns the units."""
        for item in items_of(case.before, self._partition):
            self._call("PutItem", {"TableName": self._table, "Item": item})
        method = getattr(self, "_" + case.operation.replace("-", "_"))
        consumed: Units = method(case)
        return consumed

    def _ask(self, operation: str, **members: Any) -> dict[str, Any]:
        request: dict[str, Any] = {"ReturnConsumedCapacity": "INDEXES"}
        if operation != "ExecuteStatement":
            request["TableName"] = self._table
        return self._call(operation, request | members)

    def _before(self, case: Case) -> list[Item]:
        return items_of(case.before, self._partition)

    def _after(self, case: Case) -> list[Item]:
        return items_of(case.after, self._partition)

    def _put(self, case: Case) -> Units:
        [item] = self._after(case)
        returned = {"ReturnValues": "ALL_OLD"} if "all-old" in case.options else {}
        return units(self._ask("PutItem", Item=item, **returned))

    def _delete(self, case: Case) -> Units:
        assert self._after(case) == []
        return units(self._ask("DeleteItem", Key=extract_key(0, self._partition)))

    def _update(self, case: Case) -> Units:
        """SET every attribute of the new item, REMOVE the others."""
        key = extract_key(0, self._partition)
        before = (self._before(case) or [key])[0]
        after = (self._after(case) or [key])[0]
        wanted = {name: value for name, value in after.items() if name not in key}
        gone = sorted(set(before) - set(after)) or (["x"] if "remove-only" in case.options else [])
        clauses = []
        if wanted:
            clauses.append("SET " + ", ".join(f"{name} = :{name}" for name in wanted))
        if gone:
            clauses.append("REMOVE " + ", ".join(gone))
        request: dict[str, Any] = {"Key": key, "UpdateExpression": " ".join(clauses)}
        if wanted:
            request["ExpressionAttributeValues"] = {f":{n}": v for n, v in wanted.items()}
        if "all-new" in case.options:
            request["ReturnValues"] = "ALL_NEW"
        return units(self._ask("UpdateItem", **request))

    def _batch_put(self, case: Case) -> Units:
        return self._batch_write([{"PutRequest": {"Item": item}} for item in self._after(case)])

    def _batch_delete(self, case: Case) -> Units:
        keys = [extract_key(n, self._partition) for n in range(len(self._before(case)) or 1)]
        return self._batch_write([{"DeleteRequest": {"Key": key}} for key in keys])

    def _batch_write(self, requests: list[dict[str, Any]]) -> Units:
        answer = self._call(
            "BatchWriteItem",
            {"RequestItems": {self._table: requests}, "ReturnConsumedCapacity": "INDEXES"},
        )
        assert answer["UnprocessedItems"] == {}
        [consumed] = answer["ConsumedCapacity"]
        return consumed_units(consumed)

    def _failed_put(self, case: Case) -> Units:
        [item] = self._after(case)
        return self._failed("PutItem", Item=item)

    def _failed_update(self, case: Case) -> Units:
        assert self._after(case) == []
        return self._failed("UpdateItem", Key=extract_key(0, self._partition))

    def _failed_delete(self, case: Case) -> Units:
        assert self._after(case) == []
        return self._failed("DeleteItem", Key=extract_key(0, self._partition))

    def _failed_insert(self, case: Case) -> Units:
        [item] = self._after(case)
        return self._explained("ExecuteStatement", self._insert_of(item))

    def _failed(self, operation: str, **members: Any) -> Units:
        """A write with a false condition for any item."""
        condition = {"ConditionExpression": "attribute_exists(nothing)"}
        return self._explained(operation, {"TableName": self._table, **members, **condition})

    def _explained(self, operation: str, request: dict[str, Any]) -> Units:
        """The cost of a failed write from the explanation, because its error has none."""
        answer = self._call.send(operation, request, {"X-Dynactor-Explain": "true"})
        assert answer.status == 400, answer.body
        [cost] = json.loads(answer.headers["X-Dynactor-Explanation"])["Tables"]
        [write] = cost["Writes"]
        assert "Indexes" not in write
        return Units(cost["CapacityUnits"], write["Units"], {})

    def _insert(self, case: Case) -> Units:
        [item] = self._after(case)
        return units(self._ask("ExecuteStatement", **self._insert_of(item)))

    def _insert_of(self, item: Item) -> dict[str, Any]:
        members = ", ".join(f"'{name}': ?" for name in item)
        return self._statement("INSERT INTO {} VALUE {{" + members + "}}", *item.values())

    def _sql_update(self, case: Case) -> Units:
        """Update an existing item as ``_update`` does, with a PartiQL UPDATE."""
        key = extract_key(0, self._partition)
        [before], [after] = self._before(case), self._after(case)
        wanted = {name: value for name, value in after.items() if name not in key}
        gone = sorted(set(before) - set(after))
        clauses = "".join(f' SET "{name}" = ?' for name in wanted)
        clauses += "".join(f' REMOVE "{name}"' for name in gone)
        text = "UPDATE {}" + clauses + " WHERE p = ? AND s = ?"
        return self._executed(text, *wanted.values(), *key.values())

    def _sql_delete(self, case: Case) -> Units:
        assert self._after(case) == []
        key = extract_key(0, self._partition)
        return self._executed("DELETE FROM {} WHERE p = ? AND s = ?", *key.values())

    def _select(self, case: Case) -> Units:
        """A SELECT of one item by its key, or of all items of a partition key."""
        key = extract_key(0, self._partition)
        if "all" in case.options:
            given = [key["p"]]
            text = "SELECT * FROM {} WHERE p = ?"
        else:
            given = [*key.values()]
            text = "SELECT * FROM {} WHERE p = ? AND s = ?"
        consistent = {"ConsistentRead": "eventual" not in case.options}
        answer = self._ask("ExecuteStatement", **self._statement(text, *given), **consistent)
        assert len(answer["Items"]) == int(case.after)
        return units(answer)

    def _batch_select(self, case: Case) -> Units:
        consistent = {"ConsistentRead": "eventual" not in case.options}
        text = "SELECT * FROM {} WHERE p = ? AND s = ?"
        keys = [extract_key(n, self._partition) for n in range(len(self._before(case)) or 1)]
        return self._batch([self._statement(text, *key.values()) | consistent for key in keys])

    def _batch_insert(self, case: Case) -> Units:
        return self._batch([self._insert_of(item) for item in self._after(case)])

    def _batch(self, statements: list[dict[str, Any]]) -> Units:
        request = {"Statements": statements, "ReturnConsumedCapacity": "INDEXES"}
        answer = self._call("BatchExecuteStatement", request)
        assert not any("Error" in one for one in answer["Responses"]), answer
        each = [consumed_units(consumed) for consumed in answer["ConsumedCapacity"]]
        indexes = {name for one in each for name in one.indexes}
        return Units(
            sum(one.total for one in each),
            sum(one.table for one in each),
            {name: sum(one.indexes.get(name, 0.0) for one in each) for name in indexes},
        )

    def _executed(self, text: str, *parameters: Any) -> Units:
        return units(self._ask("ExecuteStatement", **self._statement(text, *parameters)))

    def _statement(self, text: str, *parameters: Any) -> dict[str, Any]:
        return {"Statement": text.format(f'"{self._table}"'), "Parameters": list(parameters)}

    def _get(self, case: Case) -> Units:
        answer = self._ask("GetItem", Key=extract_key(0, self._partition), **_read(case))
        assert int("Item" in answer) == int(case.after)
        return units(answer)

    def _batch_get(self, case: Case) -> Units:
        keys = [extract_key(n, self._partition) for n in range(len(self._before(case)) or 1)]
        answer = self._call(
            "BatchGetItem",
            {
                "RequestItems": {self._table: {"Keys": keys, **_read(case)}},
                "ReturnConsumedCapacity": "INDEXES",
            },
        )
        assert len(answer["Responses"][self._table]) == int(case.after)
        [consumed] = answer["ConsumedCapacity"]
        return consumed_units(consumed)

    def _query(self, case: Case) -> Units:
        request = _page(case)
        request["KeyConditionExpression"] = "p = :p"
        request["ExpressionAttributeValues"] = {":p": {"S": self._partition}}
        self._wait_for_entries("Query", case, request)
        answer = self._ask("Query", **request)
        assert answer["Count"] == int(case.after)
        return units(answer)

    def _scan(self, case: Case) -> Units:
        request = _page(case)
        self._wait_for_entries("Scan", case, request)
        answer = self._ask("Scan", **request)
        assert answer["Count"] == int(case.after)
        return units(answer)

    def _wait_for_entries(self, operation: str, case: Case, request: dict[str, Any]) -> None:
        """Wait until a global index, which follows its table, has the expected entries."""
        index = request.get("IndexName")
        if index not in GLOBAL_INDEX_KEYS:
            return
        members = ("KeyConditionExpression", "ExpressionAttributeValues")
        count = {name: request[name] for name in members if name in request}
        wanted = sum(GLOBAL_INDEX_KEYS[index] in item for item in self._before(case))
        eventually(
            lambda: self._ask(operation, IndexName=index, Select="COUNT", **count)["Count"],
            lambda found: found == wanted,
        )


def _read(case: Case) -> dict[str, Any]:
    members: dict[str, Any] = {"ConsistentRead": "eventual" not in case.options}
    if "only" in case.options:
        members["ProjectionExpression"] = case.options["only"]
    return members


def _page(case: Case) -> dict[str, Any]:
    members = _read(case)
    for option, given in case.options.items():
        if option.startswith(("by-", "gsi-")):
            members["IndexName"] = option
        elif option == "limit":
            members["Limit"] = int(given)
        elif option == "count":
            members["Select"] = "COUNT"
        elif option == "everything":
            members["Select"] = "ALL_ATTRIBUTES"
        elif option == "backward":
            members["ScanIndexForward"] = False
        elif option == "filter":
            # A Query's filter may use neither key attributes nor unprojected ones of an index.
            nothing = (
                "attribute_not_exists(p)"
                if case.operation == "scan"
                else "attribute_exists(nothing)"
            )
            members["FilterExpression"] = nothing
        else:
            assert option in {"eventual", "only"}, option
    return members
