"""Checks an item from a file, and makes the row of the item."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import structs

from dynactor.model.keys import fast_key
from dynactor.model.keys import key as keys
from dynactor.model.keys.key_rules import check_index_keys, check_item_key
from dynactor.model.tables.table import TableDefinition
from dynactor.model.values import item as items


class ReadItem(NamedTuple):
    """A checked item: its position in the table, its size, and its stored form."""

    position: bytes
    size_bytes: int
    data: bytes


class ItemReader:
    """Checks items as PutItem does, including the keys of the table's indexes."""

    def __init__(self, definition: TableDefinition) -> None:
        self._schema = definition.key_schema
        self._parts_of = fast_key.parts_of(definition.key_schema)
        # An index that is not filled yet would accept any value.
        self._definition = structs.replace(
            definition,
            global_indexes=tuple(
                structs.replace(index, status="ACTIVE", backfilling=None)
                for index in definition.global_indexes
            ),
        )

    def read(self, item: dict[str, Any]) -> ReadItem:
        """Check an item, and make it canonical in place.

        Raises:
            ValidationException, SerializationException: the errors of PutItem.
        """
        size_bytes = items.check(item)
        items.check_size(size_bytes)
        parts = self._parts_of(item)
        if parts is None:
            check_item_key(self._schema, item)
            position = keys.encode(self._schema, item)
        else:
            position = parts[0] + parts[1]
        if self._definition.global_indexes:
            check_index_keys(self._definition, item)
        return ReadItem(position, size_bytes, items.encode(item))
