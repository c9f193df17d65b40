"""What a change of an item changes in a global index: which rows go there, and which come."""

from __future__ import annotations

from msgspec import Struct

from model.change import IndexChange
from model.index import entry_position
from model.stored_item import StoredItem
from storage import codec


class EntryChange(Struct, frozen=True, array_like=True, gc=False):
    """One row of an index after a change; no value for a row that is gone.

    ``position`` is the row's key behind the index's prefix, ``counter`` that of the change in
    its source log.
    """

    counter: int
    position: bytes
    value: bytes | None


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
    index, old, new = change.definition, change.old, change.new
    if new is None:
        assert old is not None
        return (EntryChange(counter, entry_position(index, old.item, table_key), None),)
    value = item_row.value if item_row and item_row.item is new else codec.encode(new)
    put = EntryChange(counter, entry_position(index, new.item, table_key), value)
    if old is None or not change.moves:
        return (put,)
    return (put, EntryChange(counter, entry_position(index, old.item, table_key), None))
