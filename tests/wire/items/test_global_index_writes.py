"""Writes of attributes that are keys of global secondary indexes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.lanes import LanesClient
from tests.support.tables.tables import global_index, key_schema, table

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

INVALID = "One or more parameter values were invalid: "
KEY = {"pk": {"S": "1"}}
EMPTY = (
    "One or more parameter values are not valid. A value specified for a secondary index key is "
    "not supported. The AttributeValue for a key attribute cannot contain an empty {} value. "
    "IndexName: {}, IndexKey: {}"
)
HASH_TOO_LONG = f"{INVALID}Size of hashkey has exceeded the maximum size limit of2048 bytes"
RANGE_TOO_LONG = (
    f"{INVALID}Aggregated size of all range keys has exceeded the size limit of 1024 bytes"
)


@pytest.fixture(scope="module")
def indexed_twice(wire: WireClient) -> Iterator[str]:
    """A table with an index on ``a`` (S) and ``n`` (N), and one on ``b`` (B) and ``a``."""
    indexes = [
        global_index("by-a", "a", "n"),
        global_index("by-b", "b", "a", projection="KEYS_ONLY"),
    ]
    keys = ("pk:S", "a:S", "n:N", "b:B")
    with table(wire, *keys, KeySchema=key_schema("pk"), GlobalSecondaryIndexes=indexes) as name:
        yield name


FAULTS = [
    (
        {"a": {"N": "1"}},
        f"{INVALID}Type mismatch for Index Key a Expected: S Actual: N IndexName: by-a",
    ),
    (
        {"n": {"NULL": True}},
        f"{INVALID}Type mismatch for Index Key n Expected: N Actual: NULL IndexName: by-a",
    ),
    (
        {"b": {"S": "text"}},
        f"{INVALID}Type mismatch for Index Key b Expected: B Actual: S IndexName: by-b",
    ),
    ({"a": {"S": ""}}, EMPTY.format("string", "by-a", "a")),
    ({"b": {"B": ""}}, EMPTY.format("binary", "by-b", "b")),
    ({"a": {"S": "x" * 2049}}, HASH_TOO_LONG),
    ({"a": {"S": "x" * 1025}}, RANGE_TOO_LONG),
]


@differs_from_dynamodb_local("it cuts some messages off")
@pytest.mark.parametrize(("attributes", "message"), FAULTS)
def test_a_put_with_an_invalid_index_key_is_refused(
    wire: WireClient, indexed_twice: str, *, attributes: Any, message: str
):
    item = {**KEY, **attributes}
    request = {"TableName": indexed_twice, "Item": item}
    assert wire.refused("PutItem", request) == ("ValidationException", message)
    batch = {"RequestItems": {indexed_twice: [{"PutRequest": {"Item": item}}]}}
    assert wire.refused("BatchWriteItem", batch) == ("ValidationException", message)


@pytest.mark.parametrize(("attributes", "message"), FAULTS)
def test_a_put_with_an_invalid_index_key_is_a_validation_error(
    wire: WireClient, indexed_twice: str, *, attributes: Any, message: str
):
    request = {"TableName": indexed_twice, "Item": {**KEY, **attributes}}
    refusal = wire.refused("PutItem", request)
    assert refusal.type == "ValidationException"
    assert message


def test_an_item_without_an_index_key_is_accepted(wire: WireClient, indexed_twice: str):
    for item in (KEY, {**KEY, "a": {"S": "1"}}, {**KEY, "n": {"N": "1"}}):
        wire("PutItem", {"TableName": indexed_twice, "Item": item})
        assert wire("GetItem", {"TableName": indexed_twice, "Key": KEY}) == {"Item": item}


def update(name: str, expression: str, value: Any) -> dict[str, Any]:
    return {
        "TableName": name,
        "Key": KEY,
        "UpdateExpression": expression,
        "ExpressionAttributeValues": {":v": value},
    }


UNSUPPORTED = (
    "One or more parameter values are not valid. The update expression attempted to update a "
    "secondary index key to a value that is not supported. The AttributeValue for a key attribute "
    "cannot contain an empty string value."
)


@differs_from_dynamodb_local("it cuts some messages off")
@pytest.mark.parametrize(
    ("expression", "value", "message"),
    [
        ("SET a = :v", {"N": "1"}, FAULTS[0][1]),
        ("ADD a :v", {"N": "1"}, FAULTS[0][1]),
        ("SET a = :v", {"S": ""}, UNSUPPORTED),
        ("SET a = :v", {"S": "x" * 2049}, HASH_TOO_LONG),
        (
            "SET n = if_not_exists(nothing, :v)",
            {"S": "text"},
            "The update expression attempted to update the secondary index key to unsupported type",
        ),
    ],
)
def test_an_update_to_an_invalid_index_key_is_refused(
    wire: WireClient, indexed_twice: str, *, expression: str, value: Any, message: str
):
    request = update(indexed_twice, expression, value)
    assert wire.refused("UpdateItem", request) == ("ValidationException", message)


@differs_from_dynamodb_local("it reads the item first")
def test_a_value_of_the_wrong_type_is_reported_before_the_condition(
    wire: WireClient, indexed_twice: str
):
    request = update(indexed_twice, "SET a = :v", {"N": "1"})
    request["ConditionExpression"] = "attribute_exists(nothing)"
    assert wire.refused("UpdateItem", request).type == "ValidationException"


@differs_from_dynamodb_local("it takes legacy updates as they are")
def test_a_legacy_update_to_an_invalid_index_key_is_refused(wire: WireClient, indexed_twice: str):
    request = {
        "TableName": indexed_twice,
        "Key": KEY,
        "AttributeUpdates": {"a": {"Value": {"N": "1"}}},
    }
    assert wire.refused("UpdateItem", request) == ("ValidationException", FAULTS[0][1])


def test_paths_into_an_index_key_are_refused(wire: WireClient, indexed_twice: str):
    request = {
        "TableName": indexed_twice,
        "Key": KEY,
        "UpdateExpression": "SET z = :v",
        "ConditionExpression": "a[0] = :v",
        "ExpressionAttributeValues": {":v": {"S": "v"}},
    }
    assert wire.refused("UpdateItem", request) == (
        "ValidationException",
        (
            "Key attributes must be scalars; list random access '[]' and map lookup '.' are not "
            "allowed: IndexKey: a"
        ),
    )


@differs_from_dynamodb_local("it looks at the item, or at paths, first")
@pytest.mark.parametrize(
    ("expression", "values", "types"),
    [
        ("SET a = x + :one", {":one": {"N": "1"}}, ("a", "S", "N", "by-a")),
        ("SET b = :one - x", {":one": {"N": "1"}}, ("b", "B", "N", "by-b")),
        ("SET n = list_append(x, y)", {}, ("n", "N", "L", "by-a")),
        # The wrong type is reported before the path into the same attribute.
        ("SET e = a[1], a = x + :one", {":one": {"N": "1"}}, ("a", "S", "N", "by-a")),
    ],
)
def test_a_computed_value_of_another_type_is_refused_before_the_item_is_read(
    lanes: LanesClient, indexed_twice: str, *, expression: str, values: Any, types: Any
):
    request = {"TableName": indexed_twice, "Key": KEY, "UpdateExpression": expression}
    if values:
        request["ExpressionAttributeValues"] = values
    name, expected, actual, index = types
    message = (
        f"{INVALID}Type mismatch for Index Key {name} Expected: {expected} Actual: {actual} "
        f"IndexName: {index}"
    )
    assert lanes.refused("UpdateItem", request) == ("ValidationException", message)
