"""PutItem: creates or replaces whole items."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient, refusal
from tests.support.clients.envelope import enveloped

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

KEY = {"pk": {"S": "refused"}, "sk": {"S": "s"}}


def test_a_put_item_can_be_read(wire: WireClient, composite: str, pk: str):
    item = {"pk": {"S": pk}, "sk": {"S": "s"}, "n": {"N": "1"}}
    assert wire("PutItem", {"TableName": composite, "Item": item}) == {}
    key = {"pk": {"S": pk}, "sk": {"S": "s"}}
    assert wire("GetItem", {"TableName": composite, "Key": key}) == {"Item": item}


def test_a_put_replaces_the_whole_item(wire: WireClient, simple: str, pk: str):
    for attribute in ("a", "b"):
        item = {"pk": {"S": pk}, attribute: {"S": attribute}}
        wire("PutItem", {"TableName": simple, "Item": item})
    assert wire("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}})["Item"] == {
        "pk": {"S": pk},
        "b": {"S": "b"},
    }


def test_all_old_returns_the_item_that_was_replaced(wire: WireClient, simple: str, pk: str):
    request: dict[str, Any] = {
        "TableName": simple,
        "Item": {"pk": {"S": pk}, "a": {"N": "1"}},
        "ReturnValues": "ALL_OLD",
    }
    assert wire("PutItem", request) == {}
    assert wire("PutItem", request) == {"Attributes": request["Item"]}


def test_return_values_none_returns_nothing(wire: WireClient, simple: str, pk: str):
    request = {"TableName": simple, "Item": {"pk": {"S": pk}}, "ReturnValues": "NONE"}
    assert wire("PutItem", request) == {}
    assert wire("PutItem", request) == {}


def test_a_false_condition_keeps_the_old_item(wire: WireClient, simple: str, pk: str):
    old = {"pk": {"S": pk}, "v": {"S": "old"}}
    wire("PutItem", {"TableName": simple, "Item": old})
    request = {
        "TableName": simple,
        "Item": {"pk": {"S": pk}, "v": {"S": "new"}},
        "ConditionExpression": "attribute_not_exists(pk)",
    }
    assert wire.refused("PutItem", request) == (
        "ConditionalCheckFailedException",
        "The conditional request failed",
    )
    assert wire("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}})["Item"] == old


def test_a_failed_condition_returns_the_item_on_request(wire: WireClient, simple: str, pk: str):
    old = {"pk": {"S": pk}, "v": {"S": "old"}}
    wire("PutItem", {"TableName": simple, "Item": old})
    request = {
        "TableName": simple,
        "Item": old,
        "ConditionExpression": "attribute_not_exists(pk)",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    answer = wire.send("PutItem", request)
    assert refusal(answer).type == "ConditionalCheckFailedException"
    assert answer.json["Item"] == old
    request["ReturnValuesOnConditionCheckFailure"] = "NONE"
    assert "Item" not in wire.send("PutItem", request).json


def test_a_failed_condition_on_a_missing_item_returns_no_item(
    wire: WireClient, simple: str, pk: str
):
    request = {
        "TableName": simple,
        "Item": {"pk": {"S": pk}},
        "ConditionExpression": "attribute_exists(pk)",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    answer = wire.send("PutItem", request)
    assert refusal(answer).type == "ConditionalCheckFailedException"
    assert "Item" not in answer.json


def test_an_unknown_table_is_not_found(wire: WireClient):
    request = {"TableName": "no-such-table-anywhere", "Item": KEY}
    assert wire.refused("PutItem", request).type == "ResourceNotFoundException"


@differs_from_dynamodb_local("other words")
def test_the_error_for_an_unknown_table_has_dynamodbs_message(wire: WireClient):
    request = {"TableName": "no-such-table-anywhere", "Item": KEY}
    assert wire.refused("PutItem", request).message == "Requested resource not found"


@pytest.mark.parametrize(
    ("item", "message"),
    [
        pytest.param(
            {"pk": {"S": "a"}},
            "One or more parameter values were invalid: Missing the key sk in the item",
            marks=differs_from_dynamodb_local("other words"),
        ),
        pytest.param(
            {"sk": {"S": "a"}},
            "One or more parameter values were invalid: Missing the key pk in the item",
            marks=differs_from_dynamodb_local("other words"),
        ),
        pytest.param(
            {},
            "One or more parameter values were invalid: Missing the key pk in the item",
            marks=differs_from_dynamodb_local("other words"),
        ),
        *[
            pytest.param(
                {"pk": value, "sk": {"S": "b"}},
                "One or more parameter values were invalid: Type mismatch for key pk "
                f"expected: S actual: {next(iter(value))}",
                marks=differs_from_dynamodb_local("other words"),
            )
            for value in (
                {"N": "1"}, {"B": "YQ=="}, {"SS": ["a"]}, {"NULL": True}, {"BOOL": True},
                {"M": {}}, {"L": []},
            )
        ],
        (
            {"pk": {"S": ""}, "sk": {"S": "b"}},
            ("One or more parameter values are not valid. The AttributeValue for a key attribute "
            "cannot contain an empty string value. Key: pk"),
        ),
        (
            {"pk": {"S": "a"}, "sk": {"S": ""}},
            ("One or more parameter values are not valid. The AttributeValue for a key attribute "
            "cannot contain an empty string value. Key: sk"),
        ),
    ],
)  # fmt: skip
def test_an_item_without_its_whole_key_is_refused(
    wire: WireClient, composite: str, item: Any, message: str
):
    request = {"TableName": composite, "Item": item}
    assert wire.refused("PutItem", request) == ("ValidationException", message)


def test_an_empty_binary_key_is_refused(wire: WireClient, binary: str):
    request = {"TableName": binary, "Item": {"pk": {"B": ""}, "sk": {"B": "YQ=="}}}
    assert wire.refused("PutItem", request) == (
        "ValidationException",
        (
            "One or more parameter values are not valid. The AttributeValue for a key attribute "
            "cannot contain an empty binary value. Key: pk"
        ),
    )


@differs_from_dynamodb_local("other words")
@pytest.mark.parametrize("return_values", ["ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"])
def test_only_all_old_or_none_may_be_returned(wire: WireClient, composite: str, return_values: str):
    request = {"TableName": composite, "Item": KEY, "ReturnValues": return_values}
    assert wire.refused("PutItem", request) == (
        "ValidationException",
        enveloped("ReturnValues can only be ALL_OLD or NONE"),
    )


def test_all_optional_results_can_be_returned_together(wire: WireClient, indexed: str, pk: str):
    item = {"pk": {"S": pk}, "sk": {"S": "s"}, "a": {"S": "a"}}
    wire("PutItem", {"TableName": indexed, "Item": item})
    request = {
        "TableName": indexed,
        "Item": item,
        "ConditionExpression": "a = :a",
        "ExpressionAttributeValues": {":a": {"S": "a"}},
        "ReturnValues": "ALL_OLD",
        "ReturnConsumedCapacity": "INDEXES",
        "ReturnItemCollectionMetrics": "SIZE",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    answer = wire("PutItem", request)
    assert answer["Attributes"] == item
    assert answer["ConsumedCapacity"]["TableName"] == indexed


def test_numbers_in_keys_are_equal_by_value(wire: WireClient, numeric: str, pk: str):
    item = {"pk": {"S": pk}, "sk": {"N": "1e3"}, "v": {"S": "a"}}
    wire("PutItem", {"TableName": numeric, "Item": item})
    for spelling in ("1000", "1000.0", "+1000", "01000", "1E3"):
        key = {"pk": {"S": pk}, "sk": {"N": spelling}}
        got = wire("GetItem", {"TableName": numeric, "Key": key})["Item"]
        assert got == item | {"sk": {"N": "1000"}}
    wire("PutItem", {"TableName": numeric, "Item": item | {"sk": {"N": "1000.00"}}})
    query = {
        "TableName": numeric,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": pk}},
    }
    assert wire("Query", query)["Count"] == 1


def test_minus_zero_is_the_key_zero(wire: WireClient, numeric: str, pk: str):
    item = {"pk": {"S": pk}, "sk": {"N": "-0"}}
    wire("PutItem", {"TableName": numeric, "Item": item})
    key = {"pk": {"S": pk}, "sk": {"N": "0"}}
    assert wire("GetItem", {"TableName": numeric, "Key": key})["Item"] == key


def test_a_table_may_be_named_by_its_arn(wire: WireClient, simple: str, pk: str):
    arn = wire("DescribeTable", {"TableName": simple})["Table"]["TableArn"]
    item = {"pk": {"S": pk}, "v": {"S": "by arn"}}
    wire("PutItem", {"TableName": arn, "Item": item})
    key = {"pk": {"S": pk}}
    assert wire("GetItem", {"TableName": simple, "Key": key})["Item"] == item
    assert wire("GetItem", {"TableName": arn, "Key": key})["Item"] == item


def test_attribute_names_may_be_anything(wire: WireClient, simple: str, pk: str):
    names = ["a.b", "a[0]", " ", "#a", ":a", "SELECT", "漢", "\x00", '"', "\\", "é" * 100]
    item = {"pk": {"S": pk}} | {name: {"S": name} for name in names}
    wire("PutItem", {"TableName": simple, "Item": item})
    assert wire("GetItem", {"TableName": simple, "Key": {"pk": {"S": pk}}})["Item"] == item


def test_every_kind_of_read_returns_a_put_item_at_once(wire: WireClient, simple: str, pk: str):
    key = {"pk": {"S": pk}}
    for number in range(20):
        item = {**key, "n": {"N": str(number)}}
        wire("PutItem", {"TableName": simple, "Item": item})
        read = {"TableName": simple, "Key": key, "ConsistentRead": True}
        assert wire("GetItem", read)["Item"] == item
        query = {
            "TableName": simple,
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": pk}},
            "ConsistentRead": True,
        }
        assert wire("Query", query)["Items"] == [item]
