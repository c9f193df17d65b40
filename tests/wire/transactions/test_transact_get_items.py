"""TransactGetItems reads items of several tables at one moment."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.lanes import LanesClient
from tests.support.tables.partiql import plain
from tests.support.tables.transactions import (
    NONE,
    Reason,
    cancelled,
    get,
    put,
    read,
    refused,
    write,
)

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

OPERATION = "TransactGetItems"


def items(answer: dict[str, Any]) -> list[dict[str, Any] | None]:
    return [plain(each["Item"]) if "Item" in each else None for each in answer["Responses"]]


def test_items_come_in_the_order_of_the_request(
    wire: WireClient, simple: str, composite: str, pk: str
) -> None:
    write(wire, put(simple, pk=pk, v=1), put(composite, pk=pk, sk="a", v=2))
    answer = read(
        wire, get(composite, pk=pk, sk="a"), get(simple, pk=f"{pk}none"), get(simple, pk=pk)
    )
    assert items(answer) == [{"pk": pk, "sk": "a", "v": 2}, None, {"pk": pk, "v": 1}]
    assert answer["Responses"][1] == {}
    assert set(answer) == {"Responses"}


def test_a_projection_selects_the_returned_attributes(
    wire: WireClient, simple: str, pk: str
) -> None:
    write(wire, put(simple, pk=pk, v=1, m={"a": 1, "b": 2}))
    shown = get(simple, pk=pk)["Get"] | {
        "ProjectionExpression": "#m.a",
        "ExpressionAttributeNames": {"#m": "m"},
    }
    assert items(read(wire, {"Get": shown})) == [{"m": {"a": 1}}]


@differs_from_dynamodb_local("it answers an empty item")
def test_an_item_is_left_out_if_the_projection_selects_nothing(
    wire: WireClient, lanes: LanesClient, simple: str, pk: str
) -> None:
    write(wire, put(simple, pk=pk, v=1), put(simple, pk=f"{pk}b", absent=2))
    projection = {"ProjectionExpression": "absent, m.x"}
    gets = [
        {"Get": get(simple, pk=key)["Get"] | projection} for key in (pk, f"{pk}b", f"{pk}missing")
    ]
    answer = read(lanes, *gets, ReturnConsumedCapacity="TOTAL")
    assert answer["Responses"] == [{}, {"Item": {"absent": {"N": "2"}}}, {}]
    assert answer["ConsumedCapacity"][0]["CapacityUnits"] == 6.0


@differs_from_dynamodb_local("tells only CapacityUnits, in no order")
def test_a_get_costs_two_units_for_4_kb_even_if_the_item_is_missing(
    wire: WireClient, simple: str, composite: str, pk: str
) -> None:
    write(wire, put(composite, pk=pk, sk="a", v="x" * 5_000))
    answer = read(
        wire,
        get(simple, pk=pk),
        get(composite, pk=pk, sk="a"),
        get(simple, pk=f"{pk}b"),
        ReturnConsumedCapacity="TOTAL",
    )
    units = {"CapacityUnits": 4.0, "ReadCapacityUnits": 4.0}
    assert answer["ConsumedCapacity"] == [
        {"TableName": simple, **units},
        {"TableName": composite, **units},
    ]
    answer = read(wire, get(composite, pk=pk, sk="a"), ReturnConsumedCapacity="INDEXES")
    assert answer["ConsumedCapacity"] == [{"TableName": composite, **units, "Table": units}]


def test_an_item_may_not_be_read_twice(wire: WireClient, simple: str, pk: str) -> None:
    assert refused(wire, get(simple, pk=pk), get(simple, pk=pk), operation=OPERATION) == (
        "ValidationException",
        "Transaction request cannot include multiple operations on one item",
    )


@differs_from_dynamodb_local("tells no reasons")
def test_an_invalid_key_cancels_the_transaction(wire: WireClient, simple: str, pk: str) -> None:
    no_match = Reason("ValidationError", "The provided key element does not match the schema")
    gets = (get(simple, pk=pk), get(simple, pk=1), get(simple, other="x"))
    assert cancelled(wire, *gets, operation=OPERATION) == [NONE, no_match, NONE]


def test_an_empty_key_is_a_fault_of_the_request(wire: WireClient, simple: str, pk: str) -> None:
    empty = (
        "One or more parameter values are not valid. The AttributeValue for a key attribute "
        "cannot contain an empty string value. Key: pk"
    )
    gets = (get(simple, pk=pk), get(simple, pk=""))
    assert refused(wire, *gets, operation=OPERATION) == ("ValidationException", empty)


def test_faults_of_a_request_refuse_it(wire: WireClient, simple: str, pk: str) -> None:
    bad = {"Get": get(simple, pk=pk)["Get"] | {"ProjectionExpression": "a..b"}}
    error, message = refused(wire, get(simple, pk=f"{pk}b"), bad, operation=OPERATION)
    assert error == "ValidationException"
    assert message is not None
    assert message.startswith("Invalid ProjectionExpression: Syntax error; token: ")
    error, _ = refused(wire, get("no-such-table-anywhere", pk=pk), operation=OPERATION)
    assert error == "ResourceNotFoundException"
    key_path = {"Get": get(simple, pk=pk)["Get"] | {"ProjectionExpression": "pk.a"}}
    error, _ = refused(wire, key_path, operation=OPERATION)
    assert error == "ValidationException"


@differs_from_dynamodb_local("words of its own")
def test_constraints_of_members_are_reported_like_any_others(wire: WireClient, simple: str) -> None:
    assert refused(wire, {}, operation=OPERATION) == (
        "ValidationException",
        (
            "1 validation error detected: Value null at 'transactItems.1.member.get' failed to "
            "satisfy constraint: Member must not be null"
        ),
    )
    gets = [get(simple, pk=f"{number}") for number in range(101)]
    shown = [
        f"TransactGetItem(get=Get(key={{pk=AttributeValue(s={number})}}, tableName={simple}))"
        for number in range(101)
    ]
    assert refused(wire, *gets, operation=OPERATION) == (
        "ValidationException",
        (
            f"1 validation error detected: Value '[{', '.join(shown)}]' at 'transactItems' failed "
            "to satisfy constraint: "
            "Member must have length less than or equal to 100"
        ),
    )


@differs_from_dynamodb_local("counts some bytes more")
def test_a_read_of_more_than_4_mb_is_refused(wire: WireClient, simple: str, pk: str) -> None:
    names = [f"{pk}-{number:02}" for number in range(12)]
    for name in names:
        wire(
            "PutItem",
            {"TableName": simple, "Item": put(simple, pk=name, v="x" * 390_000)["Put"]["Item"]},
        )
    size_bytes = 12 * (390_000 + len(names[0]) + 2 + 1)
    gets = [get(simple, pk=name) for name in names]
    assert refused(wire, *gets, operation=OPERATION) == (
        "ValidationException",
        f"Payload in response is too large.{size_bytes}",
    )
    assert len(read(wire, *gets[:10])["Responses"]) == 10
