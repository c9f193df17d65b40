"""The rows of a table as they were at a time, read from the present rows and the log since then.

A row that has not changed since then is the present row. For any other row, the log has the first
change since then, with the item before the change. Each read takes the rows first and the log
afterwards. So it misses no change, and needs neither a copy of the table nor a snapshot of the
store.

The row of an existing item is found by following its own changes back. Any other row is found among
the changes that are listed by key (``listed_changes``). Tables whose recovery was enabled by an
earlier version list none; then the log of the row's partition since the time is read, and the logs
of the partition's parents.

Entries of a local index have another order than the listed changes. So a page of a local index
needs all changed items of its item collections.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from itertools import chain
from typing import Final, NamedTuple

import anyio

from dynactor.actors.backups.listed_changes import ListedChanges, LogPart, log_parts, next_start
from dynactor.actors.followers import log_positions
from dynactor.actors.followers.checkpoint import Checkpoint
from dynactor.actors.followers.log_positions import LogPositions
from dynactor.model.definitions.index import entry_position
from dynactor.model.definitions.table import TABLE_INDEX_ID, TableDefinition
from dynactor.model.errors import ResourceNotFoundException
from dynactor.model.key_conditions.key_range import KeyRange, contains
from dynactor.model.keys import key as keys
from dynactor.model.limits import MIB
from dynactor.model.values.stored_item import StoredItem
from dynactor.model.writes.change import local_changes
from dynactor.storage import codec, key_layout
from dynactor.storage.catalog import TableRecord
from dynactor.storage.partition_map import PartitionMap
from dynactor.storage.store import Row, Store, View
from dynactor.streams import change_record, changes_by_key, sequence_number
from dynactor.streams.change_record import ChangeRecord
from dynactor.streams.changes_by_key import ListedChange
from dynactor.streams.sequence_number import SequenceNumber

# For an item with more changes since then, the listed changes or the log are searched.
_CHANGES: Final = 2
# Maximum size of the replaced rows that a read keeps in memory.
_REPLACED_BYTES: Final = 4 * MIB
# Minimum and maximum number of listed changes that are read at once.
_LISTED_ROWS: Final = (512, 32_768)
# Maximum size of the change records that are loaded at once.
_RECORDS_BYTES: Final = MIB


class PastView:
    """The items of a table, and the entries of its local indexes, at positions of its logs."""

    def __init__(
        self, store: Store, definition: TableDefinition, past: LogPositions, epoch_us: int
    ) -> None:
        self._store = store
        recovery = definition.point_in_time_recovery
        self._lists_changes = recovery is not None and recovery.lists_changes
        self._first_period = changes_by_key.time_period(epoch_us)
        self._definition = definition
        self._past = past
        self._prefix = key_layout.row_prefix(definition.table_id)
        self._replaced: _ReplacedRows | None = None

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of the rows of items, in order; None for missing rows.

        Raises ``StoreError`` if a row or a log can't be read, or ``ResourceNotFoundException`` if
        the table was deleted meanwhile.
        """
        values = dict(zip(keys, await self._store.durable().load(keys), strict=True))
        unknown = []
        for key, value in values.items():
            found = await self._before_changes(value)
            if found is None:
                unknown.append(key)
            else:
                values[key] = found
        if unknown and self._lists_changes:
            values.update(await self._look_up_listed(unknown))
        elif unknown:
            values.update(await self._look_up(unknown))
        return [values[key] for key in keys]

    async def _before_changes(self, value: bytes | None) -> bytes | None:
        """The value of an item's row before the item's changes; None if it was not found."""
        for _ in range(_CHANGES):
            if value is None:
                # The item may have been deleted, and created again.
                return None
            version = codec.version(value)
            if self._past.is_before(version):
                return value
            number = sequence_number.unpack(version)
            change_key = key_layout.change_row(number.partition_number, number.counter)
            (record,) = await self._store.durable().load([change_key])
            # Other requests wait while records of large items are decoded.
            await anyio.lowlevel.checkpoint()
            old = None if record is None else change_record.decode(number, record).old
            value = None if old is None else codec.encode(old)
        return None

    async def _look_up_listed(self, rows: Sequence[bytes]) -> dict[bytes, bytes | None]:
        """The values of changed or missing rows, from the first listed change of each."""
        positions = [row[len(self._prefix) :] for row in rows]
        ranges = [KeyRange(position, position + b"\x00") for position in positions]
        changes = await (await self._listed(ranges)).at_positions(positions)
        values: dict[bytes, bytes | None] = dict.fromkeys(rows)
        async with aclosing(self._old_items(changes)) as items:
            async for position, old in items:
                values[self._prefix + position] = codec.encode(old)
        return values

    async def _listed(self, ranges: Sequence[KeyRange]) -> ListedChanges:
        """The listed changes since the positions that may concern these ranges.

        Rows must be read before, so that no change of theirs is missing.
        """

        async def read(view: View) -> list[LogPart]:
            record = await self._record(view)
            numbers = _range_logs(record, ranges)
            return await log_parts(view, self._past, numbers, self._first_period)

        parts = await self._store.in_snapshot(read, calls_once=False)
        return ListedChanges(self._store.durable(), self._past, parts)

    async def _record(self, view: View) -> TableRecord:
        record = await log_positions.table_record(view, self._definition.name)
        if record is None or record.definition.table_id != self._definition.table_id:
            raise ResourceNotFoundException("Requested resource not found")
        return record

    async def _old_items(
        self, changes: Mapping[bytes, ListedChange]
    ) -> AsyncGenerator[tuple[bytes, StoredItem], None]:
        """The items at the positions, from the first changes after them, by position."""
        replaced = [
            (position, change) for position, change in changes.items() if self._replaces(change)
        ]
        while replaced:
            size_bytes = count = 0
            while count < len(replaced) and size_bytes < _RECORDS_BYTES:
                size_bytes += replaced[count][1].record_bytes
                count += 1
            some, replaced = replaced[:count], replaced[count:]
            values = await self._store.durable().load(
                [
                    key_layout.change_row(change.partition_number, change.counter)
                    for _, change in some
                ]
            )
            for (position, change), value in zip(some, values, strict=True):
                number = SequenceNumber(change.partition_number, change.counter)
                # If the record is missing, the time has left the window meanwhile.
                old = None if value is None else change_record.decode(number, value).old
                if old is not None:
                    yield position, old
            await anyio.lowlevel.checkpoint()

    async def _look_up(self, rows: Iterable[bytes]) -> dict[bytes, bytes | None]:
        """The values of changed or missing rows, from the first change of each."""
        missing = {row[len(self._prefix) :] for row in rows}
        found: dict[bytes, bytes | None] = {self._prefix + position: None for position in missing}
        ranges = [KeyRange(position, position + b"\x00") for position in missing]
        schema = self._definition.key_schema
        async with aclosing(self._changes(ranges, {})) as pages:
            async for records in pages:
                for record in records:
                    position = keys.encode(schema, record.key)
                    if position not in missing:
                        continue
                    missing.remove(position)
                    if record.old is not None:
                        found[self._prefix + position] = codec.encode(record.old)
                if not missing:
                    break
        return found

    async def page(
        self, start: bytes, end: bytes, *, reverse: bool = False, max_rows: int, max_bytes: int
    ) -> list[Row]:
        """The first rows from ``start`` to before ``end``, or the last; raises as ``load``."""
        if self._lists_changes and start.startswith(self._prefix):
            return await self._listed_page(
                _Span(start, end), reverse=reverse, max_rows=max_rows, max_bytes=max_bytes
            )
        found: list[Row] = []
        size_bytes = 0
        wanted = _Span(start, end)
        # Usually each changed row has a replaced one, so one page of present rows is enough.
        # Otherwise twice as many pages are read before the log is read again.
        pages = 1
        while wanted.start < wanted.end:
            rows, unread = await self._unchanged(
                wanted, pages, max_rows, max_bytes, reverse=reverse
            )
            pages *= 2
            replaced = self._replaced
            if replaced is None or not replaced.covers_first(wanted):
                # Logs of partitions that the page does not reach are not needed.
                span = (
                    _Span(unread.end, wanted.end) if reverse else _Span(wanted.start, unread.start)
                )
                replaced = _ReplacedRows(self._definition, span, reverse=reverse)
                self._replaced = replaced
            await self._read_changes(replaced)
            # Up to this key, both the unchanged and the replaced rows are known.
            if reverse:
                known = _Span(max(unread.end, replaced.span.start), wanted.end)
                wanted = _Span(wanted.start, known.start)
            else:
                known = _Span(wanted.start, min(unread.start, replaced.span.end))
                wanted = _Span(known.end, wanted.end)
            for row in replaced.merged(rows, known):
                found.append(row)
                size_bytes += len(row.key) + len(row.value)
                if len(found) == max_rows or size_bytes >= max_bytes:
                    return found
        return found

    async def _listed_page(
        self, wanted: _Span, *, reverse: bool, max_rows: int, max_bytes: int
    ) -> list[Row]:
        """A page of items, from the present rows and the listed changes."""
        found: list[Row] = []
        size_bytes = 0
        pages = 1
        least_listed_rows, most_listed_rows = _LISTED_ROWS
        # Most items have several changes.
        listed_rows = min(max(least_listed_rows, 8 * max_rows), most_listed_rows)
        while wanted.start < wanted.end:
            rows, unread = await self._unchanged(
                wanted, pages, max_rows - len(found), max_bytes - size_bytes, reverse=reverse
            )
            span = _Span(unread.end, wanted.end) if reverse else _Span(wanted.start, unread.start)
            positions = self._positions(span)
            listed = await self._listed([positions])
            changes, known = await listed.in_range(positions, listed_rows, reverse=reverse)
            if known == positions:
                pages *= 2
            else:
                listed_rows = min(2 * listed_rows, most_listed_rows)
            chosen: list[tuple[bytes, bytes | ListedChange]] = []
            page = self._merged(rows, changes, known)
            for position in sorted(page, reverse=reverse):
                value = page[position]
                chosen.append((position, value))
                size_bytes += len(self._prefix) + len(position)
                size_bytes += len(value) if isinstance(value, bytes) else _row_bytes(value)
                if len(found) + len(chosen) == max_rows or size_bytes >= max_bytes:
                    return found + await self._chosen_rows(chosen)
            found += await self._chosen_rows(chosen)
            if reverse:
                wanted = _Span(wanted.start, self._prefix + known.start)
            elif known.end is None:
                break
            else:
                wanted = _Span(self._prefix + known.end, wanted.end)
        return found

    def _positions(self, span: _Span) -> KeyRange:
        is_open = not span.end.startswith(self._prefix)
        return KeyRange(
            span.start.removeprefix(self._prefix),
            None if is_open else span.end.removeprefix(self._prefix),
        )

    def _merged(
        self, rows: Sequence[Row], changes: Mapping[bytes, ListedChange], known: KeyRange
    ) -> dict[bytes, bytes | ListedChange]:
        """Unchanged rows, and the changes that have replaced an item, by position."""
        page: dict[bytes, bytes | ListedChange] = {
            position: change for position, change in changes.items() if self._replaces(change)
        }
        for key, value in rows:
            position = key[len(self._prefix) :]
            if contains(known, position):
                page[position] = value
        return page

    def _replaces(self, change: ListedChange) -> bool:
        """Whether there was an item at the positions, if this is its first change after them."""
        return change.old_version > 0 and self._past.is_before(change.old_version)

    async def _chosen_rows(self, chosen: Sequence[tuple[bytes, bytes | ListedChange]]) -> list[Row]:
        """Unchanged rows, and the rows of items before their changes, by position."""
        changes = {position: value for position, value in chosen if isinstance(value, ListedChange)}
        values = {position: value for position, value in chosen if isinstance(value, bytes)}
        async with aclosing(self._old_items(changes)) as items:
            async for position, old in items:
                values[position] = codec.encode(old)
        return [
            Row(self._prefix + position, values[position])
            for position, _ in chosen
            if position in values
        ]

    async def _unchanged(
        self, wanted: _Span, pages: int, max_rows: int, max_bytes: int, *, reverse: bool
    ) -> tuple[list[Row], _Span]:
        """The rows among some pages that have not changed since, and the part that was not read."""
        start, end = wanted
        unchanged: list[Row] = []
        size_bytes = 0
        is_before = self._past.is_before
        for _ in range(pages):
            if len(unchanged) >= max_rows or size_bytes >= max_bytes:
                break
            rows = await self._store.durable().page(
                start, end, reverse=reverse, max_rows=max_rows, max_bytes=max_bytes
            )
            for row in rows:
                if is_before(codec.version(row.value)):
                    unchanged.append(row)
                    size_bytes += len(row.key) + len(row.value)
            if len(rows) < max_rows and sum(map(len, chain.from_iterable(rows))) < max_bytes:
                # The range ends here.
                return unchanged, _Span(start, start) if reverse else _Span(end, end)
            if reverse:
                end = rows[-1].key
            else:
                start = next_start(rows[-1].key)
            await anyio.lowlevel.checkpoint()
        return unchanged, _Span(start, end)

    async def _read_changes(self, replaced: _ReplacedRows) -> None:
        """Add the rows that were replaced by the changes since the last call."""
        if self._lists_changes:
            await self._read_listed(replaced)
            return
        async with aclosing(self._changes([replaced.positions], replaced.counters)) as pages:
            async for records in pages:
                for record in records:
                    old = self._past.replaced(record)
                    if old is not None:
                        replaced.add(old)

    async def _read_listed(self, replaced: _ReplacedRows) -> None:
        """Add the rows of a local index that were replaced since the positions."""
        positions = replaced.collections
        listed = await self._listed([positions])
        _, listed_rows = _LISTED_ROWS
        while True:
            changes, known = await listed.in_range(positions, listed_rows, reverse=False)
            async with aclosing(self._old_items(changes)) as items:
                async for _, old in items:
                    replaced.add(old)
            if known.end is None or known.end == positions.end:
                return
            positions = KeyRange(known.end, positions.end)

    async def _changes(
        self, ranges: Sequence[KeyRange], counters: dict[int, int]
    ) -> AsyncGenerator[list[ChangeRecord], None]:
        """The changes since the positions that may concern these ranges, those of an item in order.

        ``counters`` are the counters up to which logs were read, by partition number.
        """

        async def read(view: View) -> tuple[TableRecord, dict[int, Checkpoint]]:
            record = await self._record(view)
            return record, await log_positions.ends(view, record)

        record, ends = await self._store.in_snapshot(read, calls_once=False)
        for number in _range_logs(record, ranges):
            after = counters.get(number, self._past.start_counter(number))
            while after is not None and after < ends[number].counter:
                records = await log_positions.read(self._store.durable(), number, after)
                if not records:
                    break
                after = counters[number] = records[-1].sequence_number.counter
                yield [record for record in records if self._past.is_after(record)]
                await anyio.lowlevel.checkpoint()


