"""Parsed and checked statements with their values; the table is not resolved yet."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from dynactor.model.expressions.condition import Condition
from dynactor.model.expressions.projection import Projector
from dynactor.model.expressions.update import BoundUpdate as UpdateExpression
from dynactor.model.values import document_path
from dynactor.model.values.document_path import Path
from dynactor.model.values.item import Item
from dynactor.model.writes.write import ReturnValues


class OrderTerm(Struct, frozen=True):
    """A term of ORDER BY; ``fault`` is the message if the term is not a name."""

    name: str
    is_descending: bool
    fault: str | None = None


class SelectStatement(Struct, frozen=True):
    """A SELECT; ``nested`` are the attributes with a path into them, such as ``a`` of ``a.b``."""

    table: str
    index: str | None
    projector: Selection | None
    where: Condition | None
    order: tuple[OrderTerm, ...]
    nested: frozenset[str]


class InsertStatement(Struct, frozen=True):
    """An INSERT; with ``if_not_exists`` an existing item is not an error."""

    table: str
    item: Item
    if_not_exists: bool


class UpdateStatement(Struct, frozen=True):
    """An UPDATE."""

    table: str
    update: UpdateExpression
    where: Condition
    return_values: ReturnValues
    nested: frozenset[str]


class DeleteStatement(Struct, frozen=True):
    """A DELETE; ``returning`` is the argument of RETURNING, such as ``ALL OLD``."""

    table: str
    where: Condition
    returning: str | None
    nested: frozenset[str]


class ExistsStatement(Struct, frozen=True):
    """An EXISTS, which only transactions allow."""

    select: SelectStatement


Statement: TypeAlias = (
    SelectStatement | InsertStatement | UpdateStatement | DeleteStatement | ExistsStatement
)


class Selection(Projector, frozen=True):
    """The columns of a SELECT; each becomes an attribute named by the end of its path."""

    columns: tuple[tuple[str, Path], ...]

    def project(self, item: Item) -> Item:
        """The columns of an item."""
        found: Item = {}
        for name, path in self.columns:
            value = document_path.get(item, path)
            if value is not None:
                found[name] = value
        return found
