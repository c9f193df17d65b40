"""Expected, filters, KeyConditions and AttributeUpdates."""

from __future__ import annotations

from typing import Any

import pytest

from dynactor.model.errors import ValidationException
from dynactor.model.key_conditions.key_condition import KeyCondition, SortCondition
from dynactor.model.key_conditions.legacy import (
    attribute_updates,
    bind_key_conditions,
    expected_condition,
    filter_condition,
)
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.values.item import Item

ITEM: Item = {
    "n": {"N": "5"},
    "s": {"S": "hello"},
    "ss": {"SS": ["a", "b"]},
    "l": {"L": [{"N": "0"}, {"N": "1"}]},
    "m": {"M": {"x": {"N": "1"}}},
    "t": {"BOOL": True},
}
SCHEMA = KeySchema((KeyAttribute("p", "S"),), (KeyAttribute("s", "N"),))


def number(text: str) -> dict[str, str]:
    return {"N": text}


def compare(operator: str, *values: Any) -> dict[str, Any]:
    return {"ComparisonOperator": operator, "AttributeValueList": list(values)}


@pytest.mark.parametrize(
    ("name", "condition", "holds"),
    [
        ("n", compare("EQ", number("5.0")), True),
        ("n", compare("EQ", {"S": "5"}), False),
        ("ss", compare("EQ", {"SS": ["b", "a"]}), True),
        ("m", compare("EQ", {"M": {"x": number("1")}}), True),
        ("zz", compare("EQ", number("5")), False),
        ("n", compare("NE", number("6")), True),
        ("n", compare("NE", {"S": "5"}), True),
        ("zz", compare("NE", number("5")), True),
        ("n", compare("LT", number("10")), True),
        ("n", compare("LT", number("5")), False),
        ("n", compare("LE", number("5")), True),
        ("n", compare("GT", number("5")), False),
        ("n", compare("GE", number("5")), True),
        ("n", compare("GT", {"S": ""}), False),
        ("zz", compare("LT", number("5")), False),
        ("n", compare("BETWEEN", number("1"), number("5")), True),
        ("n", compare("BETWEEN", number("6"), number("9")), False),
        ("n", compare("IN", number("1"), number("5")), True),
        ("n", compare("IN", number("1")), False),
        ("zz", compare("IN", number("1")), False),
        ("zz", {"ComparisonOperator": "NULL"}, True),
        ("n", {"ComparisonOperator": "NULL"}, False),
        ("n", {"ComparisonOperator": "NULL", "AttributeValueList": []}, False),
        ("n", {"ComparisonOperator": "NOT_NULL"}, True),
        ("zz", {"ComparisonOperator": "NOT_NULL"}, False),
        ("s", compare("CONTAINS", {"S": "ell"}), True),
        ("ss", compare("CONTAINS", {"S": "a"}), True),
        ("l", compare("CONTAINS", number("1")), True),
        ("l", compare("CONTAINS", {"BOOL": True}), False),
        ("n", compare("CONTAINS", number("5")), False),
        ("zz", compare("CONTAINS", {"S": "a"}), False),
        ("s", compare("NOT_CONTAINS", {"S": "ell"}), False),
        ("s", compare("NOT_CONTAINS", {"S": "x"}), True),
        ("n", compare("NOT_CONTAINS", {"S": "x"}), True),
        # The result differs from that of ``NOT contains(…)``.
        ("zz", compare("NOT_CONTAINS", {"S": "x"}), False),
        ("s", compare("BEGINS_WITH", {"S": "he"}), True),
        ("s", compare("BEGINS_WITH", {"S": "el"}), False),
        ("n", compare("BEGINS_WITH", {"S": "5"}), False),
    ],
)
def test_the_results_of_comparison_operators_are_dynamodbs(
    name: str, condition: dict[str, Any], holds: bool
) -> None:
    for bound in (
        filter_condition({name: condition}, None),
        expected_condition({name: condition}, None),
    ):
        assert bound is not None
        assert bound.evaluate(ITEM) is holds
        assert bound.attributes == {name}


@pytest.mark.parametrize(
    ("expectation", "holds"),
    [
        ({"Value": number("5")}, True),
        ({"Value": number("6")}, False),
        ({"Exists": True, "Value": number("5")}, True),
        ({"Exists": False}, False),
        ({"ComparisonOperator": "IN", "Value": number("5")}, True),
    ],
)
def test_expected_takes_a_value_or_none(expectation: dict[str, Any], holds: bool) -> None:
    condition = expected_condition({"n": expectation}, None)
    assert condition is not None
    assert condition.evaluate(ITEM) is holds


