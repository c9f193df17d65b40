"""The effects and results of INSERT, UPDATE and DELETE.

The statements are in ``writes.txt``.
"""

from __future__ import annotations

from ast import literal_eval
from decimal import Decimal
from typing import Any

import pytest

from tests.support.clients.clients import WireClient, refusal
from tests.support.tables.partiql import execute, plain, statement, typed
from tests.support.tables.statement_scripts import Scripted, failures, scripted

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

ONE_TYPE = "must contain exactly one of the supported datatypes"


def values_of(text: str) -> dict[str, Any] | None:
    """Parse attributes of a script; numbers become decimals, and a missing item None."""
    return None if text == "nothing" else exact(literal_eval(text))


def exact(value: Any) -> Any:
    match value:
        case float():
            return Decimal(repr(value))
        case list():
            return [exact(one) for one in value]
        case set():
            return {exact(one) for one in value}
        case dict():
            return {name: exact(one) for name, one in value.items()}
        case _:
            return value


def item_at(wire: WireClient, table: str, pk: str) -> dict[str, Any] | None:
    """The attributes besides the key."""
    key = {"TableName": table, "Key": {"pk": {"S": pk}}, "ConsistentRead": True}
    item = wire("GetItem", key).get("Item")
    return None if item is None else without_key(plain(item))


def without_key(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "pk"}


@pytest.mark.parametrize("cases", scripted("writes"))
def test_a_write_leaves_and_returns_what_its_script_says(
    wire: WireClient, simple: str, pk: str, cases: list[Scripted]
) -> None:
    def check(case: Scripted) -> None:
        key = f"{pk}{case.place}"
        before = values_of(case.settings["before"])
        if before is not None:
            wire("PutItem", {"TableName": simple, "Item": typed({"pk": key} | before)})
        text = case.statement.replace("$t", f'"{simple}"').replace("$pk", f"'{key}'")
        answer = wire.send("ExecuteStatement", statement(text))
        error = case.part("error")
        if error is not None:
            assert answer.status == 400, answer.body
            assert f"{refusal(answer).type}: {refusal(answer).message}" == error
            assert item_at(wire, simple, key) == before
            return
        assert answer.status == 200, answer.body
        assert item_at(wire, simple, key) == values_of(case.part("→") or "")
        returned = values_of(case.part("returned") or "nothing")
        items = [without_key(plain(item)) for item in answer.json["Items"]]
        assert items == ([] if returned is None else [returned])

    assert failures(cases, check) == []


def test_parameters_stand_for_values_in_their_order(wire: WireClient, simple: str, pk: str) -> None:
    item = {"pk": pk, "b": b"\x00\xff", "bs": {b"a", b"b"}, "l": [1, {"k": None}], "n": Decimal(1)}
    insert = f"INSERT INTO \"{simple}\" VALUE {{'pk': ?, 'b': ?, 'bs': ?, 'l': ?, 'n': ?}}"
    assert execute(wire, insert, *item.values()) == []
    assert item_at(wire, simple, pk) == without_key(item)
    update = f'UPDATE "{simple}" SET n = n + ?, l = list_append(l, ?) WHERE n = ? AND pk = ?'
    execute(wire, update, 2, ["end"], 1, pk)
    changed = {"n": Decimal(3), "l": [1, {"k": None}, "end"]}
    assert item_at(wire, simple, pk) == without_key(item) | changed
    sets = f'UPDATE "{simple}" SET bs = set_add(bs, ?) WHERE pk = ? RETURNING MODIFIED NEW *'
    assert execute(wire, sets, {b"c"}, pk) == [{"bs": {b"a", b"b", b"c"}}]
    delete = f'DELETE FROM "{simple}" WHERE pk = ? AND b = ? RETURNING ALL OLD *'
    (deleted,) = execute(wire, delete, pk, b"\x00\xff")
    assert deleted["n"] == Decimal(3)


