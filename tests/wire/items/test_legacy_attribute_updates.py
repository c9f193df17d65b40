"""The legacy parameter AttributeUpdates: PUT, ADD and DELETE by attribute."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.envelope import enveloped

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

INVALID = "One or more parameter values were invalid: "

BEFORE: dict[str, Any] = {
    "s": {"S": "text"},
    "n": {"N": "10"},
    "ss": {"SS": ["a", "b"]},
    "l": {"L": [{"S": "x"}]},
}


def action(name: str | None, value: dict[str, Any] | None = None) -> dict[str, Any]:
    return ({"Action": name} if name else {}) | ({"Value": value} if value is not None else {})


@pytest.mark.parametrize(
    ("updates", "changed"),
    [
        ({"s": action("PUT", {"N": "1"})}, {"s": {"N": "1"}}),
        ({"fresh": action("PUT", {"S": "a"})}, {"fresh": {"S": "a"}}),
        pytest.param(
            {"fresh": action(None, {"S": "a"})},
            {"fresh": {"S": "a"}},
            marks=differs_from_dynamodb_local("without an action it does nothing"),
        ),
        ({"n": action("ADD", {"N": "-3"})}, {"n": {"N": "7"}}),
        ({"fresh": action("ADD", {"N": "3"})}, {"fresh": {"N": "3"}}),
        ({"ss": action("ADD", {"SS": ["c", "a"]})}, {"ss": {"SS": ["a", "b", "c"]}}),
        ({"fresh": action("ADD", {"SS": ["c"]})}, {"fresh": {"SS": ["c"]}}),
        ({"l": action("ADD", {"L": [{"N": "1"}]})}, {"l": {"L": [{"S": "x"}, {"N": "1"}]}}),
        ({"fresh": action("ADD", {"L": [{"N": "1"}]})}, {"fresh": {"L": [{"N": "1"}]}}),
        ({"s": action("DELETE")}, {"s": None}),
        ({"nothing": action("DELETE")}, {}),
        ({"ss": action("DELETE", {"SS": ["a", "z"]})}, {"ss": {"SS": ["b"]}}),
        ({"ss": action("DELETE", {"SS": ["a", "b"]})}, {"ss": None}),
        (
            {"s": action("DELETE"), "n": action("ADD", {"N": "1"}), "v": action("PUT", {"S": "v"})},
            {"s": None, "n": {"N": "11"}, "v": {"S": "v"}},
        ),
        ({"a.b": action("PUT", {"S": "dotted"})}, {"a.b": {"S": "dotted"}}),
        ({}, {}),
    ],
)
def test_an_update_changes_an_item(
    wire: WireClient, simple: str, pk: str, *, updates: Any, changed: dict[str, Any]
):
    key = {"pk": {"S": pk}}
    wire("PutItem", {"TableName": simple, "Item": {**key, **BEFORE}})
    request = {
        "TableName": simple,
        "Key": key,
        "AttributeUpdates": updates,
        "ReturnValues": "ALL_NEW",
    }
    item = wire("UpdateItem", request)["Attributes"]
    expected = {name: value for name, value in (BEFORE | changed).items() if value is not None}
    if "ss" in item:
        item["ss"]["SS"].sort()
    assert item == {**key, **expected}


def test_an_update_of_a_missing_item_creates_it(wire: WireClient, simple: str, pk: str):
    request = {
        "TableName": simple,
        "Key": {"pk": {"S": pk}},
        "AttributeUpdates": {"n": action("ADD", {"N": "1"})},
        "ReturnValues": "UPDATED_NEW",
    }
    assert wire("UpdateItem", request) == {"Attributes": {"n": {"N": "1"}}}
    assert wire("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}})["Item"]


@differs_from_dynamodb_local("it creates the item")
def test_a_delete_alone_creates_no_item(wire: WireClient, simple: str, pk: str):
    request = {
        "TableName": simple,
        "Key": {"pk": {"S": pk}},
        "AttributeUpdates": {"n": action("DELETE")},
    }
    wire("UpdateItem", request)
    assert wire("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}}) == {}


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        *[
            (
                {"x": action(name)},
                INVALID + "Only DELETE action is allowed when no attribute value is specified",
            )
            for name in ("PUT", "ADD", None)
        ],
        pytest.param(
            {"s": action("DELETE", {"S": "a"})},
            INVALID + "DELETE action with value is not supported for the type S",
            marks=differs_from_dynamodb_local("it says STRING, NUMBER, BOOLEAN, MAP"),
        ),
        pytest.param(
            {"n": action("DELETE", {"N": "1"})},
            INVALID + "DELETE action with value is not supported for the type N",
            marks=differs_from_dynamodb_local("it says STRING, NUMBER, BOOLEAN, MAP"),
        ),
        pytest.param(
            {"x": action("ADD", {"S": "a"})},
            INVALID + "ADD action is not supported for the type S",
            marks=differs_from_dynamodb_local("it says STRING, NUMBER, BOOLEAN, MAP"),
        ),
        pytest.param(
            {"x": action("ADD", {"BOOL": True})},
            INVALID + "ADD action is not supported for the type BOOL",
            marks=differs_from_dynamodb_local("it says STRING, NUMBER, BOOLEAN, MAP"),
        ),
        pytest.param(
            {"x": action("ADD", {"M": {}})},
            INVALID + "ADD action is not supported for the type M",
            marks=differs_from_dynamodb_local("it says STRING, NUMBER, BOOLEAN, MAP"),
        ),
        (
            {"x": action("PUT", {"SS": []})},
            INVALID + "An string set  may not be empty",
        ),
    ],
)
def test_an_invalid_update_is_refused_and_changes_nothing(
    wire: WireClient, simple: str, pk: str, *, updates: Any, message: str
):
    check_refused(wire, simple, pk, updates, enveloped(message))


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        ({"s": action("ADD", {"N": "1"})}, "Type mismatch for attribute to update"),
        ({"n": action("ADD", {"SS": ["a"]})}, "Type mismatch for attribute to update"),
        ({"ss": action("ADD", {"NS": ["1"]})}, "Type mismatch for attribute to update"),
        ({"ss": action("DELETE", {"NS": ["1"]})}, "Type mismatch for attribute to update"),
        ({"s": action("DELETE", {"SS": ["1"]})}, "Type mismatch for attribute to update"),
        (
            {"pk": action("PUT", {"S": "a"})},
            INVALID + "Cannot update attribute pk. This attribute is part of the key",
        ),
        (
            {"pk": action("DELETE")},
            INVALID + "Cannot update attribute pk. This attribute is part of the key",
        ),
    ],
)
def test_an_update_that_the_table_or_the_item_refuses_changes_nothing(
    wire: WireClient, simple: str, pk: str, *, updates: Any, message: str
):
    check_refused(wire, simple, pk, updates, message)


def check_refused(wire: WireClient, table: str, pk: str, updates: Any, message: str) -> None:
    key = {"pk": {"S": pk}}
    wire("PutItem", {"TableName": table, "Item": {**key, **BEFORE}})
    request = {"TableName": table, "Key": key, "AttributeUpdates": updates}
    assert wire.refused("UpdateItem", request) == ("ValidationException", message)
    assert wire("GetItem", {"TableName": table, "Key": key})["Item"] == {**key, **BEFORE}
