"""Decoding of a request's body into the operation's input, or into DynamoDB's error."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dynactor.api.registry import OPERATIONS
from dynactor.api.requests import inputs, shapes
from dynactor.api.requests.input_decoder import InputDecoder
from dynactor.model.errors import SerializationException, ValidationException


class ThingInput(shapes.Shape, frozen=True):
    """An input with members of many types."""

    TableName: shapes.TableName
    Item: shapes.AttributeMap
    Limit: inputs._ListTablesInputLimit | None = None
    Units: inputs._PositiveLongObject | None = None
    ReturnValues: shapes.ReturnValue | None = None
    ConsistentRead: bool | None = None
    AttributesToGet: inputs._AttributeNameList | None = None
    Names: shapes.ExpressionAttributeNames | None = None
    Expected: dict[str, inputs.ExpectedAttributeValueShape] | None = None
    Indexes: list[inputs.LocalSecondaryIndexShape] | None = None
    Throughput: inputs.ProvisionedThroughputShape | None = None
    Requests: inputs._BatchWriteItemRequestMap | None = None
    Gets: inputs._BatchGetRequestMap | None = None


class NewTableInput(shapes.Shape, frozen=True):
    TableName: shapes.ControlTableName
    BillingMode: inputs._BillingMode | None = None


class ControlInput(shapes.Shape, frozen=True):
    TableName: shapes.ControlTableName
    BillingMode: inputs._BillingMode | None = None


_TOO_LONG = (
    f"Value '{'a' * 256}' at 'tableName' … Member must have length less than or equal to 255"
)
_thing = InputDecoder(ThingInput)
_control = InputDecoder(ControlInput)
_new_table = InputDecoder(NewTableInput)


def body(**members: Any) -> bytes:
    return msgspec.json.encode({"TableName": "abc", "Item": {}} | members)


def violations(data: bytes, decoder: InputDecoder[Any] = _thing) -> list[str]:
    with pytest.raises(ValidationException) as caught:
        decoder.decode(data)
    head, _, told = caught.value.message.partition(" detected: ")
    listed = told.split("; ")
    errors = "error" if len(listed) == 1 else "errors"
    assert head == f"{len(listed)} validation {errors}"
    return listed


def test_violations_are_reported_together():
    assert violations(b'{"TableName":"a;"}') == [
        (
            "Value 'a;' at 'tableName' failed to satisfy constraint: "
            "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
        ),
        (
            "Value 'a;' at 'tableName' failed to satisfy constraint: "
            "Member must have length greater than or equal to 3"
        ),
        "Value null at 'item' failed to satisfy constraint: Member must not be null",
    ]


def test_at_most_ten_violations_are_reported():
    assert len(violations(body(Indexes=[{}] * 4))) == 10


@pytest.mark.parametrize(
    ("members", "violation"),
    [
        ({"TableName": None}, "Value null at 'tableName' … Member must not be null"),
        (
            {"TableName": "a" * 256},
            (
                f"Value '{'a' * 256}' at 'tableName' … "
                "Member must have length less than or equal to 255"
            ),
        ),
        (
            {"TableName": "abc\n"},
            (
                "Value 'abc\n' at 'tableName' … "
                "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
            ),
        ),
        ({"Limit": 0}, "Value '0' at 'limit' … Member must have value greater than or equal to 1"),
        (
            {"Limit": 101},
            "Value '101' at 'limit' … Member must have value less than or equal to 100",
        ),
        (
            {"Limit": 10**30},
            "Value '2147483647' at 'limit' … Member must have value less than or equal to 100",
        ),
        (
            {"Units": -(10**30)},
            (
                "Value '-9223372036854775808' at 'units' … "
                "Member must have value greater than or equal to 1"
            ),
        ),
        (
            {"ReturnValues": "all"},
            (
                "Value 'all' at 'returnValues' … Member must satisfy enum value set: "
                "[ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"
            ),
        ),
        (
            {"AttributesToGet": []},
            "Value '[]' at 'attributesToGet' … Member must have length greater than or equal to 1",
        ),
        (
            {"Expected": {"a": {"ComparisonOperator": "LIKE"}}},
            (
                "Value 'LIKE' at 'expected.a.member.comparisonOperator' … "
                "Member must satisfy enum value set: [IN, NULL, BETWEEN, LT, NOT_CONTAINS, EQ, GT, "
                "NOT_NULL, NE, LE, BEGINS_WITH, GE, CONTAINS]"
            ),
        ),
        (
            {"Throughput": {"ReadCapacityUnits": 1}},
            "Value null at 'throughput.writeCapacityUnits' … Member must not be null",
        ),
        (
            {"Requests": {"abc": [{"PutRequest": {}}]}},
            (
                "Value null at 'requests.abc.member.1.member.putRequest.item' … "
                "Member must not be null"
            ),
        ),
        (
            {"Requests": {"abc": [{}], "a;": [{}]}},
            (
                "Value '{abc=[WriteRequest()], a;=[WriteRequest()]}' at 'requests' … "
                "Map keys must satisfy constraint: "
                "[Member must have length less than or equal to 255, "
                "Member must have length greater than or equal to 3, "
                "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+]"
            ),
        ),
        (
            {"Requests": {"abc": []}},
            (
                "Value '{abc=[]}' at 'requests' … Map value must satisfy constraint: "
                "[Member must have length less than or equal to 25, "
                "Member must have length greater than or equal to 1]"
            ),
        ),
        (
            {"Gets": {"abc": {"Keys": [{}] * 101}}},
            (
                f"Value '[{', '.join(['{}'] * 101)}]' at 'gets.abc.member.keys' … "
                "Member must have length less than or equal to 100"
            ),
        ),
        (
            {"Gets": {"abc": {"Keys": [None]}}},
            "Value null at 'gets.abc.member.keys.1.member' … Member must not be null",
        ),
    ],
)
def test_a_violation_names_value_member_and_constraint(members: dict[str, Any], violation: str):
    expected = violation.replace("…", "failed to satisfy constraint:")
    assert violations(body(**members)) == [expected]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"TableName": 5}, "NUMBER_VALUE cannot be converted to String"),
        ({"TableName": 5.5}, "DECIMAL_VALUE cannot be converted to String"),
        ({"TableName": True}, "TRUE_VALUE cannot be converted to String"),
        ({"TableName": ["abc"]}, "Unrecognized collection type class java.lang.String"),
        ({"TableName": {}}, "Start of structure or map found where not expected"),
        ({"Limit": "5"}, "STRING_VALUE cannot be converted to Integer"),
        ({"Limit": False}, "FALSE_VALUE cannot be converted to Integer"),
        ({"Units": "5"}, "STRING_VALUE cannot be converted to Long"),
        ({"ConsistentRead": 1}, "NUMBER_VALUE cannot be converted to Boolean"),
        ({"ConsistentRead": "perhaps"}, "Unexpected token received from parser"),
        ({"AttributesToGet": "a"}, "Unexpected field type"),
        ({"AttributesToGet": {}}, "Start of structure or map found where not expected"),
        ({"AttributesToGet": [1]}, "NUMBER_VALUE cannot be converted to String"),
        (
            {"Item": []},
            (
                "Unrecognized collection type java.util.Map<java.lang.String, "
                "com.amazonaws.dynamodb.v20120810.AttributeValue>"
            ),
        ),
        (
            {"Names": []},
            "Unrecognized collection type java.util.Map<java.lang.String, java.lang.String>",
        ),
        (
            {"Requests": []},
            (
                "Unrecognized collection type java.util.Map<java.lang.String, "
                "java.util.List<com.amazonaws.dynamodb.v20120810.WriteRequest>>"
            ),
        ),
        ({"Item": "x"}, "Unexpected field type"),
        ({"Throughput": 5}, "Unexpected field type"),
        (
            {"Throughput": []},
            (
                "Unrecognized collection type class "
                "com.amazonaws.dynamodb.v20120810.ProvisionedThroughput"
            ),
        ),
        ({"Indexes": [5]}, "Unexpected value type in payload"),
        ({"Item": {"a": {"N": 123}}, "Limit": 0}, "NUMBER_VALUE cannot be converted to String"),
        (
            {"Item": {"a": {"L": [{"S": "x"}, {"M": {"b": {"S": 1}}}]}}, "TableName": "a;"},
            "NUMBER_VALUE cannot be converted to String",
        ),
        ({"Item": {"a": "x"}, "Limit": 0}, "Unexpected value type in payload"),
    ],
)
def test_a_wrong_json_type_is_reported_before_all_constraints(
    members: dict[str, Any], message: str
):
    with pytest.raises(SerializationException) as caught:
        _thing.decode(body(**members))
    assert caught.value.message == message


def test_values_that_dynamodb_converts_are_converted():
    thing = _thing.decode(body(Limit=5.9, ConsistentRead="TRUE", Item={"a": {"S": "b"}}))
    assert (thing.Limit, thing.ConsistentRead, thing.Item) == (5, True, {"a": {"S": "b"}})


def test_null_is_absent():
    assert _thing.decode(body(Limit=None, Expected=None)) == _thing.decode(body())


def test_a_null_attribute_value_is_left_to_the_check_of_values():
    assert _thing.decode(body(Item={"a": None})).Item == {"a": {}}


def test_unknown_members_are_ignored():
    assert _thing.decode(body(Unknown={"a": [1]})) == _thing.decode(body())


def test_a_table_name_may_be_an_arn():
    arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/abc"
    assert _thing.decode(body(TableName=arn)).TableName == arn


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{}", "The parameter 'TableName' is required but was not present in the request"),
        (
            b'{"BillingMode":"x"}',
            "The parameter 'TableName' is required but was not present in the request",
        ),
    ],
)
def test_operations_on_tables_check_that_there_is_a_name_first(data: bytes, message: str):
    with pytest.raises(ValidationException) as caught:
        _control.decode(data)
    assert caught.value.message == message


def test_operations_on_tables_check_the_names_characters_with_the_other_members():
    assert violations(b'{"TableName":"a;c","BillingMode":"x"}', _control) == [
        (
            "Value 'a;c' at 'tableName' failed to satisfy constraint: "
            "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
        ),
        (
            "Value 'x' at 'billingMode' failed to satisfy constraint: "
            "Member must satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]"
        ),
    ]


def test_create_table_requires_a_name_first_and_checks_its_length_with_the_other_members():
    with pytest.raises(ValidationException) as caught:
        _new_table.decode(b'{"BillingMode":"x"}')
    assert caught.value.message == (
        "The parameter 'TableName' is required but was not present in the request"
    )
    assert len(violations(b'{"TableName":"ab","BillingMode":"x"}', _new_table)) == 2


def test_an_empty_map_may_have_a_message_of_its_own():
    with pytest.raises(ValidationException) as caught:
        _thing.decode(body(Requests={}))
    assert caught.value.message == "The requestItems parameter is required for BatchWriteItem"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"5", b'{"TableName":"\xff"}', b"[" * 100_000])
def test_a_body_other_than_a_json_object_is_a_serialization_error_without_a_message(data: bytes):
    with pytest.raises(SerializationException) as caught:
        _thing.decode(data)
    assert caught.value.message == ""


def test_serialization_faults_can_be_searched_after_another_fault():
    _thing.check_serialization(body(Item={"a": {"N": "no number"}}, Limit=0))
    with pytest.raises(SerializationException):
        _thing.check_serialization(body(Item={"a": {"N": "no number"}, "b": {"S": 1}}))


def test_deeply_nested_values_cause_no_recursion_error():
    def nested(value: dict[str, Any], levels: int) -> bytes:
        for _ in range(levels):
            value = {"L": [value]}
        return body(Item={"a": value})

    _thing.check_serialization(nested({"S": "x"}, 200))
    with pytest.raises(SerializationException):
        _thing.check_serialization(nested({"S": 1}, 20))


@pytest.mark.parametrize(
    ("operation", "member", "number", "held"),
    [
        ("Scan", "Limit", 2**31, 2**31 - 1),
        ("ListContributorInsights", "MaxResults", -(2**31) - 1, -(2**31)),
    ],
)
def test_an_integer_out_of_javas_range_is_clamped(operation, member, number, held):
    body = msgspec.json.encode({"TableName": "Thread", member: number})
    decoded = InputDecoder(OPERATIONS[operation].input).decode(body)
    assert getattr(decoded, member) == held


def test_a_long_out_of_javas_range_is_clamped():
    units = {"ReadCapacityUnits": 2**63, "WriteCapacityUnits": 1}
    body = msgspec.json.encode({"TableName": "Thread", "Item": {}, "Throughput": units})
    throughput = _thing.decode(body).Throughput
    assert throughput is not None
    assert throughput.ReadCapacityUnits == 2**63 - 1
