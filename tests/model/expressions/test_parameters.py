"""Combinations of request parameters that are refused or accepted."""

from __future__ import annotations

from typing import Any

import pytest

from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import ValidationException
from dynactor.model.expressions.key_paths import check_scalar_keys
from dynactor.model.expressions.parameters import check_parameters
from dynactor.model.keys.key import KeyAttribute, KeySchema

EXPRESSIONS = {
    "PutItem": ("ConditionExpression",),
    "UpdateItem": ("UpdateExpression", "ConditionExpression"),
    "GetItem": ("ProjectionExpression",),
    "Scan": ("ProjectionExpression", "FilterExpression"),
    "Query": ("ProjectionExpression", "FilterExpression", "KeyConditionExpression"),
}
LEGACY = {
    "PutItem": ("Expected", "ConditionalOperator"),
    "UpdateItem": ("AttributeUpdates", "Expected", "ConditionalOperator"),
    "GetItem": ("AttributesToGet",),
    "Scan": ("AttributesToGet", "ScanFilter", "ConditionalOperator"),
    "Query": ("AttributesToGet", "QueryFilter", "ConditionalOperator", "KeyConditions"),
}
NAMES = "ExpressionAttributeNames"
VALUES = "ExpressionAttributeValues"


def refusal(operation: str, request: dict[str, Any]) -> str | None:
    """The message of the refusal of these members; None if they are accepted."""
    try:
        check_parameters(
            {name: request.get(name) for name in EXPRESSIONS[operation]},
            {name: request.get(name) for name in LEGACY[operation]},
            request.get(NAMES),
            request.get(VALUES),
        )
    except ValidationException as refused:
        return refused.message
    return None


@pytest.mark.parametrize(
    ("operation", "request_members", "message"),
    [
        (
            "PutItem",
            {"ConditionExpression": "", "Expected": {"a": {}}},
            (
                "Can not use both expression and non-expression parameters in the same request: "
                "Non-expression parameters: {Expected} Expression parameters: {ConditionExpression}"
            ),
        ),
        (
            "UpdateItem",
            {
                "ConditionExpression": "a",
                "UpdateExpression": "b",
                "Expected": {"a": {}},
                "AttributeUpdates": {"a": {}},
                "ConditionalOperator": "OR",
            },
            (
                "Can not use both expression and non-expression parameters in the same request: "
                "Non-expression parameters: {AttributeUpdates, Expected, ConditionalOperator} "
                "Expression parameters: {UpdateExpression, ConditionExpression}"
            ),
        ),
        (
            "Query",
            {"KeyConditionExpression": "a", "KeyConditions": {"a": {}}, "AttributesToGet": ["a"]},
            (
                "Can not use both expression and non-expression parameters in the same request: "
                "Non-expression parameters: {AttributesToGet, KeyConditions} "
                "Expression parameters: {KeyConditionExpression}"
            ),
        ),
        (
            "GetItem",
            {NAMES: {"#a": "a"}, "AttributesToGet": ["a"]},
            "ExpressionAttributeNames can only be specified when using expressions",
        ),
        (
            "PutItem",
            {NAMES: {"#a": "a"}, VALUES: {":a": {}}},
            "ExpressionAttributeNames can only be specified when using expressions",
        ),
        (
            "PutItem",
            {"ConditionExpression": "a", "Expected": {}},
            (
                "Can not use both expression and non-expression parameters in the same request: "
                "Non-expression parameters: {Expected} Expression parameters: {ConditionExpression}"
            ),
        ),
        (
            "PutItem",
            {"Expected": {"a": {}}, NAMES: {}},
            "ExpressionAttributeNames can only be specified when using expressions",
        ),
        (
            "PutItem",
            {VALUES: {}},
            (
                "ExpressionAttributeValues can only be specified when using expressions: "
                "ConditionExpression is null"
            ),
        ),
        (
            "PutItem",
            {VALUES: {":a": {}}},
            (
                "ExpressionAttributeValues can only be specified when using expressions: "
                "ConditionExpression is null"
            ),
        ),
        (
            "UpdateItem",
            {VALUES: {":a": {}}},
            (
                "ExpressionAttributeValues can only be specified when using expressions: "
                "UpdateExpression and ConditionExpression are null"
            ),
        ),
        (
            "Scan",
            {VALUES: {":a": {}}, "ProjectionExpression": "a"},
            (
                "ExpressionAttributeValues can only be specified when using expressions: "
                "FilterExpression is null"
            ),
        ),
        (
            "Query",
            {VALUES: {":a": {}}},
            (
                "ExpressionAttributeValues can only be specified when using expressions: "
                "FilterExpression and KeyConditionExpression are null"
            ),
        ),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(
    operation: str, request_members: dict[str, Any], message: str
) -> None:
    assert refusal(operation, request_members) == message


@pytest.mark.parametrize(
    ("operation", "request_members"),
    [
        ("PutItem", {}),
        ("PutItem", {"Expected": {"a": {}}, "ConditionalOperator": "OR"}),
        ("UpdateItem", {"ConditionExpression": "a", NAMES: {"#a": "a"}, VALUES: {":a": {}}}),
        ("Query", {"KeyConditions": {"a": {}}, "FilterExpression": "a", VALUES: {":a": {}}}),
        ("Query", {"KeyConditions": {"a": {}}, "ProjectionExpression": "a"}),
    ],
)
def test_other_parameters_are_fine(operation: str, request_members: dict[str, Any]) -> None:
    assert refusal(operation, request_members) is None


def test_a_path_below_a_key_attribute_of_the_table_or_an_index_is_refused() -> None:
    partition, sort, other = (KeyAttribute(name, "S") for name in ("p", "s", "i"))
    table = TableDefinition(
        name="t",
        table_id=1,
        uuid="",
        created_epoch_seconds=0,
        attribute_definitions=(partition, sort, other),
        key_schema=KeySchema((partition,), (sort,)),
        local_indexes=(
            IndexDefinition(1, "index", KeySchema((partition,), (other,)), Projection("ALL")),
        ),
    )
    check_scalar_keys(table, set())
    check_scalar_keys(table, {"a", "b"})
    for nested, role in ({"a", "s"}, "Key: s"), ({"i"}, "IndexKey: i"), ({"i", "p"}, "Key: p"):
        with pytest.raises(ValidationException) as caught:
            check_scalar_keys(table, nested)
        assert caught.value.message == (
            "Key attributes must be scalars; list random access '[]' and map lookup '.' are not "
            f"allowed: {role}"
        )
