"""Conditions on keys, in statements that read and in those that write."""

from __future__ import annotations

from typing import Final

from dynactor.model.errors import ValidationException
from dynactor.model.expressions import condition
from dynactor.model.expressions.condition import Attribute, Constant, Node
from dynactor.model.key_conditions.key_condition import COMPARATORS, TURNED, SortCondition
from dynactor.model.keys.key import KeyAttribute
from dynactor.model.values.attribute_value import AttributeValue

NO_KEY: Final = "Where clause does not contain a mandatory equality on all key attributes"


def equality(node: Node) -> SortCondition | None:
    """The equality of an attribute and a value; None for any other condition."""
    term = sort_term(node)
    return term if term is not None and term.operator == "=" else None


def one_value(node: Node) -> SortCondition | None:
    """An equality, or an IN with one value, which SELECT accepts as an equality."""
    match node:
        case condition.In(Attribute(name), (Constant(value),)):
            return SortCondition(name, "=", (value,))
        case _:
            return equality(node)


def sort_term(node: Node) -> SortCondition | None:
    """A comparison of an attribute with values, as a key condition; None for any other one."""
    match node:
        case condition.Equal(Attribute(name), Constant(value)) | condition.Equal(
            Constant(value), Attribute(name)
        ):
            return SortCondition(name, "=", (value,))
        case condition.Ordered(Attribute(name), Constant(value), signs):
            return SortCondition(name, COMPARATORS[signs], (value,))
        case condition.Ordered(Constant(value), Attribute(name), signs):
            return SortCondition(name, TURNED[COMPARATORS[signs]], (value,))
        case condition.Between(Attribute(name), Constant(lower), Constant(upper)):
            return SortCondition(name, "BETWEEN", (lower, upper))
        case condition.BeginsWith(Attribute(name), Constant(prefix)):
            return SortCondition(name, "begins_with", (prefix,))
        case _:
            return None


def check_type(attribute: KeyAttribute, value: AttributeValue) -> None:
    """Refuse a value that a key attribute can't have; raises ``ValidationException``."""
    if attribute.type not in value:
        raise ValidationException(
            "Key attribute's data type should match its data type in table's schema: "
            f"Key {attribute.name}"
        )
