"""BatchWriteItem: up to 25 puts and deletes, all validated before the first is executed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

SEVERAL = (
    "Supplied AttributeValue has more than one datatypes set, "
    "must contain exactly one of the supported datatypes"
)


def key(pk: str, sort: str) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": sort}}


def put(item: dict[str, Any]) -> dict[str, Any]:
    return {"PutRequest": {"Item": item}}


def delete(key: dict[str, Any]) -> dict[str, Any]:
    return {"DeleteRequest": {"Key": key}}


def partition(wire: WireClient, table: str, pk: str) -> list[dict[str, Any]]:
    request = {
        "TableName": table,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": pk}},
        "ConsistentRead": True,
    }
    items: list[dict[str, Any]] = wire("Query", request)["Items"]
    return items


def test_puts_and_deletes_are_executed(wire: WireClient, composite: str, pk: str):
    wire("PutItem", {"TableName": composite, "Item": key(pk, "gone")})
    wire("PutItem", {"TableName": composite, "Item": {**key(pk, "new"), "old": {"N": "1"}}})
    requests = [
        put({**key(pk, "new"), "n": {"N": "1"}}),
        delete(key(pk, "gone")),
        delete(key(pk, "never there")),
    ]
    answer = wire("BatchWriteItem", {"RequestItems": {composite: requests}})
    assert answer == {"UnprocessedItems": {}}
    assert partition(wire, composite, pk) == [{**key(pk, "new"), "n": {"N": "1"}}]


def test_25_requests_on_several_tables_are_executed(
    wire: WireClient, composite: str, simple: str, pk: str
):
    request = {
        composite: [put(key(pk, f"{sort:02}")) for sort in range(20)],
        simple: [put({"pk": {"S": f"{pk}-{number}"}}) for number in range(5)],
    }
    assert wire("BatchWriteItem", {"RequestItems": request}) == {"UnprocessedItems": {}}
    assert len(partition(wire, composite, pk)) == 20
    for number in range(5):
        assert wire("GetItem", {"TableName": simple, "Key": {"pk": {"S": f"{pk}-{number}"}}})


def test_a_batch_writes_the_indexes_too(wire: WireClient, indexed: str, pk: str):
    items = [{**key(pk, str(n)), "k": {"N": str(-n)}} for n in range(5)]
    wire("BatchWriteItem", {"RequestItems": {indexed: [put(item) for item in items]}})
    wire("BatchWriteItem", {"RequestItems": {indexed: [delete(key(pk, "3"))]}})
    request = {
        "TableName": indexed,
        "IndexName": "by-keys",
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": pk}},
    }
    found = [item["sk"]["S"] for item in wire("Query", request)["Items"]]
    assert found == ["4", "2", "1", "0"]


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        (
            [put(key("p", "s")), put({**key("p", "s"), "v": {"S": "other"}})],
            "Provided list of item keys contains duplicates",
        ),
        (
            [put(key("p", "s")), delete(key("p", "s"))],
            "Provided list of item keys contains duplicates",
        ),
        ([{}], SEVERAL),
        ([put(key("p", "s")), {}], SEVERAL),
        ([{"NoSuchRequest": {}}], SEVERAL),
        ([put(key("p", "s")) | delete(key("p", "s"))], SEVERAL),
        pytest.param(
            [put({"pk": {"S": "p"}})],
            "The provided key element does not match the schema",
            marks=differs_from_dynamodb_local("other words"),
        ),
        pytest.param(
            [delete({"pk": {"S": "p"}})],
            "The provided key element does not match the schema",
            marks=differs_from_dynamodb_local("other words"),
        ),
        pytest.param(
            [delete({**key("p", "s"), "x": {"S": "x"}})],
            "The provided key element does not match the schema",
            marks=differs_from_dynamodb_local("other words"),
        ),
        pytest.param(
            [put({"pk": {"N": "1"}, "sk": {"S": "s"}})],
            "The provided key element does not match the schema",
            marks=differs_from_dynamodb_local("other words"),
        ),
        (
            [put(key("", "s"))],
            (
                "One or more parameter values are not valid. The AttributeValue for a key "
                "attribute "
                "cannot contain an empty string value. Key: pk"
            ),
        ),
        (
            [delete(key("p", ""))],
            (
                "One or more parameter values are not valid. The AttributeValue for a key "
                "attribute "
                "cannot contain an empty string value. Key: sk"
            ),
        ),
        (
            [put({**key("p", "s"), "v": {"SS": []}})],
            "One or more parameter values were invalid: An string set  may not be empty",
        ),
        (
            [put({**key("p", "s"), "v": {}})],
            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
        ),
    ],
)
def test_one_bad_request_refuses_the_batch_and_nothing_is_written(
    wire: WireClient, composite: str, pk: str, *, requests: Any, message: str
):
    good = put(key(pk, "good"))
    refusal = wire.refused("BatchWriteItem", {"RequestItems": {composite: [good, *requests]}})
    assert refusal == ("ValidationException", message)
    assert partition(wire, composite, pk) == []


def test_numeric_keys_of_the_same_value_are_duplicates(wire: WireClient, numeric: str, pk: str):
    requests = [put({"pk": {"S": pk}, "sk": {"N": text}}) for text in ("1000", "1e3")]
    assert wire.refused("BatchWriteItem", {"RequestItems": {numeric: requests}}) == (
        "ValidationException",
        "Provided list of item keys contains duplicates",
    )
    assert partition(wire, numeric, pk) == []


def test_the_same_key_in_two_tables_is_no_duplicate(
    wire: WireClient, composite: str, indexed: str, pk: str
):
    request = {composite: [put(key(pk, "s"))], indexed: [put(key(pk, "s"))]}
    assert wire("BatchWriteItem", {"RequestItems": request}) == {"UnprocessedItems": {}}


def test_more_than_25_requests_over_all_tables_are_refused(
    wire: WireClient, composite: str, simple: str, pk: str
):
    request = {
        composite: [put(key(pk, str(sort))) for sort in range(20)],
        simple: [put({"pk": {"S": f"{pk}-{number}"}}) for number in range(6)],
    }
    assert wire.refused("BatchWriteItem", {"RequestItems": request}) == (
        "ValidationException",
        "Too many items requested for the BatchWriteItem call",
    )
    assert partition(wire, composite, pk) == []


def test_one_unknown_table_refuses_the_batch_and_nothing_is_written(
    wire: WireClient, composite: str, pk: str
):
    request = {
        composite: [put(key(pk, "s"))],
        "no-such-table-anywhere": [put(key(pk, "s"))],
    }
    refusal = wire.refused("BatchWriteItem", {"RequestItems": request})
    assert refusal.type == "ResourceNotFoundException"
    assert partition(wire, composite, pk) == []


def test_a_batch_of_9_mb_is_written(wire: WireClient, composite: str, pk: str):
    requests = [put({**key(pk, f"{n:02}"), "v": {"S": "x" * 380 * 1024}}) for n in range(25)]
    left = {composite: requests}
    while left:
        left = wire("BatchWriteItem", {"RequestItems": left})["UnprocessedItems"]
    request = {
        "TableName": composite,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": pk}},
        "Select": "COUNT",
    }
    assert wire("Query", request)["Count"] == 3
