"""Updates of missing items and of keys, and empty expressions.

``tests/cases/expressions`` has the effects of updates on an item.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.envelope import enveloped
from tests.support.clients.lanes import LanesClient
from tests.support.tables.tables import unique_name

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

BEFORE: dict[str, Any] = {"s": {"S": "text"}, "n": {"N": "10"}}

VALUES: dict[str, Any] = {
    ":one": {"N": "1"},
    ":two": {"N": "2"},
    ":text": {"S": "new"},
    ":ss": {"SS": ["b", "c"]},
}


def placeholders(text: str) -> dict[str, Any]:
    words = "".join(c if c.isalnum() or c in ":#_" else " " for c in text).split()
    return {name: value for name, value in VALUES.items() if name in words}


def update_request(table: str, pk: str, expression: str, **members: Any) -> dict[str, Any]:
    request = {"TableName": table, "Key": {"pk": {"S": pk}}, "UpdateExpression": expression}
    if used := placeholders(expression):
        request["ExpressionAttributeValues"] = used
    return request | members


def updated(
    wire: WireClient, table: str, expression: str, before: dict[str, Any], **members: Any
) -> dict[str, Any]:
    """Put an item, update it, and return the new item without its key."""
    pk = unique_name("pk")
    wire("PutItem", {"TableName": table, "Item": {"pk": {"S": pk}, **before}})
    wire("UpdateItem", update_request(table, pk, expression, **members))
    item: dict[str, Any] = wire("GetItem", {"TableName": table, "Key": {"pk": {"S": pk}}})["Item"]
    assert item.pop("pk") == {"S": pk}
    return item


def test_removing_the_last_attribute_leaves_the_key(wire: WireClient, simple: str):
    assert updated(wire, simple, "REMOVE s", {"s": {"S": "a"}}) == {}


def test_an_update_of_a_missing_item_creates_it(wire: WireClient, simple: str, pk: str):
    wire("UpdateItem", update_request(simple, pk, "SET a = :one ADD b :two"))
    item = wire("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}})["Item"]
    assert item == {"pk": {"S": pk}, "a": {"N": "1"}, "b": {"N": "2"}}


@differs_from_dynamodb_local("it creates the item")
@pytest.mark.parametrize("expression", ["REMOVE a", "REMOVE a.b", "DELETE a :ss", "REMOVE l[0]"])
def test_a_remove_or_delete_alone_creates_no_item(
    wire: WireClient, simple: str, pk: str, expression: str
):
    assert wire("UpdateItem", update_request(simple, pk, expression)) == {}
    assert wire("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}}) == {}


def test_an_update_without_any_expression_creates_the_item(wire: WireClient, simple: str, pk: str):
    wire("UpdateItem", {"TableName": simple, "Key": {"pk": {"S": pk}}})
    item = wire("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}})["Item"]
    assert item == {"pk": {"S": pk}}


def test_set_from_a_missing_item_is_refused(wire: WireClient, simple: str, pk: str):
    assert wire.refused("UpdateItem", update_request(simple, pk, "SET a = a + :one")) == (
        "ValidationException",
        "The provided expression refers to an attribute that does not exist in the item",
    )


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "The expression can not be empty;"),
        (" ", 'Syntax error; token: "<EOF>", near: " "'),
    ],
)
def test_an_empty_update_expression_is_refused(
    wire: WireClient, simple: str, expression: str, message: str
):
    refusal = wire.refused("UpdateItem", update_request(simple, "refused", expression))
    assert refusal == (
        "ValidationException",
        enveloped(f"Invalid UpdateExpression: {message}"),
    )


def test_an_expression_over_4096_bytes_is_refused(wire: WireClient, simple: str):
    request = update_request(simple, "refused", "SET s = :one".ljust(4097))
    refusal = wire.refused("UpdateItem", request)
    assert refusal.type == "ValidationException"
    assert refusal.message is not None
    assert refusal.message.startswith(
        enveloped(
            "Invalid UpdateExpression: Expression size has exceeded the maximum allowed size;"
        )
    )


KEY_PART = (
    "One or more parameter values were invalid: Cannot update attribute pk. "
    "This attribute is part of the key"
)


@pytest.mark.parametrize(
    "expression",
    [
        "SET pk = :text",
        "SET pk = pk",
        "SET pk.x = :text",
        "REMOVE pk",
        "ADD pk :one",
        "DELETE pk :ss",
    ],
)
def test_an_update_of_the_key_is_refused_and_changes_nothing(
    lanes: LanesClient, simple: str, pk: str, expression: str
):
    lanes("PutItem", {"TableName": simple, "Item": {"pk": {"S": pk}, **BEFORE}})
    before = lanes("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}})
    request = update_request(simple, pk, expression)
    assert lanes.refused("UpdateItem", request) == ("ValidationException", KEY_PART)
    assert lanes("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}}) == before
