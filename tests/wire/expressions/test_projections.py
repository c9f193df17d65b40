"""Projections of all operations that read, and the four values of Select.

``tests/cases/expressions`` has the results of projections.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.tables.tables import unique_name

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

DOCUMENT: dict[str, Any] = {
    "s": {"S": "text"},
    "m": {"M": {"x": {"N": "1"}, "y": {"M": {"z": {"S": "deep"}, "w": {"NULL": True}}}}},
    "l": {"L": [{"S": "0"}, {"M": {"a": {"S": "1a"}, "b": {"S": "1b"}}}, {"S": "2"}, {"S": "3"}]},
    "a.b": {"S": "dotted"},
}


@pytest.fixture(scope="module")
def key(wire: WireClient, composite: str) -> dict[str, Any]:
    """The key of an item with nested attributes."""
    key = {"pk": {"S": unique_name("pk")}, "sk": {"S": "s"}}
    wire("PutItem", {"TableName": composite, "Item": {**key, **DOCUMENT}})
    return key


@pytest.mark.parametrize(
    ("projection", "names", "expected"),
    [
        (
            "l[1].b, l[3], s",
            None,
            {"l": {"L": [{"M": {"b": {"S": "1b"}}}, {"S": "3"}]}, "s": {"S": "text"}},
        ),
        ("#dotted", {"#dotted": "a.b"}, {"a.b": {"S": "dotted"}}),
        ("  s  ,  m.x  ", None, {"s": {"S": "text"}, "m": {"M": {"x": {"N": "1"}}}}),
    ],
)
def test_all_reads_return_the_paths_of_a_projection(
    wire: WireClient,
    composite: str,
    key: dict[str, Any],
    *,
    projection: str,
    names: Any,
    expected: Any,
):
    members = {"ProjectionExpression": projection} | (
        {"ExpressionAttributeNames": names} if names else {}
    )
    got = wire("GetItem", {"TableName": composite, "Key": key, **members})
    assert got == {"Item": expected}
    query = {
        "TableName": composite,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": key["pk"]},
        **members,
    }
    assert wire("Query", query)["Items"] == [expected]
    batch = wire("BatchGetItem", {"RequestItems": {composite: {"Keys": [key], **members}}})
    assert batch["Responses"][composite] == [expected]


def test_an_empty_projection_is_refused(wire: WireClient, composite: str):
    request = {"TableName": composite, "ProjectionExpression": ""}
    assert wire.refused("Scan", request) == (
        "ValidationException",
        "Invalid ProjectionExpression: The expression can not be empty;",
    )


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"Select": "SPECIFIC_ATTRIBUTES"},
            (
                "Must specify the AttributesToGet or ProjectionExpression when choosing to get "
                "SPECIFIC_ATTRIBUTES"
            ),
        ),
        (
            {"Select": "ALL_PROJECTED_ATTRIBUTES"},
            "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
        ),
        (
            {"Select": "COUNT", "ProjectionExpression": "v"},
            "Cannot specify the ProjectionExpression when choosing to get only the Count",
        ),
        (
            {"Select": "ALL_ATTRIBUTES", "ProjectionExpression": "v"},
            "Cannot specify the ProjectionExpression when choosing to get ALL_ATTRIBUTES",
        ),
        (
            {
                "Select": "ALL_PROJECTED_ATTRIBUTES",
                "ProjectionExpression": "v",
                "IndexName": "by-all",
            },
            "Cannot specify the ProjectionExpression when choosing to get ALL_PROJECTED_ATTRIBUTES",
        ),
        (
            {"Select": "COUNT", "AttributesToGet": ["v"]},
            "Cannot specify the AttributesToGet when choosing to get only the Count",
        ),
    ],
)
@pytest.mark.differs_from_dynamodb_local("no prefix for a Query")
@pytest.mark.parametrize("operation", ["Query", "Scan"])
def test_contradictory_select_and_projection_are_refused(
    wire: WireClient, indexed: str, operation: str, members: Any, message: str
):
    request: dict[str, Any] = {"TableName": indexed, **members}
    if operation == "Query" and "AttributesToGet" in members:
        request["KeyConditions"] = {
            "pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "p"}]}
        }
    elif operation == "Query":
        request["KeyConditionExpression"] = "pk = :pk"
        request["ExpressionAttributeValues"] = {":pk": {"S": "p"}}
    reported = f"1 validation error detected: {message}" if operation == "Query" else message
    assert wire.refused(operation, request) == ("ValidationException", reported)


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("ALL_ATTRIBUTES", {"pk", "sk", "b", "x", "z"}),
        ("ALL_PROJECTED_ATTRIBUTES", {"pk", "sk", "b", "x"}),
    ],
)
def test_select_determines_the_attributes_that_an_index_query_returns(
    wire: WireClient, indexed: str, pk: str, select: str, expected: set[str]
):
    item = {
        "pk": {"S": pk},
        "sk": {"S": "s"},
        "b": {"B": "AA=="},
        "x": {"S": "x"},
        "z": {"S": "z"},
    }
    wire("PutItem", {"TableName": indexed, "Item": item})
    request = {
        "TableName": indexed,
        "IndexName": "by-some",
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": pk}},
        "Select": select,
    }
    assert wire("Query", request)["Items"][0].keys() == expected


def test_specific_attributes_returns_the_attributes_of_the_projection(
    wire: WireClient, composite: str, key: dict[str, Any]
):
    request = {
        "TableName": composite,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": key["pk"]},
        "ProjectionExpression": "s",
        "Select": "SPECIFIC_ATTRIBUTES",
    }
    assert wire("Query", request)["Items"] == [{"s": {"S": "text"}}]
