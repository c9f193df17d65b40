"""Items as plain JSON: which numbers stay numbers, and the form of the other types."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from dynactor.model.values import number as numbers
from dynactor.model.values.attribute_value import AttributeValue
from dynactor.streams.kafka.plain_json import plain, plain_item
from tests.properties import strategies


def written(value: AttributeValue) -> str:
    return json.encode(plain(value)).decode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", "0"),
        ("-2.5", "-2.5"),
        ("123456789012345", "123456789012345"),
        ("1700000000987654", "1700000000987654"),
        ("9007199254740992", "9007199254740992"),
        ("9007199254740993", '"9007199254740993"'),
        ("0.1234567890123456789", '"0.1234567890123456789"'),
        ("1" + "0" * 20, "1e+20"),
        ("0." + "0" * 20 + "1", "1e-21"),
        ("1" * 38, '"' + "1" * 38 + '"'),
    ],
)
def test_a_number_is_a_json_number_if_a_double_represents_it_exactly(text: str, expected: str):
    assert written({"N": text}) == expected


@given(st.decimals(allow_nan=False, allow_infinity=False, places=20))
def test_no_number_loses_a_digit(drawn: Decimal):
    text = numbers.canonical(f"{drawn.normalize():f}"[:38])
    found = json.decode(written({"N": text}))
    # Most languages print the shortest text of a double.
    assert Decimal(found if isinstance(found, str) else repr(found)) == Decimal(text)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"S": "ü"}, '"ü"'),
        ({"B": "YQ=="}, '"YQ=="'),
        ({"BOOL": False}, "false"),
        ({"NULL": True}, "null"),
        ({"SS": ["a", "b"]}, '["a","b"]'),
        ({"NS": ["1", "2.5"]}, "[1,2.5]"),
        ({"NS": ["1", "9007199254740993"]}, '["1","9007199254740993"]'),
        ({"BS": ["YQ==", "Yg=="]}, '["YQ==","Yg=="]'),
        ({"L": [{"N": "1"}, {"L": []}, {"S": ""}]}, '[1,[],""]'),
        ({"M": {"x": {"N": "1"}, "y": {"M": {}}}}, '{"x":1,"y":{}}'),
    ],
)
def test_a_value_is_written_without_its_type(value: AttributeValue, expected: str):
    assert written(value) == expected


@given(strategies.items)
def test_an_item_keeps_its_names_in_their_order(item: dict[str, Any]):
    assert list(json.decode(json.encode(plain_item(item)))) == list(item)
