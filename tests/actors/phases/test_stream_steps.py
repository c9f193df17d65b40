"""Reads of a stream while its shards or its log change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from msgspec import structs

from dynactor.actors.database.database import Database
from dynactor.actors.phases.streams import StreamRegistry
from dynactor.actors.table.messages import CreateTable, UpdateTable
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import StreamSettings
from dynactor.model.errors import (
    InternalServerError,
    ResourceNotFoundException,
    TrimmedDataAccessException,
)
from dynactor.model.keys import key as keys
from dynactor.model.tables.stream_rules import StreamChange
from dynactor.model.tables.table_edits import TableEdit
from dynactor.storage import catalog, key_layout
from dynactor.storage.store import Full, NotCached, Row, Store, StoreError, Unknown, View
from dynactor.streams import shard as shards
from dynactor.streams.shard import Shard, ShardSettings, Stream
from tests.support.databases.databases import (
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.splitting import halve
from tests.support.stores.stepped_store import (
    Call,
    Page,
    SteppedStore,
    commits_of,
    commits_that_delete,
    commits_that_put,
    loads_of,
    soon,
    stepped_view,
    turns,
)
from tests.support.stores.store import memory_store

HOUR_SECONDS = 3_600.0
DAY_SECONDS = 24 * HOUR_SECONDS
WRITES = 3
# No other reader of a log uses this number, so gates can select the reads of this test.
MAX_RECORDS = 77
OFF = TableEdit(stream=StreamChange(enabled=False, view_type=None))


class Streamed:
    """A table of one partition with a stream, whose first 3 changes are not in memory."""

    def __init__(self, store: SteppedStore, clock: SetClock, database: Database) -> None:
        self.store = store
        self.clock = clock
        self.database = database
        self.table: Table = database.table("Thread")
        [self.number] = self.table.partitions.map.numbers
        [stream] = database.part(StreamRegistry).all()
        self.row = key_layout.stream(stream.table_id, stream.label)

    @property
    def stream(self) -> Stream:
        [stream] = self.database.part(StreamRegistry).all()
        return stream

    @property
    def shards(self) -> tuple[Shard, ...]:
        return self.stream.shards

    async def write(self, number: int) -> None:
        await self.table.write(put(thread("EC2", "a", posts=number)))

    async def read(self, shard: Shard) -> list[int]:
        """The counters of the records in a shard."""
        records = await self.database.part(StreamRegistry).read(
            shard, 0, max_records=MAX_RECORDS, max_bytes=1 << 20
        )
        return [record.sequence_number.counter for record in records]

    async def records(self, shard: Shard, after: int) -> list[int]:
        """The counters of the records that a client gets."""
        records = await self.database.part(StreamRegistry).records(
            self.stream, shard, after, max_records=MAX_RECORDS, max_bytes=1 << 20
        )
        return [record.sequence_number.counter for record in records]


class LateView:
    """A view like that of a remote store: each call shows the state at that moment."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def cached(self, key: bytes) -> bytes | NotCached | None:
        return self._store.durable().cached(key)

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return await self._store.durable().load(keys)

    async def page(
        self, start: bytes, end: bytes, *, reverse: bool = False, max_rows: int, max_bytes: int
    ) -> list[Row]:
        return await self._store.durable().page(
            start, end, reverse=reverse, max_rows=max_rows, max_bytes=max_bytes
        )

    async def first_rows(
        self, ranges: Sequence[tuple[bytes, bytes]], *, max_rows: int, reverse: bool = False
    ) -> list[list[Row]]:
        return await self._store.durable().first_rows(ranges, max_rows=max_rows, reverse=reverse)

    async def load_with_page(
        self, keys: Sequence[bytes], start: bytes, end: bytes, *, max_rows: int, max_bytes: int
    ) -> tuple[list[bytes | None], list[Row]]:
        return await self._store.durable().load_with_page(
            keys, start, end, max_rows=max_rows, max_bytes=max_bytes
        )


class RemoteStore(SteppedStore):
    """A store with such views."""

    def durable(self) -> View:
        return stepped_view(LateView(self._inner), self)


