"""All items of a table at one moment, and the positions of its logs at that moment.

Both come from one durable view, so the logs after those positions contain all later changes of the
items, without a gap or overlap. For a reader that continues from these positions, changes must be
recorded before the snapshot is taken.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from dynactor.actors.derived.checkpoint import Checkpoint
from dynactor.actors.derived.scan import read_page
from dynactor.model.values.stored_item import StoredItem
from dynactor.storage import catalog, codec, key_layout
from dynactor.storage.catalog import TableRecord
from dynactor.storage.store import Snapshot, Store


class KnownLogs(Protocol):
    """The logs that a reader follows, by the numbers of their partitions."""

    def __contains__(self, partition_number: object, /) -> bool: ...

    async def wait_joined(self) -> None:
        """Wait until more logs are followed."""
        ...


class TableSnapshot:
    """A snapshot. The store keeps its state until the snapshot is released."""

    def __init__(self, kept: Snapshot, table_id: int, positions: dict[int, Checkpoint]) -> None:
        # The positions of the logs, by partition number, also of ended logs.
        self.positions = positions
        # None once the snapshot was released.
        self._kept: Snapshot | None = kept
        self._prefix = key_layout.row_prefix(table_id)

    @classmethod
    async def take(cls, store: Store, table_name: str, known: KnownLogs) -> TableSnapshot:
        """Take a snapshot of a table's items, once the logs of all its partitions are followed.

        A split is durable a moment before the new logs are followed.
        """
        while True:
            kept = await store.snapshot(is_long=True)
            try:
                (row,) = await kept.view.load([key_layout.table_record(table_name)])
                assert row is not None, "there is no such table"
                record = catalog.decode_record(row)
                numbers = [partition.number for partition in record.partitions]
                if all(number in known for number in numbers):
                    heads = list(map(key_layout.partition_head, numbers))
                    values = await kept.view.load(heads)
                    return cls(kept, record.definition.table_id, _positions(record, values))
            except BaseException:
                kept.release()
                raise
            kept.release()
            await known.wait_joined()

    @property
    def is_held(self) -> bool:
        """Whether the pages of the snapshot can still be read."""
        return self._kept is not None

    def release(self) -> None:
        """Release the state that the store keeps; no more pages can be read."""
        if self._kept is not None:
            self._kept.release()
            self._kept = None

    async def pages(self) -> AsyncIterator[list[StoredItem]]:
        """The items, page by page, in the order of their hashes.

        Raises:
            Closed: the store was reopened, and its old views are gone.
        """
        start, end = self._prefix, key_layout.end_of(self._prefix)
        while True:
            assert self._kept is not None, "a page is read after the snapshot was released"
            rows, start = await read_page(self._kept.view, start, end)
            if not rows:
                return
            yield [codec.decode(row.value) for row in rows]


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