def test_a_parameter_that_must_be_a_set_is_one(wire: WireClient) -> None:
    text = "UPDATE some_table SET v = set_add(v, ?) WHERE pk = 'a'"
    assert wire.refused("ExecuteStatement", statement(text, 1)) == (
        "ValidationException",
        "The second argument to SET_ADD must be a value with type SET at 1:35:1",
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, f"Supplied AttributeValue is empty, {ONE_TYPE}"),
        (
            {"N": "1", "S": "a"},
            f"Supplied AttributeValue has more than one datatypes set, {ONE_TYPE}",
        ),
        (
            # The exponent overflows 32 bits.
            {"N": "1e2147483647"},
            (
                "Number underflow. Attempting to store a number with magnitude smaller than "
                "supported range"
            ),
        ),
        ({"SS": []}, "One or more parameter values were invalid: An string set  may not be empty"),
    ],
)
def test_parameters_are_checked(
    wire: WireClient, simple: str, value: dict[str, Any], message: str
) -> None:
    request = {"Statement": f'SELECT * FROM "{simple}" WHERE pk = ?', "Parameters": [value]}
    assert wire.refused("ExecuteStatement", request) == ("ValidationException", message)


def test_parameters_without_a_mark_are_ignored(wire: WireClient, simple: str, pk: str) -> None:
    text = f'SELECT * FROM "{simple}" WHERE pk = ?'
    assert execute(wire, text, pk, "another") == []


@pytest.mark.parametrize(
    "text",
    ["UPDATE $t SET v = 2 WHERE pk = $pk AND v = 7", "DELETE FROM $t WHERE pk = $pk AND v = 7"],
)
def test_a_failed_condition_shows_the_item_on_request(
    wire: WireClient, simple: str, pk: str, text: str
) -> None:
    item = typed({"pk": pk, "v": 1})
    wire("PutItem", {"TableName": simple, "Item": item})
    text = text.replace("$t", f'"{simple}"').replace("$pk", f"'{pk}'")
    for members, shown in (
        ({}, None),
        ({"ReturnValuesOnConditionCheckFailure": "NONE"}, None),
        ({"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}, item),
    ):
        error = wire.send("ExecuteStatement", statement(text, **members)).json
        assert error["__type"].endswith("#ConditionalCheckFailedException")
        assert error.get("Item") == shown


@differs_from_dynamodb_local("tells no consumed capacity")
@pytest.mark.parametrize(
    ("text", "operation", "members"),
    [
        (
            "INSERT INTO $t VALUE {'pk': $pk, 'sk': 'new', 'a': 'x'}",
            "PutItem",
            {"Item": typed({"pk": "$pk", "sk": "new", "a": "x"})},
        ),
        (
            "UPDATE $t SET a = 'y' WHERE pk = $pk AND sk = 'old'",
            "UpdateItem",
            {
                "Key": typed({"pk": "$pk", "sk": "old"}),
                "UpdateExpression": "SET a = :y",
                "ExpressionAttributeValues": {":y": {"S": "y"}},
            },
        ),
        (
            "DELETE FROM $t WHERE pk = $pk AND sk = 'old'",
            "DeleteItem",
            {"Key": typed({"pk": "$pk", "sk": "old"})},
        ),
    ],
)
def test_a_write_costs_the_same_as_the_equivalent_operation(
    wire: WireClient,
    indexed: str,
    pk: str,
    *,
    text: str,
    operation: str,
    members: dict[str, Any],
) -> None:
    costs = []
    for sibling in ("one", "other"):
        key = pk + sibling
        old = typed({"pk": key, "sk": "old", "a": "x", "filling": "x" * 1500})
        wire("PutItem", {"TableName": indexed, "Item": old})
        if sibling == "one":
            written = text.replace("$t", f'"{indexed}"').replace("$pk", f"'{key}'")
            request = statement(written, ReturnConsumedCapacity="INDEXES")
            costs.append(wire("ExecuteStatement", request)["ConsumedCapacity"])
        else:
            place = "Item" if operation == "PutItem" else "Key"
            keyed = members | {place: members[place] | {"pk": {"S": key}}}
            request = {"TableName": indexed, "ReturnConsumedCapacity": "INDEXES"} | keyed
            costs.append(wire(operation, request)["ConsumedCapacity"])
    assert costs[0] == costs[1]
    assert costs[0]["CapacityUnits"] > 1