@asynccontextmanager
async def streamed(stepped: type[SteppedStore] = SteppedStore) -> AsyncIterator[Streamed]:
    definition = structs.replace(
        table_definition(), stream=StreamSettings("", "NEW_AND_OLD_IMAGES")
    )
    clock = SetClock()
    settings = {
        "partitions_per_table": 1,
        "keep_streams_seconds": 10 * DAY_SECONDS,
        "streams": ShardSettings(shard_roll_seconds=HOUR_SECONDS, retention_seconds=DAY_SECONDS),
    }
    async with memory_store() as inner:
        async with running_database(inner, clock, **settings) as database:
            await database.ask(CreateTable(definition))
            for number in range(WRITES):
                await database.table("Thread").write(put(thread("EC2", "a", posts=number)))
        store = stepped(inner)
        async with running_database(store, clock, **settings) as database:
            await database.actor.keep_streams()
            try:
                yield Streamed(store, clock, database)
            finally:
                store.open_all()


def is_read(call: Call) -> bool:
    """Select reads of a shard's records from disk."""
    return isinstance(call, Page) and call.max_rows == MAX_RECORDS


async def test_a_shard_closed_during_a_read_shows_no_record_of_its_child() -> None:
    async with streamed() as it, asyncio.TaskGroup() as tasks:
        [shard] = it.shards
        told = it.store.gate_durable(commits_of(key_layout.partition_head(it.number)))
        row = key_layout.change_row(it.number, WRITES + 1)
        written = tasks.create_task(it.write(WRITES))
        await soon(lambda: it.store.durable().cached(row) is not None)
        reading = it.store.gate_behind(is_read)
        read = tasks.create_task(it.read(shard))
        await reading.reached()
        it.clock.step(HOUR_SECONDS)
        await it.database.actor.keep_streams()
        told.open()
        await written

        reading.open()
        assert await read == [1, 2, 3]
        _, child = it.shards
        assert await it.read(child) == [4]


async def test_an_open_shard_shows_no_record_after_an_end_that_is_being_stored() -> None:
    async with streamed() as it, asyncio.TaskGroup() as tasks:
        [shard] = it.shards
        it.clock.step(HOUR_SECONDS)
        storing = it.store.gate_before(commits_that_put(it.row))
        kept = tasks.create_task(it.database.actor.keep_streams())
        await storing.reached()
        await it.write(WRITES)
        assert await it.read(shard) == [1, 2, 3]

        storing.open()
        await kept
        _, child = it.shards
        assert await it.read(child) == [4]


async def test_a_roll_of_a_shard_that_the_store_refuses_is_not_visible() -> None:
    async with streamed() as it:
        before = it.stream
        it.clock.step(HOUR_SECONDS)
        it.store.gate_before(commits_that_put(it.row)).fail(Full("the disk is full"))
        await it.database.actor.keep_streams()
        assert it.stream == before


@pytest.mark.parametrize(
    ("error", "shown"), [(Unknown("lost"), [1, 2, 3]), (Full("the disk is full"), [1, 2, 3, 4])]
)
async def test_an_end_of_unknown_outcome_hides_later_records_until_the_streams_are_loaded(
    error: StoreError, shown: list[int]
) -> None:
    async with streamed() as it:
        registry = it.database.part(StreamRegistry)
        [shard] = it.shards
        rolled = shards.rolled(it.stream, {it.number: WRITES}, it.clock.now_epoch_seconds(), 0)
        with pytest.raises(type(error)), registry.ending(rolled):
            raise error
        await it.write(WRITES)
        assert await it.read(shard) == shown
        await registry.load(await catalog.load(it.store.latest))
        assert await it.read(shard) == [1, 2, 3, 4]


async def test_readers_are_notified_of_trimming_before_records_are_deleted() -> None:
    async with streamed() as it, asyncio.TaskGroup() as tasks:
        before = it.stream
        it.clock.step(DAY_SECONDS + 1)
        trim = key_layout.trim(before.table_id, it.number)
        storing = it.store.gate_before(commits_that_put(trim))
        kept = tasks.create_task(it.database.actor.keep_streams())
        await storing.reached()
        assert {shard.horizon for shard in it.shards} == {WRITES}
        storing.open()
        await kept


