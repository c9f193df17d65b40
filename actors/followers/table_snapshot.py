"""The items of a table at positions of its logs, read while the table is written.

A snapshot reads each page from a new view, because a reader may take hours, and an old view would
keep deleted data on the disk. Pages leave out the items that changed since the positions. The logs
after the positions contain those changes, with the items before and after. So a reader of the later
items misses none, and a reader of the earlier items finds them in the logs too. Changes must be
recorded from the positions on.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Protocol

from dynactor.actors.followers import log_positions
from dynactor.actors.followers.checkpoint import Checkpoint
from dynactor.actors.followers.log_positions import LogPositions
from dynactor.actors.followers.scan import PAGE_BYTES, PAGE_ROWS
from dynactor.model.keys import key as keys
from dynactor.model.keys.key import KeySchema
from dynactor.model.values.stored_item import StoredItem
from dynactor.storage import codec, key_layout
from dynactor.storage.row_pages import pages_in
from dynactor.storage.store import Row, Store, View
from dynactor.streams.change_record import ChangeRecord


class KnownLogs(Protocol):
    """The logs that a reader follows, by the numbers of their partitions."""

    def __contains__(self, partition_number: object, /) -> bool: ...

    async def wait_joined(self) -> None:
        """Wait until more logs are followed."""


class TableSnapshot:
    """The items of a table that have not changed since the logs had these positions."""

    def __init__(self, store: Store, table_id: int, positions: LogPositions) -> None:
        self.positions = positions
        self._store = store
        self._prefix = key_layout.row_prefix(table_id)

    @classmethod
    async def take(cls, store: Store, table_name: str, known: KnownLogs) -> TableSnapshot:
        """Take a snapshot of a table's items, once the logs of all its partitions are followed.

        A split is durable a moment before the new logs are followed.
        """

        async def read(view: View) -> TableSnapshot | None:
            record = await log_positions.table_record(view, table_name)
            assert record is not None, "there is no such table"
            if not all(partition.number in known for partition in record.partitions):
                return None
            ends = await log_positions.ends(view, record)
            return cls(store, record.definition.table_id, LogPositions(ends))

        while (snapshot := await store.in_snapshot(read, calls_once=False)) is None:
            await known.wait_joined()
        return snapshot

    async def pages(self) -> AsyncIterator[list[StoredItem]]:
        """The items, page by page, in the order of their hashes; raises ``StoreError``."""
        async for rows in self.rows():
            yield [codec.decode(row.value) for row in rows]

    async def rows(self) -> AsyncGenerator[list[Row], None]:
        """The rows of the items, page by page; a row's key is the item's position in the table.

        Each page is read from the newest durable state. Items that changed since the positions are
        left out, because the logs have those changes. Raises ``StoreError``.
        """
        start, end = self._prefix, key_layout.prefix_end(self._prefix)
        skipped = len(self._prefix)
        is_before = self.positions.is_before
        async for rows in pages_in(
            self._store.durable, start, end, max_rows=PAGE_ROWS, max_bytes=PAGE_BYTES
        ):
            yield [
                Row(key[skipped:], value) for key, value in rows if is_before(codec.version(value))
            ]

    async def replaced_rows(
        self, table_name: str, schema: KeySchema
    ) -> AsyncGenerator[list[Row], None]:
        """The rows that changes since the positions have replaced or deleted, from the logs.

        With the rows that ``rows`` returned before, they are the table's state at the positions.
        Both may have the same row. Raises ``StoreError``.
        """
        async with aclosing(self.changes(table_name)) as pages:
            async for records in pages:
                yield [
                    Row(keys.encode(schema, record.key), codec.encode(old))
                    for record in records
                    if (old := self.positions.replaced(record)) is not None
                ]

    async def changes(
        self, table_name: str, until_us: int | None = None
    ) -> AsyncGenerator[list[ChangeRecord], None]:
        """The changes from the positions to a time, an item's in order; raises ``StoreError``."""

        async def read(view: View) -> dict[int, Checkpoint]:
            record = await log_positions.table_record(view, table_name)
            assert record is not None, "there is no such table"
            return await log_positions.ends(view, record)

        # Parents come before their children.
        ends = await self._store.in_snapshot(read, calls_once=False)
        for number, end in ends.items():
            after = self.positions.start_counter(number)
            while after is not None and after < end.counter:
                records = await log_positions.read(self._store.durable(), number, after)
                if not records:
                    break
                after = records[-1].sequence_number.counter
                if until_us is not None and records[-1].commit_time_us >= until_us:
                    yield [record for record in records if record.commit_time_us < until_us]
                    break
                yield records
