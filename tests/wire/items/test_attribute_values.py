"""Attribute values of all ten types: storing and returning them, and invalid values."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.envelope import enveloped
from tests.support.tables.tables import unique_name

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

INVALID = "One or more parameter values were invalid: "
EMPTY = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
SEVERAL = (
    "Supplied AttributeValue has more than one datatypes set, "
    "must contain exactly one of the supported datatypes"
)


def kept(wire: WireClient, table: str, value: Any) -> Any:
    """Write a value, read it, and return the read value."""
    key = {"pk": {"S": unique_name("pk")}}
    wire("PutItem", {"TableName": table, "Item": {**key, "v": value}})
    return wire("GetItem", {"TableName": table, "Key": key})["Item"]["v"]


def refused(wire: WireClient, table: str, value: Any) -> tuple[str, str | None]:
    item = {"pk": {"S": "a"}, "v": value}
    return wire.refused("PutItem", {"TableName": table, "Item": item})


def nested(levels: int, value: dict[str, Any] | None = None) -> dict[str, Any]:
    """A value inside ``levels`` lists and maps."""
    result = {"S": "deep"} if value is None else value
    for level in range(levels):
        result = {"L": [result]} if level % 2 else {"M": {"m": result}}
    return result


@pytest.mark.parametrize(
    "value",
    [
        {"S": "text"},
        {"S": ""},
        {"S": '\x00\x01 line\nquote" back\\slash \u2028'},
        {"S": "Ω 漢字 😀 e\u0301"},
        {"N": "0"},
        {"N": "-12.5"},
        {"B": "AAEC/w=="},
        {"B": ""},
        {"BOOL": True},
        {"BOOL": False},
        {"NULL": True},
        {"SS": ["a"]},
        {"SS": [""]},
        {"NS": ["1.5"]},
        {"BS": ["AA=="]},
        {"BS": [""]},
        {"L": []},
        {"M": {}},
        {"L": [{"S": "a"}, {"S": "a"}, {"N": "1"}, {"L": [{"NULL": True}]}]},
        {"M": {"a": {"M": {"b": {"L": [{"BOOL": False}]}}}, "a.b": {"S": "c"}, "[0]": {"S": "d"}}},
        {"M": {"set": {"SS": ["x"]}, "bytes": {"B": "/w=="}}},
    ],
)
def test_a_value_of_any_type_is_returned_unchanged(wire: WireClient, simple: str, value: Any):
    assert kept(wire, simple, value) == value


@pytest.mark.parametrize(
    ("value", "members"),
    [
        ({"SS": ["b", "a", "c"]}, {"a", "b", "c"}),
        ({"NS": ["10", "9", "-1", "0.5"]}, {"10", "9", "-1", "0.5"}),
        ({"BS": ["Yg==", "YQ==", "AA=="]}, {"YQ==", "Yg==", "AA=="}),
    ],
)
def test_a_set_keeps_its_members(wire: WireClient, simple: str, value: Any, members: set[str]):
    ((_, content),) = kept(wire, simple, value).items()
    assert set(content) == members
    assert len(content) == len(members)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1", "1"),
        ("+3", "3"),
        ("-0", "0"),
        ("0.0", "0"),
        ("0e100", "0"),
        ("007", "7"),
        ("1.0", "1"),
        ("1.50", "1.5"),
        (".5", "0.5"),
        ("5.", "5"),
        ("1e3", "1000"),
        ("1E+3", "1000"),
        ("-1.5e-3", "-0.0015"),
        ("100e-2", "1"),
        ("1e125", "1" + "0" * 125),
        ("1e-130", "0." + "0" * 129 + "1"),
        ("9." + "9" * 37 + "e125", "9" * 38 + "0" * 88),
        ("-9." + "9" * 37 + "e125", "-" + "9" * 38 + "0" * 88),
        ("-1e-130", "-0." + "0" * 129 + "1"),
        ("1" * 38, "1" * 38),
        ("0." + "1" * 38, "0." + "1" * 38),
        ("1" * 19 + "." + "1" * 19, "1" * 19 + "." + "1" * 19),
        ("1" * 38 + "0" * 80, "1" * 38 + "0" * 80),
        ("0" * 50 + "1" + "." + "0" * 50, "1"),
    ],
)
def test_a_number_is_kept_exactly_and_in_plain_decimal(
    wire: WireClient, simple: str, text: str, canonical: str
):
    assert kept(wire, simple, {"N": text}) == {"N": canonical}
    assert kept(wire, simple, {"NS": [text]}) == {"NS": [canonical]}


@differs_from_dynamodb_local("inside documents it keeps numbers as they were written")
@pytest.mark.parametrize(
    ("text", "canonical"), [("1e3", "1000"), ("-0", "0"), ("1.50", "1.5"), ("+3", "3")]
)
def test_a_number_inside_a_document_is_kept_in_plain_decimal_too(
    wire: WireClient, simple: str, text: str, canonical: str
):
    assert kept(wire, simple, {"L": [{"M": {"n": {"N": text}}}]}) == {
        "L": [{"M": {"n": {"N": canonical}}}]
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "",
            "The parameter cannot be converted to a numeric value: ",
            marks=differs_from_dynamodb_local("other words"),
        ),
        *[
            pytest.param(
                text,
                f"The parameter cannot be converted to a numeric value: {text}",
                marks=differs_from_dynamodb_local("other words"),
            )
            for text in (
                "x", " 1", "1 ", "1,5", "0x10", "1_000", "NaN", "Infinity", "-", "+", ".", "e5",
                "1e", "1e1.5", "--1", "१",
            )
        ],
        *[
            pytest.param(
                text,
                "Attempting to store more than 38 significant digits in a Number",
                marks=differs_from_dynamodb_local("other words"),
            )
            for text in ("1" * 39, "1." + "1" * 38, "1" + "0" * 37 + "1", "0." + "0" * 5 + "1" * 39)
        ],
        *[
            (
                text,
                ("Number overflow. Attempting to store a number with magnitude larger than "
                "supported range"),
            )
            for text in ("1e126", "-1e126", "10e125", "1e999999999")
        ],
        *[
            (
                text,
                ("Number underflow. Attempting to store a number with magnitude smaller than "
                "supported range"),
            )
            for text in ("1e-131", "-1e-131", "0.1e-130", "1e-999999999")
        ],
    ],
)  # fmt: skip
def test_an_invalid_number_is_refused(wire: WireClient, simple: str, text: str, message: str):
    refusal = ("ValidationException", enveloped(message))
    assert refused(wire, simple, {"N": text}) == refusal
    assert refused(wire, simple, {"NS": ["1", text]}) == refusal
    assert refused(wire, simple, {"L": [{"N": text}]}) == refusal


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, EMPTY),
        ({"S": None}, EMPTY),
        ({"NoSuchType": "a"}, EMPTY),
        ({"L": [{}]}, EMPTY),
        ({"M": {"a": {}}}, EMPTY),
        ({"S": "a", "N": "1"}, SEVERAL),
        ({"S": "a", "NULL": True}, SEVERAL),
        ({"L": [{"S": "a", "BOOL": True}]}, SEVERAL),
        ({"NULL": False}, INVALID + "Null attribute value types must have the value of true"),
        ({"SS": []}, INVALID + "An string set  may not be empty"),
        ({"NS": []}, INVALID + "An number set  may not be empty"),
        ({"BS": []}, INVALID + "Binary sets should not be empty"),
        pytest.param(
            {"SS": ["a", "b", "a"]},
            INVALID + 'Input collection ["a", "b", "a"] contains duplicates.',
            marks=differs_from_dynamodb_local("no full stop"),
        ),
        ({"NS": ["1", "2", "1"]}, INVALID + "Input collection contains duplicates."),
        ({"NS": ["1", "1.0"]}, INVALID + "Input collection contains duplicates."),
        ({"NS": ["1000", "1e3"]}, INVALID + "Input collection contains duplicates."),
        ({"NS": ["0", "-0"]}, INVALID + "Input collection contains duplicates."),
        pytest.param(
            {"BS": ["YQ==", "Yg==", "YQ=="]},
            INVALID + 'Input collection ["YQ==","Yg==","YQ=="]of type BS contains duplicates.',
            marks=differs_from_dynamodb_local("it doesn't show the members"),
        ),
    ],
)
def test_an_invalid_value_is_refused(wire: WireClient, simple: str, value: Any, message: str):
    assert refused(wire, simple, value) == ("ValidationException", enveloped(message))


@differs_from_dynamodb_local("other words")
def test_invalid_content_is_reported_before_the_number_of_types(wire: WireClient, simple: str):
    assert refused(wire, simple, {"S": "a", "N": "x"}).message == enveloped(
        "The parameter cannot be converted to a numeric value: x"
    )


@differs_from_dynamodb_local("it takes them, or answers 500")
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"S": 1}, "NUMBER_VALUE cannot be converted to String"),
        ({"S": 1.5}, "DECIMAL_VALUE cannot be converted to String"),
        ({"S": True}, "TRUE_VALUE cannot be converted to String"),
        ({"S": False}, "FALSE_VALUE cannot be converted to String"),
        ({"S": {}}, "Start of structure or map found where not expected"),
        ({"N": 123}, "NUMBER_VALUE cannot be converted to String"),
        ({"N": 1.5}, "DECIMAL_VALUE cannot be converted to String"),
        ({"N": True}, "TRUE_VALUE cannot be converted to String"),
        ({"BOOL": "maybe"}, "Unexpected token received from parser"),
        ({"BOOL": {}}, "Start of structure or map found where not expected"),
        ({"NULL": "no such"}, "Unexpected token received from parser"),
        ({"SS": [1]}, "NUMBER_VALUE cannot be converted to String"),
        ({"NS": [1]}, "NUMBER_VALUE cannot be converted to String"),
        ({"SS": {"a": 1}}, "Start of structure or map found where not expected"),
        ({"L": {}}, "Start of structure or map found where not expected"),
        ({"L": ["a"]}, "Unexpected value type in payload"),
        ({"M": {"a": 1}}, "Unexpected value type in payload"),
        ("text", "Unexpected value type in payload"),
        (1, "Unexpected value type in payload"),
        (True, "Unexpected value type in payload"),
        ({"B": "YQ="}, "Base64 encoded length is expected a multiple of 4 bytes but found: 3"),
        ({"BS": ["a"]}, "Base64 encoded length is expected a multiple of 4 bytes but found: 1"),
    ],
)
def test_a_value_of_the_wrong_json_type_is_a_serialization_error(
    wire: WireClient, simple: str, value: Any, message: str
):
    assert refused(wire, simple, value) == ("SerializationException", message)


@differs_from_dynamodb_local("it answers 500")
@pytest.mark.parametrize(
    "value",
    [
        {"S": []},
        {"N": []},
        {"N": {}},
        {"BOOL": 1},
        {"BOOL": []},
        {"SS": "a"},
        {"SS": [["a"]]},
        {"L": "a"},
        {"L": [[]]},
        {"M": []},
        {"M": "a"},
        {"M": {"a": []}},
        {"B": 1},
        {"B": True},
        {"B": "Y!=="},
        {"B": "===="},
        [],
    ],
)
def test_json_that_is_no_attribute_value_is_a_serialization_error(
    wire: WireClient, simple: str, value: Any
):
    assert refused(wire, simple, value)[0] == "SerializationException"


def test_values_nest_to_32_levels(wire: WireClient, simple: str):
    # The attribute is the first level, so 31 lists and maps make 32 levels.
    value = nested(31)
    assert kept(wire, simple, value) == value


@pytest.mark.parametrize("levels", [32, 33])
def test_values_nested_deeper_are_refused(wire: WireClient, simple: str, levels: int):
    assert refused(wire, simple, nested(levels)) == (
        "ValidationException",
        enveloped(
            "Nesting Levels have exceeded supported limits: Attributes in the item have nested "
            "levels beyond supported limit"
        ),
    )


def test_base64_is_returned_in_canonical_form(wire: WireClient, simple: str):
    for raw in (b"", b"\x00", b"\xff\xfe", bytes(range(256))):
        value = {"B": base64.b64encode(raw).decode()}
        assert kept(wire, simple, value) == value


def test_unknown_types_beside_a_known_one_are_ignored(wire: WireClient, simple: str):
    assert kept(wire, simple, {"S": "a", "NoSuchType": 1}) == {"S": "a"}


def test_a_type_with_null_counts_as_missing(wire: WireClient, simple: str):
    assert kept(wire, simple, {"S": "a", "N": None}) == {"S": "a"}


NAMELESS = ("ValidationException", "Empty attribute name")


def test_an_attribute_without_a_name_is_refused(wire: WireClient, simple: str):
    item = {"pk": {"S": "a"}, "": {"S": "a"}}
    put = {"TableName": simple, "Item": item}
    assert wire.refused("PutItem", put) == ("ValidationException", enveloped(NAMELESS[1]))
    batch = {"RequestItems": {simple: [{"PutRequest": {"Item": item}}]}}
    assert wire.refused("BatchWriteItem", batch) == NAMELESS
    actions = {"TransactItems": [{"Put": {"TableName": simple, "Item": item}}]}
    assert wire.refused("TransactWriteItems", actions) == NAMELESS
    assert wire.refused("GetItem", {"TableName": simple, "Key": item}) == NAMELESS


def test_a_member_of_a_map_without_a_name_is_refused(wire: WireClient, simple: str):
    nameless = {"L": [{"M": {"": {"S": "a"}}}]}
    assert refused(wire, simple, nameless) == ("ValidationException", enveloped(NAMELESS[1]))
    request = {
        "TableName": simple,
        "Key": {"pk": {"S": "a"}},
        "UpdateExpression": "SET v = :v",
        "ExpressionAttributeValues": {":v": nameless},
    }
    assert wire.refused("UpdateItem", request) == (
        "ValidationException",
        enveloped(
            "ExpressionAttributeValues contains invalid value: Empty attribute name for key :v"
        ),
    )


LONG_NAME = "n" * 65_536


@differs_from_dynamodb_local("fails on names that are so long")
def test_names_of_64_kb_are_refused_in_every_parameter(wire: WireClient, simple: str):
    too_large = (
        "ValidationException",
        enveloped("Attribute name is too large, must be less than 65536 bytes"),
    )
    assert refused(wire, simple, {"M": {LONG_NAME: {"S": "a"}}}) == too_large
    assert refused(wire, simple, {"L": [{"M": {"é" * 32_768: {"S": "a"}}}]}) == too_large
    update = {
        "TableName": simple,
        "Key": {"pk": {"S": "a"}},
        "AttributeUpdates": {LONG_NAME: {"Action": "PUT", "Value": {"S": "a"}}},
    }
    assert wire.refused("UpdateItem", update) == too_large
    kept(wire, simple, {"M": {LONG_NAME[1:]: {"S": "a"}}})


def test_an_empty_name_in_attributes_to_get_is_refused(wire: WireClient, simple: str):
    key = {"pk": {"S": "a"}}
    request = {"TableName": simple, "Key": key, "AttributesToGet": ["v", ""]}
    assert wire.refused("GetItem", request) == NAMELESS
