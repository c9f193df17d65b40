"""The columns of CSV files, each with an attribute's name and the type of its cells.

Attributes are strings unless the table's definition declares their type, as in AWS's ImportTable.
The header may give another type to each column: `total:N`. This form applies only if the header
lacks a key of the table, so AWS's ImportTable would import no record of such a file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from dynactor.model.definitions.table import TableDefinition
from dynactor.model.values.attribute_value import TYPES

# The type of a column whose cells are whole values, with their types.
ANY: Final = "JSON"
COLUMN_TYPES: Final = (*TYPES, ANY)

_TEXT_TYPES: Final = frozenset("SNB")
_BOOLEANS: Final = {"true": True, "false": False}
_MARK: Final = ":"

_decode = msgspec.json.Decoder().decode


def csv_types(definition: TableDefinition, chosen: Mapping[str, str] | None = None) -> CsvTypes:
    """The types of CSV files for a table; ``chosen`` are those of some columns."""
    return CsvTypes(
        [each.name for each in definition.key_schema.attributes],
        {each.name: each.type for each in definition.attribute_definitions},
        chosen or {},
    )


class BadHeader(Exception):
    """A header whose columns have no distinct names."""


class BadCell(Exception):
    """A cell that has no value of its column's type."""


class CsvColumn(NamedTuple):
    """The name of an attribute, and the type of the column's cells."""

    name: str
    type: str

    def value(self, cell: str) -> dict[str, Any]:
        """The value of a cell, not checked further; raises ``BadCell``."""
        if self.type in _TEXT_TYPES:
            return {self.type: cell}
        if self.type in ("BOOL", "NULL"):
            if cell not in _BOOLEANS:
                raise BadCell(f"{self.name}: the cell is neither true nor false")
            return {self.type: _BOOLEANS[cell]}
        try:
            content = _decode(cell)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise BadCell(f"{self.name}: the cell is not DynamoDB JSON: {error}") from None
        if self.type != ANY:
            return {self.type: content}
        if type(content) is not dict:
            raise BadCell(f'{self.name}: the cell is not a value such as {{"N": "1"}}')
        return content


class CsvTypes(NamedTuple):
    """The sources of the columns' types: the table's keys, its declared types, and chosen types."""

    keys: Collection[str] = ()
    declared: Mapping[str, str] = {}
    chosen: Mapping[str, str] = {}

    def columns(self, header: Sequence[str]) -> Sequence[CsvColumn]:
        """The columns of a header; raises ``BadHeader`` if names are missing or repeated."""
        columns = self._typed(header) or [
            CsvColumn(name, self.declared.get(name, "S")) for name in header
        ]
        names = {column.name for column in columns}
        if len(names) < len(columns):
            raise BadHeader("a column name occurs twice in the header")
        if not all(names):
            raise BadHeader("a column of the header has no name")
        for name in self.chosen:
            if name not in names:
                raise BadHeader(f"the header has no column {name}")
        return [CsvColumn(name, self.chosen.get(name, type_name)) for name, type_name in columns]

    def _typed(self, header: Sequence[str]) -> list[CsvColumn]:
        """The columns of a header that gives each column a type; none for other headers."""
        if set(self.keys) <= set(header):
            return []
        parts = [cell.rpartition(_MARK) for cell in header]
        if not all(type_name in COLUMN_TYPES and mark for _, mark, type_name in parts):
            return []
        return [CsvColumn(name, type_name) for name, _, type_name in parts]
