"""The DynamoDB streams: their shards, which show parts of the logs, and the logs' retention.

Any request may read: reads use durable records and never wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from typing import Final

from msgspec import msgpack

from dynactor.actors.feeds.change_feed import ChangeFeed
from dynactor.actors.parts.long_work import Pieces, chained
from dynactor.actors.parts.part import Part, Parts
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import ResourceNotFoundException, TrimmedDataAccessException
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.storage import key_layout
from dynactor.storage.catalog import Catalog
from dynactor.storage.row_pages import rows_in
from dynactor.storage.store import Group, StoreError, Unknown, View
from dynactor.streams import change_log, changes_by_key
from dynactor.streams import shard as shards
from dynactor.streams.change_record import ChangeRecord
from dynactor.streams.shard import Shard, Stream

_MILLISECOND_SECONDS: Final = 0.001
_PAGE_ROWS: Final = 1_000
_PAGE_BYTES: Final = 1024 * 1024

TRIMMED: Final = "The data you are trying to access has been trimmed."

_encoder = msgpack.Encoder()
_decoder = msgpack.Decoder(Stream)


class StreamRegistry(Part):
    """All readable streams.

    Invariant: memory matches the durable streams, with one exception. Deleted records, and the end
    of a shard, are hidden from readers before the change is durable. If the store refuses the
    change, they are shown again.
    """

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._homes = parts.homes
        self._shards = parts.settings.streams
        self._streams: dict[tuple[str, str], Stream] = {}
        # The ends of shards whose closing is being committed, by shard id. Later changes belong to
        # child shards, or to no shard.
        self._closing: dict[str, int] = {}
        self._feeds: dict[int, ChangeFeed] = {}

    async def load(self, loaded: Catalog) -> None:
        """Load the streams of the tables whose home this is; the leader's also of deleted ones."""
        ids = {each.definition.name: each.definition.table_id for each in loaded.tables}
        here = {table_id for name, table_id in ids.items() if self._homes.is_here(name)}
        elsewhere = set(ids.values()) - here
        self._streams = {
            (stream.table_name, stream.label): stream
            for stream in await _stored(self._store.latest)
            if stream.table_id in here
            or (self._settings.is_leader and stream.table_id not in elsewhere)
        }
        self._closing.clear()

    async def load_table(self, table_id: int) -> None:
        """Load the streams of one table, which this node has become the home of."""
        async for row in rows_in(self._store.latest, *key_layout.stream_range(table_id)):
            self.remember(_decoder.decode(row.value))

    def forget_table(self, table_id: int) -> None:
        """Forget the streams of a table that gets another home."""
        self._streams = {
            key: each for key, each in self._streams.items() if each.table_id != table_id
        }

    async def opening(self, table: Table) -> None:
        """Let streams read the logs: requests read their tails as soon as they find the table."""
        await self.attach_logs(table)

    async def resume(self, table: Table) -> None:
        """Let streams read the logs of a table, if it has logs."""
        await self.attach_logs(table)

    def may_move(self, table: Table) -> bool:
        """Whether no stream of an earlier table with this name is readable."""
        definition = table.definition
        return all(
            stream.table_id == definition.table_id
            for stream in self._streams.values()
            if stream.table_name == definition.name
        )

    async def keep(self, now_epoch_seconds: float) -> Pieces:
        """Roll old shards, and forget old streams."""
        async for _ in chained(self._roll(now_epoch_seconds), self._expire(now_epoch_seconds)):
            yield

    # -- for requests -----------------------------------------------------------------------

    async def names(self) -> Sequence[tuple[str, str]]:
        """The tables and labels of all streams, sorted, also of tables that have another home."""
        is_whole = not self._tables.elsewhere
        streams = self._streams.values() if is_whole else await _stored(self._store.durable())
        return sorted((stream.table_name, stream.label) for stream in streams)

    def all(self) -> Sequence[Stream]:
        """The readable streams, by table and label."""
        return [self._streams[key] for key in sorted(self._streams)]

    def find(self, table_name: str, label: str) -> Stream | None:
        """The stream of this table with this label."""
        return self._streams.get((table_name, label))

    def tail(self, shard: Shard) -> int:
        """The counter of the last durable change that a shard can show."""
        last = self._last(shard)
        if last is not None:
            return last
        feed = self._feeds.get(shard.partition_number)
        return shard.after if feed is None else max(shard.after, feed.tail)

    async def read(
        self, shard: Shard, after: int, *, max_records: int, max_bytes: int
    ) -> Sequence[ChangeRecord]:
        """The first durable records of a shard with counters above ``after``."""
        # Read the tail before the first await: if the shard is rolled meanwhile, newer records
        # belong to its child.
        last = self.tail(shard)
        feed = self._feeds.get(shard.partition_number)
        if feed is None:
            records = await change_log.read(
                self._store.durable(),
                shard.partition_number,
                max(after, shard.after),
                max_records=max_records,
                max_bytes=max_bytes,
            )
        else:
            records = await feed.read(
                max(after, shard.after), max_records=max_records, max_bytes=max_bytes
            )
        return _up_to(last, records)

    async def records(
        self, stream: Stream, shard: Shard, after: int, *, max_records: int, max_bytes: int
    ) -> Sequence[ChangeRecord]:
        """The records for a client; raises if the client would skip deleted records.

        Records outside of memory are read with the stream and the trim mark of the log, all from
        one state, because the log may be trimmed meanwhile. Raises ``TrimmedDataAccessException``,
        or ``ResourceNotFoundException`` if the shard was forgotten.
        """
        if after < shard.horizon:
            raise TrimmedDataAccessException(TRIMMED)
        last = self.tail(shard)
        feed = self._feeds.get(shard.partition_number)
        records = None
        if feed is not None:
            records = feed.read_recent(after, max_records=max_records, max_bytes=max_bytes)
        if records is None:
            values, rows = await self._store.durable().load_with_page(
                [
                    key_layout.stream(stream.table_id, stream.label),
                    key_layout.trim(stream.table_id, shard.partition_number),
                ],
                *change_log.range_after(shard.partition_number, after),
                max_rows=max_records,
                max_bytes=max_bytes,
            )
            _check_readable(shard, after, *values)
            records = list(map(change_log.decode, rows))
        return _up_to(last, records)

    # -- for the database's actor -----------------------------------------------------------

    def attach(self, feeds: Iterable[ChangeFeed]) -> None:
        """Register the feeds of logs, from which records and tails are read."""
        self._feeds.update((feed.partition_number, feed) for feed in feeds)

    async def attach_logs(self, table: Table) -> None:
        """Register the feeds of a table's logs, if it has logs."""
        if table.definition.records_changes or table.record.ended_logs:
            self.attach(await table.followers.feeds())

    def attached(self, partition_numbers: Iterable[int]) -> bool:
        """Whether any of these partitions has recorded changes since the server started."""
        return any(number in self._feeds for number in partition_numbers)

    def detach(self, partition_numbers: Iterable[int]) -> None:
        """Unregister partitions that are deleted or stop recording; their logs remain readable."""
        for number in partition_numbers:
            self._feeds.pop(number, None)

    def free_label(self, table_name: str, now_epoch_seconds: float) -> str:
        """A label for a new stream of a table: the time, or a later one if that label is in use."""
        at = now_epoch_seconds
        while self.find(table_name, label := shards.stream_label(at)) is not None:
            at += _MILLISECOND_SECONDS
        return label

    def enabled(
        self, table: TableDefinition, positions: Mapping[int, int], now_epoch_seconds: float
    ) -> Stream:
        """The stream that a table's definition enables, from these positions on."""
        assert table.stream is not None
        stream = Stream(
            table.name,
            table.table_id,
            table.stream.label,
            table.stream.view_type,
            table.key_schema,
            now_epoch_seconds,
            (),
        )
        return shards.opened(stream, positions, now_epoch_seconds)

    def disabled(
        self, table: TableDefinition, tails: Mapping[int, int], now_epoch_seconds: float
    ) -> Stream | None:
        """A table's stream after it is disabled; None if no stream is enabled.

        ``tails`` are the counters of the partitions' last changes, at which the stream ends.
        """
        if table.stream is None:
            return None
        stream = self.find(table.name, table.stream.label)
        if stream is None or stream.disabled_epoch_seconds is not None:
            return None
        ends = {
            shard.partition_number: tails[shard.partition_number]
            for shard in stream.shards
            if shard.last is None
        }
        return shards.disabled(stream, ends, now_epoch_seconds)

    @contextmanager
    def ending(self, stream: Stream) -> Iterator[None]:
        """Hide records after the ends of a stream's shards while the ends are being committed.

        They stay hidden after a commit of unknown outcome, until the streams are loaded again: if
        it was written, the records belong to other shards.
        """
        self._closing = {
            shard.shard_id: shard.last for shard in stream.shards if shard.last is not None
        }
        try:
            yield
        except StoreError as error:
            if not isinstance(error, Unknown):
                self._closing.clear()
            raise
        self._closing.clear()

    def split(
        self, table_id: int, parent: int, last: int, children: tuple[int, int], now: float
    ) -> list[Stream]:
        """The streams that show a partition's log, after its split."""
        table_streams = [stream for stream in self.all() if stream.table_id == table_id]
        split = [shards.split(stream, parent, last, children, now) for stream in table_streams]
        return [
            new for new, old in zip(split, table_streams, strict=True) if new.shards != old.shards
        ]

    def remember(self, stream: Stream) -> None:
        """Keep a stream that was written durably."""
        self._streams[stream.table_name, stream.label] = stream

    def shows(self, partition_numbers: Iterable[int]) -> bool:
        """Whether any stream shows one of these partitions' logs."""
        return any(map(self._shows, partition_numbers))

    async def _roll(self, now_epoch_seconds: float) -> Pieces:
        """Close the open shards that are old enough, each with a child after it.

        Shards that were closed a day ago are forgotten.
        """
        for key in sorted(self._streams):
            stream = self._streams.get(key)
            if stream is None or stream.disabled_epoch_seconds is not None:
                continue
            tails = {shard.partition_number: self.tail(shard) for shard in stream.shards}
            rolled = shards.rolled(
                stream, tails, now_epoch_seconds, self._shards.shard_roll_seconds
            )
            kept = shards.trimmed(rolled, {}, now_epoch_seconds, self._shards.retention_seconds)
            if kept.shards == stream.shards:
                continue
            with self.ending(kept):
                await self._replace(kept)
            yield

    async def _expire(self, now_epoch_seconds: float) -> Pieces:
        """Forget streams that ended a day ago, and delete logs that no other stream shows."""
        for key in sorted(self._streams):
            stream = self._streams.get(key)
            if stream is None or stream.disabled_epoch_seconds is None:
                continue
            ended_seconds = now_epoch_seconds - stream.disabled_epoch_seconds
            if ended_seconds < self._shards.retention_seconds:
                continue
            # Remove the stream before the deletion is durable: no reader may skip a record without
            # an error.
            del self._streams[stream.table_name, stream.label]
            orphaned = {
                shard.partition_number
                for shard in stream.shards
                if shard.partition_number not in self._feeds
                and not self._shows(shard.partition_number)
            }
            with self._as_before([stream]):
                await self._owner.change(
                    deletes=[key_layout.stream(stream.table_id, stream.label)],
                    discards=[key_layout.change_range(number) for number in orphaned],
                )
            yield

    async def trim(
        self,
        feed: ChangeFeed,
        table_id: int,
        floor: int,
        now: float,
        *,
        puts: Sequence[tuple[bytes, bytes]] = (),
    ) -> float:
        """Delete the records of a log that have no readers any more.

        ``floor`` is the counter that every follower has passed. If a stream shows the log, records
        are also kept for a day. ``puts`` are committed with the deletion, if there is one. Returns
        the seconds until the oldest record is old enough for the stream; infinite without one.
        """
        rest_seconds = inf
        key = key_layout.trim(table_id, feed.partition_number)
        (stored,) = await self._store.latest.load([key])
        trimmed = change_log.decode_trim(stored).counter
        if self._shows(feed.partition_number):
            retention_seconds = self._shards.retention_seconds
            oldest_us = int((now - retention_seconds) * MICROSECONDS_PER_SECOND)
            aged, rest_seconds = await self._aged(feed.partition_number, trimmed, oldest_us)
            floor = min(floor, aged)
        if floor <= trimmed:
            return rest_seconds
        time_us = await change_log.time_us(self._store.latest, feed.partition_number, floor)
        if time_us is None:
            # The change was made while the table had no followers, so its time is unknown.
            time_us = int(now * MICROSECONDS_PER_SECOND)
        value = change_log.encode_trim(floor, time_us)
        up_to = {feed.partition_number: floor}
        before, changed = [], []
        for stream in self.all():
            kept = shards.trimmed(stream, up_to, now, self._shards.retention_seconds)
            if kept.shards != stream.shards:
                before.append(stream)
                changed.append(kept)
                # Update memory before the commit: no reader may skip deleted records silently.
                self.remember(kept)
        with self._as_before(before):
            await self._owner.change(
                heads=[Group(key, stored, value)],
                puts=[*map(stream_row, changed), *puts],
                discards=[change_log.trimmed_range(feed.partition_number, floor)],
                raises_version=bool(changed),
            )
        return rest_seconds

    async def trim_listed(self, partition_number: int, oldest_us: int) -> float:
        """Delete the changes listed by key in the periods before that of a commit time.

        Discarded rows may be deleted later, so no row may be written there any more. Returns the
        seconds after ``oldest_us`` until the next period has ended; infinite without one.
        """
        oldest = await self._oldest_listed(partition_number)
        if oldest is not None and oldest < changes_by_key.time_period(oldest_us):
            before = changes_by_key.time_period(oldest_us)
            await self._owner.change(
                discards=[key_layout.listed_range(partition_number, before)], raises_version=False
            )
            oldest = await self._oldest_listed(partition_number)
        if oldest is None:
            return inf
        return (changes_by_key.end_us(oldest) - oldest_us) / MICROSECONDS_PER_SECOND

    async def _oldest_listed(self, partition_number: int) -> int | None:
        """The first period with changes listed by key."""
        listed = key_layout.listed_range(partition_number)
        rows = await self._store.latest.page(*listed, max_rows=1, max_bytes=1)
        return key_layout.listed_period(rows[0].key) if rows else None

    @contextmanager
    def _as_before(self, streams: Sequence[Stream]) -> Iterator[None]:
        """Undo a change of these streams in memory if the store refuses the change.

        If its outcome is unknown, the change stays, because the records may be deleted.
        """
        try:
            yield
        except Unknown:
            raise
        except StoreError:
            for stream in streams:
                self.remember(stream)
            raise

    async def aged(self, feed: ChangeFeed, table_id: int, oldest_us: int) -> tuple[int, float]:
        """The counter up to which a log has no records after a time.

        Also returns the time from then to the next record in seconds; infinite without one.
        """
        (stored,) = await self._store.latest.load(
            [key_layout.trim(table_id, feed.partition_number)]
        )
        trimmed = change_log.decode_trim(stored).counter
        aged, rest_seconds = await self._aged(feed.partition_number, trimmed, oldest_us)
        # The last changes may not be recorded.
        return feed.tail if rest_seconds == inf else aged, rest_seconds

    async def _aged(self, partition_number: int, after: int, oldest_us: int) -> tuple[int, float]:
        """The counter up to which records are not after a time.

        Also returns the time from then to the next record in seconds; infinite without one.
        """
        aged = after
        # Read one record first: if it is younger than the retention, all others are, too.
        max_records = 1
        while True:
            records = await change_log.read(
                self._store.durable(),
                partition_number,
                aged,
                max_records=max_records,
                max_bytes=_PAGE_BYTES,
            )
            max_records = _PAGE_ROWS
            for record in records:
                if record.commit_time_us > oldest_us:
                    return aged, (record.commit_time_us - oldest_us) / MICROSECONDS_PER_SECOND
                aged = record.sequence_number.counter
            if not records:
                return aged, inf

    async def _replace(self, stream: Stream) -> None:
        await self._owner.change(puts=[stream_row(stream)])
        self.remember(stream)

    def _last(self, shard: Shard) -> int | None:
        """The counter that a shard ends with; None while it is open."""
        return self._closing.get(shard.shard_id) if shard.last is None else shard.last

    def _shows(self, partition_number: int) -> bool:
        return any(
            shard.partition_number == partition_number
            for stream in self._streams.values()
            for shard in stream.shards
        )


def _check_readable(
    shard: Shard, after: int, stream_value: bytes | None, trim_value: bytes | None
) -> None:
    """Raise if records after a counter were deleted, by the stored stream and trim mark."""
    stored = None if stream_value is None else _decoder.decode(stream_value).shard(shard.shard_id)
    if stored is None:
        raise ResourceNotFoundException("Shard does not exist")
    trimmed = change_log.decode_trim(trim_value).counter
    if stored.last is not None:
        trimmed = min(trimmed, stored.last)
    if after < max(stored.horizon, trimmed):
        raise TrimmedDataAccessException(TRIMMED)


def _up_to(last: int, records: list[ChangeRecord]) -> list[ChangeRecord]:
    if not records or records[-1].sequence_number.counter <= last:
        return records
    return [record for record in records if record.sequence_number.counter <= last]


async def _stored(view: View) -> list[Stream]:
    return [_decoder.decode(row.value) async for row in rows_in(view, *key_layout.STREAMS)]


def stream_row(stream: Stream) -> tuple[bytes, bytes]:
    """The row of a stream, to put in the commit that changes its table."""
    return key_layout.stream(stream.table_id, stream.label), _encoder.encode(stream)