class _Span(NamedTuple):
    """The keys of rows from ``start`` to before ``end``."""

    start: bytes
    end: bytes


class _ReplacedRows:
    """The rows of a span that were replaced or deleted since a time.

    If the rows take too much memory, the span becomes shorter at its far end. The rows there are
    dropped, and a later page reads the log again for them.
    """

    def __init__(self, definition: TableDefinition, span: _Span, *, reverse: bool) -> None:
        self.span = span
        # The counters up to which the logs were read, by partition number.
        self.counters: dict[int, int] = {}
        self._definition = definition
        self._reverse = reverse
        _, self._index_id = key_layout.table_and_index(span.start)
        self._prefix = key_layout.row_prefix(definition.table_id, self._index_id)
        is_open = not span.end.startswith(self._prefix)
        self.positions = KeyRange(
            span.start.removeprefix(self._prefix),
            None if is_open else span.end.removeprefix(self._prefix),
        )
        self._values: dict[bytes, bytes] = {}
        self._size_bytes = 0

    @property
    def collections(self) -> KeyRange:
        """The positions in the table of all items whose entries may be in the span."""
        start, end = (None if each is None else each[: keys.HASH_BYTES] for each in self.positions)
        is_open = end is None or not end.strip(b"\xff")
        return KeyRange(start or b"", None if is_open else key_layout.prefix_end(end or b""))

    def covers_first(self, wanted: _Span) -> bool:
        """Whether the first keys to read of a span are in this one."""
        if self._reverse:
            return self.span.start < wanted.end <= self.span.end
        return self.span.start <= wanted.start < self.span.end

    def merged(self, rows: Iterable[Row], known: _Span) -> Iterable[Row]:
        """These rows and the replaced ones in a span, in the order of reading."""
        start, end = known
        values = dict(rows) | self._values
        in_span = (key for key in values if start <= key < end)
        return (Row(key, values[key]) for key in sorted(in_span, reverse=self._reverse))

    def add(self, item: StoredItem) -> None:
        row = self._index_row(item)
        if row is None or not self.span.start <= row.key < self.span.end:
            return
        self._values[row.key] = row.value
        self._size_bytes += len(row.key) + len(row.value)
        if self._size_bytes > _REPLACED_BYTES and len(self._values) > 1:
            self._shorten()

    def _index_row(self, item: StoredItem) -> Row | None:
        partition_key, sort_key = keys.encoded_parts(self._definition.key_schema, item.item)
        if self._index_id == TABLE_INDEX_ID:
            return Row(self._prefix + partition_key + sort_key, codec.encode(item))
        for index_change in local_changes(self._definition, None, item):
            entry = index_change.new
            if index_change.definition.index_id == self._index_id and entry is not None:
                position = entry_position(index_change.definition, entry.item, sort_key)
                return Row(self._prefix + position, codec.encode(entry))
        return None

    def _shorten(self) -> None:
        """Drop the farther half of the rows."""
        ordered = sorted(self._values, reverse=self._reverse)
        first_dropped = ordered[(len(ordered) + 1) // 2]
        if self._reverse:
            self.span = _Span(first_dropped + b"\x00", self.span.end)
        else:
            self.span = _Span(self.span.start, first_dropped)
        for key in ordered[(len(ordered) + 1) // 2 :]:
            self._size_bytes -= len(key) + len(self._values.pop(key))


def _row_bytes(change: ListedChange) -> int:
    """The length of the value of an item's row before a change."""
    return codec.HEADER_BYTES + change.old_bytes


def _range_logs(record: TableRecord, ranges: Sequence[KeyRange]) -> list[int]:
    """The numbers of the logs that may have changes in these ranges, parents before children."""
    partitions = PartitionMap(record.partitions)
    numbers = {
        partitions.number_at(piece.start)
        for key_range in ranges
        for piece in partitions.pieces(key_range)
    }
    # A child's number is higher than its parent's.
    for ended in sorted(record.ended_logs, key=lambda log: log.number, reverse=True):
        if not numbers.isdisjoint(ended.children):
            numbers.add(ended.number)
    return sorted(numbers)
