"""The parameters that predate expressions: Expected, filters, AttributeUpdates.

They become the same conditions and updates as expressions. Arguments are the members as DynamoDB
names them; their values are checked and made canonical here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct

from dynactor.model.errors import ValidationException, invalid_value
from dynactor.model.expressions import condition, update
from dynactor.model.expressions.condition import Attribute, Condition, Constant, Node
from dynactor.model.expressions.condition_binding import SIGNS
from dynactor.model.expressions.update import BoundUpdate
from dynactor.model.key_conditions.key_condition import (
    KeyCondition,
    KeyOperator,
    SortCondition,
    key_condition,
)
from dynactor.model.keys.key import KeySchema
from dynactor.model.values import attribute_value, document_path
from dynactor.model.values.attribute_value import (
    ORDERED_TYPES,
    SET_TYPES,
    AttributeValue,
    data_type,
)

Members: TypeAlias = Mapping[str, Any]


# The least and the largest number of values of each operator; None for no bound.
_ARGUMENTS: Final[dict[str, tuple[int, int | None]]] = {
    "NULL": (0, 0),
    "NOT_NULL": (0, 0),
    "EQ": (1, 1),
    "NE": (1, 1),
    "LE": (1, 1),
    "LT": (1, 1),
    "GE": (1, 1),
    "GT": (1, 1),
    "CONTAINS": (1, 1),
    "NOT_CONTAINS": (1, 1),
    "BEGINS_WITH": (1, 1),
    "IN": (1, None),
    "BETWEEN": (2, 2),
}
_SCALARS: Final = frozenset({"S", "N", "B", "BOOL", "NULL"})
# The types that an operator accepts, if it does not accept all.
_TYPES: Final[dict[str, frozenset[str]]] = {
    "LE": ORDERED_TYPES,
    "LT": ORDERED_TYPES,
    "GE": ORDERED_TYPES,
    "GT": ORDERED_TYPES,
    "IN": ORDERED_TYPES,
    "BETWEEN": ORDERED_TYPES,
    "CONTAINS": _SCALARS,
    "NOT_CONTAINS": _SCALARS,
    "BEGINS_WITH": frozenset({"S", "B"}),
}
_COMPARATORS: Final = {"LE": "<=", "LT": "<", "GE": ">=", "GT": ">"}


def expected_condition(
    expected: Mapping[str, Members] | None, conditional_operator: str | None
) -> Condition | None:
    """The condition of Expected; None if Expected is empty.

    Raises ``ValidationException`` or ``SerializationException`` if a parameter is faulty.
    """
    nodes = {name: _expected(name, members) for name, members in (expected or {}).items()}
    return _joined(nodes, conditional_operator)


def filter_condition(
    conditions: Mapping[str, Members] | None, conditional_operator: str | None
) -> Condition | None:
    """The condition of QueryFilter or ScanFilter; None without a filter.

    Raises ``ValidationException`` or ``SerializationException`` if a parameter is faulty.
    """
    nodes = {name: _filter(name, members) for name, members in (conditions or {}).items()}
    return _joined(nodes, conditional_operator)


def _joined(nodes: dict[str, Node], conditional_operator: str | None) -> Condition | None:
    if conditional_operator is not None:
        if not nodes:
            raise ValidationException(
                "ConditionalOperator cannot be used without Filter or Expected"
            )
        if len(nodes) == 1:
            raise ValidationException(
                "ConditionalOperator can only be used when Filter or Expected has two or more "
                "elements"
            )
    if not nodes:
        return None
    together = tuple(nodes.values())
    root: Node = condition.Or(together) if conditional_operator == "OR" else condition.And(together)
    return Condition(root, frozenset(nodes))


def _expected(name: str, members: Members) -> Node:
    attribute_value.check_name(name)
    operator = members.get("ComparisonOperator")
    value = members.get("Value")
    values = members.get("AttributeValueList")
    exists = members.get("Exists")
    if value is not None and values is not None:
        raise invalid_value(
            f"Value and AttributeValueList cannot be used together for Attribute: {name}"
        )
    if operator is not None:
        if exists is not None:
            raise invalid_value(
                f"Exists and ComparisonOperator cannot be used together for Attribute: {name}"
            )
        if operator not in ("NULL", "NOT_NULL") and value is None and values is None:
            raise invalid_value(
                f"Value or AttributeValueList must be used with ComparisonOperator: {operator} for "
                f"Attribute: {name}"
            )
        return _comparison(name, operator, values or ([] if value is None else [value]))
    if values is not None:
        raise invalid_value(
            f"AttributeValueList can only be used with a ComparisonOperator for Attribute: {name}"
        )
    if exists is False:
        if value is not None:
            raise invalid_value(f"Value cannot be used when Exists is false for Attribute: {name}")
        return condition.NotExists(Attribute(name))
    if value is None:
        shown = "null" if exists is None else "true"
        raise invalid_value(f"Value must be provided when Exists is {shown} for Attribute: {name}")
    attribute_value.check(value)
    return condition.Equal(Attribute(name), Constant(value))


def _filter(name: str, members: Members) -> Node:
    attribute_value.check_name(name)
    return _comparison(name, members["ComparisonOperator"], members.get("AttributeValueList") or [])


def _comparison(name: str, operator: str, values: list[AttributeValue]) -> Node:
    _check_arguments(operator, values)
    attribute = Attribute(name)
    constants = tuple(map(Constant, values))
    match operator:
        case "NULL":
            return condition.NotExists(attribute)
        case "NOT_NULL":
            return condition.Exists(attribute)
        case "EQ":
            return condition.Equal(attribute, constants[0])
        case "NE":
            return condition.NotEqual(attribute, constants[0])
        case "CONTAINS":
            return condition.Contains(attribute, constants[0])
        case "NOT_CONTAINS":
            # Unlike NOT contains(…), false for a missing attribute.
            return condition.And(
                (
                    condition.Exists(attribute),
                    condition.Not(condition.Contains(attribute, constants[0])),
                )
            )
        case "BEGINS_WITH":
            return condition.BeginsWith(attribute, constants[0])
        case "IN":
            return condition.In(attribute, constants)
        case "BETWEEN":
            return condition.Between(attribute, constants[0], constants[1])
        case _:
            return condition.Ordered(attribute, constants[0], SIGNS[_COMPARATORS[operator]])


def _check_arguments(operator: str, values: list[AttributeValue]) -> None:
    for value in values:
        attribute_value.check(value)
    least, most = _ARGUMENTS[operator]
    if len(values) < least or (most is not None and len(values) > most):
        raise invalid_value(f"Invalid number of argument(s) for the {operator} ComparisonOperator")
    if len({data_type(value) for value in values}) > 1:
        raise invalid_value("AttributeValues inside AttributeValueList must be of same type")
    allowed = _TYPES.get(operator)
    for value in values:
        if allowed is not None and data_type(value) not in allowed:
            raise invalid_value(
                f"ComparisonOperator {operator} is not valid for {data_type(value)} AttributeValue "
                "type"
            )
    if operator == "BETWEEN" and condition.compare(*values) == 1:
        raise ValidationException(
            "The BETWEEN condition was provided a range where the lower bound is greater than "
            "the upper bound"
        )


class LegacyKeyTerms(Struct, frozen=True):
    """KeyConditions not yet compared with a key: operator and values by attribute name."""

    terms: dict[str, tuple[str, tuple[AttributeValue, ...]]]

    def on(self, schema: KeySchema) -> KeyCondition:
        """The condition on this key; raises ``ValidationException`` if no Query may have it."""
        if not self.terms:
            raise ValidationException("Conditions can be of length 1 or 2 only")
        for attribute in schema.attributes:
            operator, _ = self.terms.get(attribute.name, ("EQ", ()))
            if operator not in _KEY_OPERATORS:
                raise ValidationException(
                    "Attempted conditional constraint is not an indexable operation"
                )
        return key_condition(
            {
                # An operator that keys don't allow is refused below: no key attribute accepts it.
                name: SortCondition(name, _KEY_OPERATORS.get(operator, "="), values)
                for name, (operator, values) in self.terms.items()
            },
            schema,
        )


_KEY_OPERATORS: Final[dict[str, KeyOperator]] = {
    "EQ": "=",
    "LE": "<=",
    "LT": "<",
    "GE": ">=",
    "GT": ">",
    "BETWEEN": "BETWEEN",
    "BEGINS_WITH": "begins_with",
}


def bind_key_conditions(conditions: Mapping[str, Members]) -> LegacyKeyTerms:
    """Check KeyConditions as far as possible without the key.

    Raises ``ValidationException`` or ``SerializationException`` if a parameter is faulty.
    """
    terms = {}
    for name, members in conditions.items():
        operator = members["ComparisonOperator"]
        values = members.get("AttributeValueList") or []
        _check_arguments(operator, values)
        terms[name] = (operator, tuple(values))
    return LegacyKeyTerms(terms)


_ADDABLE_TYPES: Final = SET_TYPES | {"N", "L"}


def attribute_updates(updates: Mapping[str, Members]) -> BoundUpdate:
    """The update of AttributeUpdates.

    Raises ``ValidationException`` or ``SerializationException`` if a parameter is faulty.
    """
    return BoundUpdate(
        tuple(_action(name, members) for name, members in updates.items()),
        document_path.branches((name,) for name in updates),
        mismatch="Type mismatch for attribute to update",
    )


def _action(name: str, members: Members) -> update.Action:
    attribute_value.check_name(name)
    action = members.get("Action") or "PUT"
    value = members.get("Value")
    if value is None:
        if action != "DELETE":
            raise invalid_value(
                "Only DELETE action is allowed when no attribute value is specified"
            )
        return update.RemoveAction((name,))
    attribute_value.check(value)
    type_name = data_type(value)
    if action == "PUT":
        return update.SetAction((name,), update.GivenValue(value))
    if action == "ADD":
        if type_name not in _ADDABLE_TYPES:
            raise invalid_value(f"ADD action is not supported for the type {type_name}")
        return update.AddAction((name,), value)
    assert action == "DELETE"
    if type_name not in SET_TYPES:
        raise invalid_value(f"DELETE action with value is not supported for the type {type_name}")
    return update.DeleteAction((name,), value)
