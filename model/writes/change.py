"""The effect of a write: the item before and after, and the index entries that change."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dynactor.model import capacity
from dynactor.model.capacity import EntryWrite, IndexKind, ItemWrite, Receipt
from dynactor.model.definitions.index import IndexDefinition, entry, entry_position, global_entry
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.keys.key import KeySchema
from dynactor.model.values.item import Item
from dynactor.model.values.stored_item import StoredItem

_FREE: Final = Receipt()


class IndexChange(Struct, gc=False):
    """An item's entry in one index before and after a write; None for no entry.

    ``moves`` is set if both entries exist and have different index keys. Immutable, apart from
    cached positions.
    """

    kind: IndexKind
    definition: IndexDefinition
    old: StoredItem | None
    new: StoredItem | None
    moves: bool = False
    _old_position: bytes | None = None
    _new_position: bytes | None = None

    def encode_position(self, entry: StoredItem, table_key: bytes) -> bytes:
        """The position of the old or the new entry in a global index: see ``entry_position``.

        Computed once, for the units of the write and for the rows that it changes.
        """
        if entry is self.new:
            if self._new_position is None:
                self._new_position = entry_position(self.definition, entry.item, table_key)
            return self._new_position
        if self._old_position is None:
            self._old_position = entry_position(self.definition, entry.item, table_key)
        return self._old_position


class Change(Struct, frozen=True, gc=False):
    """The outcome of a decided write.

    ``old is new`` if the write changed nothing. ``attributes`` is the answer to ReturnValues; None
    if the answer has no attributes.
    """

    old: StoredItem | None
    new: StoredItem | None
    local_changes: tuple[IndexChange, ...]
    attributes: Item | None
    receipt: Receipt
    # None: not computed yet.
    global_changes: tuple[IndexChange, ...] | None = None


def local_changes(
    table: TableDefinition, old: StoredItem | None, new: StoredItem | None
) -> tuple[IndexChange, ...]:
    """The changes of local indexes for a change of an item, without unchanged entries."""
    changes: tuple[IndexChange, ...] = ()
    for index in table.local_indexes:
        change = _index_change("LocalSecondaryIndexes", index, table.key_schema, old, new)
        if change is not None:
            changes += (change,)
    return changes


def global_changes(
    table: TableDefinition, old: StoredItem | None, new: StoredItem | None
) -> tuple[IndexChange, ...]:
    """The changes of the global indexes that writes maintain, for a change of an item."""
    if not table.global_indexes:
        return ()
    changes = []
    for index in table.global_indexes:
        if index.holds_entries:
            change = global_change(index.definition, table.key_schema, old, new)
            if change is not None:
                changes.append(change)
    return tuple(changes)


def global_change(
    index: IndexDefinition, table_key: KeySchema, old: StoredItem | None, new: StoredItem | None
) -> IndexChange | None:
    """The change of one global index for a change of an item; None if unchanged."""
    return _index_change("GlobalSecondaryIndexes", index, table_key, old, new)


def _index_change(
    kind: IndexKind,
    index: IndexDefinition,
    table_key: KeySchema,
    old: StoredItem | None,
    new: StoredItem | None,
) -> IndexChange | None:
    make_entry = entry if kind == "LocalSecondaryIndexes" else global_entry
    old_item = None if old is None else old.item
    new_item = None if new is None else new.item
    old_entry = None if old_item is None else make_entry(index, table_key, old_item)
    new_entry = None if new_item is None else make_entry(index, table_key, new_item)
    if old_entry == new_entry:
        return None
    moves = False
    if old_entry is not None and new_entry is not None:
        for name in index.key_names:
            if old_entry[name] != new_entry[name]:
                moves = True
                break
    # An entry that is the whole item shares the stored form of the item.
    return IndexChange(
        kind,
        index,
        old if old_entry is old_item else _stored(old, old_entry),
        new if new_entry is new_item else _stored(new, new_entry),
        moves,
    )


def _stored(stored: StoredItem | None, projected: Item | None) -> StoredItem | None:
    if stored is None or projected is None:
        return None
    return StoredItem.of(projected, stored.version)


def give_version(change: Change, version: int) -> None:
    """Set a change's version once known. No other code has read the new item or entries."""
    if change.new is not None:
        change.new.version = version
    for one in change.local_changes:
        if one.new is not None:
            one.new.version = version
    for one in change.global_changes or ():
        if one.new is not None:
            one.new.version = version


