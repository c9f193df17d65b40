"""Finds the range of a typical key condition without building a tree.

A typical condition is ``pk = :a``, alone or with one term on the sort key, with canonical values.
For any other condition, and for any fault, this module returns None. The caller then uses
``expressions.key_condition`` and ``key_range``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from dynactor.model.errors import ValidationException
from dynactor.model.expressions import syntax
from dynactor.model.expressions.parser import condition_tree
from dynactor.model.key_conditions import key_range
from dynactor.model.key_conditions.key_condition import TURNED, KeyOperator
from dynactor.model.key_conditions.key_range import KeyRange
from dynactor.model.keys import key as keys
from dynactor.model.keys.fast_key import READ
from dynactor.model.keys.key import KeySchema
from dynactor.model.limits import PARTITION_KEY_BYTES, PLACEHOLDER_BYTES, SORT_KEY_BYTES

_CACHED_TEXTS: Final = 1024
_MOST_TERMS: Final = 2


class _Term(Struct, frozen=True):
    """``name operator values``: an attribute name or placeholder, and placeholders of values."""

    name: str
    operator: KeyOperator
    values: tuple[str, ...]


class _Terms(Struct, frozen=True):
    """The terms of a text, and its numbers of placeholders."""

    terms: tuple[_Term, ...]
    names: int
    values: int


def partition_value(
    text: str,
    names: Mapping[str, str] | None,
    values: Mapping[str, Any] | None,
    schema: KeySchema,
) -> object:
    """The value of the partition key that a typical condition gives, not checked; else None."""
    terms = _parsed_terms(text)
    if terms is None or values is None or len(schema.partition) > 1:
        return None
    partition = schema.partition[0].name
    found = None
    for term in terms.terms:
        name: str | None = term.name
        if term.name[0] == "#":
            name = names.get(term.name) if names else None
        if name == partition:
            if term.operator != "=" or found is not None:
                return None
            found = values.get(term.values[0])
    return found


def partition_range(
    text: str,
    names: Mapping[str, str] | None,
    values: Mapping[str, Any] | None,
    schema: KeySchema,
) -> KeyRange | None:
    """The positions that a KeyConditionExpression selects in a table or index with this key.

    ``names`` and ``values`` are its placeholders, and no other expression's. None if the condition
    is unusual or faulty.
    """
    terms = _parsed_terms(text)
    if (
        terms is None
        or values is None
        or len(values) != terms.values
        or _count(names) != terms.names
        or len(schema.partition) > 1
        or len(schema.sort) > 1
    ):
        return None
    prefix = None
    sort_term = None
    partition = schema.partition[0].name
    for term in terms.terms:
        name: str | None = term.name
        if term.name[0] == "#":
            name = names.get(term.name) if names else None
        if name == partition and term.operator == "=" and prefix is None:
            prefix = _prefix(schema, values.get(term.values[0]))
            if prefix is None:
                # Without this return, a second term on the partition key could set the prefix.
                return None
        elif schema.sort and name == schema.sort[0].name and sort_term is None:
            sort_term = term
        else:
            return None
    if prefix is None:
        return None
    if sort_term is None:
        return key_range.beginning_with(prefix)
    return _within(prefix, sort_term, values, schema)


def _count(names: Mapping[str, str] | None) -> int:
    """The number of placeholders of names; -1 for an empty map, which is a fault."""
    return 0 if names is None else len(names) or -1


def _prefix(schema: KeySchema, value: Any) -> bytes | None:
    """The common prefix of all positions of a partition key."""
    kind = schema.partition[0].type
    raw = READ[kind](value)
    if not raw or len(raw) > PARTITION_KEY_BYTES:
        return None
    return keys.key_hash(raw) + keys.ended(raw, kind)


def _within(
    prefix: bytes, term: _Term, values: Mapping[str, Any], schema: KeySchema
) -> KeyRange | None:
    kind = schema.sort[0].type
    read = READ[kind]
    raws = []
    for name in term.values:
        raw = read(values.get(name))
        if not raw or len(raw) > SORT_KEY_BYTES:
            return None
        raws.append(raw)
    if term.operator == "begins_with":
        if kind == "N":
            return None
        return key_range.beginning_with(prefix + keys.escaped(raws[0]))
    if raws[0] > raws[-1]:
        # A BETWEEN with its bounds reversed.
        return None
    return key_range.within(prefix, term.operator, [keys.ended(raw, kind) for raw in raws])


@lru_cache(maxsize=_CACHED_TEXTS)
def _parsed_terms(text: str) -> _Terms | None:
    try:
        tree = condition_tree(text, "KeyConditionExpression")
    except ValidationException:
        return None
    parts = tree.conditions if isinstance(tree, syntax.ParsedAnd) else (tree,)
    if len(parts) > _MOST_TERMS:
        return None
    terms = [term for part in parts if (term := _parsed_term(part)) is not None]
    if len(terms) < len(parts):
        return None
    names = {term.name for term in terms if term.name[0] == "#"}
    values = {value for term in terms for value in term.values}
    if any(len(placeholder) > PLACEHOLDER_BYTES for placeholder in names | values):
        return None
    return _Terms(tuple(terms), len(names), len(values))


def _parsed_term(condition: syntax.Condition) -> _Term | None:
    match condition:
        case syntax.ParsedComparison("=" | "<" | "<=" | ">" | ">=" as operator, left, right):
            if isinstance(left, syntax.Value):
                return _made(TURNED[operator], right, left)
            return _made(operator, left, right)
        case syntax.ParsedBetween(operand, lower, upper):
            return _made("BETWEEN", operand, lower, upper)
        case syntax.Function("begins_with", (operand, prefix)):
            return _made("begins_with", operand, prefix)
        case _:
            return None


def _made(operator: KeyOperator, operand: syntax.Operand, *values: syntax.Operand) -> _Term | None:
    if not isinstance(operand, syntax.ParsedPath) or len(operand.parts) > 1:
        return None
    names = [value.name for value in values if isinstance(value, syntax.Value)]
    if len(names) < len(values):
        return None
    return _Term(str(operand.parts[0]), operator, tuple(names))
