"""Random queries, scans and pages of random tables, compared with brute force."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.condition_model import order
from tests.properties.strategies import Item, Value, binary_values, multiset, number_values, strings
from tests.support.clients.clients import WireClient
from tests.support.servers.server import running_server
from tests.support.tables.tables import local_index, table, unique_name

# Index key attributes and other attributes; an item may lack any of them.
rows = st.fixed_dictionaries(
    {"s": number_values},
    optional={"d": strings, "e": binary_values, "a": strings, "m": number_values},
)


class Source(NamedTuple):
    """A table or an index of it: its sort attribute, and the names it holds."""

    index_name: str | None
    sort: str
    held: frozenset[str] | None


SOURCES = (
    Source(None, "s", None),
    Source("all", "d", None),
    Source("keys", "e", frozenset(("p", "s", "e"))),
    Source("some", "a", frozenset(("p", "s", "a", "m"))),
)
OPERAND = {"s": number_values, "d": strings, "e": binary_values, "a": strings}


@pytest.fixture(
    scope="module",
    params=[
        (),
        pytest.param(
            ("--partitions-per-table", "7", "--copy-messages"),
            marks=pytest.mark.ours_alone("options of this server for testers"),
        ),
    ],
    ids=["as it is", "seven partitions"],
)
def wire(request: pytest.FixtureRequest, endpoint: str) -> Iterator[WireClient]:
    """The server as configured, and one whose tables have an odd number of partitions."""
    with ExitStack() as stack:
        if request.param:
            endpoint = stack.enter_context(running_server(*request.param)).endpoint
        yield stack.enter_context(closing(WireClient(endpoint)))


@pytest.fixture(scope="module")
def queried(wire: WireClient) -> Iterator[str]:
    """A table with an index of each projection."""
    indexes = (
        local_index("all", "p", "d"),
        local_index("keys", "p", "e", "KEYS_ONLY"),
        local_index("some", "p", "a", "INCLUDE", ("m",)),
    )
    with table(wire, "p:S", "s:N", "d:S", "e:B", "a:S", indexes=indexes) as name:
        yield name


class Range(NamedTuple):
    """A sort-key condition: an operator and its operands; without an operator, no condition."""

    operator: str = ""
    operands: tuple[Value, ...] = ()

    def text(self) -> str:
        """The condition as text of an expression on ``#s``."""
        match self.operator:
            case "BETWEEN":
                return "#s BETWEEN :o0 AND :o1"
            case "begins_with":
                return "begins_with(#s, :o0)"
        return f"#s {self.operator} :o0"

    def holds(self, value: Value) -> bool:
        """Whether a sort key is in the range."""
        found = order(value)
        operands = [order(operand) for operand in self.operands]
        match self.operator:
            case "":
                return True
            case "=":
                return bool(found == operands[0])
            case "<":
                return bool(found < operands[0])
            case "<=":
                return bool(found <= operands[0])
            case ">":
                return bool(found > operands[0])
            case ">=":
                return bool(found >= operands[0])
            case "BETWEEN":
                return bool(operands[0] <= found <= operands[1])
        return bool(found.startswith(operands[0]))


class Asked(NamedTuple):
    """A query of one partition."""

    source: Source
    range: Range
    forward: bool
    limit: int | None
    filter: Value | None


@st.composite
def queries(draw: st.DrawFn) -> Asked:
    source = draw(st.sampled_from(SOURCES))
    operand = OPERAND[source.sort]
    operators = ["", "=", "<", "<=", ">", ">=", "BETWEEN"]
    if source.sort != "s":
        operators.append("begins_with")
    operator = draw(st.sampled_from(operators))
    operands: tuple[Value, ...] = ()
    if operator == "BETWEEN":
        operands = tuple(sorted((draw(operand), draw(operand)), key=order))
    elif operator:
        operands = (draw(operand),)
    return Asked(
        source,
        Range(operator, operands),
        draw(st.booleans()),
        draw(st.one_of(st.none(), st.integers(1, 5))),
        # An index refuses a filter on attributes it does not hold.
        draw(st.one_of(st.none(), number_values)) if source.index_name != "keys" else None,
    )


