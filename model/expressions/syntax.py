"""The trees of expressions as written, before their placeholders are bound.

A tree depends only on the text, so one tree serves every request with that text.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Comparator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">="]
ArithmeticOperator: TypeAlias = Literal["+", "-"]


class ParsedPath(Struct, frozen=True):
    """A document path. A part that begins with ``#`` is a placeholder, never an attribute name."""

    parts: tuple[str | int, ...]


class Value(Struct, frozen=True):
    """A placeholder of a value, ``:x``."""

    name: str


class Function(Struct, frozen=True):
    """A call of a function, whose name and operands are not checked yet."""

    name: str
    operands: tuple[Operand, ...]


class Arithmetic(Struct, frozen=True):
    """A sum or difference, on the right side of SET."""

    operator: ArithmeticOperator
    left: Operand
    right: Operand


Operand: TypeAlias = ParsedPath | Value | Function | Arithmetic


class ParsedComparison(Struct, frozen=True):
    """Two operands compared."""

    comparator: Comparator
    left: Operand
    right: Operand


class ParsedBetween(Struct, frozen=True):
    """An operand within two bounds."""

    operand: Operand
    lower: Operand
    upper: Operand


class ParsedIn(Struct, frozen=True):
    """An operand equal to one of a list."""

    operand: Operand
    choices: tuple[Operand, ...]


class ParsedNot(Struct, frozen=True):
    """A negated condition."""

    condition: Condition


class ParsedAnd(Struct, frozen=True):
    """Conditions that must all hold."""

    conditions: tuple[Condition, ...]


class ParsedOr(Struct, frozen=True):
    """Conditions joined by OR."""

    conditions: tuple[Condition, ...]


# A function can be a condition by itself, ``attribute_exists(a)``.
Condition: TypeAlias = (
    ParsedComparison | ParsedBetween | ParsedIn | ParsedNot | ParsedAnd | ParsedOr | Function
)


class ParsedSet(Struct, frozen=True):
    """``SET path = operand``."""

    path: ParsedPath
    operand: Operand


class ParsedRemove(Struct, frozen=True):
    """``REMOVE path``."""

    path: ParsedPath


class ParsedAdd(Struct, frozen=True):
    """``ADD path value``."""

    path: ParsedPath
    value: Value


class ParsedDelete(Struct, frozen=True):
    """``DELETE path value``."""

    path: ParsedPath
    value: Value


Action: TypeAlias = ParsedSet | ParsedRemove | ParsedAdd | ParsedDelete


class Clause(Struct, frozen=True):
    """One section of an update: its keyword in capitals, and its actions."""

    keyword: str
    actions: tuple[Action, ...]
