"""Violated constraints of the service model are reported together, as in DynamoDB.

dynalite's authors collected the messages, the order of the constraints and the order of
enumerations from the service.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.envelope import enveloped

pytestmark = pytest.mark.differs_from_dynamodb_local("it has other words for the model's rules")

KEY = {"pk": {"S": "p"}, "sk": {"S": "s"}}


def detected(*violations: str) -> str:
    plural = "s" if len(violations) > 1 else ""
    return f"{len(violations)} validation error{plural} detected: {'; '.join(violations)}"


def violation(value: str, place: str, constraint: str) -> str:
    return f"Value {value} at '{place}' failed to satisfy constraint: {constraint}"


def null(place: str) -> str:
    return violation("null", place, "Member must not be null")


def at_least(value: object, place: str, bound: int) -> str:
    return violation(
        f"'{value}'", place, f"Member must have value greater than or equal to {bound}"
    )


def at_most(value: object, place: str, bound: int) -> str:
    return violation(f"'{value}'", place, f"Member must have value less than or equal to {bound}")


def short(value: str, place: str, bound: int = 3) -> str:
    return violation(
        f"'{value}'", place, f"Member must have length greater than or equal to {bound}"
    )


def long(value: str, place: str, bound: int = 255) -> str:
    return violation(f"'{value}'", place, f"Member must have length less than or equal to {bound}")


def pattern(value: str, place: str) -> str:
    return violation(
        f"'{value}'", place, "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
    )


def one_of(value: str, place: str, *values: str) -> str:
    return violation(
        f"'{value}'", place, f"Member must satisfy enum value set: [{', '.join(values)}]"
    )


RETURN_VALUES = (
    "Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"
)
CAPACITY = ("INDEXES", "TOTAL", "NONE")
SELECT = ("SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES")


@pytest.mark.parametrize(
    ("operation", "members", "message"),
    [
        ("ListTables", {"Limit": 0}, detected(at_least(0, "limit", 1))),
        ("ListTables", {"Limit": -7}, detected(at_least(-7, "limit", 1))),
        ("ListTables", {"Limit": 101}, detected(at_most(101, "limit", 100))),
        (
            "ListTables",
            {"ExclusiveStartTableName": "ab"},
            detected(short("ab", "exclusiveStartTableName")),
        ),
        (
            "ListTables",
            {"ExclusiveStartTableName": "a" * 256},
            detected(long("a" * 256, "exclusiveStartTableName")),
        ),
        (
            "ListTables",
            {"ExclusiveStartTableName": "a;b"},
            detected(pattern("a;b", "exclusiveStartTableName")),
        ),
        (
            "ListTables",
            {"ExclusiveStartTableName": ";"},
            detected(
                pattern(";", "exclusiveStartTableName"), short(";", "exclusiveStartTableName")
            ),
        ),
        ("GetItem", {"Key": KEY}, detected(null("tableName"))),
        ("GetItem", {"TableName": "abc"}, detected(null("key"))),
        ("PutItem", {"TableName": "abc"}, detected(null("item"))),
        ("UpdateItem", {"TableName": "abc"}, detected(null("key"))),
        ("DeleteItem", {"TableName": "abc"}, detected(null("key"))),
        ("BatchGetItem", {}, detected(null("requestItems"))),
        ("BatchWriteItem", {}, detected(null("requestItems"))),
        ("Query", {}, detected(null("tableName"))),
        ("Scan", {}, detected(null("tableName"))),
        (
            "PutItem",
            {"TableName": "abc", "Item": {}, "ReturnValues": "ALL"},
            enveloped(f"Failed to satisfy constraint: {RETURN_VALUES}"),
        ),
        (
            "PutItem",
            {"TableName": "abc", "Item": {}, "ReturnConsumedCapacity": "total"},
            detected(one_of("total", "returnConsumedCapacity", *CAPACITY)),
        ),
        (
            "PutItem",
            {"TableName": "abc", "Item": {}, "ReturnItemCollectionMetrics": "ALL"},
            detected(one_of("ALL", "returnItemCollectionMetrics", "SIZE", "NONE")),
        ),
        (
            "DeleteItem",
            {"TableName": "abc", "Key": {}, "ConditionalOperator": "XOR"},
            enveloped(
                "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]"
            ),
        ),
        (
            "Query",
            {"TableName": "abc", "Select": "SOME"},
            detected(one_of("SOME", "select", *SELECT)),
        ),
        ("Scan", {"TableName": "abc", "Limit": 0}, detected(at_least(0, "limit", 1))),
        (
            "Scan",
            {"TableName": "abc", "Segment": -1, "TotalSegments": 1},
            detected(at_least(-1, "segment", 0)),
        ),
        (
            "Scan",
            {"TableName": "abc", "Segment": 0, "TotalSegments": 0},
            detected(at_least(0, "totalSegments", 1)),
        ),
        (
            "Scan",
            {"TableName": "abc", "Segment": 0, "TotalSegments": 1_000_001},
            detected(at_most(1_000_001, "totalSegments", 1_000_000)),
        ),
        ("Scan", {"TableName": "abc", "IndexName": "ab"}, detected(short("ab", "indexName"))),
        ("Scan", {"TableName": "abc", "IndexName": "a/b"}, detected(pattern("a/b", "indexName"))),
        (
            "BatchGetItem",
            {"RequestItems": {"abc": {}}},
            detected(null("requestItems.abc.member.keys")),
        ),
        (
            "BatchWriteItem",
            {"RequestItems": {"abc": [{"PutRequest": {}}]}},
            detected(null("requestItems.abc.member.1.member.putRequest.item")),
        ),
        (
            "BatchWriteItem",
            {"RequestItems": {"abc": [{"DeleteRequest": {}}]}},
            detected(null("requestItems.abc.member.1.member.deleteRequest.key")),
        ),
        (
            "Scan",
            {"TableName": "abc", "AttributesToGet": []},
            detected(short("[]", "attributesToGet", 1)),
        ),
        (
            "CreateTable",
            {"TableName": "abc", "AttributeDefinitions": []},
            detected(null("keySchema")),
        ),
        (
            "CreateTable",
            {
                "TableName": "abc",
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "BOOL"}],
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            },
            detected(one_of("BOOL", "attributeDefinitions.1.member.attributeType", "B", "N", "S")),
        ),
        (
            "CreateTable",
            {
                "TableName": "abc",
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "pk", "KeyType": "KEY"}],
            },
            detected(one_of("KEY", "keySchema.1.member.keyType", "HASH", "RANGE")),
        ),
        (
            "Query",
            {"TableName": "abc", "KeyConditions": {"pk": {}}},
            detected(null("keyConditions.pk.member.comparisonOperator")),
        ),
        (
            "UpdateTable",
            {"TableName": "abc", "ProvisionedThroughput": {"ReadCapacityUnits": 1}},
            detected(null("provisionedThroughput.writeCapacityUnits")),
        ),
    ],
)
def test_a_rule_of_the_model_is_reported(
    wire: WireClient, operation: str, members: Any, message: str
):
    assert wire.refused(operation, members) == ("ValidationException", message)


@pytest.mark.parametrize(
    ("operation", "members", "expected"),
    [
        (
            "ListTables",
            {"Limit": 0, "ExclusiveStartTableName": "a;"},
            {
                at_least(0, "limit", 1),
                short("a;", "exclusiveStartTableName"),
                pattern("a;", "exclusiveStartTableName"),
            },
        ),
        (
            "PutItem",
            {"ReturnValues": "ALL", "ReturnConsumedCapacity": "ALL"},
            {
                null("tableName"),
                null("item"),
                one_of(
                    "ALL",
                    "returnValues",
                    *("ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"),
                ),
                one_of("ALL", "returnConsumedCapacity", *CAPACITY),
            },
        ),
        (
            "Scan",
            {"Limit": 0, "Select": "SOME", "TotalSegments": 0, "Segment": -1},
            {
                null("tableName"),
                at_least(0, "limit", 1),
                one_of("SOME", "select", *SELECT),
                at_least(0, "totalSegments", 1),
                at_least(-1, "segment", 0),
            },
        ),
    ],
)
def test_several_broken_rules_are_reported_together(
    wire: WireClient, operation: str, members: Any, expected: set[str]
):
    kind, message = wire.refused(operation, members)
    assert kind == "ValidationException"
    assert message is not None
    count, _, violations = message.partition(" validation errors detected: ")
    assert int(count) == len(expected)
    assert set(violations.split("; ")) == expected


def test_constraints_of_the_model_are_checked_before_values(wire: WireClient):
    item = {"v": {"N": "no number"}}
    request = {"TableName": "abc", "Item": item, "ReturnValues": "ALL"}
    message = wire.refused("PutItem", request).message
    assert message == enveloped(f"Failed to satisfy constraint: {RETURN_VALUES}")


def test_json_types_are_checked_before_constraints_of_the_model(wire: WireClient):
    request = {"TableName": "abc", "Item": {"v": {"S": 1}}, "ReturnValues": "ALL"}
    assert wire.refused("PutItem", request) == (
        "SerializationException",
        "NUMBER_VALUE cannot be converted to String",
    )


def test_values_are_checked_before_the_table(wire: WireClient):
    request = {"TableName": "no-such-table-anywhere", "Item": {"v": {"N": "x"}}}
    assert wire.refused("PutItem", request) == (
        "ValidationException",
        enveloped("The parameter cannot be converted to a numeric value: x"),
    )


def test_expressions_are_checked_before_the_table(wire: WireClient):
    request = {"TableName": "no-such-table-anywhere", "Key": KEY, "UpdateExpression": "SET"}
    assert wire.refused("UpdateItem", request) == (
        "ValidationException",
        enveloped('Invalid UpdateExpression: Syntax error; token: "<EOF>", near: "SET"'),
    )


def test_the_table_is_checked_before_the_key(wire: WireClient):
    request = {"TableName": "no-such-table-anywhere", "Key": {}}
    assert wire.refused("GetItem", request).type == "ResourceNotFoundException"


def test_the_key_is_checked_before_the_condition(wire: WireClient, simple: str):
    request = {
        "TableName": simple,
        "Key": {"sk": {"S": "s"}},
        "ConditionExpression": "attribute_exists(nothing)",
    }
    assert wire.refused("DeleteItem", request) == (
        "ValidationException",
        "The provided key element does not match the schema",
    )


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"TableName": 1}, "NUMBER_VALUE cannot be converted to String"),
        ({"TableName": 1.5}, "DECIMAL_VALUE cannot be converted to String"),
        ({"TableName": True}, "TRUE_VALUE cannot be converted to String"),
        ({"TableName": {}}, "Start of structure or map found where not expected"),
        ({"ConsistentRead": 1}, "NUMBER_VALUE cannot be converted to Boolean"),
        ({"ConsistentRead": "maybe"}, "Unexpected token received from parser"),
        ({"Limit": "1"}, "STRING_VALUE cannot be converted to Integer"),
        ({"Limit": True}, "TRUE_VALUE cannot be converted to Integer"),
        ({"Limit": {}}, "Start of structure or map found where not expected"),
        ({"ExclusiveStartKey": {"pk": "a"}}, "Unexpected value type in payload"),
    ],
)
def test_a_member_of_the_wrong_json_type_is_a_serialization_error(
    wire: WireClient, simple: str, members: Any, message: str
):
    refusal = wire.refused("Scan", {"TableName": simple, **members})
    assert refusal == ("SerializationException", message)


@pytest.mark.parametrize(
    "members",
    [
        {"TableName": []},
        {"AttributesToGet": "a"},
        {"AttributesToGet": {}},
        {"AttributesToGet": [1]},
        {"ExclusiveStartKey": []},
        {"ExclusiveStartKey": "a"},
        {"ExpressionAttributeNames": {"#a": 1}},
        {"ExpressionAttributeNames": []},
        {"ExpressionAttributeValues": {":a": "text"}},
        {"ScanFilter": {"a": "b"}},
    ],
)
def test_json_of_another_shape_is_a_serialization_error(
    wire: WireClient, simple: str, members: Any
):
    refusal = wire.refused("Scan", {"TableName": simple, **members})
    assert refusal.type == "SerializationException"
