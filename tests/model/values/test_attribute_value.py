"""Attribute values: refused ones, canonical forms, sizes."""

from __future__ import annotations

import copy
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynactor.model.errors import SerializationException, ValidationException
from dynactor.model.values import attribute_value
from dynactor.model.values.attribute_value import check, data_type, order_key, size_bytes


def checked(value: Any) -> Any:
    """A value after the check; the original stays unchanged."""
    value = copy.deepcopy(value)
    check(value)
    return value


def nested(levels: int, kind: str) -> Any:
    """Lists or maps nested this many levels deep."""
    value: Any = {"L": []} if kind == "L" else {"M": {}}
    for _ in range(levels - 1):
        value = {"L": [value]} if kind == "L" else {"M": {"m": value}}
    return value


binaries = st.binary(max_size=40)
numerals = st.integers(-(10**30), 10**30).map(str) | st.decimals(
    -1000, 1000, allow_nan=False, places=3
).map(str)
scalars = st.one_of(
    st.text().map(lambda text: {"S": text}),
    numerals.map(lambda text: {"N": text}),
    binaries.map(lambda raw: {"B": b64encode(raw).decode()}),
    st.booleans().map(lambda flag: {"BOOL": flag}),
    st.just({"NULL": True}),
    st.lists(st.text(), min_size=1, unique=True).map(lambda texts: {"SS": texts}),
    st.lists(st.integers(-(10**30), 10**30), min_size=1, unique=True).map(
        lambda ns: {"NS": [str(n) for n in ns]}
    ),
    st.lists(binaries, min_size=1, unique=True).map(
        lambda raws: {"BS": [b64encode(raw).decode() for raw in raws]}
    ),
)
values = st.recursive(
    scalars,
    lambda members: (
        st.lists(members).map(lambda content: {"L": content})
        | st.dictionaries(st.text(min_size=1), members).map(lambda content: {"M": content})
    ),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("value", "expected_size"),
    [
        ({"S": ""}, 0),
        ({"S": "abc"}, 3),
        ({"S": "é"}, 2),
        ({"S": "😀"}, 4),
        ({"N": "0"}, 1),
        ({"N": "12345"}, 4),
        ({"N": "-12345"}, 5),
        ({"N": "1e100"}, 2),
        ({"B": ""}, 0),
        ({"B": "YQ=="}, 1),
        ({"B": "YWI="}, 2),
        ({"B": "YWJj"}, 3),
        ({"BOOL": True}, 1),
        ({"BOOL": False}, 1),
        ({"NULL": True}, 1),
        ({"SS": ["a", "é"]}, 3),
        ({"SS": [""]}, 0),
        ({"NS": ["1", "-1"]}, 5),
        ({"BS": ["YQ==", "YWJj"]}, 4),
        ({"L": []}, 3),
        ({"M": {}}, 3),
        ({"L": [{"S": "abc"}]}, 3 + 1 + 3),
        ({"L": [{"NULL": True}, {"BOOL": True}]}, 3 + 2 + 2),
        ({"M": {"é": {"S": "abc"}}}, 3 + 1 + 2 + 3),
        ({"M": {"a": {"L": [{"N": "1"}]}, "b": {"M": {}}}}, 3 + 2 + 2 + (3 + 1 + 2) + 3),
    ],
)
def test_the_size_of_a_value_is_the_documented_one(value, expected_size):
    value = copy.deepcopy(value)

    assert check(value) == expected_size
    assert size_bytes(value) == expected_size


@given(values)
def test_the_size_is_the_same_when_checked_and_afterwards(value):
    size = check(value)

    assert size_bytes(value) == size


