"""What a write did: the item before and after, and the same for each index it touches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeAlias

from model import capacity
from model.capacity import IndexKind, IndexUnits, Receipt
from model.index import IndexDefinition, entry, global_entry
from model.item import Item
from model.key import KeySchema
from model.stored_item import StoredItem
from model.table import TableDefinition

_FREE: Final = Receipt()

_EntryOf: TypeAlias = Callable[[IndexDefinition, KeySchema, Item], Item | None]


class IndexChange(NamedTuple):
    """The entry of an item in one index before and after; None where there is none."""

    kind: IndexKind
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
    local_changes: tuple[IndexChange, ...]
    attributes: Item | None
    receipt: Receipt


def index_changes(
    table: TableDefinition, old: StoredItem | None, new: StoredItem | None
) -> Iterator[IndexChange]:
    """How a change of an item changes the table's indexes.

    An index whose stored view stays as it was is left out.
    """
    for kind, index, entry_of in _indexes(table):
        old_entry = None if old is None else entry_of(index, table.key_schema, old.item)
        new_entry = None if new is None else entry_of(index, table.key_schema, new.item)
        if old_entry != new_entry:
            yield IndexChange(kind, index, _stored(old, old_entry), _stored(new, new_entry))


def _indexes(table: TableDefinition) -> Iterator[tuple[IndexKind, IndexDefinition, _EntryOf]]:
    """The indexes that hold entries, and how the entry of an item is found in each."""
    for index in table.local_indexes:
        yield "LocalSecondaryIndexes", index, entry
    for global_index in table.global_indexes:
        if global_index.holds_entries:
            yield "GlobalSecondaryIndexes", global_index.definition, global_entry


def _stored(stored: StoredItem | None, projected: Item | None) -> StoredItem | None:
    if stored is None or projected is None:
        return None
    if projected is stored.item:
        return stored
    return StoredItem.of(projected, stored.version)


def removal(table: TableDefinition, old: StoredItem) -> Change:
    """The deletion of an item by the system: nobody is told of it, and nobody pays (S121)."""
    local_changes = tuple(
        IndexChange("LocalSecondaryIndexes", index, _stored(old, projected), None)
        for index in table.local_indexes
        if (projected := entry(index, table.key_schema, old.item)) is not None
    )
    return Change(old, None, local_changes, None, _FREE)


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
                change.kind,
                write_units=_index_write_units(change),
            )
            for change in changes
        ),
    )


def _index_write_units(change: IndexChange) -> int:
    _, index, old, new = change
    if old is None or new is None:
        only = old or new
        assert only is not None
        return capacity.write_units(only.size_bytes)
    if index.key_schema.key_of(old.item) == index.key_schema.key_of(new.item):
        return capacity.write_units(max(old.size_bytes, new.size_bytes))
    return capacity.write_units(old.size_bytes) + capacity.write_units(new.size_bytes)