async def test_records_that_are_trimmed_during_a_read_are_not_skipped() -> None:
    async with streamed(RemoteStore) as it, asyncio.TaskGroup() as tasks:
        [shard] = it.shards
        trim = key_layout.trim(it.stream.table_id, it.number)
        reading = it.store.gate_before(loads_of(trim))
        read = asyncio.create_task(it.records(shard, 1))
        await reading.reached()
        it.clock.step(DAY_SECONDS + 1)
        storing = it.store.gate_before(commits_that_put(trim))
        reading.which = lambda _: False
        kept = tasks.create_task(it.database.actor.keep_streams())
        await storing.reached()
        storing.open()
        await kept
        assert it.shards[0].horizon == WRITES
        reading.open()
        with pytest.raises(TrimmedDataAccessException):
            await read
        # A shard that was rolled and is too old for the stream is unknown.
        with pytest.raises(ResourceNotFoundException):
            await it.records(structs.replace(shard, shard_id="shardId-0"), 1)
        assert await it.records(it.shards[0], WRITES) == []


async def test_trimming_that_the_store_refuses_is_undone_for_readers() -> None:
    async with streamed() as it:
        [shard] = it.shards
        it.clock.step(DAY_SECONDS + 1)
        trim = key_layout.trim(it.stream.table_id, it.number)
        it.store.gate_before(commits_that_put(trim)).fail(Full("the disk is full"))
        await it.database.actor.keep_streams()
        assert it.shards[0].horizon == 0
        assert await it.read(shard) == [1, 2, 3]


async def test_an_expired_stream_is_removed_for_readers_before_its_records_are_deleted() -> None:
    async with streamed() as it, asyncio.TaskGroup() as tasks:
        await it.database.ask(UpdateTable("Thread", OFF))
        it.clock.step(DAY_SECONDS)
        storing = it.store.gate_before(commits_that_delete(it.row))
        kept = tasks.create_task(it.database.actor.keep_streams())
        await storing.reached()
        assert it.database.part(StreamRegistry).all() == []
        storing.open()
        await kept


async def test_a_stream_whose_end_the_store_refuses_misses_no_change() -> None:
    async with streamed() as it:
        storing = it.store.gate_before(commits_that_put(it.row))
        refused = asyncio.create_task(it.database.ask(UpdateTable("Thread", OFF)))
        await storing.reached()
        await it.write(WRITES)
        storing.fail(Full("the disk is full"))
        with pytest.raises(InternalServerError, match="the disk is full"):
            await refused
        [shard] = it.shards
        assert await it.read(shard) == [1, 2, 3, 4]


async def test_a_stream_that_is_being_disabled_shows_no_record_after_its_end() -> None:
    async with streamed() as it, asyncio.TaskGroup() as tasks:
        [shard] = it.shards
        storing = it.store.gate_before(commits_that_put(it.row))
        disabled = tasks.create_task(it.database.ask(UpdateTable("Thread", OFF)))
        await storing.reached()
        await it.write(WRITES)
        assert await it.read(shard) == [1, 2, 3]
        storing.open()
        await disabled
        # The write came before the end, so the end was decided again.
        assert await it.read(it.shards[0]) == [1, 2, 3, 4]
        await it.write(WRITES + 1)
        assert await it.read(it.shards[0]) == [1, 2, 3, 4]


async def test_a_disabled_stream_ends_after_all_records_that_it_showed() -> None:
    async with streamed() as it, asyncio.TaskGroup() as tasks:
        first, second = await halve(it.database, it.table, it.number)
        # The write and the change of the table both wait.
        busy = it.store.gate_before(commits_of(key_layout.partition_head(second)))
        forums = forums_of(it.table)
        slow = tasks.create_task(it.table.write(put(thread(forums[second], "a"))))
        await busy.reached()
        disabled = tasks.create_task(it.database.ask(UpdateTable("Thread", OFF)))
        await turns()
        await it.table.write(put(thread(forums[first], "a")))
        busy.open()
        await slow
        await disabled
        for shard in it.shards:
            if shard.partition_number in {first, second}:
                assert await it.read(shard) == [1]


async def test_a_split_that_the_store_refuses_leaves_the_shards_as_they_were() -> None:
    async with streamed() as it:
        before = it.stream
        it.store.gate_before(commits_that_put(it.row)).fail(Full("the disk is full"))
        with pytest.raises(InternalServerError, match="the disk is full"):
            await halve(it.database, it.table, it.number)
        assert it.stream == before


def forums_of(table: Table) -> dict[int, str]:
    """A partition key for each partition."""
    found: dict[int, str] = {}
    for number in range(40):
        item = thread(f"forum {number}", "a")
        found[table.number_at(keys.encode(table.definition.key_schema, item))] = f"forum {number}"
    return found
