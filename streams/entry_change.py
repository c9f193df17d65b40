"""The rows that a change of an item adds to and removes from a global index."""

from __future__ import annotations

from msgspec import Struct

from dynactor.model.values.stored_item import StoredItem
from dynactor.model.writes.change import IndexChange
from dynactor.storage import codec


class EntryChange(Struct, frozen=True, array_like=True, gc=False):
    """One row of an index after a change; None as value if the row is deleted.

    ``position`` is the row's key after the index's prefix, ``counter`` the change's counter in its
    source log. ``replaced_bytes`` is the size of the entry before the change, None if there was
    none. The size is right only if the index has applied all earlier changes.
    """

    counter: int
    position: bytes
    value: bytes | None
    replaced_bytes: int | None = None


class ItemRow(Struct, frozen=True, gc=False):
    """An item and its row's value; an index that projects whole items stores the same value."""

    item: StoredItem
    value: bytes


def entry_changes(
    change: IndexChange, counter: int, table_key: bytes, item_row: ItemRow | None = None
) -> tuple[EntryChange, ...]:
    """The rows of an index that a change removes and adds.

    ``table_key`` is the item's encoded key without its hash.
    """
    old, new = change.old, change.new
    gone = None
    if old is not None and (new is None or change.moves):
        gone = EntryChange(counter, change.encode_position(old, table_key), None, old.size_bytes)
    if new is None:
        assert gone is not None
        return (gone,)
    value = item_row.value if item_row and item_row.item is new else codec.encode(new)
    replaced_bytes = old.size_bytes if old is not None and gone is None else None
    put = EntryChange(counter, change.encode_position(new, table_key), value, replaced_bytes)
    return (put,) if gone is None else (put, gone)
