"""What a change of an item changes in a global index: which rows go there, and which come."""

from __future__ import annotations

from msgspec import Struct

from dynactor.model.values.stored_item import StoredItem
from dynactor.model.writes.change import IndexChange
from dynactor.storage import codec


class EntryChange(Struct, frozen=True, array_like=True, gc=False):
    """One row of an index after a change; no value for a row that is gone.

    ``position`` is the row's key behind the index's prefix, ``counter`` that of the change in
    its source log. ``replaced_bytes`` is the size of the entry that stood there before the change
    of the item, None if none did; so it is in an index that has followed all changes before.
    """

    counter: int
    position: bytes
    value: bytes | None
    replaced_bytes: int | None = None


class ItemRow(Struct, frozen=True, gc=False):
    """An item and the value of its row, which an index that holds whole items has too."""

    item: StoredItem
    value: bytes


def entry_changes(
    change: IndexChange, counter: int, table_key: bytes, item_row: ItemRow | None = None
) -> tuple[EntryChange, ...]:
    """The rows of an index that a change takes away and puts in.

    ``table_key`` is the item's encoded key without its hash.
    """
    old, new = change.old, change.new
    gone = None
    if old is not None and (new is None or change.moves):
        gone = EntryChange(counter, change.position_of(old, table_key), None, old.size_bytes)
    if new is None:
        assert gone is not None
        return (gone,)
    value = item_row.value if item_row and item_row.item is new else codec.encode(new)
    replaced_bytes = old.size_bytes if old is not None and gone is None else None
    put = EntryChange(counter, change.position_of(new, table_key), value, replaced_bytes)
    return (put,) if gone is None else (put, gone)
