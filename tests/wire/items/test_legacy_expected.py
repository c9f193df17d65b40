"""The legacy parameter Expected, which has conditions without expressions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.envelope import enveloped
from tests.support.tables.tables import table

differs_from_dynamodb_local = pytest.mark.differs_from_dynamodb_local

INVALID = "One or more parameter values were invalid: "

ITEM: dict[str, Any] = {
    "pk": {"S": "item"},
    "s": {"S": "hello"},
    "n": {"N": "10"},
    "b": {"B": "AAEC"},
    "ss": {"SS": ["a", "b"]},
    "l": {"L": [{"S": "x"}, {"N": "1"}]},
    "m": {"M": {"x": {"N": "1"}}},
    "t": {"BOOL": True},
}


@pytest.fixture(scope="module")
def asked(wire: WireClient) -> Iterator[str]:
    """A table with the item ``ITEM``."""
    with table(wire, "pk:S") as name:
        wire("PutItem", {"TableName": name, "Item": ITEM})
        yield name


def is_true(wire: WireClient, asked: str, expected: dict[str, Any], **members: Any) -> bool:
    request = {"TableName": asked, "Key": {"pk": ITEM["pk"]}, "Expected": expected, **members}
    answer = wire.send("UpdateItem", request)
    if answer.status == 200:
        return True
    assert answer.json["__type"].endswith("#ConditionalCheckFailedException"), answer.body
    return False


def compare(operator: str, *values: dict[str, Any]) -> dict[str, Any]:
    return {"ComparisonOperator": operator, "AttributeValueList": list(values)}


def text(value: str) -> dict[str, str]:
    return {"S": value}


def number(value: str) -> dict[str, str]:
    return {"N": value}


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ({"s": {"Value": text("hello")}}, True),
        ({"s": {"Value": text("other")}}, False),
        ({"s": {"Exists": True, "Value": text("hello")}}, True),
        ({"n": {"Value": number("10.0")}}, True),
        ({"s": {"Exists": False}}, False),
        ({"nothing": {"Exists": False}}, True),
        ({"nothing": {"Value": text("x")}}, False),
        ({"s": compare("EQ", text("hello"))}, True),
        ({"s": {"ComparisonOperator": "EQ", "Value": text("hello")}}, True),
        ({"ss": compare("EQ", {"SS": ["b", "a"]})}, True),
        ({"l": compare("EQ", {"L": [{"S": "x"}, {"N": "1.0"}]})}, True),
        ({"m": compare("EQ", {"M": {"x": {"N": "1"}}})}, True),
        ({"t": compare("EQ", {"BOOL": True})}, True),
        ({"s": compare("EQ", number("10"))}, False),
        ({"s": compare("NE", text("other"))}, True),
        ({"s": compare("NE", number("1"))}, True),
        ({"nothing": compare("NE", text("x"))}, True),
        ({"s": compare("NE", text("hello"))}, False),
        ({"n": compare("LT", number("11"))}, True),
        ({"n": compare("LE", number("10"))}, True),
        ({"n": compare("GT", number("9"))}, True),
        ({"n": compare("GE", number("11"))}, False),
        ({"n": compare("LT", text("11"))}, False),
        ({"nothing": compare("LT", number("11"))}, False),
        ({"n": compare("BETWEEN", number("9"), number("11"))}, True),
        ({"n": compare("BETWEEN", number("11"), number("12"))}, False),
        ({"s": compare("IN", text("a"), text("hello"))}, True),
        ({"s": compare("IN", text("a"))}, False),
        ({"nothing": compare("IN", text("a"))}, False),
        ({"s": compare("BEGINS_WITH", text("he"))}, True),
        ({"b": compare("BEGINS_WITH", {"B": "AAE="})}, True),
        ({"n": compare("BEGINS_WITH", text("1"))}, False),
        ({"s": compare("CONTAINS", text("ell"))}, True),
        ({"ss": compare("CONTAINS", text("a"))}, True),
        ({"l": compare("CONTAINS", number("1"))}, True),
        ({"n": compare("CONTAINS", number("1"))}, False),
        ({"nothing": compare("CONTAINS", text("a"))}, False),
        ({"s": compare("NOT_CONTAINS", text("z"))}, True),
        ({"ss": compare("NOT_CONTAINS", text("a"))}, False),
        ({"s": {"ComparisonOperator": "NULL"}}, False),
        ({"nothing": {"ComparisonOperator": "NULL"}}, True),
        ({"s": {"ComparisonOperator": "NOT_NULL"}}, True),
        ({"nothing": {"ComparisonOperator": "NOT_NULL"}}, False),
        ({"s": {"Value": text("hello")}, "n": {"Value": number("10")}}, True),
        ({"s": {"Value": text("hello")}, "n": {"Value": number("11")}}, False),
        ({}, True),
    ],
)
def test_expected_is_evaluated_on_the_item(
    wire: WireClient, asked: str, expected: Any, answer: bool
):
    assert is_true(wire, asked, expected) is answer


@differs_from_dynamodb_local("it may be true there")
def test_not_contains_on_a_missing_attribute_is_false(wire: WireClient, asked: str):
    assert not is_true(wire, asked, {"nothing": compare("NOT_CONTAINS", text("a"))})


@pytest.mark.parametrize(("operator", "answer"), [("AND", False), ("OR", True)])
def test_the_conditional_operator_combines_the_conditions(
    wire: WireClient, asked: str, operator: str, answer: bool
):
    expected = {"s": {"Value": text("hello")}, "n": {"Value": number("11")}}
    assert is_true(wire, asked, expected, ConditionalOperator=operator) is answer


def test_every_write_accepts_expected(wire: WireClient, simple: str, pk: str):
    key = {"pk": {"S": pk}}
    absent = {"Expected": {"pk": {"Exists": False}}}
    wire("PutItem", {"TableName": simple, "Item": {**key, "v": {"N": "1"}}, **absent})
    put = {"TableName": simple, "Item": key, **absent}
    assert wire.refused("PutItem", put).type == "ConditionalCheckFailedException"
    delete = {"TableName": simple, "Key": key, "Expected": {"v": {"Value": {"N": "2"}}}}
    assert wire.refused("DeleteItem", delete).type == "ConditionalCheckFailedException"
    delete["Expected"] = {"v": compare("LT", {"N": "2"})}
    wire("DeleteItem", delete)
    assert wire("GetItem", {"TableName": simple, "Key": key}) == {}


REFUSED: list[Any] = [
    ({"s": {}}, INVALID + "Value must be provided when Exists is null for Attribute: s"),
    (
        {"s": {"Exists": True}},
        INVALID + "Value must be provided when Exists is true for Attribute: s",
    ),
    (
        {"s": {"Exists": False, "Value": text("a")}},
        INVALID + "Value cannot be used when Exists is false for Attribute: s",
    ),
    (
        {"s": {"Value": text("a"), "AttributeValueList": [text("a")]}},
        INVALID + "Value and AttributeValueList cannot be used together for Attribute: s",
    ),
    (
        {"s": {"AttributeValueList": [text("a")]}},
        INVALID + "AttributeValueList can only be used with a ComparisonOperator for Attribute: s",
    ),
    (
        {"s": {"ComparisonOperator": "EQ"}},
        INVALID + "Value or AttributeValueList must be used with ComparisonOperator: EQ for "
        "Attribute: s",
    ),
    (
        {"s": {"ComparisonOperator": "EQ", "Exists": True}},
        INVALID + "Exists and ComparisonOperator cannot be used together for Attribute: s",
    ),
    *[
        (
            {"s": compare(operator, *values)},
            INVALID + f"Invalid number of argument(s) for the {operator} ComparisonOperator",
        )
        for operator, values in (
            ("EQ", (text("a"), text("b"))),
            ("EQ", ()),
            ("NE", ()),
            ("BEGINS_WITH", (text("a"), text("b"))),
            ("NULL", (text("a"),)),
            ("NOT_NULL", (text("a"),)),
            ("BETWEEN", (text("a"),)),
            ("IN", ()),
        )
    ],
    (
        {"s": compare("BETWEEN", text("b"), text("a"))},
        (
            "The BETWEEN condition was provided a range where the lower bound is greater than the "
            "upper bound"
        ),
    ),
    (
        {"s": compare("BETWEEN", text("a"), number("1"))},
        INVALID + "AttributeValues inside AttributeValueList must be of same type",
    ),
    (
        {"s": compare("IN", text("a"), number("1"))},
        INVALID + "AttributeValues inside AttributeValueList must be of same type",
    ),
    *[
        (
            {"s": compare(operator, value)},
            INVALID + f"ComparisonOperator {operator} is not valid for {type_name} "
            "AttributeValue type",
        )
        for operator, value, type_name in (
            ("LT", {"SS": ["a"]}, "SS"),
            ("GE", {"BOOL": True}, "BOOL"),
            ("BEGINS_WITH", {"N": "1"}, "N"),
            ("CONTAINS", {"SS": ["a"]}, "SS"),
            ("IN", {"SS": ["a"]}, "SS"),
        )
    ],
    (
        {"s": {"Value": {}}},
        "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
    ),
]


@pytest.mark.parametrize(("expected", "message"), REFUSED)
def test_an_invalid_expected_is_refused(wire: WireClient, asked: str, expected: Any, message: str):
    request = {"TableName": asked, "Key": {"pk": ITEM["pk"]}, "Expected": expected}
    assert wire.refused("DeleteItem", request) == ("ValidationException", enveloped(message))


@pytest.mark.parametrize("members", [{}, {"Expected": {}}])
def test_a_conditional_operator_without_conditions_is_refused(
    wire: WireClient, asked: str, members: Any
):
    request = {
        "TableName": asked,
        "Key": {"pk": ITEM["pk"]},
        "ConditionalOperator": "AND",
        **members,
    }
    assert wire.refused("DeleteItem", request) == (
        "ValidationException",
        enveloped("ConditionalOperator cannot be used without Filter or Expected"),
    )
