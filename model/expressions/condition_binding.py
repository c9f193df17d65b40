"""Binds the tree of a condition to the names and values of its request."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from dynactor.model.errors import ValidationException
from dynactor.model.expressions import syntax
from dynactor.model.expressions.condition import (
    And,
    Attribute,
    BeginsWith,
    Between,
    Condition,
    Constant,
    Contains,
    Equal,
    Exists,
    HasType,
    In,
    NestedValue,
    Node,
    Not,
    NotEqual,
    NotExists,
    Operand,
    Or,
    Ordered,
    Size,
    Truth,
    compare,
)
from dynactor.model.expressions.parser import ConditionKind, condition_tree, invalid
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.limits import IN_OPERANDS
from dynactor.model.values import attribute_value, document_path
from dynactor.model.values.attribute_value import ORDERED_TYPES, TYPES, data_type

_CACHED_CONDITIONS: Final = 2048
# The number of operands of each function.
_OPERANDS: Final = {
    "attribute_exists": 1,
    "attribute_not_exists": 1,
    "attribute_type": 2,
    "begins_with": 2,
    "contains": 2,
    "size": 1,
}

# The signs of ``Ordered`` for each comparator.
SIGNS: Final[dict[str, tuple[int, ...]]] = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1)}
_SIZELESS_TYPES: Final = frozenset({"N", "BOOL", "NULL"})


def parse_condition(text: str, placeholders: Placeholders, *, kind: ConditionKind) -> Condition:
    """Parse and bind a condition; raises ``ValidationException``, whose message names ``kind``."""
    if placeholders.are_none:
        condition, nested = _literal_condition(text, kind)
        placeholders.nested |= nested
        return condition
    return _bound(text, placeholders, kind)


@lru_cache(maxsize=_CACHED_CONDITIONS)
def _literal_condition(text: str, kind: ConditionKind) -> tuple[Condition, frozenset[str]]:
    """A condition without placeholders, such as ``attribute_exists(a)``, for all requests."""
    placeholders = Placeholders(None, None)
    condition = _bound(text, placeholders, kind)
    return condition, frozenset(placeholders.nested)


def _bound(text: str, placeholders: Placeholders, kind: ConditionKind) -> Condition:
    tree = condition_tree(text, kind)
    try:
        return bind_condition(tree, placeholders)
    except ValidationException as error:
        raise invalid(kind, error.message) from None


def bind_condition(tree: syntax.Condition, placeholders: Placeholders) -> Condition:
    """Bind a condition's tree from an expression or statement; raises ``ValidationException``."""
    binder = _Binder(placeholders)
    root = binder.condition(tree)
    return Condition(root, frozenset(binder.attributes))


