"""Limits of expressions: depth of paths, length of placeholders, sizes of names and values."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient


def path(levels: int) -> str:
    return ".".join(["m"] * levels)


@pytest.mark.parametrize(
    "members",
    [
        {"ProjectionExpression": path(32)},
        {"FilterExpression": f"{path(32)} = m"},
        {
            "ProjectionExpression": "#" + "n" * 254,
            "ExpressionAttributeNames": {"#" + "n" * 254: "a"},
        },
        {"ProjectionExpression": "#n", "ExpressionAttributeNames": {"#n": "n" * 65_535}},
    ],
)
def test_an_expression_at_the_limit_is_accepted(wire: WireClient, simple: str, members: Any):
    assert wire.send("Scan", {"TableName": simple, **members}).status == 200


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"ProjectionExpression": path(33)},
            (
                "Invalid ProjectionExpression: The document path has too many nesting levels; "
                "nesting levels: 33"
            ),
        ),
        (
            {"FilterExpression": f"{path(33)} = m"},
            (
                "Invalid FilterExpression: The document path has too many nesting levels; "
                "nesting levels: 33"
            ),
        ),
        (
            {
                "ProjectionExpression": "#" + "n" * 255,
                "ExpressionAttributeNames": {"#" + "n" * 255: "a"},
            },
            (
                "ExpressionAttributeNames contains invalid key: The expression attribute map "
                "contains "
                "a key that is too long; size of key: 256"
            ),
        ),
        (
            {"ProjectionExpression": "#n", "ExpressionAttributeNames": {"#n": "n" * 65_536}},
            (
                "ExpressionAttributeNames contains invalid value: Attribute name is too large, "
                "must "
                "be less than 65536 bytes for key #n"
            ),
        ),
        (
            {
                "FilterExpression": "v IN (:a, :b, :c, :d, :e, :f)",
                "ExpressionAttributeValues": {
                    f":{name}": {"S": "x" * 400_000} for name in "abcdef"
                },
            },
            "ExpressionAttributeValues exceeds max size",
        ),
    ],
)
def test_an_expression_over_the_limit_is_refused(
    wire: WireClient, simple: str, members: Any, message: str
):
    refusal = wire.refused("Scan", {"TableName": simple, **members})
    assert refusal == ("ValidationException", message)


def test_a_value_placeholder_over_255_bytes_is_refused(wire: WireClient, simple: str):
    name = ":" + "v" * 255
    request = {
        "TableName": simple,
        "FilterExpression": f"a = {name}",
        "ExpressionAttributeValues": {name: {"S": "a"}},
    }
    refusal = wire.refused("Scan", request)
    assert refusal.type == "ValidationException"
    assert refusal.message is not None
    assert refusal.message.startswith(
        "ExpressionAttributeValues contains invalid key: The expression attribute map contains a "
        "key that is too long;"
    )


def test_the_type_of_attribute_type_must_be_a_placeholder(wire: WireClient, simple: str):
    request = {"TableName": simple, "FilterExpression": "attribute_type(a, b)"}
    refusal = wire.refused("Scan", request)
    assert refusal.type == "ValidationException"
    assert refusal.message is not None
    assert refusal.message.startswith(
        "Invalid FilterExpression: Incorrect operand type for operator or function; "
        "operator or function: attribute_type, operand type: {"
    )
