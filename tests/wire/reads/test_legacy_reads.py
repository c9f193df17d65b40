"""The legacy parameters of reads: KeyConditions, filters, AttributesToGet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.tables.tables import local_index, table

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

INVALID = "One or more parameter values were invalid: "


def compare(operator: str, *values: dict[str, Any]) -> dict[str, Any]:
    return {"ComparisonOperator": operator, "AttributeValueList": list(values)}


def text(value: str) -> dict[str, str]:
    return {"S": value}


PARTITION = {"pk": compare("EQ", text("p"))}


@pytest.fixture(scope="module")
def five(wire: WireClient) -> Iterator[str]:
    """A table with the items ``a`` to ``e`` in one partition."""
    indexes = (local_index("by-n", "pk", "n", "KEYS_ONLY"),)
    with table(wire, "pk:S", "sk:S", "n:N", indexes=indexes) as name:
        for at, sort in enumerate("abcde"):
            item = {
                "pk": text("p"),
                "sk": text(sort),
                "n": {"N": str(-at)},
                "v": text("even" if at % 2 == 0 else "odd"),
            }
            wire("PutItem", {"TableName": name, "Item": item})
        yield name


def found(answer: dict[str, Any]) -> str:
    return "".join(item["sk"]["S"] for item in answer["Items"])


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, "abcde"),
        ({"sk": compare("EQ", text("c"))}, "c"),
        ({"sk": compare("LT", text("c"))}, "ab"),
        ({"sk": compare("LE", text("c"))}, "abc"),
        ({"sk": compare("GT", text("c"))}, "de"),
        ({"sk": compare("GE", text("c"))}, "cde"),
        ({"sk": compare("BETWEEN", text("b"), text("d"))}, "bcd"),
        ({"sk": compare("BEGINS_WITH", text("d"))}, "d"),
    ],
)
def test_key_conditions_narrow_a_query(wire: WireClient, five: str, conditions: Any, expected: str):
    request = {"TableName": five, "KeyConditions": {**PARTITION, **conditions}}
    assert found(wire("Query", request)) == expected
    request["ScanIndexForward"] = False
    assert found(wire("Query", request)) == expected[::-1]


def test_key_conditions_work_on_an_index(wire: WireClient, five: str):
    request = {
        "TableName": five,
        "IndexName": "by-n",
        "KeyConditions": {**PARTITION, "n": compare("LT", {"N": "-1"})},
    }
    assert found(wire("Query", request)) == "edc"


@pytest.mark.parametrize(
    ("filter_", "operator", "expected"),
    [
        ({"v": compare("EQ", text("odd"))}, None, "bd"),
        ({"v": compare("EQ", text("odd")), "n": compare("GT", {"N": "-3"})}, None, "b"),
        ({"v": compare("EQ", text("odd")), "n": compare("GT", {"N": "-3"})}, "AND", "b"),
        ({"v": compare("EQ", text("odd")), "n": compare("GT", {"N": "-1"})}, "OR", "abd"),
        ({"nothing": {"ComparisonOperator": "NULL"}}, None, "abcde"),
        ({"v": {"ComparisonOperator": "NOT_NULL"}}, None, "abcde"),
        ({"v": compare("IN", text("even"), text("x"))}, None, "ace"),
        ({"v": compare("CONTAINS", text("dd"))}, None, "bd"),
    ],
)
def test_filters_take_items_away(
    wire: WireClient, five: str, *, filter_: Any, operator: str | None, expected: str
):
    members = {"ConditionalOperator": operator} if operator else {}
    query = {"TableName": five, "KeyConditions": PARTITION, "QueryFilter": filter_, **members}
    answer = wire("Query", query)
    assert found(answer) == expected
    assert answer["ScannedCount"] == 5
    scan = {"TableName": five, "ScanFilter": filter_, **members}
    assert found(wire("Scan", scan)) == expected


def test_a_scan_filter_may_name_the_key(wire: WireClient, five: str):
    request = {"TableName": five, "ScanFilter": {"sk": compare("GE", text("d"))}}
    assert found(wire("Scan", request)) == "de"


def test_attributes_to_get_are_a_projection(wire: WireClient, five: str):
    names = ["v", "nothing"]
    get = {
        "TableName": five,
        "Key": {"pk": text("p"), "sk": text("a")},
        "AttributesToGet": names,
    }
    assert wire("GetItem", get) == {"Item": {"v": text("even")}}
    query = {"TableName": five, "KeyConditions": PARTITION, "AttributesToGet": names}
    assert wire("Query", query)["Items"][0] == {"v": text("even")}
    scan = {"TableName": five, "AttributesToGet": names}
    assert wire("Scan", scan)["Items"][1] == {"v": text("odd")}


def test_attributes_to_get_are_names_not_paths(wire: WireClient, simple: str, pk: str):
    item = {"pk": {"S": pk}, "a": {"M": {"b": {"S": "in"}}}, "a.b": {"S": "dotted"}}
    wire("PutItem", {"TableName": simple, "Item": item})
    request = {"TableName": simple, "Key": {"pk": {"S": pk}}, "AttributesToGet": ["a.b"]}
    assert wire("GetItem", request) == {"Item": {"a.b": {"S": "dotted"}}}


def test_attributes_to_get_of_an_index_are_fetched(wire: WireClient, five: str):
    request = {
        "TableName": five,
        "IndexName": "by-n",
        "KeyConditions": PARTITION,
        "AttributesToGet": ["v", "sk"],
        "Select": "SPECIFIC_ATTRIBUTES",
    }
    assert wire("Query", request)["Items"][0] == {"v": text("even"), "sk": text("e")}


def test_key_conditions_go_with_a_filter_expression(wire: WireClient, five: str):
    request = {
        "TableName": five,
        "KeyConditions": PARTITION,
        "FilterExpression": "v = :v",
        "ExpressionAttributeValues": {":v": text("odd")},
    }
    assert found(wire("Query", request)) == "bd"


@pytest.mark.parametrize(
    ("members", "message"),
    [
        *[
            pytest.param(
                {"KeyConditions": {**PARTITION, name: condition}},
                "Attempted conditional constraint is not an indexable operation",
                marks=differs_from_dynamodb_local("500 or other words"),
            )
            for name in ("pk", "sk")
            for condition in (
                compare("NE", text("a")),
                compare("IN", text("a")),
                compare("CONTAINS", text("a")),
                compare("NOT_CONTAINS", text("a")),
                {"ComparisonOperator": "NULL"},
                {"ComparisonOperator": "NOT_NULL"},
            )
        ],
        ({"KeyConditions": {"pk": compare("LT", text("a"))}}, "Query key condition not supported"),
        pytest.param(
            {"KeyConditions": {"sk": compare("EQ", text("a"))}},
            "Query condition missed key schema element: pk",
            marks=differs_from_dynamodb_local("it names no element"),
        ),
        pytest.param(
            {"KeyConditions": {**PARTITION, "v": compare("EQ", text("a"))}},
            "Query condition missed key schema element: sk",
            marks=differs_from_dynamodb_local("it names no element"),
        ),
        pytest.param(
            {"KeyConditions": {}},
            "Conditions can be of length 1 or 2 only",
            marks=differs_from_dynamodb_local("other words"),
        ),
        (
            {
                "KeyConditions": {
                    **PARTITION,
                    "sk": compare("EQ", text("a")),
                    "v": compare("EQ", text("a")),
                }
            },
            "Conditions can be of length 1 or 2 only",
        ),
        (
            {"KeyConditions": {**PARTITION, "sk": compare("EQ", {"N": "1"})}},
            INVALID + "Condition parameter type does not match schema type",
        ),
        (
            {"KeyConditions": {**PARTITION, "sk": compare("BETWEEN", text("b"), text("a"))}},
            (
                "The BETWEEN condition was provided a range where the lower bound is greater than "
                "the upper bound"
            ),
        ),
        (
            {"KeyConditions": {"pk": {"ComparisonOperator": "EQ"}}},
            INVALID + "Invalid number of argument(s) for the EQ ComparisonOperator",
        ),
        (
            {"KeyConditions": {**PARTITION, "sk": compare("BEGINS_WITH", {"N": "1"})}},
            INVALID + "ComparisonOperator BEGINS_WITH is not valid for N AttributeValue type",
        ),
        (
            {"KeyConditions": PARTITION, "QueryFilter": {"sk": compare("EQ", text("a"))}},
            "QueryFilter can only contain non-primary key attributes: Primary key attribute: sk",
        ),
        (
            {"KeyConditions": PARTITION, "QueryFilter": {"v": compare("EQ")}},
            INVALID + "Invalid number of argument(s) for the EQ ComparisonOperator",
        ),
        (
            {"KeyConditions": PARTITION, "QueryFilter": {"v": compare("LT", {"SS": ["a"]})}},
            INVALID + "ComparisonOperator LT is not valid for SS AttributeValue type",
        ),
        (
            {
                "KeyConditions": PARTITION,
                "QueryFilter": {"v": compare("EQ", text("a"))},
                "ProjectionExpression": "v",
            },
            (
                "Can not use both expression and non-expression parameters in the same request: "
                "Non-expression parameters: {QueryFilter} Expression parameters: "
                "{ProjectionExpression}"
            ),
        ),
        pytest.param(
            {"KeyConditions": PARTITION, "AttributesToGet": ["v", "v"]},
            INVALID + "Duplicate value in attribute name: v",
            marks=differs_from_dynamodb_local("other words"),
        ),
        (
            {"KeyConditions": PARTITION, "ConditionalOperator": "OR"},
            "ConditionalOperator cannot be used without Filter or Expected",
        ),
    ],
)
def test_a_query_is_refused(wire: WireClient, five: str, members: Any, message: str):
    refusal = wire.refused("Query", {"TableName": five, **members})
    assert refusal == ("ValidationException", message)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"ScanFilter": {"v": compare("NOT_NULL", text("a"))}},
            INVALID + "Invalid number of argument(s) for the NOT_NULL ComparisonOperator",
        ),
        (
            {"ScanFilter": {"v": compare("IN", text("a"), {"N": "1"})}},
            INVALID + "AttributeValues inside AttributeValueList must be of same type",
        ),
        (
            {"ScanFilter": {"v": compare("GT", {"BOOL": True})}},
            INVALID + "ComparisonOperator GT is not valid for BOOL AttributeValue type",
        ),
        (
            {"ConditionalOperator": "AND"},
            "ConditionalOperator cannot be used without Filter or Expected",
        ),
    ],
)
def test_a_scan_is_refused(wire: WireClient, five: str, members: Any, message: str):
    refusal = wire.refused("Scan", {"TableName": five, **members})
    assert refusal == ("ValidationException", message)