@pytest.mark.parametrize(
    ("expectation", "message"),
    [
        ({}, "Value must be provided when Exists is null for Attribute: a"),
        ({"Exists": True}, "Value must be provided when Exists is true for Attribute: a"),
        (
            {"Exists": False, "Value": number("1")},
            "Value cannot be used when Exists is false for Attribute: a",
        ),
        (
            {"Value": number("1"), "AttributeValueList": [number("1")]},
            "Value and AttributeValueList cannot be used together for Attribute: a",
        ),
        (
            {"AttributeValueList": [number("1")]},
            "AttributeValueList can only be used with a ComparisonOperator for Attribute: a",
        ),
        (
            {"Exists": True, "ComparisonOperator": "EQ"},
            "Exists and ComparisonOperator cannot be used together for Attribute: a",
        ),
        (
            {"ComparisonOperator": "EQ"},
            (
                "Value or AttributeValueList must be used with ComparisonOperator: EQ "
                "for Attribute: a"
            ),
        ),
        (
            {"ComparisonOperator": "NULL", "Value": number("1")},
            "Invalid number of argument(s) for the NULL ComparisonOperator",
        ),
    ],
)
def test_expectations_that_contradict_themselves_are_refused(
    expectation: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationException) as caught:
        expected_condition({"a": expectation}, None)
    assert caught.value.message == f"One or more parameter values were invalid: {message}"


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (compare("EQ"), "Invalid number of argument(s) for the EQ ComparisonOperator"),
        (
            compare("EQ", number("1"), number("1")),
            "Invalid number of argument(s) for the EQ ComparisonOperator",
        ),
        (compare("IN"), "Invalid number of argument(s) for the IN ComparisonOperator"),
        (
            compare("BETWEEN", number("1")),
            "Invalid number of argument(s) for the BETWEEN ComparisonOperator",
        ),
        (
            compare("IN", number("1"), {"S": "1"}),
            "AttributeValues inside AttributeValueList must be of same type",
        ),
        (
            compare("LT", {"BOOL": True}),
            "ComparisonOperator LT is not valid for BOOL AttributeValue type",
        ),
        (
            compare("CONTAINS", {"SS": ["a"]}),
            "ComparisonOperator CONTAINS is not valid for SS AttributeValue type",
        ),
        (
            compare("BEGINS_WITH", number("1")),
            "ComparisonOperator BEGINS_WITH is not valid for N AttributeValue type",
        ),
        (
            compare("IN", {"L": []}),
            "ComparisonOperator IN is not valid for L AttributeValue type",
        ),
        (
            compare("BETWEEN", {"SS": ["a"]}, {"SS": ["a"]}),
            "ComparisonOperator BETWEEN is not valid for SS AttributeValue type",
        ),
    ],
)
def test_the_wrong_values_for_an_operator_are_refused(
    condition: dict[str, Any], message: str
) -> None:
    for bind in filter_condition, expected_condition:
        with pytest.raises(ValidationException) as caught:
            bind({"a": condition}, None)
        assert caught.value.message == f"One or more parameter values were invalid: {message}"


def test_reversed_bounds_are_refused() -> None:
    with pytest.raises(ValidationException) as caught:
        filter_condition({"a": compare("BETWEEN", number("10"), number("9"))}, None)
    assert caught.value.message == (
        "The BETWEEN condition was provided a range where the lower bound is greater than the "
        "upper bound"
    )


def test_conditions_are_joined_by_the_conditional_operator() -> None:
    both = {"n": {"Value": number("5")}, "s": {"Value": {"S": "other"}}}
    for operator, holds in (None, False), ("AND", False), ("OR", True):
        condition = expected_condition(both, operator)
        assert condition is not None
        assert condition.evaluate(ITEM) is holds


@pytest.mark.parametrize("conditions", [None, {}])
def test_an_empty_map_of_conditions_is_no_condition(conditions: dict[str, Any] | None) -> None:
    assert expected_condition(conditions, None) is None
    assert filter_condition(conditions, None) is None
    with pytest.raises(ValidationException) as caught:
        filter_condition(conditions, "AND")
    assert caught.value.message == "ConditionalOperator cannot be used without Filter or Expected"


def test_a_conditional_operator_needs_two_conditions() -> None:
    with pytest.raises(ValidationException) as caught:
        expected_condition({"a": {"Exists": False}}, "OR")
    assert caught.value.message == (
        "ConditionalOperator can only be used when Filter or Expected has two or more elements"
    )


@pytest.mark.parametrize(
    ("operator", "bound"),
    [("EQ", "="), ("LE", "<="), ("LT", "<"), ("GE", ">="), ("GT", ">")],
)
def test_key_conditions_become_a_key_condition(operator: str, bound: Any) -> None:
    conditions = {"s": compare(operator, number("1e1")), "p": compare("EQ", {"S": "k"})}
    assert bind_key_conditions(conditions).on(SCHEMA) == KeyCondition(
        ({"S": "k"},), (SortCondition("s", bound, (number("10"),)),)
    )


