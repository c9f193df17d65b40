"""What a write did: the item before and after, and the same for each index it touches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from model import capacity
from model.capacity import IndexUnits, Receipt
from model.index import IndexDefinition, entry
from model.item import Item
from model.stored_item import StoredItem
from model.table import TableDefinition


class IndexChange(NamedTuple):
    """The entry of an item in one index before and after; None where there is none."""

    definition: IndexDefinition
    old: StoredItem | None
    new: StoredItem | None


class Change(NamedTuple):
    """The outcome of a decided write.

    ``old is new`` where the write changed nothing. ``attributes`` is what ReturnValues asks
    for; None where there is nothing to return.
    """

    old: StoredItem | None
    new: StoredItem | None
    index_changes: tuple[IndexChange, ...]
    attributes: Item | None
    receipt: Receipt


def index_changes(
    table: TableDefinition, old: StoredItem | None, new: StoredItem | None
) -> Iterator[IndexChange]:
    """How a change of an item changes the table's local indexes.

    An index whose stored view stays as it was is left out.
    """
    for index in table.local_indexes:
        old_entry = _stored_entry(table, index, old)
        new_entry = _stored_entry(table, index, new)
        if old_entry is None and new_entry is None:
            continue
        if old_entry and new_entry and old_entry.item == new_entry.item:
            continue
        yield IndexChange(index, old_entry, new_entry)


def _stored_entry(
    table: TableDefinition, index: IndexDefinition, stored: StoredItem | None
) -> StoredItem | None:
    if stored is None:
        return None
    projected = entry(index, table.key_schema, stored.item)
    if projected is None:
        return None
    if projected is stored.item:
        return stored
    return StoredItem.of(projected, stored.version)


def write_receipt(
    old: StoredItem | None, new: StoredItem | None, changes: tuple[IndexChange, ...]
) -> Receipt:
    """What a write costs: the larger image of the item, and each index write (S50-S56)."""
    size_bytes = max(old.size_bytes if old else 0, new.size_bytes if new else 0)
    return Receipt(
        write_units=capacity.write_units(size_bytes),
        indexes=tuple(
            IndexUnits(
                change.definition.name,
                "LocalSecondaryIndexes",
                write_units=_index_write_units(change),
            )
            for change in changes
        ),
    )


def _index_write_units(change: IndexChange) -> int:
    index, old, new = change
    if old is None or new is None:
        only = old or new
        assert only is not None
        return capacity.write_units(only.size_bytes)
    if index.key_schema.key_of(old.item) == index.key_schema.key_of(new.item):
        return capacity.write_units(max(old.size_bytes, new.size_bytes))
    return capacity.write_units(old.size_bytes) + capacity.write_units(new.size_bytes)
