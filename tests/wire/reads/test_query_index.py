"""Queries on local secondary indexes: another order, other attributes, sparse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.tables.tables import unique_name

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local


def query(wire: WireClient, table: str, pk: str, index: str, **members: Any) -> dict[str, Any]:
    values = {":pk": {"S": pk}} | members.pop("ExpressionAttributeValues", {})
    request: dict[str, Any] = {
        "TableName": table,
        "IndexName": index,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": values,
    }
    return wire("Query", request | members)


def sort_keys(answer: dict[str, Any]) -> list[str]:
    return [item["sk"]["S"] for item in answer["Items"]]


def put(wire: WireClient, table: str, pk: str, sort: str, **attributes: Any) -> dict[str, Any]:
    item = {"pk": {"S": pk}, "sk": {"S": sort}, **attributes}
    wire("PutItem", {"TableName": table, "Item": item})
    return item


@pytest.fixture(scope="module")
def five(wire: WireClient, indexed: str) -> str:
    """A partition of five items; ``e`` is in no index."""
    pk = unique_name("five")
    for sort, text, number, raw in (
        ("a", "z", "10", "Ag=="),
        ("b", "y", "9", "AQ=="),
        ("c", "x", "-1", "/w=="),
        ("d", "y", "9", "AA=="),
    ):
        put(
            wire,
            indexed,
            pk,
            sort,
            a={"S": text},
            k={"N": number},
            b={"B": raw},
            x={"S": f"x of {sort}"},
            y={"L": [{"S": sort}]},
            z={"S": "held by the table alone"},
        )
    put(wire, indexed, pk, "e", x={"S": "x of e"})
    return pk


@pytest.mark.parametrize(
    ("index", "attribute", "order"),
    [("by-all", "a", "cbda"), ("by-keys", "k", "cbda"), ("by-some", "b", "dbac")],
)
def test_items_come_in_the_order_of_the_index_key(
    wire: WireClient, indexed: str, five: str, *, index: str, attribute: str, order: str
):
    found = query(wire, indexed, five, index)["Items"]
    backwards = query(wire, indexed, five, index, ScanIndexForward=False)["Items"]
    assert {item["sk"]["S"] for item in found} == set(order)
    # Items with the same index key are in any order.
    by_sort_key = {item["sk"]["S"]: item for item in found}
    expected = [by_sort_key[sort][attribute] for sort in order]
    assert [item[attribute] for item in found] == expected
    assert [item[attribute] for item in backwards] == expected[::-1]


def test_an_item_without_the_index_key_is_not_in_the_index(
    wire: WireClient, indexed: str, five: str
):
    for index in ("by-all", "by-keys", "by-some"):
        assert query(wire, indexed, five, index)["Count"] == 4


def test_an_index_returns_its_projected_attributes(wire: WireClient, indexed: str, five: str):
    of_all = query(wire, indexed, five, "by-all")["Items"][0]
    of_keys = query(wire, indexed, five, "by-keys")["Items"][0]
    of_some = query(wire, indexed, five, "by-some")["Items"][0]
    assert of_all.keys() == {"pk", "sk", "a", "k", "b", "x", "y", "z"}
    assert of_keys.keys() == {"pk", "sk", "k"}
    assert of_some.keys() == {"pk", "sk", "b", "x", "y"}


def test_all_attributes_are_fetched_from_the_table(wire: WireClient, indexed: str, five: str):
    for index in ("by-keys", "by-some"):
        found = query(wire, indexed, five, index, Select="ALL_ATTRIBUTES")["Items"]
        assert all(item.keys() == {"pk", "sk", "a", "k", "b", "x", "y", "z"} for item in found)


def test_a_projection_fetches_attributes_that_the_index_does_not_hold(
    wire: WireClient, indexed: str, five: str
):
    found = query(wire, indexed, five, "by-keys", ProjectionExpression="z, y[0], sk")["Items"]
    assert next(item["sk"]["S"] for item in found) == "c"
    assert found[0] == {
        "z": {"S": "held by the table alone"},
        "y": {"L": [{"S": "c"}]},
        "sk": {"S": "c"},
    }


def test_a_filter_sees_the_projected_attributes(wire: WireClient, indexed: str, five: str):
    answer = query(
        wire,
        indexed,
        five,
        "by-some",
        FilterExpression="x = :x",
        ExpressionAttributeValues={":x": {"S": "x of b"}},
    )
    assert sort_keys(answer) == ["b"]
    assert answer["ScannedCount"] == 4


@pytest.mark.parametrize("members", [{}, {"ProjectionExpression": "pk, sk"}])
def test_a_filter_may_not_use_attributes_that_the_index_does_not_hold(
    wire: WireClient, indexed: str, members: Any
):
    request = {
        "TableName": indexed,
        "IndexName": "by-some",
        "KeyConditionExpression": "pk = :pk",
        "FilterExpression": "z = :pk",
        "ExpressionAttributeValues": {":pk": {"S": "p"}},
        **members,
    }
    assert wire.refused("Query", request) == (
        "ValidationException",
        (
            "One or more parameter values were invalid: Secondary index by-some does not project "
            "one "
            "or more filter attributes: [z]"
        ),
    )


def test_a_filter_may_name_the_tables_sort_key_but_not_the_indexs(
    wire: WireClient, indexed: str, five: str
):
    answer = query(
        wire,
        indexed,
        five,
        "by-all",
        FilterExpression="sk = :x",
        ExpressionAttributeValues={":x": {"S": "b"}},
    )
    assert sort_keys(answer) == ["b"]
    request = {
        "TableName": indexed,
        "IndexName": "by-all",
        "KeyConditionExpression": "pk = :pk",
        "FilterExpression": "a = :pk",
        "ExpressionAttributeValues": {":pk": {"S": five}},
    }
    assert wire.refused("Query", request) == (
        "ValidationException",
        "Filter Expression can only contain non-primary key attributes: Primary key attribute: a",
    )


@pytest.mark.parametrize(
    ("condition", "values", "expected"),
    [
        ("k = :x", {":x": "9.0"}, {"b", "d"}),
        ("k > :x", {":x": "0"}, {"a", "b", "d"}),
        ("k BETWEEN :x AND :y", {":x": "-5", ":y": "9"}, {"c", "b", "d"}),
        ("k < :x", {":x": "-1"}, set()),
    ],
)
def test_a_condition_narrows_by_the_index_key(
    wire: WireClient, indexed: str, five: str, *, condition: str, values: Any, expected: set[str]
):
    answer = query(
        wire,
        indexed,
        five,
        "by-keys",
        KeyConditionExpression=f"pk = :pk AND {condition}",
        ExpressionAttributeValues={name: {"N": text} for name, text in values.items()},
    )
    assert set(sort_keys(answer)) == expected


def test_begins_with_works_on_a_binary_index_key(wire: WireClient, indexed: str, five: str):
    answer = query(
        wire,
        indexed,
        five,
        "by-some",
        KeyConditionExpression="pk = :pk AND begins_with(b, :x)",
        ExpressionAttributeValues={":x": {"B": "/w=="}},
    )
    assert sort_keys(answer) == ["c"]


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("index", ["by-all", "by-keys", "by-some"])
def test_pages_over_equal_index_keys_lose_nothing(
    wire: WireClient, indexed: str, five: str, index: str, forward: bool
):
    found: list[str] = []
    members: dict[str, Any] = {"Limit": 1, "ScanIndexForward": forward}
    while True:
        answer = query(wire, indexed, five, index, **members)
        found += sort_keys(answer)
        if "LastEvaluatedKey" not in answer:
            break
        key_name = {"by-all": "a", "by-keys": "k", "by-some": "b"}[index]
        assert answer["LastEvaluatedKey"].keys() == {"pk", "sk", key_name}
        members["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
    assert sorted(found) == ["a", "b", "c", "d"]


def test_a_consistent_read_of_an_index_sees_the_latest_write(
    wire: WireClient, indexed: str, pk: str
):
    for number in range(20):
        put(wire, indexed, pk, "s", a={"S": f"{number:02}"}, k={"N": str(number)})
        for index, name in (("by-all", "a"), ("by-keys", "k")):
            found = query(wire, indexed, pk, index, ConsistentRead=True)["Items"]
            assert len(found) == 1
            assert float(next(iter(found[0][name].values()))) == number


def test_an_update_moves_an_item_within_its_index(wire: WireClient, indexed: str, pk: str):
    put(wire, indexed, pk, "1", a={"S": "a"})
    put(wire, indexed, pk, "2", a={"S": "b"})
    request = {
        "TableName": indexed,
        "Key": {"pk": {"S": pk}, "sk": {"S": "1"}},
        "UpdateExpression": "SET a = :a",
        "ExpressionAttributeValues": {":a": {"S": "c"}},
    }
    wire("UpdateItem", request)
    assert sort_keys(query(wire, indexed, pk, "by-all")) == ["2", "1"]
    wire(
        "UpdateItem",
        {
            "TableName": indexed,
            "Key": {"pk": {"S": pk}, "sk": {"S": "1"}},
            "UpdateExpression": "REMOVE a",
        },
    )
    assert sort_keys(query(wire, indexed, pk, "by-all")) == ["2"]


def test_a_projected_attribute_follows_its_item(wire: WireClient, indexed: str, pk: str):
    put(wire, indexed, pk, "1", b={"B": "AA=="}, x={"S": "old"})
    put(wire, indexed, pk, "1", b={"B": "AA=="}, x={"S": "new"}, z={"S": "z"})
    assert query(wire, indexed, pk, "by-some")["Items"] == [
        {"pk": {"S": pk}, "sk": {"S": "1"}, "b": {"B": "AA=="}, "x": {"S": "new"}}
    ]


def test_the_table_itself_is_not_changed_by_its_indexes(wire: WireClient, indexed: str, five: str):
    request = {
        "TableName": indexed,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": five}},
    }
    assert sort_keys(wire("Query", request)) == ["a", "b", "c", "d", "e"]


INDEX_KEY = "One or more parameter values were invalid: Type mismatch for Index Key"
EMPTY_INDEX_KEY = (
    "One or more parameter values are not valid. A value specified for a secondary index key is "
    "not supported. The AttributeValue for a key attribute cannot contain an empty"
)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        pytest.param(
            {"a": {"N": "1"}},
            f"{INDEX_KEY} a Expected: S Actual: N IndexName: by-all",
            marks=differs_from_dynamodb_local("it names neither attribute nor index"),
        ),
        pytest.param(
            {"k": {"S": "1"}},
            f"{INDEX_KEY} k Expected: N Actual: S IndexName: by-keys",
            marks=differs_from_dynamodb_local("it names neither attribute nor index"),
        ),
        pytest.param(
            {"b": {"NULL": True}},
            f"{INDEX_KEY} b Expected: B Actual: NULL IndexName: by-some",
            marks=differs_from_dynamodb_local("other words"),
        ),
        pytest.param(
            {"a": {"SS": ["a"]}},
            f"{INDEX_KEY} a Expected: S Actual: SS IndexName: by-all",
            marks=differs_from_dynamodb_local("other words"),
        ),
        (
            {"a": {"S": ""}},
            f"{EMPTY_INDEX_KEY} string value. IndexName: by-all, IndexKey: a",
        ),
        (
            {"b": {"B": ""}},
            f"{EMPTY_INDEX_KEY} binary value. IndexName: by-some, IndexKey: b",
        ),
    ],
)
def test_a_value_that_is_no_index_key_refuses_the_put(
    wire: WireClient, indexed: str, pk: str, attributes: Any, message: str
):
    item = {"pk": {"S": pk}, "sk": {"S": "s"}, **attributes}
    refusal = wire.refused("PutItem", {"TableName": indexed, "Item": item})
    assert refusal == ("ValidationException", message)
    batch = {"RequestItems": {indexed: [{"PutRequest": {"Item": item}}]}}
    assert wire.refused("BatchWriteItem", batch) == ("ValidationException", message)
    key = {"pk": {"S": pk}, "sk": {"S": "s"}}
    assert wire("GetItem", {"TableName": indexed, "Key": key}) == {}


def test_an_index_key_over_1024_bytes_refuses_the_put(wire: WireClient, indexed: str, pk: str):
    for size_bytes, fits in ((1024, True), (1025, False)):
        item = {"pk": {"S": pk}, "sk": {"S": "s"}, "a": {"S": "x" * size_bytes}}
        answer = wire.send("PutItem", {"TableName": indexed, "Item": item})
        assert (answer.status == 200) is fits


def test_an_unknown_index_is_refused(wire: WireClient, indexed: str):
    request = {
        "TableName": indexed,
        "IndexName": "no-such-index",
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": "p"}},
    }
    assert wire.refused("Query", request) == (
        "ValidationException",
        "The table does not have the specified index: no-such-index",
    )


@differs_from_dynamodb_local("it names no element")
def test_a_condition_on_the_tables_sort_key_is_refused(wire: WireClient, indexed: str):
    request = {
        "TableName": indexed,
        "IndexName": "by-all",
        "KeyConditionExpression": "pk = :p AND sk = :p",
        "ExpressionAttributeValues": {":p": {"S": "p"}},
    }
    assert wire.refused("Query", request) == (
        "ValidationException",
        "Query condition missed key schema element: a",
    )


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({}, "The provided starting key is invalid"),
        pytest.param(
            {"pk": {"S": "p"}, "sk": {"S": "s"}},
            "The provided starting key is invalid",
            marks=differs_from_dynamodb_local("other words"),
        ),
        pytest.param(
            {"pk": {"S": "p"}, "a": {"S": "s"}},
            "The provided starting key is invalid",
            marks=differs_from_dynamodb_local("other words"),
        ),
        (
            {"pk": {"S": "p"}, "sk": {"S": "s"}, "k": {"N": "1"}},
            "The provided starting key is invalid",
        ),
        pytest.param(
            {"pk": {"S": "p"}, "sk": {"S": "s"}, "a": {"N": "1"}},
            "The provided key element does not match the schema",
            marks=differs_from_dynamodb_local("other words"),
        ),
        pytest.param(
            {"pk": {"S": "q"}, "sk": {"S": "s"}, "a": {"S": "s"}},
            "The provided starting key is outside query boundaries based on provided conditions",
            marks=differs_from_dynamodb_local("other words"),
        ),
    ],
)
def test_a_start_key_is_exactly_index_key_and_table_key(
    wire: WireClient, indexed: str, start: Any, message: str
):
    request = {
        "TableName": indexed,
        "IndexName": "by-all",
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "p"}},
        "ExclusiveStartKey": start,
    }
    assert wire.refused("Query", request) == ("ValidationException", message)
