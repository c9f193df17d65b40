"""The items of a table at positions of its logs, read while the table is written.

A snapshot reads each page from a new view, because a reader may take hours, and an old view would
keep deleted data on the disk. Pages leave out the items that changed since the positions. The logs
after the positions contain those changes, with the items before and after. So a reader of the later
items misses none, and a reader of the earlier items finds them in the logs too. Changes must be
recorded from the positions on.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple, Protocol

from msgspec.structs import replace

from dynactor.actors.derived.checkpoint import Checkpoint
from dynactor.actors.derived.scan import read_page
from dynactor.model.keys import key as keys
from dynactor.model.keys.key import KeySchema
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.model.values.stored_item import StoredItem
from dynactor.storage import catalog, codec, key_layout
from dynactor.storage.catalog import TableRecord
from dynactor.storage.store import Row, Store, View
from dynactor.streams import change_log, log_bounds, sequence_number
from dynactor.streams.change_record import ChangeRecord
from dynactor.streams.log_bounds import LogReach

# Small, because a request waits while records are decoded.
_RECORDS: Final = 128
_RECORDS_BYTES: Final = 256 * 1024
# Maximum time between the changes of one transaction.
TRANSACTION_US: Final = 10 * MICROSECONDS_PER_SECOND


class KnownLogs(Protocol):
    """The logs that a reader follows, by the numbers of their partitions."""

    def __contains__(self, partition_number: object, /) -> bool: ...

    async def wait_joined(self) -> None:
        """Wait until more logs are followed."""
        ...


class TableSnapshot:
    """The items of a table that have not changed since the logs had these positions."""

    def __init__(
        self,
        store: Store,
        table_id: int,
        positions: dict[int, Checkpoint],
        earlier: frozenset[int] = frozenset(),
    ) -> None:
        """``earlier``: versions after the positions that count as versions before them."""
        # The positions of the logs, by partition number, also of ended logs.
        self.positions = positions
        self._last_number = max(positions)
        self._earlier = earlier
        self._store = store
        self._prefix = key_layout.row_prefix(table_id)

    @classmethod
    async def take(cls, store: Store, table_name: str, known: KnownLogs) -> TableSnapshot:
        """Take a snapshot of a table's items, once the logs of all its partitions are followed.

        A split is durable a moment before the new logs are followed.
        """

        async def read(view: View) -> TableSnapshot | None:
            record = await _record(view, table_name)
            if not all(partition.number in known for partition in record.partitions):
                return None
            return cls(store, record.definition.table_id, await _ends(view, record))

        while (snapshot := await store.in_snapshot(read, calls_once=False)) is None:
            await known.wait_joined()
        return snapshot

    async def pages(self) -> AsyncIterator[list[StoredItem]]:
        """The items, page by page, in the order of their hashes.

        Raises:
            StoreError: a page can't be read.
        """
        async for rows in self.rows():
            yield [codec.decode(row.value) for row in rows]

    async def rows(self) -> AsyncGenerator[list[Row], None]:
        """The rows of the items, page by page; a row's key is the item's position in the table.

        Each page is read from the newest durable state. Items that changed since the positions are
        left out, because the logs have those changes.

        Raises:
            StoreError: a page can't be read.
        """
        start, end = self._prefix, key_layout.end_of(self._prefix)
        skipped = len(self._prefix)
        while True:
            rows, start = await read_page(self._store.durable(), start, end)
            if not rows:
                return
            yield [
                Row(key[skipped:], value)
                for key, value in rows
                if self._is_unchanged(codec.version(value))
            ]

    async def replaced_rows(
        self, table_name: str, schema: KeySchema
    ) -> AsyncGenerator[list[Row], None]:
        """The rows that changes since the positions have replaced or deleted, from the logs.

        With the rows that ``rows`` returned before, they are the table's state at the positions.
        Both may have the same row.

        Raises:
            StoreError: a log can't be read.
        """
        async with aclosing(self.changes(table_name)) as pages:
            async for records in pages:
                yield [
                    Row(keys.encode(schema, record.key), codec.encode(record.old))
                    for record in records
                    if record.old is not None
                    and self._is_unchanged(record.old.version)
                    and record.sequence_number.packed() not in self._earlier
                ]

    async def changes(
        self, table_name: str, until_us: int | None = None
    ) -> AsyncGenerator[list[ChangeRecord], None]:
        """The changes since the positions and before a time, those of an item in order.

        Raises:
            StoreError: a log can't be read.
        """

        async def read(view: View) -> dict[int, Checkpoint]:
            return await _ends(view, await _record(view, table_name))

        # Parents come before their children.
        ends = await self._store.in_snapshot(read, calls_once=False)
        for number, end in ends.items():
            after = self._start_of(number)
            while after is not None and after < end.counter:
                view = self._store.durable()
                records = await change_log.read(
                    view, number, after, max_records=_RECORDS, max_bytes=_RECORDS_BYTES
                )
                if not records:
                    break
                after = records[-1].sequence_number.counter
                if until_us is not None and records[-1].commit_time_us >= until_us:
                    yield [record for record in records if record.commit_time_us < until_us]
                    break
                yield records

    def _start_of(self, partition_number: int) -> int | None:
        """The counter after which a log has changes since the positions; None if it has none."""
        position = self.positions.get(partition_number)
        if position is not None:
            return position.counter
        return 0 if partition_number > self._last_number else None

    def _is_unchanged(self, version: int) -> bool:
        """Whether an item's last change came before the positions."""
        number = sequence_number.unpack(version)
        position = self.positions.get(number.partition_number)
        if position is None:
            # A log without a position was deleted before the snapshot if its number is lower than
            # another's. Otherwise it began later, because numbers rise.
            is_before = number.partition_number < self._last_number
        else:
            is_before = number.counter <= position.counter
        return is_before or version in self._earlier


