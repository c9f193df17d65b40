"""Which of two faults in a Query or Scan is reported.

Here both faults are of one validation stage; ``test_faults_together`` tests the order of the
stages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.lanes import LanesClient
from tests.support.tables.tables import global_index, table

pytestmark = pytest.mark.differs_from_dynamodb_local("its order is another")

INVALID = "One or more parameter values were invalid: "
BAD_START_VALUE = {"pk": {}}
BAD_START_VALUE_TOLD = (
    "The provided starting key is invalid: Supplied AttributeValue is empty, must contain exactly "
    "one of the supported datatypes"
)
NO_KEY_CONDITION = (
    "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."
)
NO_MATCH = "The provided key element does not match the schema"
INVALID_START = "The provided starting key is invalid"
NOT_SCALAR = (
    "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
)


@pytest.fixture(scope="module")
def games(wire: WireClient) -> Iterator[str]:
    """A table with the global index ``by-g`` on ``g``, which projects only keys."""
    index = global_index("by-g", "g", projection="KEYS_ONLY")
    with table(wire, "pk:S", "sk:S", "g:S", GlobalSecondaryIndexes=[index]) as name:
        yield name


def compare(operator: str, *values: dict[str, Any]) -> dict[str, Any]:
    return {"ComparisonOperator": operator, "AttributeValueList": list(values)}


KEYED = {"KeyConditions": {"pk": compare("EQ", {"S": "p"})}}

# Faults of legacy parameters that are reported before faults in the start key.
LEGACY_FAULTS = [
    (compare("EQ", {}), "Supplied AttributeValue is empty, must contain exactly one of the"),
    (compare("EQ"), f"{INVALID}Invalid number of argument(s) for the EQ ComparisonOperator"),
    (
        compare("LT", {"BOOL": True}),
        f"{INVALID}ComparisonOperator LT is not valid for BOOL AttributeValue type",
    ),
]


@pytest.mark.parametrize(
    ("operation", "member", "base"), [("Query", "QueryFilter", KEYED), ("Scan", "ScanFilter", {})]
)
@pytest.mark.parametrize(("condition", "message"), LEGACY_FAULTS)
def test_a_legacy_filter_is_checked_before_the_values_of_a_start_key(
    lanes: LanesClient,
    composite: str,
    *,
    operation: str,
    member: str,
    base: Any,
    condition: Any,
    message: str,
):
    request = {"TableName": composite, **base, "ExclusiveStartKey": BAD_START_VALUE}
    assert lanes.refused(operation, request).message == BAD_START_VALUE_TOLD
    refusal = lanes.refused(operation, {**request, member: {"v": condition}})
    assert refusal.type == "ValidationException"
    assert str(refusal.message).startswith(message)


@pytest.mark.parametrize(("operation", "base"), [("Query", KEYED), ("Scan", {})])
def test_attributes_to_get_are_checked_before_the_values_of_a_start_key(
    lanes: LanesClient, composite: str, operation: str, base: Any
):
    request = {
        "TableName": composite,
        **base,
        "ExclusiveStartKey": BAD_START_VALUE,
        "AttributesToGet": ["a", "a"],
    }
    assert lanes.refused(operation, request) == (
        "ValidationException",
        f"{INVALID}Duplicate value in attribute name: a",
    )


@pytest.mark.parametrize(("condition", "message"), LEGACY_FAULTS)
def test_a_query_filter_is_checked_before_a_missing_key_condition(
    lanes: LanesClient, composite: str, condition: Any, message: str
):
    request: dict[str, Any] = {"TableName": composite, "QueryFilter": {"v": condition}}
    assert str(lanes.refused("Query", request).message).startswith(message)
    request["QueryFilter"] = {"v": compare("EQ", {"S": "a"})}
    assert lanes.refused("Query", request).message == NO_KEY_CONDITION


@pytest.mark.parametrize("filter_expression", ["", "a =", "a = :undefined"])
def test_a_key_condition_is_parsed_before_a_filter(
    lanes: LanesClient, composite: str, filter_expression: str
):
    request = {
        "TableName": composite,
        "KeyConditionExpression": "pk = ",
        "FilterExpression": filter_expression,
        "ProjectionExpression": "a,",
    }
    message = lanes.refused("Query", request).message
    assert str(message).startswith("Invalid KeyConditionExpression: Syntax error; token: ")
    request["KeyConditionExpression"] = ""
    assert lanes.refused("Query", request).message == (
        "Invalid KeyConditionExpression: The expression can not be empty;"
    )


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({"pk": {"S": "p"}}, INVALID_START),
        ({"pk": {"S": "p"}, "z": {"S": "s"}}, INVALID_START),
        ({"pk": {"S": "p"}, "sk": {"N": "1"}}, NO_MATCH),
    ],
)
@pytest.mark.parametrize("missed", ["sk = :v", "pk = :v AND v = :v", "pk > :v"])
def test_a_start_key_is_compared_with_the_schema_before_the_key_condition(
    lanes: LanesClient, composite: str, missed: str, start: Any, message: str
):
    request = {
        "TableName": composite,
        "KeyConditionExpression": missed,
        "ExpressionAttributeValues": {":v": {"S": "v"}},
        "ExclusiveStartKey": start,
    }
    assert lanes.refused("Query", request) == ("ValidationException", message)


ALL_OF_THE_INDEX = {"IndexName": "by-g", "Select": "ALL_ATTRIBUTES"}
NOT_ALL = (
    f"{INVALID}Select type ALL_ATTRIBUTES is not supported for global secondary index by-g because "
    "its projection type is not ALL"
)
OF_G = {"KeyConditionExpression": "g = :g", "ExpressionAttributeValues": {":g": {"S": "g"}}}


@pytest.mark.parametrize(("operation", "base"), [("Query", OF_G), ("Scan", {})])
def test_a_path_into_a_key_is_reported_after_other_schema_faults(
    lanes: LanesClient, games: str, operation: str, base: Any
):
    request = {
        "TableName": games,
        "IndexName": "by-g",
        "FilterExpression": "attribute_exists(pk.b.c)",
        **base,
    }
    assert lanes.refused(operation, request).message == f"{NOT_SCALAR}Key: pk"
    everything = {**request, "Select": "ALL_ATTRIBUTES"}
    assert lanes.refused(operation, everything).message == NOT_ALL
    start = {**everything, "ExclusiveStartKey": {"pk": {"S": "p"}}}
    assert str(lanes.refused(operation, start).message).startswith(INVALID_START)
