"""BatchGetItem: items of several tables, and unprocessed keys if the items are too large."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.lanes import LanesClient
from tests.support.tables.tables import table, unique_name

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local


def key(pk: str, sort: str) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": sort}}


@pytest.fixture(scope="module")
def ten(wire: WireClient, composite: str) -> str:
    """A partition key with ten items, ``0`` to ``9``."""
    pk = unique_name("ten")
    puts = [{"PutRequest": {"Item": {**key(pk, str(n)), "n": {"N": str(n)}}}} for n in range(10)]
    wire("BatchWriteItem", {"RequestItems": {composite: puts}})
    return pk


def test_existing_items_are_returned(wire: WireClient, composite: str, ten: str):
    keys = [key(ten, sort) for sort in ("3", "7", "missing")]
    answer = wire("BatchGetItem", {"RequestItems": {composite: {"Keys": keys}}})
    found = {item["sk"]["S"]: item for item in answer["Responses"][composite]}
    assert found == {n: {**key(ten, n), "n": {"N": n}} for n in ("3", "7")}
    assert answer["UnprocessedKeys"] == {}


def test_items_of_several_tables_are_returned(
    wire: WireClient, composite: str, simple: str, ten: str
):
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


def test_a_hundred_keys_are_accepted(wire: WireClient, composite: str, ten: str):
    keys = [key(ten, str(sort)) for sort in range(100)]
    answer = wire("BatchGetItem", {"RequestItems": {composite: {"Keys": keys}}})
    assert len(answer["Responses"][composite]) == 10


def test_a_table_may_be_named_by_its_arn(wire: WireClient, composite: str, ten: str):
    arn = wire("DescribeTable", {"TableName": composite})["Table"]["TableArn"]
    answer = wire("BatchGetItem", {"RequestItems": {arn: {"Keys": [key(ten, "1")]}}})
    ((_, items),) = answer["Responses"].items()
    assert items == [{**key(ten, "1"), "n": {"N": "1"}}]


ITEM_BYTES = 390 * 1024
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def heavy(wire: WireClient) -> Iterator[str]:
    """A table of 40 partitions with 70 items of 390 KB: 27 MB."""
    units = {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 40_000}
    with table(wire, "pk:S", WarmThroughput=units) as name:
        for number in range(70):
            item = {"pk": {"S": str(number)}, "v": {"S": "x" * ITEM_BYTES}}
            wire("PutItem", {"TableName": name, "Item": item})
        yield name


def test_an_answer_has_at_most_16_mb_and_unprocessed_keys_can_be_sent_again(
    wire: WireClient, heavy: str
):
    asked: dict[str, Any] = {
        "Keys": [{"pk": {"S": str(number)}} for number in range(70)],
        "ConsistentRead": True,
        "ProjectionExpression": "pk, v",
    }
    first = wire("BatchGetItem", {"RequestItems": {heavy: asked}})
    assert len(first["Responses"][heavy]) == 16 * MIB // ITEM_BYTES
    found = []
    answer = first
    while True:
        found += [item["pk"]["S"] for item in answer["Responses"][heavy]]
        if not answer["UnprocessedKeys"]:
            break
        rest = answer["UnprocessedKeys"][heavy]
        assert rest.keys() == asked.keys()
        assert rest["ConsistentRead"] is True
        answer = wire("BatchGetItem", {"RequestItems": {heavy: rest}})
    assert sorted(found, key=int) == [str(number) for number in range(70)]


@pytest.fixture(scope="module")
def heavy_partition(wire: WireClient, composite: str) -> Iterator[str]:
    """A partition key with five items of 390 KB, ``0`` to ``4``, and a small one, ``5``."""
    pk = unique_name("heavy")
    for number in range(5):
        item = {**key(pk, str(number)), "v": {"S": "x" * ITEM_BYTES}}
        wire("PutItem", {"TableName": composite, "Item": item})
    wire("PutItem", {"TableName": composite, "Item": key(pk, "5")})
    yield pk
    for number in range(6):
        wire("DeleteItem", {"TableName": composite, "Key": key(pk, str(number))})


@differs_from_dynamodb_local("it has no partitions")
def test_keys_beyond_the_limit_of_one_partition_are_unprocessed(
    wire: WireClient, lanes: LanesClient, composite: str, simple: str, heavy_partition: str
):
    wire("PutItem", {"TableName": simple, "Item": {"pk": {"S": heavy_partition}}})
    asked: dict[str, Any] = {
        "Keys": [key(heavy_partition, sort) for sort in "012345"],
        # The whole items count, although a projection returns only a part of each.
        "ProjectionExpression": "sk",
    }
    request = {composite: asked, simple: {"Keys": [{"pk": {"S": heavy_partition}}]}}
    rounds = []
    while request:
        answer = lanes("BatchGetItem", {"RequestItems": request, "ReturnConsumedCapacity": "TOTAL"})
        consumed = {
            table["TableName"]: table["CapacityUnits"] for table in answer["ConsumedCapacity"]
        }
        rounds.append(
            ("".join(item["sk"]["S"] for item in answer["Responses"][composite]), consumed)
        )
        request = answer["UnprocessedKeys"]
        # The small item is unprocessed, too, because it comes after an item that did not fit.
        assert [each["sk"]["S"] for each in request.get(composite, {}).get("Keys", [])] == list(
            "012345"[sum(len(found) for found, _ in rounds) :]
        )
    one_item = 49.0  # eventually consistent, 390 KB and some bytes
    assert rounds == [
        ("012", {composite: 3 * one_item, simple: 0.5}),
        ("345", {composite: 2 * one_item + 0.5}),
    ]


@differs_from_dynamodb_local("it has no partitions")
@pytest.mark.parametrize(("more_bytes", "found"), [(0, 4), (1, 3)])
def test_an_answer_has_1_458_173_bytes_of_one_partition(
    wire: WireClient, composite: str, more_bytes: int, found: int
):
    pk = unique_name("full")
    sizes = [409_600, 409_600, 409_600, 229_373 + more_bytes]
    for number, size_bytes in enumerate(sizes):
        item = key(pk, str(number))
        rest_bytes = size_bytes - len("pk") - len(pk) - len("sk") - 1 - len("v")
        wire("PutItem", {"TableName": composite, "Item": item | {"v": {"S": "x" * rest_bytes}}})
    asked = {"Keys": [key(pk, sort) for sort in "0123"]}
    answer = wire("BatchGetItem", {"RequestItems": {composite: asked}})
    assert len(answer["Responses"][composite]) == found


@differs_from_dynamodb_local("it explains nothing")
def test_an_explanation_counts_the_items_that_were_returned(
    wire: WireClient, composite: str, heavy_partition: str
):
    keys = [key(heavy_partition, sort) for sort in "012345"]
    answer = wire.send(
        "BatchGetItem",
        {"RequestItems": {composite: {"Keys": keys}}, "ReturnConsumedCapacity": "TOTAL"},
        {"X-Dynactor-Explain": "true"},
    )
    explained = json.loads(answer.headers["X-Dynactor-Explanation"])
    (consumed,) = answer.json["ConsumedCapacity"]
    assert explained["CapacityUnits"] == consumed["CapacityUnits"] == 147.0
    (read,) = explained["Tables"][0]["Reads"]
    assert read["Count"] == 3


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
def test_an_invalid_batch_is_refused(wire: WireClient, composite: str, entry: Any, message: str):
    refusal = wire.refused("BatchGetItem", {"RequestItems": {composite: entry}})
    assert refusal == ("ValidationException", message)


def test_an_item_whose_key_is_written_in_two_ways_is_returned_once(
    wire: WireClient, lanes: LanesClient, numeric: str, pk: str
):
    wire("PutItem", {"TableName": numeric, "Item": {"pk": {"S": pk}, "sk": {"N": "1"}}})
    keys = [{"pk": {"S": pk}, "sk": {"N": text}} for text in ("1", "1.0", "1e0")]
    request = {"RequestItems": {numeric: {"Keys": keys}}, "ReturnConsumedCapacity": "TOTAL"}
    answer = lanes("BatchGetItem", request)
    assert answer == {
        "Responses": {numeric: [{"pk": {"S": pk}, "sk": {"N": "1"}}]},
        "UnprocessedKeys": {},
        "ConsumedCapacity": [{"TableName": numeric, "CapacityUnits": 0.5}],
    }
    keys.append(keys[1])
    assert lanes.refused("BatchGetItem", request) == (
        "ValidationException",
        "Provided list of item keys contains duplicates",
    )


def test_both_kinds_of_projection_are_refused_even_on_different_tables(
    lanes: LanesClient, composite: str, simple: str
):
    request = {
        simple: {"Keys": [{"pk": {"S": "p"}}], "AttributesToGet": ["a"]},
        composite: {"Keys": [key("p", "s")], "ProjectionExpression": "a"},
    }
    assert lanes.refused("BatchGetItem", {"RequestItems": request}) == (
        "ValidationException",
        (
            "Can not use both expression and non-expression parameters in the same request: "
            "Non-expression parameters: {AttributesToGet} Expression parameters: "
            "{ProjectionExpression}"
        ),
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