class PastPositions(NamedTuple):
    """The positions of logs at a time, and the later versions that count as versions before."""

    positions: dict[int, Checkpoint]
    earlier: frozenset[int]


async def past_positions(
    view: View, positions: Mapping[int, Checkpoint], time_us: int
) -> PastPositions:
    """The positions of logs at a time, with whole transactions.

    ``positions`` are those of the last changes at this time that were durable when the time was
    requested. By now the others are durable, too. The partitions of a transaction read the clock
    one after another, so a transaction may have changes before and after the time. Then its later
    changes count as changes before it.

    Raises:
        StoreError: a log can't be read.
    """
    reached = dict(positions)
    before: set[bytes] = set()
    after: dict[int, bytes] = {}
    for number, position in positions.items():
        reach = LogReach(number, 0, position.counter, None)
        start = await log_bounds.position_at(view, reach, time_us - TRANSACTION_US)
        async for record in _records(view, number, start):
            if record.commit_time_us > time_us + TRANSACTION_US:
                break
            counter = record.sequence_number.counter
            is_before = counter <= position.counter or record.commit_time_us <= time_us
            if is_before and counter > position.counter:
                reached[number] = replace(position, counter=counter)
            if record.transaction is None:
                continue
            if is_before:
                before.add(record.transaction.transaction_id)
            else:
                after[record.sequence_number.packed()] = record.transaction.transaction_id
    return PastPositions(
        reached, frozenset(version for version, id_ in after.items() if id_ in before)
    )


async def _records(view: View, number: int, after: int) -> AsyncIterator[ChangeRecord]:
    while records := await change_log.read(
        view, number, after, max_records=_RECORDS, max_bytes=_RECORDS_BYTES
    ):
        for record in records:
            yield record
        after = records[-1].sequence_number.counter


async def _record(view: View, table_name: str) -> TableRecord:
    (row,) = await view.load([key_layout.table_record(table_name)])
    assert row is not None, "there is no such table"
    return catalog.decode_record(row)


async def _ends(view: View, record: TableRecord) -> dict[int, Checkpoint]:
    """The ends of a table's logs; the ends of growing logs are in the heads of their partitions."""
    numbers = [partition.number for partition in record.partitions]
    heads: Sequence[bytes | None] = await view.load(list(map(key_layout.partition_head, numbers)))
    positions = {
        ended.number: Checkpoint(ended.last, ended.logged_bytes) for ended in record.ended_logs
    }
    for partition, value in zip(record.partitions, heads, strict=True):
        assert value is not None, "the record and the heads are of one state"
        head = catalog.decode_partition_head(value)
        positions[partition.number] = Checkpoint(head.counter, head.logged_bytes)
    return positions