@given(values)
def test_a_checked_value_is_its_own_canonical_form(value):
    once = checked(value)

    assert checked(once) == once
    assert data_type(once) == data_type(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"N": "1000"}, {"N": "1e3"}),
        ({"N": "-0"}, {"N": "0"}),
        ({"SS": ["b", "a"]}, {"SS": ["a", "b"]}),
        ({"NS": ["10", "9"]}, {"NS": ["9.0", "1e1"]}),
        ({"BS": ["Yg==", "YQ=="]}, {"BS": ["YQ==", "Yg=="]}),
        ({"L": [{"NS": ["2", "1"]}]}, {"L": [{"NS": ["1", "2.0"]}]}),
        ({"M": {"a": {"N": "1.0"}, "b": {"S": ""}}}, {"M": {"b": {"S": ""}, "a": {"N": "1"}}}),
        ({"S": "a", "unknown": 1}, {"S": "a"}),
        ({"S": None, "N": "1"}, {"N": "1"}),
    ],
)
def test_equal_values_are_equal_once_they_are_checked(one, other):
    assert one != other or list(one["M"]) != list(other["M"])
    assert checked(one) == checked(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"S": "1"}, {"N": "1"}),
        ({"L": [{"S": "a"}, {"S": "b"}]}, {"L": [{"S": "b"}, {"S": "a"}]}),
        ({"SS": ["1"]}, {"NS": ["1"]}),
        ({"BOOL": True}, {"BOOL": False}),
        ({"S": "é"}, {"S": "e\u0301"}),
    ],
)
def test_different_values_stay_different(one, other):
    assert checked(one) != checked(other)


def test_numbers_of_a_set_are_sorted_by_value():
    assert checked({"NS": ["10", "9", "-1", "0.5"]}) == {"NS": ["-1", "0.5", "9", "10"]}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"SS": []}, "An string set  may not be empty"),
        ({"NS": []}, "An number set  may not be empty"),
        ({"BS": []}, "Binary sets should not be empty"),
        ({"SS": ["a", "b", "a"]}, r"\[a, b, a\] contains duplicates"),
        ({"NS": ["1", "2", "1.0"]}, "contains duplicates"),
        ({"BS": ["YQ==", "YQ=="]}, r"\[YQ==, YQ==\]of type BS contains duplicates"),
        ({"NULL": False}, "must have the value of true"),
        ({}, "is empty"),
        ({"X": "a"}, "is empty"),
        ({"S": None}, "is empty"),
        ({"S": "a", "N": "1"}, "more than one datatypes"),
        ({"L": [{"S": "a"}, {}]}, "is empty"),
        ({"M": {"a": {"S": "a", "BOOL": True}}}, "more than one datatypes"),
        ({"N": "one"}, "cannot be converted to a numeric value: one"),
        ({"NS": ["1", "x"]}, "cannot be converted to a numeric value: x"),
        ({"M": {"a": {"L": [{"N": "1e126"}]}}}, "overflow"),
    ],
)
def test_a_value_that_breaks_a_rule_is_refused(value, message):
    with pytest.raises(ValidationException, match=message):
        check(value)


NO_LIST = "Unrecognized collection type class "
NO_STRUCTURE = "Start of structure or map found where not expected"
NO_FIELD = "Unexpected field type"
NO_BYTES = "only base-64-encoded strings are convertible to bytes"
JAVA_CLASS = "com.amazonaws.dynamodb.v20120810.AttributeValue"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"S": 1}, "NUMBER_VALUE cannot be converted to String"),
        ({"N": 1}, "NUMBER_VALUE cannot be converted to String"),
        ({"N": 1.5}, "DECIMAL_VALUE cannot be converted to String"),
        ({"S": True}, "TRUE_VALUE cannot be converted to String"),
        ({"S": False}, "FALSE_VALUE cannot be converted to String"),
        ({"S": ["a"]}, NO_LIST + "java.lang.String"),
        ({"S": {"a": 1}}, NO_STRUCTURE),
        ({"B": 1}, NO_BYTES),
        ({"B": True}, NO_BYTES),
        ({"B": ["a"]}, NO_LIST + "java.nio.ByteBuffer"),
        ({"B": {}}, NO_STRUCTURE),
        ({"BOOL": 1}, "NUMBER_VALUE cannot be converted to Boolean"),
        ({"BOOL": "perhaps"}, "Unexpected token received from parser"),
        ({"BOOL": []}, NO_LIST + "java.lang.Boolean"),
        ({"NULL": 1.5}, "DECIMAL_VALUE cannot be converted to Boolean"),
        ({"SS": "a"}, NO_FIELD),
        ({"SS": {"a": 1}}, NO_STRUCTURE),
        ({"SS": [1]}, "NUMBER_VALUE cannot be converted to String"),
        ({"BS": [1]}, NO_BYTES),
        ({"L": 1}, NO_FIELD),
        ({"L": {"a": {"S": "a"}}}, NO_STRUCTURE),
        ({"L": ["a"]}, "Unexpected value type in payload"),
        ({"L": [[]]}, NO_LIST + JAVA_CLASS),
        ({"M": "a"}, NO_FIELD),
        ({"M": []}, f"Unrecognized collection type java.util.Map<java.lang.String, {JAVA_CLASS}>"),
        ({"M": {"a": []}}, NO_LIST + JAVA_CLASS),
        ("text", "Unexpected value type in payload"),
        ([], NO_LIST + JAVA_CLASS),
    ],
)
def test_a_value_of_another_json_type_is_refused(value, message):
    with pytest.raises(SerializationException) as error:
        check(value)

    assert error.value.message == message


