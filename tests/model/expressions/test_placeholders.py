from __future__ import annotations

import pytest

from dynactor.model.errors import SerializationException, ValidationException
from dynactor.model.expressions.condition_binding import parse_condition
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.expressions.projection import parse_projection
from dynactor.model.expressions.update import parse_update
from dynactor.model.values.attribute_value import AttributeValue

ONE: AttributeValue = {"N": "1"}


@pytest.mark.parametrize(
    ("names", "values", "message"),
    [
        ({}, None, "ExpressionAttributeNames must not be empty"),
        (None, {}, "ExpressionAttributeValues must not be empty"),
        ({}, {}, "ExpressionAttributeNames must not be empty"),
        (
            {"a": "b"},
            None,
            'ExpressionAttributeNames contains invalid key: Syntax error; key: "a"',
        ),
        (
            {"#a-b": "b"},
            None,
            'ExpressionAttributeNames contains invalid key: Syntax error; key: "#a-b"',
        ),
        ({"#": "b"}, None, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "#"'),
        (
            {"#a\n": "b"},
            None,
            'ExpressionAttributeNames contains invalid key: Syntax error; key: "#a\n"',
        ),
        (
            {"#a": ""},
            None,
            "ExpressionAttributeNames contains invalid value: Empty attribute name for key #a",
        ),
        (
            None,
            {"#a": ONE},
            'ExpressionAttributeValues contains invalid key: Syntax error; key: "#a"',
        ),
        (
            None,
            {":": ONE},
            'ExpressionAttributeValues contains invalid key: Syntax error; key: ":"',
        ),
        (
            None,
            {":a": {}},
            (
                "ExpressionAttributeValues contains invalid value: "
                "Supplied AttributeValue is empty, must contain exactly one of the supported "
                "datatypes for key :a"
            ),
        ),
        (
            None,
            {":a": {"N": "x"}},
            (
                "ExpressionAttributeValues contains invalid value: "
                "The parameter cannot be converted to a numeric value: x for key :a"
            ),
        ),
        (
            {"#" + "a" * 255: "b"},
            None,
            (
                "ExpressionAttributeNames contains invalid key: "
                "The expression attribute map contains a key that is too long; size of key: 256"
            ),
        ),
    ],
)
def test_malformed_placeholders_are_refused(
    names: dict[str, str] | None, values: dict[str, AttributeValue] | None, message: str
) -> None:
    with pytest.raises(ValidationException) as caught:
        Placeholders(names, values)
    assert caught.value.message == message


def test_names_and_values_have_at_most_two_mebibytes_each() -> None:
    size = 2 * 1024 * 1024 - len(":v")
    Placeholders(None, {":v": {"S": "x" * size}})
    with pytest.raises(ValidationException, match=r"^ExpressionAttributeValues exceeds max size$"):
        Placeholders(None, {":v": {"S": "x" * (size + 1)}})
    names = {f"#{n:02}": "é" * 32_767 for n in range(31)}
    left = 2 * 1024 * 1024 - sum(len(name) + 65_534 for name in names) - len("#x")
    Placeholders(names | {"#x": "y" * left}, None)
    with pytest.raises(ValidationException, match=r"^ExpressionAttributeNames exceeds max size$"):
        Placeholders(names | {"#x": "y" * (left + 1)}, None)


def test_a_name_has_at_most_65535_bytes() -> None:
    Placeholders({"#a": "x" * 65_535}, None)
    with pytest.raises(ValidationException) as caught:
        Placeholders({"#a": "é" * 32_768}, None)
    assert caught.value.message == (
        "ExpressionAttributeNames contains invalid value: "
        "Attribute name is too large, must be less than 65536 bytes for key #a"
    )


def test_a_value_of_the_wrong_json_type_is_a_serialization_error() -> None:
    with pytest.raises(SerializationException):
        Placeholders(None, {":a": {"N": 1}})


def test_a_placeholder_of_255_characters_is_fine() -> None:
    name = "#" + "a" * 254
    condition = parse_condition(
        f"attribute_exists({name})", Placeholders({name: "a"}, None), kind="ConditionExpression"
    )
    assert condition.evaluate({"a": ONE})


def test_unused_names_are_refused_before_unused_values() -> None:
    placeholders = Placeholders(
        {"#a": "a", "#b": "b", "#c": "c"}, {":x": dict(ONE), ":y": dict(ONE)}
    )
    parse_update("SET #b = :x", placeholders)
    with pytest.raises(ValidationException) as caught:
        placeholders.check_all_used()
    assert caught.value.message == (
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#a, #c}"
    )
    parse_projection("#a, #c", placeholders)
    with pytest.raises(ValidationException) as caught:
        placeholders.check_all_used()
    assert caught.value.message == (
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:y}"
    )
    parse_condition("q = :y", placeholders, kind="FilterExpression")
    placeholders.check_all_used()


def test_values_are_canonical_where_they_are_used() -> None:
    placeholders = Placeholders(None, {":n": {"N": "+1.50e1"}, ":s": {"NS": ["3", "1.0"]}})
    update = parse_update("SET a = :n, b = :s", placeholders)
    assert update.apply(None, {}).item == {"a": {"N": "15"}, "b": {"NS": ["1", "3"]}}


def test_nested_has_the_attributes_with_longer_paths_in_the_request() -> None:
    placeholders = Placeholders({"#c": "see"}, {":v": dict(ONE)})
    parse_update("SET a.x = :v, b = if_not_exists(#c[0], :v), d = :v", placeholders)
    parse_condition("size(e.f) > :v AND g = :v", placeholders, kind="ConditionExpression")
    parse_projection("h, i[1]", placeholders)
    assert placeholders.nested == {"a", "see", "e", "i"}