def put_all(wire: WireClient, name: str, partition: str, held: list[Item]) -> list[Item]:
    """Put the rows under one partition key; a later row replaces one with the same sort key."""
    stored: dict[str, Item] = {}
    for row in held:
        item = {"p": {"S": partition}, **row}
        wire("PutItem", {"TableName": name, "Item": item})
        stored[row["s"]["N"]] = item
    return list(stored.values())


def entries(source: Source, held: list[Item]) -> list[Item]:
    """The source's entries of the items, in order."""
    found = [item for item in held if source.sort in item]
    found.sort(key=lambda item: order(item[source.sort]))
    if source.held is None:
        return found
    names = source.held
    return [{name: item[name] for name in item if name in names} for item in found]


def query_request(name: str, partition: str, asked: Asked) -> dict[str, Any]:
    """The Query, without a start key."""
    request: dict[str, Any] = {
        "TableName": name,
        "KeyConditionExpression": "p = :p",
        "ExpressionAttributeValues": {":p": {"S": partition}},
        "ScanIndexForward": asked.forward,
        "ConsistentRead": True,
    }
    if asked.range.operator:
        request["KeyConditionExpression"] += f" AND {asked.range.text()}"
        request["ExpressionAttributeNames"] = {"#s": asked.source.sort}
        for number, operand in enumerate(asked.range.operands):
            request["ExpressionAttributeValues"][f":o{number}"] = operand
    if asked.source.index_name is not None:
        request["IndexName"] = asked.source.index_name
    if asked.limit is not None:
        request["Limit"] = asked.limit
    if asked.filter is not None:
        request["FilterExpression"] = "m = :m"
        request["ExpressionAttributeValues"][":m"] = asked.filter
    return request


def pages(wire: WireClient, operation: str, request: dict[str, Any]) -> list[dict[str, Any]]:
    """All pages of a Query or Scan."""
    found = [wire(operation, request)]
    while "LastEvaluatedKey" in found[-1]:
        start = found[-1]["LastEvaluatedKey"]
        found.append(wire(operation, request | {"ExclusiveStartKey": start}))
    return found


@settings(max_examples=120, deadline=None)
@given(held=st.lists(rows, max_size=12), questions=st.lists(queries(), min_size=1, max_size=5))
def test_all_pages_of_a_query_together_are_the_brute_force_answer(
    wire: WireClient, queried: str, held: list[Item], questions: list[Asked]
) -> None:
    partition = unique_name("p")
    stored = put_all(wire, queried, partition, held)
    for asked in questions:
        in_range = [
            entry
            for entry in entries(asked.source, stored)
            if asked.range.holds(entry[asked.source.sort])
        ]
        expected = [
            entry for entry in in_range if asked.filter is None or entry.get("m") == asked.filter
        ]
        answers = pages(wire, "Query", query_request(queried, partition, asked))
        found = [item for answer in answers for item in answer["Items"]]
        assert multiset(found) == multiset(expected)
        sort_keys = [order(item[asked.source.sort]) for item in found]
        assert sort_keys == sorted(sort_keys, reverse=not asked.forward)
        assert sum(answer["ScannedCount"] for answer in answers) == len(in_range)
        assert [answer["Count"] for answer in answers] == [
            len(answer["Items"]) for answer in answers
        ]
        if asked.limit is not None:
            assert all(answer["ScannedCount"] <= asked.limit for answer in answers)
            # Every page except the last is full.
            assert all(answer["ScannedCount"] == asked.limit for answer in answers[:-1])