@pytest.mark.parametrize(
    ("text", "flag"),
    [("true", True), ("TRUE", True), ("yes", True), ("1", True), ("false", False), ("no", False)],
)
def test_the_text_of_a_boolean_is_accepted_as_a_boolean(text, flag):
    assert checked({"BOOL": text}) == {"BOOL": flag}
    assert checked({"L": [{"BOOL": text}]}) == {"L": [{"BOOL": flag}]}


def test_the_text_no_is_refused_for_null():
    assert checked({"NULL": "true"}) == {"NULL": True}
    with pytest.raises(ValidationException, match="must have the value of true"):
        check({"NULL": "no"})


@pytest.mark.parametrize(
    "text",
    [
        "YQ",
        "YQ=",
        "A===",
        "====",
        "Y Q=",
        "YQ=A",
        "YQ==YQ==",
        "_-8=",
        "é===",
        "YW\nJ",
        "YWJj\n",
        # The bits of the last character beyond the last byte must be zero.
        "YR==",
        "YWJ=",
    ],
)
@pytest.mark.parametrize("type_name", ["B", "BS"])
def test_base64_has_one_spelling(text, type_name):
    with pytest.raises(SerializationException, match="Base64"):
        check({"B": text} if type_name == "B" else {"BS": ["AAAA", text]})


@given(st.binary())
def test_a_binary_keeps_its_text_and_has_the_size_of_its_raw_bytes(raw):
    text = b64encode(raw).decode()

    assert checked({"B": text}) == {"B": text}
    assert check({"B": text}) == len(raw)


@pytest.mark.parametrize("kind", ["L", "M"])
def test_values_nest_to_32_levels_with_their_item(kind):
    check(nested(31, kind))
    with pytest.raises(ValidationException, match="Nesting Levels have exceeded"):
        check(nested(32, kind))


@pytest.mark.parametrize("kind", ["L", "M"])
def test_a_scalar_is_no_level_of_its_own(kind):
    innermost = value = nested(31, kind)
    for _ in range(30):
        innermost = innermost["L"][0] if kind == "L" else innermost["M"]["m"]
    if kind == "L":
        innermost["L"].append({"SS": ["a"]})
    else:
        innermost["M"]["m"] = {"SS": ["a"]}

    check(value)
    assert not attribute_value.is_too_deep(value)


@pytest.mark.parametrize("kind", ["L", "M"])
def test_the_depth_of_a_checked_value_can_be_computed(kind):
    assert not attribute_value.is_too_deep(nested(31, kind))
    assert attribute_value.is_too_deep(nested(32, kind))
    assert not attribute_value.is_too_deep({"S": "a"})


@given(st.text(), st.text())
def test_strings_are_ordered_by_their_utf_8(left, right):
    in_order = order_key({"S": left}) < order_key({"S": right})

    assert in_order == (left.encode() < right.encode())


@given(st.binary(), st.binary())
def test_binaries_are_ordered_by_unsigned_bytes(left, right):
    keys = [order_key({"B": b64encode(raw).decode()}) for raw in (left, right)]

    assert (keys[0] < keys[1]) == (left < right)
