"""The items of a table, and the positions of its logs from which to continue.

A snapshot reads each page from a new view, because a destination may take hours, and an old view
would keep deleted data on the disk. Pages leave out the items that changed since the positions. The
logs after the positions contain those changes. So the items and those changes together are
complete, without an overlap. Changes must be recorded before the snapshot is taken.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from dynactor.actors.derived.checkpoint import Checkpoint
from dynactor.actors.derived.scan import read_page
from dynactor.model.values.stored_item import StoredItem
from dynactor.storage import catalog, codec, key_layout
from dynactor.storage.catalog import TableRecord
from dynactor.storage.store import Store, View
from dynactor.streams import sequence_number


class KnownLogs(Protocol):
    """The logs that a reader follows, by the numbers of their partitions."""

    def __contains__(self, partition_number: object, /) -> bool: ...

    async def wait_joined(self) -> None:
        """Wait until more logs are followed."""
        ...


class TableSnapshot:
    """The items of a table that have not changed since the logs had these positions."""

    def __init__(self, store: Store, table_id: int, positions: dict[int, Checkpoint]) -> None:
        # The positions of the logs, by partition number, also of ended logs.
        self.positions = positions
        self._store = store
        self._prefix = key_layout.row_prefix(table_id)

    @classmethod
    async def take(cls, store: Store, table_name: str, known: KnownLogs) -> TableSnapshot:
        """Take a snapshot of a table's items, once the logs of all its partitions are followed.

        A split is durable a moment before the new logs are followed.
        """

        async def read(view: View) -> TableSnapshot | None:
            (row,) = await view.load([key_layout.table_record(table_name)])
            assert row is not None, "there is no such table"
            record = catalog.decode_record(row)
            numbers = [partition.number for partition in record.partitions]
            if not all(number in known for number in numbers):
                return None
            values = await view.load(list(map(key_layout.partition_head, numbers)))
            return cls(store, record.definition.table_id, _positions(record, values))

        while (snapshot := await store.in_snapshot(read, calls_once=False)) is None:
            await known.wait_joined()
        return snapshot

    async def pages(self) -> AsyncIterator[list[StoredItem]]:
        """The items, page by page, in the order of their hashes.

        Each page is read from the newest durable state. Items that changed since the positions are
        left out, because the logs have those changes.

        Raises:
            StoreError: a page can't be read.
        """
        start, end = self._prefix, key_layout.end_of(self._prefix)
        while True:
            rows, start = await read_page(self._store.durable(), start, end)
            if not rows:
                return
            items = [codec.decode(row.value) for row in rows]
            yield [item for item in items if self._is_unchanged(item)]

    def _is_unchanged(self, item: StoredItem) -> bool:
        """Whether an item's last change came before the positions."""
        number = sequence_number.unpack(item.version)
        position = self.positions.get(number.partition_number)
        if position is None:
            # A log without a position was deleted before the snapshot if its number is lower than
            # another's. Otherwise it began later, because numbers rise.
            return number.partition_number < max(self.positions)
        return number.counter <= position.counter


def _positions(record: TableRecord, heads: Sequence[bytes | None]) -> dict[int, Checkpoint]:
    """The ends of a table's logs; the ends of growing logs are in the heads of their partitions."""
    positions = {
        ended.number: Checkpoint(ended.last, ended.logged_bytes) for ended in record.ended_logs
    }
    for partition, value in zip(record.partitions, heads, strict=True):
        assert value is not None, "the record and the heads are of one state"
        head = catalog.decode_partition_head(value)
        positions[partition.number] = Checkpoint(head.counter, head.logged_bytes)
    return positions
