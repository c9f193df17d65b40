"""A data set: its rows, its keys, and its queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Index:
    """An order of a partition's rows: that of a local index, or of the table if it has no name."""

    name: str | None
    sort: str
    sort_type: str
    included: tuple[str, ...] | None = None  # besides the keys; None: all of a row

    def __str__(self) -> str:
        return self.name or "table"


@dataclass(frozen=True)
class Filter:
    """A filter expression, and the equivalent Python function."""

    expression: str
    values: dict[str, Any]
    holds: Callable[[Row], bool]

    def __str__(self) -> str:
        return self.expression


@dataclass(frozen=True)
class Projection:
    """A projection expression, and the equivalent Python function."""

    expression: str
    cut: Callable[[Row], Row]

    def __str__(self) -> str:
        return self.expression


@dataclass(frozen=True)
class Change:
    """An update expression that changes index keys of a row, and the equivalent Python function."""

    expression: str
    values: Callable[[Row], dict[str, Any]]
    make: Callable[[Row], None]


@dataclass(frozen=True)
class DataSet:
    """Rows of real data, and the requests on them.

    ``names`` are the placeholders that its expressions may use.
    """

    name: str
    read: Callable[[], list[Row]]
    row_count: int
    partition: str
    table: Index
    local_indexes: tuple[Index, ...]
    names: dict[str, str]
    filters: tuple[Filter, ...]
    projections: tuple[Projection, ...]
    change: Change

    def __str__(self) -> str:
        return self.name

    @property
    def indexes(self) -> tuple[Index, ...]:
        """All orders of the rows, first that of the table."""
        return (self.table, *self.local_indexes)

    def cases(self, kind: str) -> Sequence[Any]:
        """The values of a test's parameter with this name."""
        if kind == "text_index":
            return [index for index in self.indexes if index.sort_type == "S"]
        by_kind = {
            "index": self.indexes,
            "filtered": self.filters,
            "projection": self.projections,
        }
        return by_kind[kind]

    def key(self, row: Row) -> Row:
        """The row's key in the table."""
        return {name: row[name] for name in (self.partition, self.table.sort)}

    def held(self, rows: list[Row], index: Index) -> list[Row]:
        """The entries of these rows in an index."""
        if index.included is None:
            return rows
        names = {self.partition, self.table.sort, index.sort, *index.included}
        return [{name: value for name, value in row.items() if name in names} for row in rows]
