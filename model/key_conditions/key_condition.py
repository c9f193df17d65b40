"""Key conditions: the part of an item collection that a Query reads.

There are two steps, as in DynamoDB. ``bind_key_condition`` needs only the request, and reports
faults before the table is read. ``KeyTerms.on`` compares the terms with the key of the table or
index, after the check for unused placeholders.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from dynactor.model.errors import ValidationException, invalid_value
from dynactor.model.expressions import condition
from dynactor.model.expressions.condition import Attribute, Constant, NestedValue, Node, Operand
from dynactor.model.expressions.condition_binding import parse_condition
from dynactor.model.expressions.parser import invalid
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.values.attribute_value import AttributeValue, data_type

KeyOperator: TypeAlias = Literal["=", "<", "<=", ">", ">=", "BETWEEN", "begins_with"]


class SortCondition(Struct, frozen=True):
    """A condition on one key attribute: BETWEEN has two values, any other operator one."""

    name: str
    operator: KeyOperator
    values: tuple[AttributeValue, ...]


class KeyCondition(Struct, frozen=True):
    """The values of all partition attributes, and the conditions on sort attributes.

    Sort conditions are in the order of the key; all but the last are equalities.
    """

    partition: tuple[AttributeValue, ...]
    sort: tuple[SortCondition, ...] = ()


# Two conditions on an index with one key attribute have an error of their own.
_TWO: Final = 2


class KeyTerms(Struct, frozen=True):
    """A key condition that has not been compared with a key yet."""

    root: Node

    def on(self, schema: KeySchema, *, is_of_index: bool = False) -> KeyCondition:
        """The condition on this key of a table or index; raises ``ValidationException``."""
        terms = self.by_name()
        if len(terms) > len(schema.attributes):
            if is_of_index and len(terms) == _TWO:
                raise _unsupported()
            raise ValidationException(
                f"The number of query conditions ({len(terms)}) exceeds the number of key "
                f"attributes defined in the schema ({len(schema.attributes)})"
            )
        return key_condition(terms, schema)

    def by_name(self) -> dict[str, SortCondition]:
        """The terms by the names of their attributes; raises ``ValidationException``."""
        terms: dict[str, SortCondition] = {}
        for node in conjuncts(self.root):
            term = _term(node)
            if term.name in terms:
                raise invalid(
                    "KeyConditionExpression",
                    "KeyConditionExpressions must only contain one condition per key",
                )
            terms[term.name] = term
        return terms


def bind_key_condition(text: str, placeholders: Placeholders) -> KeyTerms:
    """Parse and bind a KeyConditionExpression; raises ``ValidationException``."""
    return KeyTerms(parse_condition(text, placeholders, kind="KeyConditionExpression").root)


COMPARATORS: Final[dict[tuple[int, ...], KeyOperator]] = {
    (-1,): "<",
    (-1, 0): "<=",
    (1,): ">",
    (0, 1): ">=",
}
# The operator of the same condition after swapping its operands: ``:v < name`` is ``name > :v``.
TURNED: Final[dict[KeyOperator, KeyOperator]] = {
    "=": "=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}
_UNSUPPORTED: Final[dict[type, str]] = {
    condition.Or: "OR",
    condition.Not: "NOT",
    condition.NotEqual: "<>",
    condition.In: "IN",
    condition.Exists: "attribute_exists",
    condition.NotExists: "attribute_not_exists",
    condition.HasType: "attribute_type",
    condition.Contains: "contains",
}


def equal_names(filter_condition: condition.Condition) -> set[str]:
    """The attributes that a condition compares for equality with a value: candidates for a key."""
    names = set()
    for node in conjuncts(filter_condition.root):
        match node:
            case condition.Equal(condition.Attribute(name), condition.Constant()) | condition.Equal(
                condition.Constant(), condition.Attribute(name)
            ):
                names.add(name)
    return names


def conjuncts(node: Node) -> list[Node]:
    """The conditions of a conjunction, or the single condition itself."""
    if not isinstance(node, condition.And):
        return [node]
    return [part for conjunct in node.conditions for part in conjuncts(conjunct)]


def _term(node: Node) -> SortCondition:
    unsupported = _UNSUPPORTED.get(type(node))
    if unsupported is not None:
        raise ValidationException(f"Invalid operator used in KeyConditionExpression: {unsupported}")
    if isinstance(node, condition.Between):
        operator: KeyOperator = "BETWEEN"
        operands: tuple[Operand, ...] = (node.operand, node.lower, node.upper)
    elif isinstance(node, condition.BeginsWith):
        operator = "begins_with"
        operands = (node.operand, node.prefix)
    else:
        assert isinstance(node, condition.Equal | condition.Ordered)
        operator = COMPARATORS[node.signs] if isinstance(node, condition.Ordered) else "="
        operands = (node.left, node.right)
        if isinstance(node.left, Constant) and not isinstance(node.right, Constant):
            operator = TURNED[operator]
            operands = (node.right, node.left)
    if operator in ("BETWEEN", "begins_with") and not isinstance(
        operands[0], Attribute | NestedValue
    ):
        _check_no_operation(operands[:1])
        raise ValidationException(
            f"Invalid condition in KeyConditionExpression: {operator} operator must have the "
            "key attribute as its first operand"
        )
    return _sort_term(operator, operands)


def _sort_term(operator: KeyOperator, operands: tuple[Operand, ...]) -> SortCondition:
    name: str | None = None
    values: list[AttributeValue] = []
    for operand in operands:
        if isinstance(operand, Constant):
            values.append(operand.value)
            continue
        _check_no_operation((operand,))
        if name is not None:
            raise ValidationException(
                "Invalid condition in KeyConditionExpression: Multiple attribute names used in "
                "one condition"
            )
        if isinstance(operand, NestedValue):
            raise ValidationException(
                "KeyConditionExpressions cannot have conditions on nested attributes"
            )
        assert isinstance(operand, Attribute)
        name = operand.name
    if name is None:
        raise ValidationException(
            "Invalid condition in KeyConditionExpression: No key attribute specified"
        )
    return SortCondition(name, operator, tuple(values))


def _check_no_operation(operands: tuple[Operand, ...]) -> None:
    if any(isinstance(operand, condition.Size) for operand in operands):
        raise ValidationException("KeyConditionExpressions cannot contain nested operations")


def key_condition(terms: dict[str, SortCondition], schema: KeySchema) -> KeyCondition:
    """Compare the terms, by attribute name, with a key; raises ``ValidationException``."""
    if len(schema.partition) > 1 or len(schema.sort) > 1:
        _check_composite(terms, schema)
    else:
        _check_simple(terms, schema)
    return KeyCondition(
        tuple(terms[attribute.name].values[0] for attribute in schema.partition),
        tuple(terms[attribute.name] for attribute in schema.sort if attribute.name in terms),
    )


# The number of terms for a key of one partition and at most one sort attribute.
_SIMPLE_TERMS: Final = (1, 2)


def _check_simple(terms: dict[str, SortCondition], schema: KeySchema) -> None:
    if len(terms) not in _SIMPLE_TERMS:
        raise ValidationException("Conditions can be of length 1 or 2 only")
    if len(terms) > len(schema.attributes):
        raise _unsupported()
    for attribute in schema.attributes:
        is_partition = attribute in schema.partition
        term = terms.get(attribute.name)
        if term is None:
            if is_partition or len(terms) > 1:
                raise _missed(attribute)
            continue
        _check_values(term, attribute)
        if is_partition and term.operator != "=":
            raise _unsupported()


def _check_composite(terms: dict[str, SortCondition], schema: KeySchema) -> None:
    if len(terms) > len(schema.attributes):
        raise _unsupported()
    names = [attribute.name for attribute in schema.attributes]
    if any(name not in names for name in terms):
        raise ValidationException("Query condition missed key schema element")
    for attribute in schema.attributes:
        if attribute.name in terms:
            _check_values(terms[attribute.name], attribute)
    lacking = [name for name in _names(schema.partition) if not _is_equality(terms.get(name))]
    if lacking:
        raise ValidationException(
            f"HASH key attributes {', '.join(lacking)} must have equality conditions specified "
            "in the query"
        )
    named = [name for name in _names(schema.sort) if name in terms]
    if not named:
        return
    before = _names(schema.sort)[: _names(schema.sort).index(named[-1])]
    lacking = [name for name in before if not _is_equality(terms.get(name))]
    if lacking:
        raise ValidationException(
            f"RANGE key attributes {', '.join(lacking)} must have equality conditions specified "
            f"in the query because a condition is present on key attribute {named[-1]}"
        )


def _names(attributes: tuple[KeyAttribute, ...]) -> list[str]:
    return [attribute.name for attribute in attributes]


def _is_equality(term: SortCondition | None) -> bool:
    return term is not None and term.operator == "="


def _missed(attribute: KeyAttribute) -> ValidationException:
    return ValidationException(f"Query condition missed key schema element: {attribute.name}")


def _unsupported() -> ValidationException:
    return ValidationException("Query key condition not supported")


def _check_values(term: SortCondition, attribute: KeyAttribute) -> None:
    for value in term.values:
        if data_type(value) != attribute.type:
            raise invalid_value("Condition parameter type does not match schema type")
        if value[attribute.type] == "" and attribute.type != "N":
            kind = "string" if attribute.type == "S" else "binary"
            raise ValidationException(
                "One or more parameter values are not valid. The AttributeValue for a key "
                f"attribute cannot contain an empty {kind} value. Key: {attribute.name}"
            )
