"""Placeholders of names and values must be defined, be used, and come with an expression."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.envelope import as_reported_by

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

KEY = {"pk": {"S": "k"}}


@pytest.mark.parametrize(
    ("operation", "members", "message"),
    [
        (
            "PutItem",
            {"ExpressionAttributeNames": {"#a": "a"}},
            "ExpressionAttributeNames can only be specified when using expressions",
        ),
        (
            "PutItem",
            {
                "Expected": {"a": {"Exists": False}},
                "ExpressionAttributeNames": {"#a": "a"},
            },
            "ExpressionAttributeNames can only be specified when using expressions",
        ),
        (
            "PutItem",
            {"ExpressionAttributeValues": {":a": {"S": "a"}}},
            "ExpressionAttributeValues can only be specified when using expressions",
        ),
        (
            "DeleteItem",
            {"ExpressionAttributeValues": {":a": {"S": "a"}}},
            "ExpressionAttributeValues can only be specified when using expressions",
        ),
        (
            "UpdateItem",
            {"ExpressionAttributeValues": {":a": {"S": "a"}}},
            "ExpressionAttributeValues can only be specified when using expressions",
        ),
        (
            "GetItem",
            {"ExpressionAttributeNames": {"#a": "a"}},
            "ExpressionAttributeNames can only be specified when using expressions",
        ),
        (
            "Scan",
            {"ExpressionAttributeValues": {":a": {"S": "a"}}},
            (
                "ExpressionAttributeValues can only be specified when using expressions: "
                "FilterExpression is null"
            ),
        ),
        (
            "DeleteItem",
            {"ConditionExpression": "a = b", "ExpressionAttributeNames": {}},
            "ExpressionAttributeNames must not be empty",
        ),
        (
            "DeleteItem",
            {"ConditionExpression": "a = b", "ExpressionAttributeValues": {}},
            "ExpressionAttributeValues must not be empty",
        ),
        (
            "DeleteItem",
            {"ConditionExpression": "a = b", "ExpressionAttributeNames": {"a": "b"}},
            'ExpressionAttributeNames contains invalid key: Syntax error; key: "a"',
        ),
        (
            "DeleteItem",
            {"ConditionExpression": "a = b", "ExpressionAttributeNames": {"#a-b": "b"}},
            'ExpressionAttributeNames contains invalid key: Syntax error; key: "#a-b"',
        ),
        (
            "DeleteItem",
            {"ConditionExpression": "a = b", "ExpressionAttributeNames": {"#": "b"}},
            'ExpressionAttributeNames contains invalid key: Syntax error; key: "#"',
        ),
        (
            "DeleteItem",
            {"ConditionExpression": "a = b", "ExpressionAttributeValues": {"a": {"S": "b"}}},
            'ExpressionAttributeValues contains invalid key: Syntax error; key: "a"',
        ),
        (
            "DeleteItem",
            {"ConditionExpression": "a = b", "ExpressionAttributeValues": {":a": {}}},
            (
                "ExpressionAttributeValues contains invalid value: Supplied AttributeValue is "
                "empty, "
                "must contain exactly one of the supported datatypes for key :a"
            ),
        ),
        (
            "Scan",
            {"FilterExpression": "a = b", "ExpressionAttributeValues": {":a": {"SS": []}}},
            (
                "ExpressionAttributeValues contains invalid value: One or more parameter values "
                "were invalid: An string set  may not be empty for key :a"
            ),
        ),
        pytest.param(
            "DeleteItem",
            {"ConditionExpression": "a = b", "ExpressionAttributeValues": {":a": {"N": "x"}}},
            "The parameter cannot be converted to a numeric value: x",
            marks=differs_from_dynamodb_local("other words for no number"),
        ),
        (
            "DeleteItem",
            {"ConditionExpression": "a = b", "ExpressionAttributeNames": {"#a": "b"}},
            "Value provided in ExpressionAttributeNames unused in expressions: keys: {#a}",
        ),
        (
            "DeleteItem",
            {"ConditionExpression": "a = b", "ExpressionAttributeValues": {":a": {"S": "b"}}},
            "Value provided in ExpressionAttributeValues unused in expressions: keys: {:a}",
        ),
        (
            "GetItem",
            {"ProjectionExpression": "a", "ExpressionAttributeNames": {"#a": "b"}},
            "Value provided in ExpressionAttributeNames unused in expressions: keys: {#a}",
        ),
        (
            "Scan",
            {
                "FilterExpression": "a = :a",
                "ExpressionAttributeValues": {":a": {"S": "b"}, ":b": {"S": "b"}},
            },
            "Value provided in ExpressionAttributeValues unused in expressions: keys: {:b}",
        ),
        (
            "UpdateItem",
            {
                "UpdateExpression": "SET a = :a",
                "ExpressionAttributeValues": {":a": {"S": "b"}},
                "ExpressionAttributeNames": {"#b": "b"},
            },
            "Value provided in ExpressionAttributeNames unused in expressions: keys: {#b}",
        ),
    ],
)
def test_invalid_placeholders_are_refused(
    wire: WireClient, simple: str, operation: str, members: Any, message: str
):
    place = {"Item": KEY} if operation == "PutItem" else {} if operation == "Scan" else {"Key": KEY}
    refusal = wire.refused(operation, {"TableName": simple, **place, **members})
    assert refusal == ("ValidationException", as_reported_by(operation, message))


@pytest.mark.parametrize(
    ("operation", "legacy", "expressions"),
    [
        ("PutItem", {"Expected": {"a": {"Exists": False}}}, {"ConditionExpression": "a = b"}),
        ("DeleteItem", {"Expected": {"a": {"Exists": False}}}, {"ConditionExpression": "a = b"}),
        (
            "UpdateItem",
            {"AttributeUpdates": {"a": {"Action": "DELETE"}}},
            {"UpdateExpression": "REMOVE a"},
        ),
        (
            "UpdateItem",
            {"AttributeUpdates": {"a": {"Action": "DELETE"}}},
            {"ConditionExpression": "a = b"},
        ),
        ("GetItem", {"AttributesToGet": ["a"]}, {"ProjectionExpression": "b"}),
        ("Scan", {"AttributesToGet": ["a"]}, {"ProjectionExpression": "b"}),
        (
            "Scan",
            {"ScanFilter": {"a": {"ComparisonOperator": "NULL"}}},
            {"FilterExpression": "a = b"},
        ),
    ],
)
def test_expressions_with_legacy_parameters_are_refused(
    wire: WireClient, simple: str, operation: str, legacy: Any, expressions: Any
):
    place = {"Item": KEY} if operation == "PutItem" else {} if operation == "Scan" else {"Key": KEY}
    refusal = wire.refused(operation, {"TableName": simple, **place, **legacy, **expressions})
    assert refusal == (
        "ValidationException",
        as_reported_by(
            operation,
            "Can not use both expression and non-expression parameters in the same request: "
            f"Non-expression parameters: {{{', '.join(legacy)}}} "
            f"Expression parameters: {{{', '.join(expressions)}}}",
        ),
    )


def test_unused_values_are_refused_even_if_the_condition_is_false(wire: WireClient, simple: str):
    request = {
        "TableName": simple,
        "Key": KEY,
        "ConditionExpression": "attribute_exists(nothing)",
        "ExpressionAttributeValues": {":a": {"S": "a"}},
    }
    assert wire.refused("DeleteItem", request).type == "ValidationException"


def test_a_filter_is_validated_even_if_no_item_matches_the_key(
    wire: WireClient, simple: str, pk: str
):
    request = {
        "TableName": simple,
        "KeyConditionExpression": "pk = :pk",
        "FilterExpression": "a = :missing",
        "ExpressionAttributeValues": {":pk": {"S": pk}},
    }
    assert wire.refused("Query", request) == (
        "ValidationException",
        (
            "Invalid FilterExpression: An expression attribute value used in expression is not "
            "defined; attribute value: :missing"
        ),
    )


def test_several_expressions_may_use_one_placeholder(wire: WireClient, simple: str, pk: str):
    request = {
        "TableName": simple,
        "Key": {"pk": {"S": pk}},
        "UpdateExpression": "SET #a = :a",
        "ConditionExpression": "attribute_not_exists(#a) AND NOT #a = :a",
        "ExpressionAttributeNames": {"#a": "size"},
        "ExpressionAttributeValues": {":a": {"S": "a"}},
        "ReturnValues": "ALL_NEW",
    }
    assert wire("UpdateItem", request)["Attributes"]["size"] == {"S": "a"}
