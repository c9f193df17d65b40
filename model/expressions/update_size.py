"""The size that DynamoDB counts for an UpdateExpression, besides the resulting item's size."""

from __future__ import annotations

from typing import Final

from dynactor.model.expressions.update import (
    Add,
    Attribute,
    Constant,
    Difference,
    IfNotExists,
    ListAppend,
    Operand,
    Set,
    Sum,
    Update,
)
from dynactor.model.values import attribute_value
from dynactor.model.values.document_path import Path

# Overhead of an expression, and of each SET or ADD in it.
_EXPRESSION_BYTES: Final = 3
_ACTION_BYTES: Final = 19


def expression_bytes(update: Update) -> int:
    """The bytes that UpdateItem counts for its UpdateExpression.

    UpdateItem refuses an update if this size or the resulting item's size exceeds 400 KB. Other
    updates (AttributeUpdates, transactions, PartiQL) count only the resulting item.

    The size is 3 bytes, and for each SET or ADD 19 bytes, the names in its path, and its operands.
    A value counts its own size, a path the size of its names, a function or a sum both operands.

    Measured on AWS in 2026, in us-east-1 and 21 other regions: the 3 and the 19 bytes, and the
    sizes in ``SET b = :value``, which takes at most 409,577 bytes. Inferred: the sizes of paths and
    of other operands. Ten regions, such as us-east-2 and eu-west-1, count only the resulting item;
    this server follows us-east-1 in every region.
    """
    size_bytes = _EXPRESSION_BYTES
    for action in update.actions:
        if isinstance(action, Set):
            size_bytes += _ACTION_BYTES + _path_bytes(action.path) + _operand_bytes(action.operand)
        elif isinstance(action, Add):
            value_bytes = attribute_value.size_bytes(action.value)
            size_bytes += _ACTION_BYTES + _path_bytes(action.path) + value_bytes
    return size_bytes


def _path_bytes(path: Path) -> int:
    """The size of a path's names; positions in lists have none."""
    return sum(len(part.encode()) for part in path if isinstance(part, str))


def _operand_bytes(operand: Operand) -> int:
    match operand:
        case Constant(value):
            return attribute_value.size_bytes(value)
        case Attribute(path):
            return _path_bytes(path)
        case IfNotExists(path, otherwise):
            return _path_bytes(path) + _operand_bytes(otherwise)
        case ListAppend(first, second) | Sum(first, second) | Difference(first, second):
            return _operand_bytes(first) + _operand_bytes(second)
