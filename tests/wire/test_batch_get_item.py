"""BatchGetItem: many items of many tables, in parts if they are too large together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.clients import WireClient
from tests.support.tables import table, unique_name

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local


def key(pk: str, sort: str) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": sort}}


@pytest.fixture(scope="module")
def ten(wire: WireClient, composite: str) -> str:
    """A partition of ten items, ``0`` to ``9``."""
    pk = unique_name("ten")
    puts = [{"PutRequest": {"Item": {**key(pk, str(n)), "n": {"N": str(n)}}}} for n in range(10)]
    wire("BatchWriteItem", {"RequestItems": {composite: puts}})
    return pk


def test_the_items_that_are_there_come_back(wire: WireClient, composite: str, ten: str):
    keys = [key(ten, sort) for sort in ("3", "7", "missing")]
    answer = wire("BatchGetItem", {"RequestItems": {composite: {"Keys": keys}}})
    found = {item["sk"]["S"]: item for item in answer["Responses"][composite]}
    assert found == {n: {**key(ten, n), "n": {"N": n}} for n in ("3", "7")}
    assert answer["UnprocessedKeys"] == {}


def test_items_of_several_tables_come_back(wire: WireClient, composite: str, simple: str, ten: str):
    wire("PutItem", {"TableName": simple, "Item": {"pk": {"S": ten}}})
    request = {
        simple: {"Keys": [{"pk": {"S": ten}}]},
        composite: {"Keys": [key(ten, "1")], "ConsistentRead": True},
    }
    answer = wire("BatchGetItem", {"RequestItems": request})
    assert answer["Responses"] == {
        simple: [{"pk": {"S": ten}}],
        composite: [{**key(ten, "1"), "n": {"N": "1"}}],
    }


def test_a_table_without_any_of_the_items_answers_an_empty_list(
    wire: WireClient, composite: str, pk: str
):
    answer = wire("BatchGetItem", {"RequestItems": {composite: {"Keys": [key(pk, "1")]}}})
    assert answer == {"Responses": {composite: []}, "UnprocessedKeys": {}}


def test_each_table_has_its_own_projection(wire: WireClient, composite: str, ten: str):
    request = {
        composite: {
            "Keys": [key(ten, "5")],
            "ProjectionExpression": "#n",
            "ExpressionAttributeNames": {"#n": "n"},
        }
    }
    answer = wire("BatchGetItem", {"RequestItems": request})
    assert answer["Responses"][composite] == [{"n": {"N": "5"}}]


def test_attributes_to_get_are_a_projection_too(wire: WireClient, composite: str, ten: str):
    request = {composite: {"Keys": [key(ten, "5")], "AttributesToGet": ["n", "nothing"]}}
    answer = wire("BatchGetItem", {"RequestItems": request})
    assert answer["Responses"][composite] == [{"n": {"N": "5"}}]


def test_a_hundred_keys_are_taken(wire: WireClient, composite: str, ten: str):
    keys = [key(ten, str(sort)) for sort in range(100)]
    answer = wire("BatchGetItem", {"RequestItems": {composite: {"Keys": keys}}})
    assert len(answer["Responses"][composite]) == 10


def test_a_table_may_be_named_by_its_arn(wire: WireClient, composite: str, ten: str):
    arn = wire("DescribeTable", {"TableName": composite})["Table"]["TableArn"]
    answer = wire("BatchGetItem", {"RequestItems": {arn: {"Keys": [key(ten, "1")]}}})
    ((_, items),) = answer["Responses"].items()
    assert items == [{**key(ten, "1"), "n": {"N": "1"}}]


@pytest.fixture(scope="module")
def heavy(wire: WireClient) -> Iterator[str]:
    """A table of 50 items of 390 KB: 19.5 MB."""
    with table(wire, "pk:S") as name:
        for number in range(50):
            item = {"pk": {"S": str(number)}, "v": {"S": "x" * 390 * 1024}}
            wire("PutItem", {"TableName": name, "Item": item})
        yield name


def test_past_16_mb_the_rest_of_the_keys_is_unprocessed(wire: WireClient, heavy: str):
    asked: dict[str, Any] = {
        "Keys": [{"pk": {"S": str(number)}} for number in range(50)],
        "ConsistentRead": True,
        "ProjectionExpression": "pk, v",
    }
    found = []
    rounds = 0
    while asked:
        answer = wire("BatchGetItem", {"RequestItems": {heavy: asked}})
        items = answer["Responses"][heavy]
        assert sum(len(item["v"]["S"]) for item in items) <= 16 * 1024 * 1024
        found += [item["pk"]["S"] for item in items]
        unprocessed = answer["UnprocessedKeys"]
        if not unprocessed:
            break
        # What is left can be sent as it is.
        assert unprocessed[heavy].keys() == asked.keys()
        assert unprocessed[heavy]["ConsistentRead"] is True
        asked = unprocessed[heavy]
        rounds += 1
    assert rounds == 1
    assert sorted(found, key=int) == [str(number) for number in range(50)]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            {"Keys": [key("p", "s"), key("p", "s")]},
            "Provided list of item keys contains duplicates",
        ),
        (
            {"Keys": [{"pk": {}, "sk": {"S": "s"}}]},
            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
        ),
        pytest.param(
            {"Keys": [{"pk": {"S": "p"}}]},
            "The provided key element does not match the schema",
            marks=differs_from_dynamodb_local("other words"),
        ),
        pytest.param(
            {"Keys": [{**key("p", "s"), "x": {"S": "x"}}]},
            "The provided key element does not match the schema",
            marks=differs_from_dynamodb_local("other words"),
        ),
        pytest.param(
            {"Keys": [{"pk": {"S": "p"}, "sk": {"N": "1"}}]},
            "The provided key element does not match the schema",
            marks=differs_from_dynamodb_local("other words"),
        ),
        (
            {"Keys": [key("", "s")]},
            (
                "One or more parameter values are not valid. The AttributeValue for a key "
                "attribute "
                "cannot contain an empty string value. Key: pk"
            ),
        ),
        (
            {"Keys": [key("p", "s")], "AttributesToGet": ["a", "a"]},
            "One or more parameter values were invalid: Duplicate value in attribute name: a",
        ),
        (
            {"Keys": [key("p", "s")], "AttributesToGet": ["a"], "ProjectionExpression": "a"},
            (
                "Can not use both expression and non-expression parameters in the same request: "
                "Non-expression parameters: {AttributesToGet} Expression parameters: "
                "{ProjectionExpression}"
            ),
        ),
        (
            {"Keys": [key("p", "s")], "ProjectionExpression": ""},
            "Invalid ProjectionExpression: The expression can not be empty;",
        ),
        (
            {"Keys": [key("p", "s")], "ExpressionAttributeNames": {"#a": "a"}},
            "ExpressionAttributeNames can only be specified when using expressions",
        ),
    ],
)
def test_a_batch_is_refused(wire: WireClient, composite: str, entry: Any, message: str):
    refusal = wire.refused("BatchGetItem", {"RequestItems": {composite: entry}})
    assert refusal == ("ValidationException", message)


@differs_from_dynamodb_local("it compares their texts")
def test_numeric_keys_of_the_same_value_are_duplicates(wire: WireClient, numeric: str):
    keys = [{"pk": {"S": "p"}, "sk": {"N": text}} for text in ("1000", "1e3")]
    assert wire.refused("BatchGetItem", {"RequestItems": {numeric: {"Keys": keys}}}) == (
        "ValidationException",
        "Provided list of item keys contains duplicates",
    )


def test_more_than_a_hundred_keys_over_all_tables_are_refused(
    wire: WireClient, composite: str, simple: str
):
    request = {
        composite: {"Keys": [key("p", str(sort)) for sort in range(51)]},
        simple: {"Keys": [{"pk": {"S": str(number)}} for number in range(50)]},
    }
    assert wire.refused("BatchGetItem", {"RequestItems": request}) == (
        "ValidationException",
        "Too many items requested for the BatchGetItem call",
    )


def test_one_unknown_table_refuses_the_batch(wire: WireClient, composite: str, ten: str):
    request = {
        composite: {"Keys": [key(ten, "1")]},
        "no-such-table-anywhere": {"Keys": [key(ten, "1")]},
    }
    refusal = wire.refused("BatchGetItem", {"RequestItems": request})
    assert refusal.type == "ResourceNotFoundException"
