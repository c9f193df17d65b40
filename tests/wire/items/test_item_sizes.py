"""The limit of 400 KB for an item, and the limits for keys and names."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.lanes import LanesClient
from tests.support.tables.tables import unique_name

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

ITEM_BYTES = 400 * 1024
TOO_LARGE = ("ValidationException", "Item size has exceeded the maximum allowed size")
TOO_LARGE_TO_UPDATE = (
    "ValidationException",
    "Item size to update has exceeded the maximum allowed size",
)


def item_of(size_bytes: int, **attributes: Any) -> dict[str, Any]:
    """An item of ``size_bytes`` without ``attributes``."""
    filler = size_bytes - len("pk") - 1 - len("v")
    return {"pk": {"S": "k"}, "v": {"S": "x" * filler}} | attributes


def test_an_item_of_400_kb_is_kept(wire: WireClient, simple: str):
    item = item_of(ITEM_BYTES)
    wire("PutItem", {"TableName": simple, "Item": item})
    assert wire("GetItem", {"TableName": simple, "Key": {"pk": item["pk"]}}) == {"Item": item}


def test_an_item_over_400_kb_is_refused(wire: WireClient, simple: str):
    request = {"TableName": simple, "Item": item_of(ITEM_BYTES + 1)}
    assert wire.refused("PutItem", request) == TOO_LARGE


@pytest.mark.parametrize(
    ("value", "size_bytes"),
    [
        ({"BOOL": True}, 1),
        ({"NULL": True}, 1),
        ({"B": "AAAA"}, 3),
        ({"S": "é"}, 2),
        ({"SS": ["ab", "c"]}, 3),
        ({"BS": ["AA==", "AAA="]}, 3),
        ({"L": []}, 3),
        ({"M": {}}, 3),
        ({"L": [{"S": "ab"}, {"BOOL": True}]}, 3 + 2 + 3),
        ({"M": {"ab": {"S": "c"}}}, 3 + 1 + 3),
        ({"N": "0"}, 1),
        ({"N": "12"}, 2),
        ({"N": "1200000"}, 3),
        ({"N": "1" * 38}, 20),
    ],
)
@differs_from_dynamodb_local("its sizes of numbers and documents are its own")
def test_every_type_has_the_size_of_the_developer_guide(
    wire: WireClient, simple: str, value: Any, size_bytes: int
):
    name_bytes = 1
    fitting = item_of(ITEM_BYTES - name_bytes - size_bytes, w=value)
    wire("PutItem", {"TableName": simple, "Item": fitting})
    request = {
        "TableName": simple,
        "Item": item_of(ITEM_BYTES - name_bytes - size_bytes + 1, w=value),
    }
    assert wire.refused("PutItem", request) == TOO_LARGE


def test_names_count_in_utf_8(wire: WireClient, simple: str):
    wire("PutItem", {"TableName": simple, "Item": item_of(ITEM_BYTES - 3, é={"S": "a"})})
    request = {"TableName": simple, "Item": item_of(ITEM_BYTES - 2, é={"S": "a"})}
    assert wire.refused("PutItem", request) == TOO_LARGE


def test_an_update_that_grows_an_item_over_400_kb_is_refused_and_changes_nothing(
    wire: WireClient, simple: str, pk: str
):
    key = {"pk": {"S": pk}}
    wire("PutItem", {"TableName": simple, "Item": {**key, "v": {"S": "x" * (ITEM_BYTES - 1000)}}})
    request = {
        "TableName": simple,
        "Key": key,
        "UpdateExpression": "SET w = :w",
        "ExpressionAttributeValues": {":w": {"S": "y" * 1000}},
    }
    assert wire.refused("UpdateItem", request) == TOO_LARGE_TO_UPDATE
    assert "w" not in wire("GetItem", {"TableName": simple, "Key": key})["Item"]


# DynamoDB adds the name b, 3 bytes for the expression, and 19 bytes for SET.
LARGEST_SET_BYTES = ITEM_BYTES - 1 - 3 - 19


def set_b(table: str, pk: str, size_bytes: int) -> dict[str, Any]:
    return {
        "TableName": table,
        "Key": {"pk": {"S": pk}},
        "UpdateExpression": "SET b = :pad",
        "ExpressionAttributeValues": {":pad": {"S": "x" * size_bytes}},
    }


@differs_from_dynamodb_local("it counts the finished item alone")
def test_an_update_expression_adds_19_bytes_for_each_set(lanes: LanesClient, simple: str):
    assert LARGEST_SET_BYTES == 409_577
    lanes("UpdateItem", set_b(simple, "Q", LARGEST_SET_BYTES))
    refusal = lanes.refused("UpdateItem", set_b(simple, "Q", LARGEST_SET_BYTES + 1))
    assert refusal == TOO_LARGE_TO_UPDATE
    found = lanes("GetItem", {"TableName": simple, "Key": {"pk": {"S": "Q"}}})["Item"]
    assert len(found["b"]["S"]) == LARGEST_SET_BYTES


def test_the_size_of_the_new_item_counts_if_it_is_larger(wire: WireClient, simple: str):
    pk = "p" * 100
    largest = ITEM_BYTES - len("pk") - len(pk) - len("b")
    wire("UpdateItem", set_b(simple, pk, largest))
    assert wire.refused("UpdateItem", set_b(simple, pk, largest + 1)) == TOO_LARGE_TO_UPDATE


@differs_from_dynamodb_local("it counts the finished item alone")
@pytest.mark.parametrize(
    ("expression", "others", "more_bytes"),
    [
        ("SET b = :pad, c = :c", {":c": {"N": "1"}}, 19 + 1 + 2),
        ("ADD s :pad", {}, 0),
        ("SET b = :pad ADD n :c", {":c": {"N": "12"}}, 19 + 1 + 2),
        ("SET b = :pad REMOVE abc, de", {}, (1 + 3) + (1 + 2)),
        ("SET b = :pad DELETE s :s", {":s": {"SS": ["any"]}}, 1 + 1),
        ("SET b = if_not_exists(abc, :pad)", {}, 39 + (1 + 14 + 3)),
        ("SET b = :pad, n = if_not_exists(n, :c) + :c", {":c": {"N": "1"}}, 1 + 34 + 76 + 21),
    ],
)
def test_each_set_and_add_action_adds_to_the_size(
    wire: WireClient, simple: str, *, expression: str, others: Any, more_bytes: int
):
    def request(size_bytes: int) -> dict[str, Any]:
        text = "x" * size_bytes
        pad = {"SS": [text]} if "ADD s" in expression else {"S": text}
        return {
            "TableName": simple,
            "Key": {"pk": {"S": "Q"}},
            "UpdateExpression": expression,
            "ExpressionAttributeValues": {":pad": pad, **others},
        }

    wire("DeleteItem", {"TableName": simple, "Key": {"pk": {"S": "Q"}}})
    largest = LARGEST_SET_BYTES - more_bytes
    # A false condition is checked after the size.
    condition = {"ConditionExpression": "attribute_exists(kept)"}
    failed = wire.refused("UpdateItem", request(largest) | condition)
    assert failed == ("ConditionalCheckFailedException", "The conditional request failed")
    refusal = wire.refused("UpdateItem", request(largest + 1) | condition)
    assert refusal == TOO_LARGE_TO_UPDATE
    assert wire.refused("UpdateItem", request(largest + 1)) == TOO_LARGE_TO_UPDATE
    wire("UpdateItem", request(largest))


def test_for_other_updates_only_the_size_of_the_new_item_counts(wire: WireClient, simple: str):
    key = {"pk": {"S": "Q"}}
    wire("DeleteItem", {"TableName": simple, "Key": key})
    largest = ITEM_BYTES - len("pkQb")
    by_expression = set_b(simple, "Q", largest)
    text = by_expression["ExpressionAttributeValues"][":pad"]
    wire("TransactWriteItems", {"TransactItems": [{"Update": by_expression}]})
    wire(
        "ExecuteStatement",
        {"Statement": f"UPDATE \"{simple}\" SET b = ? WHERE pk = 'Q'", "Parameters": [text]},
    )
    wire(
        "UpdateItem",
        {"TableName": simple, "Key": key, "AttributeUpdates": {"b": {"Value": text}}},
    )
    item = {**key, "b": text}
    wire("PutItem", {"TableName": simple, "Item": item})
    assert wire("GetItem", {"TableName": simple, "Key": key}) == {"Item": item}


def test_a_batch_with_one_item_too_large_writes_nothing(wire: WireClient, simple: str, pk: str):
    key = {"pk": {"S": pk}}
    requests = [{"PutRequest": {"Item": key}}, {"PutRequest": {"Item": item_of(ITEM_BYTES + 1)}}]
    assert wire.refused("BatchWriteItem", {"RequestItems": {simple: requests}}) == TOO_LARGE
    assert wire("GetItem", {"TableName": simple, "Key": key}) == {}


def test_the_largest_keys_are_kept(wire: WireClient, composite: str):
    key = {"pk": {"S": "é" * 1024}, "sk": {"S": "s" * 1024}}
    wire("PutItem", {"TableName": composite, "Item": key})
    assert wire("GetItem", {"TableName": composite, "Key": key})["Item"] == key
    wire("DeleteItem", {"TableName": composite, "Key": key})


@differs_from_dynamodb_local("other words")
@pytest.mark.parametrize("operation", ["PutItem", "GetItem", "UpdateItem", "DeleteItem"])
@pytest.mark.parametrize(
    ("key", "message"),
    [
        (
            {"pk": {"S": "k" * 2049}, "sk": {"S": "s"}},
            (
                "One or more parameter values were invalid: Size of hashkey has exceeded the "
                "maximum size limit of2048 bytes"
            ),
        ),
        (
            {"pk": {"S": "k"}, "sk": {"S": "s" * 1025}},
            (
                "One or more parameter values were invalid: Aggregated size of all range keys has "
                "exceeded the size limit of 1024 bytes"
            ),
        ),
    ],
)
def test_larger_keys_are_refused(
    wire: WireClient, composite: str, operation: str, key: Any, message: str
):
    member = "Item" if operation == "PutItem" else "Key"
    refusal = wire.refused(operation, {"TableName": composite, member: key})
    assert refusal == ("ValidationException", message)


@differs_from_dynamodb_local("it answers 500")
def test_a_name_of_65535_bytes_is_kept(wire: WireClient, simple: str):
    name = "n" * 65_535
    item = {"pk": {"S": unique_name("pk")}, name: {"S": "a"}}
    wire("PutItem", {"TableName": simple, "Item": item})
    request = {"TableName": simple, "Key": {"pk": item["pk"]}}
    assert wire("GetItem", request)["Item"] == item


@differs_from_dynamodb_local("it answers 500")
def test_a_name_over_65535_bytes_is_refused(wire: WireClient, simple: str):
    item = {"pk": {"S": "k"}, "n" * 65_536: {"S": "a"}}
    refusal = wire.refused("PutItem", {"TableName": simple, "Item": item})
    assert refusal.type == "ValidationException"