P = compare("EQ", {"S": "k"})


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({}, "Conditions can be of length 1 or 2 only"),
        ({"p": P, "x": P, "y": P}, "Conditions can be of length 1 or 2 only"),
        ({"s": compare("EQ", number("1"))}, "Query condition missed key schema element: p"),
        ({"p": P, "x": compare("NE", number("1"))}, "Query condition missed key schema element: s"),
        ({"p": compare("GT", {"S": "k"})}, "Query key condition not supported"),
        (
            {"p": compare("NE", {"S": "k"})},
            "Attempted conditional constraint is not an indexable operation",
        ),
        (
            {"p": P, "s": compare("NE", number("1"))},
            "Attempted conditional constraint is not an indexable operation",
        ),
        (
            {"p": P, "s": {"ComparisonOperator": "NULL"}},
            "Attempted conditional constraint is not an indexable operation",
        ),
        (
            {"p": P, "s": compare("BEGINS_WITH", {"S": "x"})},
            (
                "One or more parameter values were invalid: "
                "Condition parameter type does not match schema type"
            ),
        ),
    ],
)
def test_key_conditions_that_no_query_takes_are_refused(
    conditions: dict[str, Any], message: str
) -> None:
    terms = bind_key_conditions(conditions)
    with pytest.raises(ValidationException) as caught:
        terms.on(SCHEMA)
    assert caught.value.message == message


def test_key_conditions_take_ranges_and_prefixes() -> None:
    between = compare("BETWEEN", number("1"), number("2"))
    assert bind_key_conditions({"p": P, "s": between}).on(SCHEMA).sort == (
        SortCondition("s", "BETWEEN", (number("1"), number("2"))),
    )
    text_key = KeySchema(SCHEMA.partition, (KeyAttribute("t", "S"),))
    prefix = compare("BEGINS_WITH", {"S": "x"})
    assert bind_key_conditions({"p": P, "t": prefix}).on(text_key).sort == (
        SortCondition("t", "begins_with", ({"S": "x"},)),
    )


@pytest.mark.parametrize(
    ("name", "update", "value"),
    [
        ("n", {"Value": number("1.0")}, number("1")),
        ("n", {"Action": "PUT", "Value": {"S": "x"}}, {"S": "x"}),
        ("n", {"Action": "ADD", "Value": number("2")}, number("7")),
        ("zz", {"Action": "ADD", "Value": number("2")}, number("2")),
        ("ss", {"Action": "ADD", "Value": {"SS": ["c", "a"]}}, {"SS": ["a", "b", "c"]}),
        # Effects that ADD has here, but not in an UpdateExpression.
        (
            "l",
            {"Action": "ADD", "Value": {"L": [number("0")]}},
            {"L": [number("0"), number("1"), number("0")]},
        ),
        ("zz", {"Action": "ADD", "Value": {"L": [number("0")]}}, {"L": [number("0")]}),
        ("n", {"Action": "DELETE"}, None),
        ("zz", {"Action": "DELETE"}, None),
        ("ss", {"Action": "DELETE", "Value": {"SS": ["a"]}}, {"SS": ["b"]}),
        ("ss", {"Action": "DELETE", "Value": {"SS": ["a", "b"]}}, None),
        ("zz", {"Action": "DELETE", "Value": {"SS": ["a"]}}, None),
    ],
)
def test_attribute_updates_change_one_attribute(
    name: str, update: dict[str, Any], value: dict[str, Any] | None
) -> None:
    bound = attribute_updates({name: update})
    assert bound.attributes == {name}
    result = bound.apply(ITEM, {})
    expected = {key: content for key, content in ITEM.items() if key != name}
    assert result.item == (expected if value is None else {**expected, name: value})
    assert result.updated_old == ({name: ITEM[name]} if name in ITEM else {})
    assert result.updated_new == ({} if value is None else {name: value})


@pytest.mark.parametrize(
    ("name", "update"),
    [
        ("s", {"Action": "ADD", "Value": number("1")}),
        ("ss", {"Action": "ADD", "Value": {"NS": ["1"]}}),
        ("n", {"Action": "ADD", "Value": {"L": []}}),
        ("n", {"Action": "DELETE", "Value": {"SS": ["a"]}}),
    ],
)
def test_adding_to_another_type_is_refused(name: str, update: dict[str, Any]) -> None:
    bound = attribute_updates({name: update})
    with pytest.raises(ValidationException) as caught:
        bound.apply(ITEM, {})
    assert caught.value.message == "Type mismatch for attribute to update"


@pytest.mark.parametrize(
    ("update", "message"),
    [
        ({}, "Only DELETE action is allowed when no attribute value is specified"),
        ({"Action": "ADD"}, "Only DELETE action is allowed when no attribute value is specified"),
        (
            {"Action": "ADD", "Value": {"S": "x"}},
            "ADD action is not supported for the type S",
        ),
        (
            {"Action": "DELETE", "Value": {"L": []}},
            "DELETE action with value is not supported for the type L",
        ),
    ],
)
def test_updates_without_a_fitting_value_are_refused(update: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationException) as caught:
        attribute_updates({"a": update})
    assert caught.value.message == f"One or more parameter values were invalid: {message}"


def test_an_update_of_only_removals_creates_no_item_and_an_empty_update_does() -> None:
    key: Item = {"p": {"S": "k"}}
    assert attribute_updates({"a": {"Action": "DELETE"}}).apply(None, key).item is None
    assert attribute_updates({}).apply(None, key).item == key