class _Binder:
    """Replaces a tree's placeholders by their values, and checks them."""

    def __init__(self, placeholders: Placeholders) -> None:
        self.placeholders = placeholders
        self.attributes: set[str] = set()

    def condition(self, tree: syntax.Condition) -> Node:
        match tree:
            case syntax.ParsedAnd(conditions):
                return And(self.conditions("AND", conditions))
            case syntax.ParsedOr(conditions):
                return Or(self.conditions("OR", conditions))
            case syntax.ParsedNot(condition):
                return Not(*self.conditions("NOT", (condition,)))
            case syntax.ParsedComparison(comparator, left, right):
                operands = self.operands((left, right))
                if comparator not in ("=", "<>"):
                    _check_types(comparator, operands, ORDERED_TYPES)
                _check_distinct(comparator, operands)
                if comparator == "=":
                    return Equal(*operands)
                if comparator == "<>":
                    return NotEqual(*operands)
                return Ordered(operands[0], operands[1], SIGNS[comparator])
            case syntax.ParsedBetween(operand, lower, upper):
                operands = self.operands((operand, lower, upper))
                _check_types("BETWEEN", operands, ORDERED_TYPES)
                _check_distinct("BETWEEN", operands)
                _check_bounds(operands[1], operands[2])
                return Between(*operands)
            case syntax.ParsedIn(operand, choices):
                if len(choices) > IN_OPERANDS:
                    raise ValidationException(
                        "The IN operator is provided with too many operands; "
                        f"number of operands: {len(choices)}"
                    )
                operands = self.operands((operand, *choices))
                _check_distinct("IN", operands)
                return In(operands[0], operands[1:])
            case syntax.Function(name, arguments):
                return self.function(name, arguments)

    def conditions(self, operator: str, trees: tuple[syntax.Condition, ...]) -> tuple[Node, ...]:
        """The operands of AND, OR or NOT. PartiQL's grammar allows ``size(…)``, refused here."""
        bound = []
        sizes = 0
        for tree in trees:
            if isinstance(tree, syntax.Function) and tree.name == "size":
                self.operand(tree)
                sizes += 1
            else:
                bound.append(self.condition(tree))
        if sizes:
            raise _wrong_type(operator, "N")
        return tuple(bound)

    def function(self, name: str, arguments: tuple[syntax.Operand, ...]) -> Node:
        operands = self.arguments(name, arguments)
        if name in ("attribute_exists", "attribute_not_exists"):
            if not isinstance(operands[0], Attribute | NestedValue):
                raise ValidationException(
                    f"Operator or function requires a document path; operator or function: {name}"
                )
            return Exists(operands[0]) if name == "attribute_exists" else NotExists(operands[0])
        if name == "attribute_type":
            return HasType(operands[0], _type_name(operands[1]))
        if name == "begins_with":
            _check_types(name, operands, frozenset({"S", "B"}))
            return BeginsWith(*operands)
        assert name == "contains"
        return Contains(*operands)

    def arguments(self, name: str, arguments: tuple[syntax.Operand, ...]) -> tuple[Operand, ...]:
        operands = tuple(map(self.operand, arguments))
        if len(operands) != _OPERANDS[name]:
            raise ValidationException(
                "Incorrect number of operands for operator or function; "
                f"operator or function: {name}, number of operands: {len(operands)}"
            )
        _check_distinct(name, operands)
        return operands

    def operands(self, trees: tuple[syntax.Operand, ...]) -> tuple[Operand, ...]:
        return tuple(map(self.operand, trees))

    def operand(self, tree: syntax.Operand) -> Operand:
        match tree:
            case syntax.ParsedPath():
                path = self.placeholders.path(tree)
                name = path[0]
                assert isinstance(name, str)
                self.attributes.add(name)
                return Attribute(name) if len(path) == 1 else NestedValue(path)
            case syntax.Value():
                return Constant(self.placeholders.value(tree))
            case syntax.Function(name, arguments):
                if name != "size":
                    # Only PartiQL's parser allows other functions here.
                    return Truth(self.function(name, arguments))
                (operand,) = self.arguments(name, arguments)
                type_name = _static_type(operand)
                if type_name in _SIZELESS_TYPES:
                    raise _wrong_type(name, type_name)
                return Size(operand)
            case _:
                raise AssertionError("a condition has no arithmetic")


def _static_type(operand: Operand) -> str | None:
    """The type of an operand, if known without an item."""
    if isinstance(operand, Constant):
        return data_type(operand.value)
    if isinstance(operand, Truth):
        return "BOOL"
    return "N" if isinstance(operand, Size) else None


def _check_types(operator: str, operands: tuple[Operand, ...], allowed: frozenset[str]) -> None:
    for operand in operands:
        type_name = _static_type(operand)
        if type_name is not None and type_name not in allowed:
            raise _wrong_type(operator, type_name)


def _wrong_type(operator: str, type_name: str) -> ValidationException:
    return ValidationException(
        "Incorrect operand type for operator or function; "
        f"operator or function: {operator}, operand type: {type_name}"
    )


def _check_distinct(operator: str, operands: tuple[Operand, ...]) -> None:
    first = operands[0]
    if isinstance(first, Attribute | NestedValue) and first in operands[1:]:
        path = (first.name,) if isinstance(first, Attribute) else first.path
        raise ValidationException(
            "The first operand must be distinct from the remaining operands for this operator "
            f"or function; operator: {operator}, first operand: {document_path.text(path)}"
        )


def _check_bounds(lower: Operand, upper: Operand) -> None:
    if not (isinstance(lower, Constant) and isinstance(upper, Constant)):
        return
    if data_type(lower.value) != data_type(upper.value):
        rule = "same data type for lower and upper bounds"
    else:
        order = compare(lower.value, upper.value)
        assert order is not None
        if order <= 0:
            return
        rule = "upper bound to be greater than or equal to lower bound"
    raise ValidationException(
        f"The BETWEEN operator requires {rule}; "
        f"lower bound operand: AttributeValue: {attribute_value.shown(lower.value)}, "
        f"upper bound operand: AttributeValue: {attribute_value.shown(upper.value)}"
    )


def _type_name(operand: Operand) -> str:
    """The type that the second operand of ``attribute_type`` names; it must be a value."""
    type_name = _static_type(operand)
    if not isinstance(operand, Constant) or type_name != "S":
        shown = type_name or "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}"
        raise _wrong_type("attribute_type", shown)
    wanted: str = operand.value["S"]
    if wanted not in TYPES:
        raise ValidationException(
            f"Invalid attribute type name found; type: {wanted}, "
            "valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}"
        )
    return wanted
