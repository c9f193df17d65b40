"""Violated constraints of members: messages and their order in both request layers of AWS.

AWS's newer request layer answers PutItem, UpdateItem, DeleteItem, GetItem, BatchGetItem and Query;
the older layer answers all other operations. Measured on AWS, May to October 2026.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import Refusal
from tests.support.clients.lanes import LanesClient

pytestmark = pytest.mark.differs_from_dynamodb_local("it has words of its own")

ONE = "1 validation error detected: "
FAILED = "failed to satisfy constraint: "
AT_LEAST_1 = f"{FAILED}Member must have length greater than or equal to 1"
KEY = {"pk": {"S": "a"}}
JAVA_ITEM = "{pk=AttributeValue(s=a)}"
MAP_KEYS = (
    f"{FAILED}Map keys must satisfy constraint: [Member must have length less than or equal to "
    "255, Member must have length greater than or equal to 3, Member must satisfy regular "
    "expression pattern: [a-zA-Z0-9_.-]+]"
)
NO_CAPACITY = (
    f"Value 'BOGUS' at 'returnConsumedCapacity' {FAILED}"
    "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"
)
NO_RETURN_VALUES = (
    "Failed to satisfy constraint: Member must satisfy enum value set: "
    "[ALL_OLD, UPDATED_OLD, ALL_NEW, UPDATE_NEW, NONE]"
)
NO_OPERATOR = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]"


def invalid(message: str) -> Refusal:
    return Refusal("ValidationException", message)


def table_definition(**members: Any) -> dict[str, Any]:
    return {
        "TableName": "abc",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
        **members,
    }


@pytest.mark.parametrize(
    ("operation", "members", "message"),
    [
        ("BatchGetItem", {"RequestItems": {}}, f"{ONE}Value at 'RequestItems' {AT_LEAST_1}"),
        (
            "BatchGetItem",
            {"RequestItems": {"abc": {"Keys": [KEY] * 101}}},
            (
                f"{ONE}Value at 'RequestItems.abc.member.Keys' {FAILED}"
                "Member must have length less than or equal to 100"
            ),
        ),
        (
            "BatchGetItem",
            {"RequestItems": {"abc": {"Keys": []}}},
            f"{ONE}Value at 'RequestItems.abc.member.Keys' {AT_LEAST_1}",
        ),
        (
            "Query",
            {"TableName": "abc", "Limit": 0},
            (f"{ONE}Value at 'Limit' {FAILED}Member must have value greater than or equal to 1"),
        ),
        (
            "Query",
            {"TableName": "abc", "IndexName": "ab"},
            (
                f"{ONE}Value at 'IndexName' {FAILED}"
                "Member must have length greater than or equal to 3"
            ),
        ),
        (
            "GetItem",
            {"TableName": "abc", "Key": KEY, "AttributesToGet": []},
            f"{ONE}Value at 'AttributesToGet' {AT_LEAST_1}",
        ),
        *(
            (operation, {"TableName": "", **members}, f"{ONE}Value at 'TableName' {AT_LEAST_1}")
            for operation, members in [
                ("PutItem", {"Item": KEY}),
                ("UpdateItem", {"Key": KEY}),
                ("DeleteItem", {"Key": KEY}),
                ("GetItem", {"Key": KEY}),
                ("Query", {}),
            ]
        ),
    ],
)
def test_the_newer_layer_names_members_as_the_request_does_and_shows_no_value(
    lanes: LanesClient, operation: str, members: dict[str, Any], message: str
):
    assert lanes.refused(operation, members) == invalid(message)


@pytest.mark.parametrize(
    ("operation", "members", "message"),
    [
        (
            "BatchWriteItem",
            {"RequestItems": {}},
            "The requestItems parameter is required for BatchWriteItem",
        ),
        (
            "BatchWriteItem",
            {"RequestItems": {"abc": []}},
            (
                f"{ONE}Value '{{abc=[]}}' at 'requestItems' {FAILED}Map value must satisfy "
                "constraint: [Member must have length less than or equal to 25, Member must have "
                "length greater than or equal to 1]"
            ),
        ),
        (
            "BatchWriteItem",
            {"RequestItems": {"abc": [{"PutRequest": {"Item": KEY}}] * 26}},
            (
                f"{ONE}Value '{{abc=["
                f"{', '.join([f'WriteRequest(putRequest=PutRequest(item={JAVA_ITEM}))'] * 26)}"
                f"]}}' at 'requestItems' {FAILED}Map value must satisfy "
                "constraint: [Member must have length less than or equal to 25, Member must have "
                "length greater than or equal to 1]"
            ),
        ),
        (
            "TransactWriteItems",
            {"TransactItems": [{"Put": {"TableName": "abc", "Item": KEY}}] * 101},
            (
                f"{ONE}Value '["
                + ", ".join([f"TransactWriteItem(put=Put(item={JAVA_ITEM}, tableName=abc))"] * 101)
                + f"]' at 'transactItems' {FAILED}Member must have length less than or equal to 100"
            ),
        ),
        (
            "TransactGetItems",
            {"TransactItems": [{"Get": {"TableName": "abc", "Key": KEY}}] * 101},
            (
                f"{ONE}Value '["
                + ", ".join([f"TransactGetItem(get=Get(key={JAVA_ITEM}, tableName=abc))"] * 101)
                + f"]' at 'transactItems' {FAILED}Member must have length less than or equal to 100"
            ),
        ),
        (
            "CreateTable",
            table_definition(TableName="ab"),
            (
                f"{ONE}Value 'ab' at 'tableName' {FAILED}"
                "Member must have length greater than or equal to 3"
            ),
        ),
        (
            "CreateTable",
            table_definition(TableName=""),
            (
                f"2 validation errors detected: Value '' at 'tableName' {FAILED}Member must "
                f"satisfy regular expression pattern: [a-zA-Z0-9_.-]+; Value '' at 'tableName' "
                f"{FAILED}Member must have length greater than or equal to 3"
            ),
        ),
        (
            "CreateTable",
            table_definition(TableName="ab!"),
            (
                f"{ONE}Value 'ab!' at 'tableName' {FAILED}Member must "
                "satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
            ),
        ),
        (
            "CreateTable",
            table_definition(
                KeySchema=[
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "sk", "KeyType": "RANGE"},
                    {"AttributeName": "tk", "KeyType": "RANGE"},
                ]
            ),
            (
                f"{ONE}Value '[KeySchemaElement(attributeName=pk, keyType=HASH), "
                "KeySchemaElement(attributeName=sk, keyType=RANGE), "
                "KeySchemaElement(attributeName=tk, keyType=RANGE)]' at 'keySchema' "
                f"{FAILED}Member must have length less than or equal to 2"
            ),
        ),
        (
            "CreateTable",
            table_definition(
                KeySchema=[
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "sk", "KeyType": "RANGE"},
                    {"KeyType": "KEY"},
                ]
            ),
            (
                "3 validation errors detected: "
                "Value '[KeySchemaElement(attributeName=pk, keyType=HASH), "
                "KeySchemaElement(attributeName=sk, keyType=RANGE), "
                "KeySchemaElement(keyType=KEY)]' at 'keySchema' "
                f"{FAILED}Member must have length less than or equal to 2; "
                f"Value null at 'keySchema.3.member.attributeName' {FAILED}Member must not be "
                f"null; Value 'KEY' at 'keySchema.3.member.keyType' {FAILED}Member must satisfy "
                "enum value set: [HASH, RANGE]"
            ),
        ),
        (
            "Scan",
            {"TableName": "abc", "Limit": 0},
            (
                f"{ONE}Value '0' at 'limit' {FAILED}"
                "Member must have value greater than or equal to 1"
            ),
        ),
    ],
)
def test_the_older_layer_shows_the_value_as_java_prints_it(
    lanes: LanesClient, operation: str, members: dict[str, Any], message: str
):
    assert lanes.refused(operation, members) == invalid(message)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"N": "1"}, "n=1"),
        ({"B": "AAEC"}, "b=java.nio.HeapByteBuffer[pos=0 lim=3 cap=3]"),
        ({"SS": ["a", "b"]}, "sS=[a, b]"),
        ({"NS": ["1", "2"]}, "nS=[1, 2]"),
        ({"BS": ["AA=="]}, "bS=[java.nio.HeapByteBuffer[pos=0 lim=1 cap=1]]"),
        ({"NULL": True}, "nULL=true"),
        ({"BOOL": False}, "bOOL=false"),
        ({"L": [{"S": "x"}]}, "l=[AttributeValue(s=x)]"),
        ({"M": {"a": {"S": "x"}}}, "m={a=AttributeValue(s=x)}"),
    ],
)
def test_the_older_layer_shows_values_of_every_type(lanes: LanesClient, value: Any, shown: str):
    request = {"RequestItems": {"ab": [{"DeleteRequest": {"Key": {"pk": value}}}]}}
    assert lanes.refused("BatchWriteItem", request) == invalid(
        f"{ONE}Value '{{ab=[WriteRequest(deleteRequest=DeleteRequest(key="
        f"{{pk=AttributeValue({shown})}}))]}}' at 'requestItems' {MAP_KEYS}"
    )


def test_a_value_nested_too_deep_is_truncated_in_the_message(lanes: LanesClient):
    value: dict[str, Any] = {"S": "x"}
    for _ in range(150):
        value = {"L": [value]}
    request = {"RequestItems": {"ab": [{"PutRequest": {"Item": {"pk": value}}}]}}
    kind, message = lanes.refused("BatchWriteItem", request)
    assert kind == "ValidationException"
    assert message is not None
    assert "AttributeValue(l=[...])" in message


@pytest.mark.parametrize(
    ("operation", "items", "shown"),
    [
        (
            "BatchGetItem",
            {"bad!name": {"Keys": [KEY]}},
            '{"bad!name":{"Keys":[{"pk":{"S":"a"}}]}}',
        ),
        (
            "BatchWriteItem",
            {"bad!name": [{"PutRequest": {"Item": KEY}}]},
            f"{{bad!name=[WriteRequest(putRequest=PutRequest(item={JAVA_ITEM}))]}}",
        ),
    ],
)
def test_a_map_of_wrong_table_names_is_shown_in_full(
    lanes: LanesClient, operation: str, items: Any, shown: str
):
    assert lanes.refused(operation, {"RequestItems": items}) == invalid(
        f"{ONE}Value '{shown}' at 'requestItems' {MAP_KEYS}"
    )


def test_an_enumeration_is_reported_with_the_names_of_tables_in_a_map_by_the_newer_layer(
    lanes: LanesClient,
):
    request = {
        "RequestItems": {"bad!name": {"Keys": [KEY]}},
        "ReturnConsumedCapacity": "BOGUS",
    }
    assert lanes.refused("BatchGetItem", request) == invalid(
        f"2 validation errors detected: {NO_CAPACITY}; "
        f'Value \'{{"bad!name":{{"Keys":[{{"pk":{{"S":"a"}}}}]}}}}\' at \'requestItems\' '
        f"{MAP_KEYS}"
    )


def test_an_enumeration_is_reported_without_the_names_of_tables_in_a_map_by_the_older_layer(
    lanes: LanesClient,
):
    request = {
        "RequestItems": {"bad!name": [{"PutRequest": {"Item": KEY}}]},
        "ReturnConsumedCapacity": "BOGUS",
    }
    assert lanes.refused("BatchWriteItem", request) == invalid(f"{ONE}{NO_CAPACITY}")


@pytest.mark.parametrize("operation", ["PutItem", "UpdateItem", "DeleteItem"])
@pytest.mark.parametrize("beside", [{}, {"ReturnConsumedCapacity": "BOGUS"}])
def test_the_newer_layer_reports_return_values_alone(
    lanes: LanesClient, operation: str, beside: dict[str, str]
):
    request = {"TableName": "abc", "Key": KEY, "Item": KEY, "ReturnValues": "INVALID", **beside}
    assert lanes.refused(operation, request) == invalid(ONE + NO_RETURN_VALUES)


def test_the_newer_layer_reports_a_conditional_operator_alone(lanes: LanesClient):
    condition = {"ComparisonOperator": "NULL"}
    request = {
        "TableName": "abc",
        "QueryFilter": {"a": condition, "b": condition},
        "ConditionalOperator": "XOR",
        "Select": "BOGUS",
    }
    assert lanes.refused("Query", request) == invalid(NO_OPERATOR)


@pytest.mark.parametrize(
    ("levels", "return_values", "operator"),
    [
        (62, NO_RETURN_VALUES, NO_OPERATOR),
        (
            63,
            (
                f"Value 'BOGUS' at 'returnValues' {FAILED}Member must satisfy enum value set: "
                "[ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"
            ),
            (
                f"Value 'XOR' at 'conditionalOperator' {FAILED}"
                "Member must satisfy enum value set: [OR, AND]"
            ),
        ),
    ],
)
def test_the_older_layer_reports_constraints_beside_a_value_of_more_than_62_levels(
    lanes: LanesClient, levels: int, return_values: str, operator: str
):
    value: Any = {"S": "x"}
    for _ in range(levels):
        value = {"L": [value]}
    request = {"TableName": "abc", "Key": {"pk": value}, "ReturnValues": "BOGUS"}
    assert lanes.refused("DeleteItem", request) == invalid(ONE + return_values)
    request = {
        "TableName": "abc",
        "Key": KEY,
        "Expected": {"a": {"Value": value}, "b": {"Value": {"S": "x"}}},
        "ConditionalOperator": "XOR",
    }
    assert lanes.refused("DeleteItem", request) == invalid(ONE + operator)


def test_the_newer_layer_reports_limits_before_enumerations(lanes: LanesClient):
    request = {"TableName": "", "Item": KEY, "ReturnValues": "BOGUS"}
    assert lanes.refused("PutItem", request) == invalid(f"{ONE}Value at 'TableName' {AT_LEAST_1}")


@pytest.mark.parametrize(
    ("members", "places"),
    [
        ({"TableName": ""}, ["'' at 'tableName'", "null at 'key'"]),
        (
            {"TableName": "", "ReturnValues": "INVALID", "ReturnConsumedCapacity": "BOGUS"},
            [
                "'BOGUS' at 'returnConsumedCapacity'",
                "'' at 'tableName'",
                "'INVALID' at 'returnValues'",
                "null at 'key'",
            ],
        ),
        (
            {"TableName": "abc", "ConditionalOperator": "XOR"},
            ["'XOR' at 'conditionalOperator'", "null at 'key'"],
        ),
        (
            {"ReturnValues": "INVALID", "ReturnConsumedCapacity": "BOGUS"},
            [
                "'BOGUS' at 'returnConsumedCapacity'",
                "null at 'tableName'",
                "'INVALID' at 'returnValues'",
                "null at 'key'",
            ],
        ),
    ],
)
def test_update_item_lists_all_violations_besides_a_missing_member(
    lanes: LanesClient, members: dict[str, str], places: list[str]
):
    kind, message = lanes.refused("UpdateItem", members)
    assert kind == "ValidationException"
    assert message is not None
    head, _, told = message.partition(" detected: ")
    assert head == f"{len(places)} validation errors"
    assert [one.partition(" failed")[0] for one in told.split("; ")] == [
        f"Value {place}" for place in places
    ]


def test_a_transaction_s_token_is_reported_before_its_capacity(lanes: LanesClient):
    token = "x" * 37
    request = {
        "TransactItems": [{"Put": {"TableName": "abc", "Item": KEY}}],
        "ClientRequestToken": token,
        "ReturnConsumedCapacity": "BOGUS",
    }
    assert lanes.refused("TransactWriteItems", request) == invalid(
        f"2 validation errors detected: Value '{token}' at 'clientRequestToken' {FAILED}"
        f"Member must have length less than or equal to 36; {NO_CAPACITY}"
    )
