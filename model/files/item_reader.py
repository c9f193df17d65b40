"""Checks an item from a file, and makes the row of the item."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import structs

from dynactor.model.definitions.index import check_size_with_entries
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.keys import fast_key
from dynactor.model.keys import key as keys
from dynactor.model.tables.key_rules import check_index_keys, check_item_key
from dynactor.model.values import item as items


class ReadItem(NamedTuple):
    """A checked item: its position in the table, its size, and its stored form."""

    position: bytes
    size_bytes: int
    data: bytes


class ItemReader:
    """Checks items as PutItem does, including the keys of the table's indexes."""

    def __init__(self, definition: TableDefinition, *, fills_indexes: bool = True) -> None:
        """``fills_indexes``: the items are read before the global indexes are filled.

        Such an index would accept any value otherwise.
        """
        self._schema = definition.key_schema
        self._encode_parts = fast_key.encode_parts(definition.key_schema)
        self._definition = definition
        if fills_indexes:
            self._definition = structs.replace(
                definition,
                global_indexes=tuple(
                    structs.replace(index, status="ACTIVE", backfilling=None)
                    for index in definition.global_indexes
                ),
            )

    def read(self, item: dict[str, Any]) -> ReadItem:
        """Check an item, and make it canonical in place; raises as PutItem."""
        size_bytes, (partition_key, sort_key) = self.check(item)
        return ReadItem(partition_key + sort_key, size_bytes, items.encode(item))

    def check(self, item: dict[str, Any]) -> tuple[int, tuple[bytes, bytes]]:
        """Check an item as ``read`` does; returns its size in bytes and its encoded key parts."""
        size_bytes = items.check(item)
        items.check_size(size_bytes)
        parts = self._encode_parts(item)
        if parts is None:
            check_item_key(self._schema, item)
            parts = keys.encoded_parts(self._schema, item)
        definition = self._definition
        if definition.global_indexes or definition.local_indexes:
            check_index_keys(definition, item)
            check_size_with_entries(definition.local_indexes, self._schema, item, size_bytes)
        return size_bytes, parts
