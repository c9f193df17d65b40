"""Messages of faults that the request alone shows, without the table.

PutItem, UpdateItem and DeleteItem report these as ``1 validation error detected: …``: the envelope.
Other operations, and faults that depend on the table, have no envelope. Measured on AWS, May to
October 2026.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import Refusal
from tests.support.clients.lanes import LanesClient

pytestmark = pytest.mark.differs_from_dynamodb_local("it has words of its own")

ONE = "1 validation error detected: "
INVALID = "One or more parameter values were invalid: "
NO_NUMBER = "The parameter cannot be converted to a numeric value"
OVERFLOW = (
    "Number overflow. Attempting to store a number with magnitude larger than supported range"
)
UNDERFLOW = (
    "Number underflow. Attempting to store a number with magnitude smaller than supported range"
)
KEY = {"pk": {"S": "envelope"}}
CONDITION = {"ConditionExpression": "a = :v"}

# Members of a request that contain the value; ``check_everywhere`` adds TableName.
Places = dict[str, Any]


def in_writes(value: Any) -> dict[str, tuple[str, Places]]:
    values = {":v": value}
    expected = {"a": {"Value": value}}
    return {
        "an item": ("PutItem", {"Item": KEY | {"a": value}}),
        "a nested value": ("PutItem", {"Item": KEY | {"a": {"L": [{"M": {"b": value}}]}}}),
        "a put's condition": (
            "PutItem",
            {"Item": KEY, "ExpressionAttributeValues": values, **CONDITION},
        ),
        "a put's Expected": ("PutItem", {"Item": KEY, "Expected": expected}),
        "a deleted key": ("DeleteItem", {"Key": {"pk": value}}),
        "a delete's condition": (
            "DeleteItem",
            {"Key": KEY, "ExpressionAttributeValues": values, **CONDITION},
        ),
        "a delete's Expected": ("DeleteItem", {"Key": KEY, "Expected": expected}),
        "an updated key": ("UpdateItem", {"Key": {"pk": value}}),
        "an update's value": (
            "UpdateItem",
            {
                "Key": KEY,
                "UpdateExpression": "SET a = :v",
                "ExpressionAttributeValues": values,
            },
        ),
        "AttributeUpdates": ("UpdateItem", {"Key": KEY, "AttributeUpdates": expected}),
        "an update's Expected": ("UpdateItem", {"Key": KEY, "Expected": expected}),
    }


def in_reads(table: str, value: Any) -> dict[str, tuple[str, Places]]:
    keyed = {"KeyConditionExpression": "pk = :v", "TableName": table}
    return {
        "a read key": ("GetItem", {"TableName": table, "Key": {"pk": value}}),
        "a batch's key": ("BatchGetItem", {"RequestItems": {table: {"Keys": [{"pk": value}]}}}),
        "a query's value": ("Query", keyed | {"ExpressionAttributeValues": {":v": value}}),
        "a filter's value": (
            "Query",
            keyed
            | {
                "FilterExpression": "a = :f",
                "ExpressionAttributeValues": {":v": {"S": "a"}, ":f": value},
            },
        ),
        "KeyConditions": (
            "Query",
            {
                "TableName": table,
                "KeyConditions": {
                    "pk": {"ComparisonOperator": "EQ", "AttributeValueList": [value]}
                },
            },
        ),
    }


def in_older_layer(table: str, value: Any) -> dict[str, tuple[str, Places]]:
    item = KEY | {"a": value}
    return {
        "a batch's item": (
            "BatchWriteItem",
            {"RequestItems": {table: [{"PutRequest": {"Item": item}}]}},
        ),
        "a transaction's item": (
            "TransactWriteItems",
            {"TransactItems": [{"Put": {"TableName": table, "Item": item}}]},
        ),
        "a transaction's key": (
            "TransactGetItems",
            {"TransactItems": [{"Get": {"TableName": table, "Key": {"pk": value}}}]},
        ),
        "a statement's parameter": (
            "ExecuteStatement",
            {
                "Statement": f'SELECT * FROM "{table}" WHERE pk = ?',
                "Parameters": [value],
            },
        ),
    }


def check_everywhere(
    lanes: LanesClient, table: str, value: Any, newer: str, older: str | None = None
) -> None:
    """Check the messages for an invalid value in the newer and optionally the older layer."""
    for place, (operation, request) in in_writes(value).items():
        refusal = lanes.refused(operation, {"TableName": table, **request})
        assert refusal == ("ValidationException", ONE + newer), place
    for place, (operation, request) in in_reads(table, value).items():
        assert lanes.refused(operation, request) == ("ValidationException", newer), place
    if older is not None:
        for place, (operation, request) in in_older_layer(table, value).items():
            assert lanes.refused(operation, request) == ("ValidationException", older), place


@pytest.mark.parametrize("text", ["", "abc", "1e", "1e9223372036854775808", "1e" + "9" * 5000])
def test_an_invalid_number_is_reported_without_its_place(
    lanes: LanesClient, simple: str, text: str
):
    older = f"{NO_NUMBER}: {text}" if text else NO_NUMBER
    check_everywhere(lanes, simple, {"N": text}, f"{NO_NUMBER}: {text}", older)
    check_everywhere(lanes, simple, {"NS": ["1", text]}, f"{NO_NUMBER}: {text}", older)


@pytest.mark.parametrize(
    ("text", "newer", "older"),
    [
        ("1e2147483647", OVERFLOW, UNDERFLOW),
        ("-1e2147483647", OVERFLOW, UNDERFLOW),
        ("1e-2147483647", UNDERFLOW, UNDERFLOW),
        ("1e2147483648", OVERFLOW, f"{NO_NUMBER}: 1e2147483648"),
        ("1e99999999999", OVERFLOW, f"{NO_NUMBER}: 1e99999999999"),
        ("1e-99999999999", UNDERFLOW, f"{NO_NUMBER}: 1e-99999999999"),
        ("1e126", OVERFLOW, OVERFLOW),
        ("1e-131", UNDERFLOW, UNDERFLOW),
        ("0e126", OVERFLOW, OVERFLOW),
        ("0e-131", UNDERFLOW, UNDERFLOW),
        ("-0.00e128", OVERFLOW, OVERFLOW),
    ],
)
def test_an_exponent_has_64_bits_in_the_newer_layer_and_32_in_the_older(
    lanes: LanesClient, simple: str, text: str, newer: str, older: str
):
    check_everywhere(lanes, simple, {"N": text}, newer, older)


@pytest.mark.parametrize("text", ["0e125", "0e-130", "0.0e126", "00e00125"])
def test_a_zero_with_an_exponent_in_range_is_zero(lanes: LanesClient, simple: str, text: str):
    item = {"pk": {"S": "zero"}, "n": {"N": text}}
    lanes("PutItem", {"TableName": simple, "Item": item})
    read = lanes("GetItem", {"TableName": simple, "Key": {"pk": {"S": "zero"}}})
    assert read["Item"]["n"] == {"N": "0"}


@pytest.mark.parametrize(
    ("value", "newer", "older"),
    [
        (
            {"SS": ["b", "a", "b", "0"]},
            f'{INVALID}Input collection ["a", "b", "b"] contains duplicates.',
            f"{INVALID}Input collection [b, a, b, 0] contains duplicates.",
        ),
        (
            {"BS": ["AA==", "/w==", "AA=="]},
            f'{INVALID}Input collection ["AA==","/w==","AA=="]of type BS contains duplicates.',
            f"{INVALID}Input collection [AA==, /w==, AA==]of type BS contains duplicates.",
        ),
        (
            {"NS": ["1", "2", "1.0"]},
            f"{INVALID}Input collection contains duplicates.",
            "Input collection contains duplicates",
        ),
    ],
)
def test_duplicates_in_a_set_are_shown_up_to_the_first_repeat(
    lanes: LanesClient, simple: str, value: Any, newer: str, older: str
):
    check_everywhere(lanes, simple, value, newer)
    place = in_older_layer(simple, value)
    for operation, request in (place["a batch's item"], place["a transaction's item"]):
        assert lanes.refused(operation, request) == ("ValidationException", older)


@pytest.mark.parametrize(
    ("type_name", "message"),
    [
        ("SS", "An string set  may not be empty"),
        ("NS", "An number set  may not be empty"),
        ("BS", "Binary sets should not be empty"),
    ],
)
def test_an_empty_set_is_reported_without_its_place(
    lanes: LanesClient, simple: str, type_name: str, message: str
):
    check_everywhere(lanes, simple, {type_name: []}, INVALID + message)
    place = in_older_layer(simple, {type_name: []})
    for operation, request in (place["a batch's item"], place["a transaction's item"]):
        refusal = ("ValidationException", INVALID + message)
        assert lanes.refused(operation, request) == refusal


NAME_TOO_LARGE = "Attribute name is too large, must be less than 65536 bytes"
LONG_NAME = "n" * 65_536


def test_a_name_of_65536_bytes_is_reported_without_its_place(lanes: LanesClient, simple: str):
    check_everywhere(lanes, simple, {"M": {LONG_NAME: {"S": "a"}}}, NAME_TOO_LARGE)
    item = KEY | {LONG_NAME: {"S": "a"}}
    expected = {LONG_NAME: {"Value": {"S": "a"}}}
    for operation, members in (
        ("PutItem", {"Item": item}),
        ("PutItem", {"Item": KEY, "Expected": expected}),
        ("UpdateItem", {"Key": item}),
        ("UpdateItem", {"Key": KEY, "AttributeUpdates": expected}),
        ("DeleteItem", {"Key": item}),
    ):
        refusal = lanes.refused(operation, {"TableName": simple, **members})
        assert refusal == ("ValidationException", ONE + NAME_TOO_LARGE), operation
    for operation, request in (
        ("GetItem", {"TableName": simple, "Key": item}),
        ("GetItem", {"TableName": simple, "Key": KEY, "AttributesToGet": [LONG_NAME]}),
        ("BatchGetItem", {"RequestItems": {simple: {"Keys": [item]}}}),
    ):
        refusal = lanes.refused(operation, request)
        assert refusal == ("ValidationException", NAME_TOO_LARGE), operation
    request = {"RequestItems": {simple: [{"PutRequest": {"Item": item}}]}}
    refusal = lanes.refused("BatchWriteItem", request)
    assert refusal == ("ValidationException", INVALID + NAME_TOO_LARGE)


def nested(levels: int) -> Any:
    value: Any = {"S": "x"}
    for _ in range(levels):
        value = {"L": [value]}
    return value


TOO_DEEP = (
    "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels "
    "beyond supported limit"
)


@pytest.mark.parametrize(("levels", "prefix"), [(32, ONE), (60, ONE), (63, ""), (200, "")])
def test_a_value_of_more_than_62_levels_is_reported_without_envelope(
    lanes: LanesClient, simple: str, levels: int, prefix: str
):
    for place, (operation, request) in in_writes(nested(levels)).items():
        kind, message = lanes.refused(operation, {"TableName": simple, **request})
        assert (kind, (message or "").startswith(ONE)) == ("ValidationException", bool(prefix)), (
            place
        )
    request = {"TableName": simple, "Item": KEY | {"a": nested(levels)}}
    assert lanes.refused("PutItem", request) == ("ValidationException", prefix + TOO_DEEP)


SINGLE_WRITES = {"PutItem": {"Item": KEY}, "UpdateItem": {"Key": KEY}, "DeleteItem": {"Key": KEY}}
VALUES = {":v": {"S": "a"}}


@pytest.mark.parametrize("operation", SINGLE_WRITES)
@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"ConditionExpression": ""},
            "Invalid ConditionExpression: The expression can not be empty;",
        ),
        (
            {"ExpressionAttributeNames": {"#a": "a"}},
            "ExpressionAttributeNames can only be specified when using expressions",
        ),
        (
            {"ExpressionAttributeValues": VALUES},
            "ExpressionAttributeValues can only be specified when using expressions",
        ),
        (
            {"ExpressionAttributeValues": {}, **CONDITION},
            "ExpressionAttributeValues must not be empty",
        ),
        (
            {"ExpressionAttributeNames": {}, **CONDITION, "ExpressionAttributeValues": VALUES},
            "ExpressionAttributeNames must not be empty",
        ),
        (
            CONDITION,
            (
                "Invalid ConditionExpression: An expression attribute value used in expression "
                "is not defined; attribute value: :v"
            ),
        ),
        (
            {"ConditionExpression": "attribute_exists(a)", "ExpressionAttributeNames": {"#a": "a"}},
            "Value provided in ExpressionAttributeNames unused in expressions: keys: {#a}",
        ),
        (
            {"Expected": {"a": {"Exists": True}}},
            f"{INVALID}Value must be provided when Exists is true for Attribute: a",
        ),
        (
            {"Expected": {"a": {}}},
            f"{INVALID}Value must be provided when Exists is null for Attribute: a",
        ),
        (
            {"Expected": {"a": {"Exists": False, "Value": {"S": "a"}}}},
            f"{INVALID}Value cannot be used when Exists is false for Attribute: a",
        ),
        (
            {"Expected": {"a": {"AttributeValueList": [{"S": "a"}]}}},
            (
                f"{INVALID}AttributeValueList can only be used with a ComparisonOperator for "
                "Attribute: a"
            ),
        ),
        (
            {"Expected": {"a": {"ComparisonOperator": "EQ"}}},
            (
                f"{INVALID}Value or AttributeValueList must be used with ComparisonOperator: EQ "
                "for Attribute: a"
            ),
        ),
    ],
)
def test_a_write_s_fault_of_its_own_is_enveloped(
    lanes: LanesClient, simple: str, operation: str, members: Any, message: str
):
    request = {"TableName": simple, **SINGLE_WRITES[operation], **members}
    assert lanes.refused(operation, request) == ("ValidationException", ONE + message)


@pytest.mark.parametrize("operation", ["PutItem", "DeleteItem"])
def test_return_values_that_an_operation_does_not_have_are_enveloped(
    lanes: LanesClient, simple: str, operation: str
):
    request = {"TableName": simple, **SINGLE_WRITES[operation], "ReturnValues": "ALL_NEW"}
    assert lanes.refused(operation, request) == (
        "ValidationException",
        f"{ONE}ReturnValues can only be ALL_OLD or NONE",
    )


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("PutItem", {"Item": {"other": {"S": "a"}}}),
        ("UpdateItem", {"Key": {"other": {"S": "a"}}}),
        ("DeleteItem", {"Key": {"other": {"S": "a"}}}),
        ("PutItem", {"Item": KEY | {"a": {"S": "x" * 409_600}}}),
    ],
)
def test_a_fault_that_depends_on_the_table_has_no_envelope(
    lanes: LanesClient, simple: str, operation: str, members: Any
):
    kind, message = lanes.refused(operation, {"TableName": simple, **members})
    assert kind == "ValidationException"
    assert message is not None
    assert not message.startswith(ONE)


@pytest.mark.parametrize("operation", ["PutItem", "DeleteItem", "UpdateItem"])
@pytest.mark.parametrize("value", ["23", True, 23, 34.56])
def test_an_expected_value_of_a_wrong_json_type_is_reported(
    lanes: LanesClient, operation: str, value: Any
):
    request = {"TableName": "abc", **SINGLE_WRITES[operation], "Expected": {"a": {"Value": value}}}
    refusal = Refusal("SerializationException", "Unexpected field type")
    assert lanes.refused(operation, request) == refusal
    if operation == "UpdateItem":
        request["AttributeUpdates"] = request.pop("Expected")
        assert lanes.refused(operation, request) == refusal


@pytest.mark.parametrize(
    ("member", "change", "name"),
    [
        ("GlobalSecondaryIndexUpdates", "Create", "CreateGlobalSecondaryIndexAction"),
        ("ReplicaUpdates", "Update", "UpdateReplicationGroupMemberAction"),
        ("GlobalTableWitnessUpdates", "Delete", "DeleteGlobalTableWitnessGroupMemberAction"),
        ("VectorIndexUpdates", "Create", "CreateVectorIndexAction"),
    ],
)
def test_a_wrong_json_type_of_a_change_of_a_table_names_its_class(
    lanes: LanesClient, member: str, change: str, name: str
):
    request = {"TableName": "abc", member: [{change: []}]}
    assert lanes.refused("UpdateTable", request) == (
        "SerializationException",
        f"Unrecognized collection type class com.amazonaws.dynamodb.v20120810.{name}",
    )


@pytest.mark.parametrize("text", ["=+/=", "+/+=", "ab==cd=="])
def test_misplaced_padding_of_base64_is_reported(lanes: LanesClient, simple: str, text: str):
    for operation, request in (
        ("PutItem", {"TableName": simple, "Item": KEY | {"b": {"B": text}}}),
        ("GetItem", {"TableName": simple, "Key": {"pk": {"B": text}}}),
        ("Scan", {"TableName": simple, "ExclusiveStartKey": {"pk": {"B": text}}}),
    ):
        assert lanes.refused(operation, request) == (
            "SerializationException",
            "Invalid last non-pad Base64 character dectected",
        )