def removal(table: TableDefinition, old: StoredItem) -> Change:
    """The deletion of an item by the system, which costs no units (S121)."""
    return Change(old, None, local_changes(table, old, None), None, _FREE)


def restoration(table: TableDefinition, new: StoredItem) -> Change:
    """The insertion of an item by a restore, which costs no units."""
    return Change(None, new, local_changes(table, None, new), None, _FREE)


def write_receipt(
    old: StoredItem | None, new: StoredItem | None, changes: tuple[IndexChange, ...]
) -> Receipt:
    """The cost of a write: the larger image of the item, and each index write (S50-S56)."""
    # One loop without calls of helpers, because every write makes a receipt.
    entries: tuple[EntryWrite, ...] = ()
    for change in changes:
        moves = change.moves
        old_entry, new_entry = change.old, change.new
        old_bytes = None if old_entry is None else old_entry.size_bytes
        new_bytes = None if new_entry is None else new_entry.size_bytes
        units = _entry_units(old_bytes, new_bytes, moves=moves)
        name, kind = change.definition.name, change.kind
        entries += (EntryWrite(name, kind, 0.0, units, old_bytes, new_bytes, moves),)
    old_bytes = None if old is None else old.size_bytes
    new_bytes = None if new is None else new.size_bytes
    units = capacity.write_units(max(old_bytes or 0, new_bytes or 0))
    work = ItemWrite(old_bytes, new_bytes, units, entries)
    return Receipt(0.0, units, entries, (work,))


def refused_receipt(old: StoredItem | None, put_bytes: int | None = None) -> Receipt:
    """The cost of a write whose condition is false, at least 1 unit.

    The write is charged for the larger of the existing item and the item to put, and nothing for
    indexes. Source: Developer Guide, "Working with items and attributes", "Conditional writes".
    """
    old_bytes = _size_bytes(old)
    units = capacity.write_units(max(old_bytes or 0, put_bytes or 0))
    work = ItemWrite(old_bytes, put_bytes, units, refused=True)
    return Receipt(write_units=units, work=(work,))


def refused_change(receipt: Receipt) -> Change:
    """A write with a false condition, as a change that costs units."""
    return Change(None, None, (), None, receipt, ())


def _entry_units(old_bytes: int | None, new_bytes: int | None, *, moves: bool) -> int:
    """The units of an index change: the sum of ``entry_writes``."""
    if moves:
        return capacity.write_units(old_bytes or 0) + capacity.write_units(new_bytes or 0)
    return capacity.write_units(max(old_bytes or 0, new_bytes or 0))


def _size_bytes(stored: StoredItem | None) -> int | None:
    return None if stored is None else stored.size_bytes


def entry_writes(change: IndexChange) -> tuple[tuple[StoredItem, int], ...]:
    """The entries that an index change writes, and the units of each.

    An entry whose key changes is deleted at one position and put at another, which are two writes.
    """
    old, new = change.old, change.new
    if old is not None and new is not None and change.moves:
        return (
            (old, capacity.write_units(old.size_bytes)),
            (new, capacity.write_units(new.size_bytes)),
        )
    written = new or old
    assert written is not None, "a change has an entry before or after"
    size_bytes = max(old.size_bytes if old else 0, new.size_bytes if new else 0)
    return ((written, capacity.write_units(size_bytes)),)