@settings(max_examples=80, deadline=None)
@given(
    held=st.lists(rows, max_size=10),
    source=st.sampled_from(SOURCES),
    direction=st.tuples(
        st.fixed_dictionaries({"s": number_values, "d": strings, "e": binary_values, "a": strings}),
        st.booleans(),
    ),
)
def test_a_query_continues_after_any_start_key(
    wire: WireClient,
    queried: str,
    held: list[Item],
    source: Source,
    direction: tuple[Item, bool],
) -> None:
    start, forward = direction
    partition = unique_name("p")
    stored = put_all(wire, queried, partition, held)
    asked = Asked(source, Range(), forward, None, None)
    names = dict.fromkeys(("s", source.sort))
    start_key = {"p": {"S": partition}, **{name: start[name] for name in names}}
    answer = wire(
        "Query", query_request(queried, partition, asked) | {"ExclusiveStartKey": start_key}
    )
    limit = order(start[source.sort])
    behind = [
        entry
        for entry in entries(source, stored)
        if (order(entry[source.sort]) > limit if forward else order(entry[source.sort]) < limit)
    ]
    # Leave out entries with the start key's sort key, because their order is not specified.
    found = [item for item in answer["Items"] if order(item[source.sort]) != limit]
    assert multiset(found) == multiset(behind)
    if source.index_name is None:
        assert len(found) == len(answer["Items"])


changes = st.lists(
    st.tuples(
        st.sampled_from(("put", "put", "update", "remove", "delete")),
        st.sampled_from(("x", "y")),
        rows,
    ),
    min_size=1,
    max_size=15,
)


def change(
    wire: WireClient, name: str, stored: dict[str, Item], step: tuple[str, str, Item]
) -> None:
    """Make a change, also in the model."""
    kind, partition, row = step
    key: Item = {"p": {"S": partition}, "s": row["s"]}
    at = partition + row["s"]["N"]
    others = {attribute: value for attribute, value in row.items() if attribute != "s"}
    match kind:
        case "put":
            wire("PutItem", {"TableName": name, "Item": key | others})
            stored[at] = key | others
        case "delete":
            wire("DeleteItem", {"TableName": name, "Key": key})
            stored.pop(at, None)
        case "update" if others:
            sets = ", ".join(f"{attribute} = :{attribute}" for attribute in others)
            request = {
                "TableName": name,
                "Key": key,
                "UpdateExpression": f"SET {sets}",
                "ExpressionAttributeValues": {f":{each}": others[each] for each in others},
            }
            wire("UpdateItem", request)
            stored[at] = stored.get(at, key) | others
        case "remove" if others:
            request = {
                "TableName": name,
                "Key": key,
                "UpdateExpression": f"REMOVE {', '.join(others)}",
            }
            wire("UpdateItem", request)
            if at in stored:
                stored[at] = {
                    attribute: value
                    for attribute, value in stored[at].items()
                    if attribute not in others
                }


@pytest.mark.differs_from_dynamodb_local("a REMOVE of a missing item makes one there")
@settings(max_examples=60, deadline=None)
@given(steps=changes, segments=st.integers(1, 5), limit=st.one_of(st.none(), st.integers(1, 4)))
def test_after_random_writes_every_index_equals_a_rebuild(
    wire: WireClient, steps: list[tuple[str, str, Item]], segments: int, limit: int | None
) -> None:
    indexes = (
        local_index("all", "p", "d"),
        local_index("keys", "p", "e", "KEYS_ONLY"),
        local_index("some", "p", "a", "INCLUDE", ("m",)),
    )
    with table(wire, "p:S", "s:N", "d:S", "e:B", "a:S", indexes=indexes) as name:
        stored: dict[str, Item] = {}
        for step in steps:
            change(wire, name, stored, step)
        for source in SOURCES:
            request: dict[str, Any] = {"TableName": name, "ConsistentRead": True}
            if source.index_name is not None:
                request["IndexName"] = source.index_name
            if limit is not None:
                request["Limit"] = limit
            found = [
                item
                for segment in range(segments)
                for answer in pages(
                    wire, "Scan", request | {"Segment": segment, "TotalSegments": segments}
                )
                for item in answer["Items"]
            ]
            assert multiset(found) == multiset(entries(source, list(stored.values())))
