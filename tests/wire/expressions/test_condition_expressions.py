"""Condition expressions at their limits, and errors that name the expression.

``tests/cases/expressions`` has the results of conditions.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.envelope import enveloped

VALUE: dict[str, Any] = {":v": {"S": "hello"}}


def request_of(table: str, pk: str, condition: str) -> dict[str, Any]:
    return {"TableName": table, "Key": {"pk": {"S": pk}}, "ConditionExpression": condition}


@pytest.mark.parametrize(
    "condition",
    [
        f"s IN ({', '.join(['nothing'] * 99 + [':v'])})",
        " OR ".join(["s=:v"] * 150),
        "s = :v".ljust(4096),
    ],
    ids=["operands", "operators", "size"],
)
def test_a_condition_at_a_limit_is_evaluated(
    wire: WireClient, simple: str, pk: str, condition: str
):
    wire("PutItem", {"TableName": simple, "Item": {"pk": {"S": pk}, "s": VALUE[":v"]}})
    request = request_of(simple, pk, condition) | {"ExpressionAttributeValues": VALUE}
    assert wire("UpdateItem", request) == {}


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("", "The expression can not be empty;"),
        (" ", 'Syntax error; token: "<EOF>", near: " "'),
        (
            "s = n".ljust(4097),
            "Expression size has exceeded the maximum allowed size; expression size: 4097",
        ),
        (
            " OR ".join(["s=n"] * 151),
            "The expression contains too many operators; operator count: 301",
        ),
    ],
    ids=["empty", "space", "size", "operators"],
)
def test_a_condition_beyond_a_limit_is_refused(
    wire: WireClient, simple: str, condition: str, message: str
):
    assert wire.refused("DeleteItem", request_of(simple, "refused", condition)) == (
        "ValidationException",
        enveloped(f"Invalid ConditionExpression: {message}"),
    )


def test_errors_of_a_filter_name_the_filter_expression(wire: WireClient, simple: str):
    assert wire.refused("Scan", {"TableName": simple, "FilterExpression": "((s = n))"}) == (
        "ValidationException",
        "Invalid FilterExpression: The expression has redundant parentheses;",
    )


def test_an_unknown_type_name_is_refused(wire: WireClient, simple: str):
    request = {
        **request_of(simple, "refused", "attribute_type(s, :type)"),
        "ExpressionAttributeValues": {":type": {"S": "STRING"}},
    }
    message = wire.refused("DeleteItem", request).message
    assert message is not None
    assert message.startswith(
        enveloped(
            "Invalid ConditionExpression: Invalid attribute type name found; type: STRING, "
            "valid types:"
        )
    )
