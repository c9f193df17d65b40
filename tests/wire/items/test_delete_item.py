"""DeleteItem: deleting existing and missing items, return values and conditions."""

from __future__ import annotations

import pytest

from tests.support.clients.clients import WireClient, refusal
from tests.support.clients.envelope import enveloped


def test_a_deleted_item_is_gone(wire: WireClient, composite: str, pk: str):
    keys = [{"pk": {"S": pk}, "sk": {"S": sort}} for sort in "ab"]
    for key in keys:
        wire("PutItem", {"TableName": composite, "Item": key})
    assert wire("DeleteItem", {"TableName": composite, "Key": keys[0]}) == {}
    assert wire("GetItem", {"TableName": composite, "Key": keys[0]}) == {}
    assert wire("GetItem", {"TableName": composite, "Key": keys[1]})["Item"] == keys[1]


@pytest.mark.differs_from_dynamodb_local("it adds ConsumedCapacity that nobody asked for")
def test_deleting_a_missing_item_is_no_error(wire: WireClient, simple: str, pk: str):
    request = {"TableName": simple, "Key": {"pk": {"S": pk}}, "ReturnValues": "ALL_OLD"}
    assert wire("DeleteItem", request) == {}


def test_all_old_returns_the_item(wire: WireClient, simple: str, pk: str):
    item = {"pk": {"S": pk}, "l": {"L": [{"N": "1"}]}}
    wire("PutItem", {"TableName": simple, "Item": item})
    request = {"TableName": simple, "Key": {"pk": {"S": pk}}, "ReturnValues": "ALL_OLD"}
    assert wire("DeleteItem", request) == {"Attributes": item}


@pytest.mark.differs_from_dynamodb_local("other words")
@pytest.mark.parametrize("return_values", ["ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"])
def test_only_all_old_or_none_may_be_returned(wire: WireClient, simple: str, return_values: str):
    request = {"TableName": simple, "Key": {"pk": {"S": "k"}}, "ReturnValues": return_values}
    assert wire.refused("DeleteItem", request) == (
        "ValidationException",
        enveloped("ReturnValues can only be ALL_OLD or NONE"),
    )


def test_a_false_condition_keeps_the_item(wire: WireClient, simple: str, pk: str):
    item = {"pk": {"S": pk}, "a": {"S": "kept"}}
    wire("PutItem", {"TableName": simple, "Item": item})
    request = {
        "TableName": simple,
        "Key": {"pk": {"S": pk}},
        "ConditionExpression": "a <> :a",
        "ExpressionAttributeValues": {":a": {"S": "kept"}},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    answer = wire.send("DeleteItem", request)
    assert refusal(answer) == ("ConditionalCheckFailedException", "The conditional request failed")
    assert answer.json["Item"] == item
    # With an item, AWS spells the member of the text with a capital letter.
    assert answer.json["Message"] == "The conditional request failed"
    assert "message" not in answer.json
    assert wire("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}})["Item"] == item


def test_a_true_condition_deletes(wire: WireClient, simple: str, pk: str):
    wire("PutItem", {"TableName": simple, "Item": {"pk": {"S": pk}, "a": {"N": "5"}}})
    request = {
        "TableName": simple,
        "Key": {"pk": {"S": pk}},
        "ConditionExpression": "a BETWEEN :low AND :high",
        "ExpressionAttributeValues": {":low": {"N": "4"}, ":high": {"N": "6"}},
    }
    wire("DeleteItem", request)
    assert wire("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}}) == {}


def test_deleting_an_item_deletes_its_index_entries(wire: WireClient, indexed: str, pk: str):
    key = {"pk": {"S": pk}, "sk": {"S": "s"}}
    wire("PutItem", {"TableName": indexed, "Item": {**key, "a": {"S": "a"}, "k": {"N": "1"}}})
    wire("DeleteItem", {"TableName": indexed, "Key": key})
    for index in ("by-all", "by-keys", "by-some"):
        query = {
            "TableName": indexed,
            "IndexName": index,
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": pk}},
        }
        assert wire("Query", query)["Count"] == 0


def test_an_item_may_be_put_again(wire: WireClient, simple: str, pk: str):
    key = {"pk": {"S": pk}}
    for text in ("first", "second"):
        wire("PutItem", {"TableName": simple, "Item": {**key, "v": {"S": text}}})
        wire("DeleteItem", {"TableName": simple, "Key": key})
    wire("PutItem", {"TableName": simple, "Item": key})
    assert wire("GetItem", {"TableName": simple, "Key": key})["Item"] == key
