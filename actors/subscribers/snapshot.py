"""All items of a table as they were at one moment, and where its logs stood then.

Both come from one durable view: what the logs hold behind those positions is all that happened
to the items since, with no gap and no overlap. Whoever wants to go on from them must have the
table's changes recorded before the snapshot is taken.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Final

from actors.subscribers.checkpoint import Checkpoint
from model.limits import KIB
from model.stored_item import StoredItem
from storage import catalog, codec, keys_layout
from storage.store import Store, View

_PAGE_ROWS: Final = 128
_PAGE_BYTES: Final = 256 * KIB


class TableSnapshot:
    """A snapshot. As long as somebody has it, the store keeps what it shows."""

    def __init__(self, view: View, table_id: int, positions: dict[int, Checkpoint]) -> None:
        self.positions = positions
        self._view = view
        self._prefix = keys_layout.row_prefix(table_id)

    @classmethod
    async def take(
        cls, store: Store, table_id: int, partition_numbers: Iterable[int]
    ) -> TableSnapshot:
        """The items of the table with these partitions, as they are now."""
        view = store.durable()
        numbers = list(partition_numbers)
        values = await view.load([keys_layout.partition_head(number) for number in numbers])
        heads = map(catalog.decode_partition_head, values)
        positions = {
            number: Checkpoint(head.counter, head.logged_bytes)
            for number, head in zip(numbers, heads, strict=True)
        }
        return cls(view, table_id, positions)

    async def pages(self) -> AsyncIterator[list[StoredItem]]:
        """The items, some at a time, in the order of their hashes."""
        start, end = self._prefix, keys_layout.end_of(self._prefix)
        while rows := await self._view.page(start, end, max_rows=_PAGE_ROWS, max_bytes=_PAGE_BYTES):
            yield [codec.decode(row.value) for row in rows]
            start = rows[-1].key + b"\x00"
