"""Splits of partitions during requests: no request fails or returns a wrong answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
from msgspec import json, structs

from dynactor.actors.database.database import Database
from dynactor.actors.partition.partition import CONFLICTS_BEFORE_LOCK
from dynactor.actors.phases.streams import StreamRegistry
from dynactor.actors.splitting.messages import SplitPartition, is_settled
from dynactor.actors.table.messages import CreateTable, DeleteTable
from dynactor.actors.table.pages import ReadRange, read_page
from dynactor.actors.table.table import Table
from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import (
    GlobalIndex,
    StreamingDestination,
    StreamSettings,
    TableDefinition,
    TimeToLive,
)
from dynactor.model.errors import InternalServerError, ResourceInUseException, ValidationException
from dynactor.model.key_conditions import key_range
from dynactor.model.key_conditions.key_condition import KeyCondition
from dynactor.model.keys import key as keys
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.reads.page import PageRules
from dynactor.model.values.item import Item
from dynactor.model.writes.write import Delete
from dynactor.storage import key_layout
from dynactor.storage.store import Full, Group, Locked, Store
from dynactor.storage.subscriber_names import index_subscriber
from dynactor.streams import log_bounds
from tests.support.databases.databases import (
    HeldStore,
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.expiry import switch, until_status
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.stepped_store import commits_of, soon, stepped_database, turns
from tests.support.stores.store import memory_store

POSTS = KeyAttribute("posts", "N")
BY_POSTS = IndexDefinition(1, "by_posts", KeySchema((POSTS,), ()), Projection("ALL"))
MIDDLE = b"\x80"
DAY_SECONDS = 86_400.0


def indexed() -> TableDefinition:
    """A table with a stream and a global index of all attributes."""
    return structs.replace(
        table_definition(),
        attribute_definitions=(*table_definition().attribute_definitions, POSTS),
        global_indexes=(GlobalIndex(BY_POSTS),),
        stream=StreamSettings("", "NEW_AND_OLD_IMAGES"),
    )


@asynccontextmanager
async def one_partition(
    definition: TableDefinition | None = None, store: Store | None = None
) -> AsyncIterator[tuple[Database, Table]]:
    async with running_database(
        store, partitions_per_table=1, keep_streams_seconds=60.0
    ) as database:
        if "Thread" not in database.table_names():
            await database.ask(CreateTable(definition or table_definition()))
        yield database, database.table("Thread")


async def scanned(table: Table, limit: int | None = None) -> list[bytes]:
    return await pages(table, ReadRange(key_range.WHOLE, PageRules(limit=limit)))


async def pages(table: Table, request: ReadRange) -> list[bytes]:
    found: list[bytes] = []
    while True:
        page = await read_page(table, request)
        found += page.items
        if page.last is None:
            return found
        position = keys.encode(table.definition.key_schema, page.last)
        request = structs.replace(request, after=position)


def place(item: Item) -> tuple[str, str]:
    return item["forum"]["S"], item["subject"]["S"]


def numbers(table: Table) -> list[int]:
    return [partition.number for partition in table.record.partitions]


class Writers:
    """Tasks that each put and delete their own items, one after another."""

    def __init__(self, table: Table, seed: int = 1) -> None:
        self.items: dict[tuple[str, str], Item] = {}
        self.writes = 0
        self._table = table
        self._draw = random.Random(seed)
        self._stopping = False

    @asynccontextmanager
    async def writing(self, count: int = 16) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(self._write(number))
            try:
                yield
            finally:
                self._stopping = True

    async def _write(self, number: int) -> None:
        while not self._stopping:
            forum = f"f{self._draw.randrange(8)}"
            item = thread(forum, f"{number}.{self._draw.randrange(8)}")
            self.writes += 1
            if self._draw.random() < 0.2:
                await self._table.write(Delete(item))
                self.items.pop(place(item), None)
            else:
                item["posts"] = {"N": str(self._draw.randrange(4))}
                item["n"] = {"N": str(self.writes)}
                await self._table.write(put(item))
                self.items[place(item)] = item

    async def wait(self, writes: int) -> None:
        goal = self.writes + writes
        while self.writes < goal:
            await asyncio.sleep(0)

    async def compare(self) -> None:
        found = {place(item): item for item in map(json.decode, await scanned(self._table, 7))}
        assert found == self.items
        heads = await self._table.heads()
        assert sum(head.item_counts.get(0, 0) for head in heads) == len(self.items)


async def split_somewhere(database: Database, draw: random.Random, index_id: int = 0) -> None:
    """Split a partition at a random position; half of the positions are within a collection."""
    table = database.table("Thread")
    if index_id:
        schema = KeySchema(BY_POSTS.key_schema.partition)
        position = keys.encode_partition(schema, thread("", "", posts=draw.randrange(4)))
        position += f"f{draw.randrange(8)}".encode()
    else:
        item = thread(f"f{draw.randrange(8)}", f"{draw.randrange(16)}")
        position = keys.encode(table.definition.key_schema, item)
    if draw.random() < 0.5:
        position = position[:8]
    ranges = table.record.ranges(index_id)
    owner = max((part for part in ranges if part.start <= position), key=lambda part: part.start)
    if owner.start != position:
        await database.ask(SplitPartition("Thread", owner.number, position, index_id=index_id))


async def test_writes_before_and_after_a_split_exist_after_a_restart():
    async with memory_store() as store:
        async with one_partition(store=store) as (database, table):
            writers = Writers(table)
            async with writers.writing():
                await writers.wait(200)
                assert await database.ask(SplitPartition("Thread", 1, MIDDLE)) == (2, 3)
                await writers.wait(200)
            await writers.compare()
            assert numbers(table) == [2, 3]
        async with one_partition(store=store) as (database, table):
            assert numbers(table) == [2, 3]
            writers._table = table
            writers._stopping = False
            await writers.compare()
            async with writers.writing():
                await writers.wait(50)
            await writers.compare()


@pytest.mark.parametrize("seed", range(4))
async def test_many_splits_during_writes_lose_and_duplicate_no_item(seed):
    draw = random.Random(seed)
    async with one_partition(indexed()) as (database, table):
        writers = Writers(table, seed)
        async with writers.writing():
            for _ in range(15):
                await writers.wait(20)
                await split_somewhere(database, draw)
                await split_somewhere(database, draw, BY_POSTS.index_id)
        assert len(table.record.partitions) > 8
        assert len(table.record.index_partitions[1]) > 4
        await writers.compare()
        await compare_index(table, writers)
        await compare_stream(database, table, writers)


@pytest.mark.parametrize("seed", range(3))
async def test_followers_continue_after_splits_after_a_restart(seed):
    draw = random.Random(seed)
    async with memory_store() as store:
        async with one_partition(indexed(), store) as (database, table):
            writers = Writers(table, seed)
        for _ in range(4):
            async with one_partition(store=store) as (database, table):
                writers._table, writers._stopping = table, False
                async with writers.writing():
                    for _ in range(3):
                        await writers.wait(10)
                        await split_somewhere(database, draw)
                        await split_somewhere(database, draw, BY_POSTS.index_id)
                await writers.compare()
        async with one_partition(store=store) as (database, table):
            writers._table = table
            await compare_index(table, writers)
            await compare_stream(database, table, writers)


async def compare_index(table: Table, writers: Writers) -> None:
    actors = table.followers.indexes.get(BY_POSTS.index_id)
    assert actors is not None
    async with asyncio.timeout(60):
        await actors.wait_caught_up()
    request = ReadRange(key_range.WHOLE, PageRules(), BY_POSTS)
    rows = [json.decode(row) for row in (await read_page(table, request)).items]
    assert {place(row): row for row in rows} == writers.items
    assert len(rows) == len(writers.items)
    heads = await table.heads()
    assert sum(head.item_counts.get(BY_POSTS.index_id, 0) for head in heads) == len(rows)


async def compare_stream(database: Database, table: Table, writers: Writers) -> None:
    """Check that the old image of each record is the new image of the item's previous record."""
    (stream,) = database.part(StreamRegistry).all()
    known: dict[tuple[str, str], Item] = {}
    by_id = {shard.shard_id: shard for shard in stream.shards}
    for shard in stream.shards:
        if shard.parent_id is not None:
            parent = by_id[shard.parent_id]
            assert parent.last is not None
            assert shard.starting_sequence_number > parent.starting_sequence_number
        records = await database.part(StreamRegistry).read(
            shard, shard.horizon, max_records=100_000, max_bytes=1 << 30
        )
        for record in records:
            at = place(record.key)
            assert (record.old.item if record.old else None) == known.pop(at, None)
            if record.new:
                known[at] = record.new.item
    assert known == writers.items
    open_shards = [shard.partition_number for shard in stream.shards if shard.last is None]
    assert sorted(open_shards) == sorted(numbers(table))


@pytest.mark.parametrize("restarted", [False, True])
async def test_no_row_remains_of_a_table_that_was_split_and_deleted(restarted):
    """The test checks rows of partitions, of ended logs and of followers."""
    clock = SetClock()
    draw = random.Random(5)
    settings = {"partitions_per_table": 1, "keep_streams_seconds": 1e9}
    async with memory_store() as store:
        async with running_database(store, clock, **settings) as database:
            await database.ask(CreateTable(indexed()))
            table = database.table("Thread")
            await switch(database, "Thread", "at", enabled=True)
            await until_status(table, "ENABLED")
            for round_number in range(2):
                writers = Writers(table, round_number)
                async with writers.writing():
                    for _ in range(4):
                        await writers.wait(20)
                        await split_somewhere(database, draw)
                        await split_somewhere(database, draw, BY_POSTS.index_id)
                if not round_number:
                    # After a day, the next call trims the records written so far.
                    clock.step(DAY_SECONDS)
                    await database.actor.keep_streams()
            if not restarted:
                await database.ask(DeleteTable("Thread"))
        async with running_database(store, clock, **settings) as database:
            if restarted:
                await database.ask(DeleteTable("Thread"))
            clock.step(DAY_SECONDS)
            await database.actor.keep_streams()
            await store.reclaim(b"\x00", b"\xff")
            rows = await store.durable().page(b"", b"\xff", max_rows=100, max_bytes=1 << 20)
            left = [
                key_layout.CATALOG_HEAD,
                key_layout.VIRTUAL_CLOCK,
                key_layout.CATALOG_VERSION,
                key_layout.CATALOG_WRITER,
            ]
            assert [row.key for row in rows] == left


async def test_a_partition_continues_after_a_full_disk_refuses_its_split():
    async with memory_store() as inner:
        store = HeldStore(inner)
        async with one_partition(store=store) as (database, table):
            await table.write(put(thread("f", "a")))
            store.refusal = Full("no space")
            with pytest.raises(InternalServerError, match="Nothing was changed"):
                await database.ask(SplitPartition("Thread", 1, MIDDLE))
            store.refusal = None
            await table.write(put(thread("f", "b")))
            assert numbers(table) == [1]
            assert len(await scanned(table)) == 2


@pytest.mark.embedded_store("PostgreSQL accepts a commit when it is durable")
async def test_writes_during_the_sync_of_a_split_are_executed_in_order_by_the_children():
    async with memory_store() as inner:
        store = HeldStore(inner)
        async with one_partition(indexed(), store) as (database, table):
            await table.write(put(thread("f", "a", posts=0)))
            store.hold()
            splitting = asyncio.ensure_future(database.ask(SplitPartition("Thread", 1, MIDDLE)))
            await soon(lambda: bool(store.held))
            # The partition finds its head gone with this write, and keeps the next ones.
            writes = [table.submit(put(thread("f", "a", posts=1)))]
            partition = table.partitions._actors[1]
            await soon(lambda: bool(partition.in_progress) and partition.is_stale)
            writes += [table.submit(put(thread("f", "a", posts=posts))) for posts in (2, 3)]
            await turns()
            assert not any(write.done() for write in [*writes, splitting])
            await store.release()
            assert await splitting == (3, 4)
            await asyncio.gather(*writes)
            (item,) = map(json.decode, await scanned(table))
            assert item["posts"] == {"N": "3"}
            child = table.number_at(keys.encode(table.definition.key_schema, item))
            (stream,) = database.part(StreamRegistry).all()
            (shard,) = (each for each in stream.shards if each.partition_number == child)
            records = await database.part(StreamRegistry).read(
                shard, 0, max_records=9, max_bytes=1 << 20
            )
            images = [record.new.item["posts"]["N"] for record in records if record.new]
            assert images == ["1", "2", "3"]
            assert await store.latest.load([key_layout.partition_head(1)]) == [None]


async def test_a_log_ends_with_the_last_write_before_the_commit_of_the_split():
    async with stepped_database(partitions_per_table=1, keep_streams_seconds=60.0) as (
        store,
        database,
    ):
        await database.ask(CreateTable(indexed()))
        table = database.table("Thread")
        await table.write(put(thread("f", "a", posts=1)))
        # The split has read the head of its parent.
        gate = store.gate_before(commits_of(key_layout.CATALOG_WRITER))
        splitting = asyncio.ensure_future(database.ask(SplitPartition("Thread", 1, MIDDLE)))
        await gate.reached()
        await table.write(put(thread("f", "b", posts=1)))
        gate.open()
        assert await splitting == (3, 4)
        (ended,) = table.record.ended_logs
        assert ended.last == 2
        assert await store.latest.load([key_layout.partition_head(1)]) == [None]
        assert sum(head.item_counts.get(0, 0) for head in await table.heads()) == 2
        (stream,) = database.part(StreamRegistry).all()
        assert [shard.last for shard in stream.shards if shard.partition_number == 1] == [2]


async def test_a_partition_that_writes_all_the_time_is_split_under_a_lock():
    async with memory_store() as inner:
        store = BusyStore(inner)
        async with one_partition(indexed(), store) as (database, table):
            await table.write(put(thread("f", "a", posts=1)))
            store.write = lambda: table.write(put(thread("f", "a", posts=1, n=store.writes)))
            assert await database.ask(SplitPartition("Thread", 1, MIDDLE)) == (3, 4)
            assert (store.writes, store.locks) == (CONFLICTS_BEFORE_LOCK, 1)
            (ended,) = table.record.ended_logs
            assert ended.last == 1 + CONFLICTS_BEFORE_LOCK


class BusyStore(FaultyStore):
    """A store in which the partition writes before each commit of its split without a lock."""

    write: Callable[[], Awaitable[object]] | None = None
    writes = 0
    locks = 0

    async def commit(self, groups: Sequence[Group]) -> asyncio.Future[None]:
        head_key = key_layout.partition_head(1)
        if self.write and any(each.head_key == head_key and each.head is None for each in groups):
            self.writes += 1
            await self.write()
        return await super().commit(groups)

    @asynccontextmanager
    async def locked(self, heads: Sequence[bytes]) -> AsyncIterator[Locked]:
        self.locks += 1
        async with self._inner.locked(heads) as locked:
            yield locked


async def test_the_item_count_of_a_table_is_right_during_a_split():
    async with one_partition(indexed()) as (database, table):
        for at in range(20):
            await table.write(put(thread(f"{at}", "a", posts=at)))
        actors = table.followers.indexes.get(BY_POSTS.index_id)
        assert actors is not None
        await actors.wait_caught_up()
        draw = random.Random(7)
        is_over = False

        async def describe() -> int:
            descriptions = 0
            while not is_over:
                state = await database.describe("Thread")
                assert (state.item_count, state.indexes["by_posts"].item_count) == (20, 20)
                descriptions += 1
                await asyncio.sleep(0)
            return descriptions

        describing = asyncio.ensure_future(describe())
        for _ in range(10):
            await split_somewhere(database, draw)
            await split_somewhere(database, draw, BY_POSTS.index_id)
        is_over = True
        assert await describing > 20


async def test_a_start_key_from_before_a_split_continues_the_scan():
    async with one_partition() as (database, table):
        for at in range(40):
            await table.write(put(thread(f"f{at % 5}", f"{at:02}")))
        whole = await scanned(table)
        request = ReadRange(key_range.WHOLE, PageRules(limit=7), by_partition=True)
        draw = random.Random(3)
        found: list[bytes] = []
        while True:
            page = await read_page(table, request)
            found += page.items
            if page.last is None:
                break
            position = keys.encode(table.definition.key_schema, page.last)
            request = structs.replace(request, after=position)
            await split_somewhere(database, draw)
        assert found == whole


async def test_a_query_of_a_collection_that_is_split_by_sort_key_is_in_order():
    async with one_partition() as (database, table):
        for at in range(30):
            await table.write(put(thread("f", f"{at:02}")))
        schema = table.definition.key_schema
        for at, number in ((10, 1), (20, 3)):
            position = keys.encode(schema, thread("f", f"{at}"))
            await database.ask(SplitPartition("Thread", number, position))
        wanted = key_range.selected_range(KeyCondition(({"S": "f"},), ()))
        for reverse in (False, True):
            request = ReadRange(wanted, PageRules(limit=4), reverse=reverse)
            subjects = [json.decode(row)["subject"]["S"] for row in await pages(table, request)]
            assert subjects == sorted(subjects, reverse=reverse)
            assert len(subjects) == 30


async def test_an_ended_log_is_deleted_when_it_is_not_needed():
    definition = structs.replace(indexed(), stream=None)
    async with memory_store() as store:
        async with one_partition(definition, store) as (database, table):
            writers = Writers(table)
            async with writers.writing():
                await writers.wait(50)
                await database.ask(SplitPartition("Thread", 1, MIDDLE))
                await writers.wait(50)
            (ended,) = table.record.ended_logs
            assert ended.children == tuple(numbers(table))
            subscriber = index_subscriber(1, BY_POSTS.index_id)
            assert ended.subscribers == (subscriber,)
            await compare_index(table, writers)
            feed = table.followers._feeds[1]
            assert feed.last == ended.last
            await database.actor.keep_streams()
            assert table.record.ended_logs == ()
            assert 1 not in table.followers._feeds
            assert [feed.parent for feed in await table.followers.feeds()] == [None, None]
            await store.reclaim(*key_layout.change_range(1))
            for start, end in (
                key_layout.change_range(1),
                (key_layout.checkpoint(subscriber, 1), key_layout.checkpoint(subscriber, 2)),
                (key_layout.trim(1, 1), key_layout.trim(1, 2)),
            ):
                assert not await store.latest.page(start, end, max_rows=1, max_bytes=1)
        async with one_partition(store=store) as (database, table):
            writers._table = table
            await compare_index(table, writers)


async def test_an_ended_log_is_kept_while_a_stream_shows_it():
    async with one_partition(indexed()) as (database, table):
        writers = Writers(table)
        async with writers.writing():
            await writers.wait(30)
            await database.ask(SplitPartition("Thread", 1, MIDDLE))
        await compare_index(table, writers)
        await database.actor.keep_streams()
        assert [ended.number for ended in table.record.ended_logs] == [1]
        await compare_stream(database, table, writers)


async def test_the_children_of_a_partition_without_followers_leave_no_log():
    async with one_partition() as (database, table):
        await table.write(put(thread("f", "a")))
        await database.ask(SplitPartition("Thread", 1, MIDDLE))
        assert table.record.ended_logs == ()
        assert [feed.partition_number for feed in await table.followers.feeds()] == [2, 3]


async def test_the_children_of_a_deleted_log_store_the_time_since_which_they_are_complete():
    now_us = 1_795_175_136_489_000
    clock = SetClock(now_us / 1e6)
    for definition in (table_definition(), structs.replace(indexed(), stream=None)):
        async with running_database(clock=clock, partitions_per_table=1) as database:
            await database.ask(CreateTable(definition))
            table = database.table("Thread")
            await table.write(put(thread("f", "a", posts=1)))
            await database.ask(SplitPartition("Thread", 1, MIDDLE))
            if definition.global_indexes:
                actors = table.followers.indexes.get(1)
                assert actors is not None
                while not actors._maintainers[1].ended.done():
                    await asyncio.sleep(0)
                await database.actor.keep_streams()
            children = numbers(table)
            reached = await log_bounds.reaches(table.durable(), table.record, now_us)
            assert [(log.partition_number, log.lost_us) for log in reached] == [
                (child, now_us) for child in children
            ]


async def test_a_deleted_table_leaves_no_rows_of_ended_logs():
    definition = structs.replace(indexed(), stream=None)
    async with memory_store() as store, one_partition(definition, store) as (database, table):
        writers = Writers(table)
        async with writers.writing():
            await writers.wait(30)
            await database.ask(SplitPartition("Thread", 1, MIDDLE))
        await database.ask(DeleteTable("Thread"))
        start, end = key_layout.change_range(1)[0], key_layout.change_range(99)[1]
        await store.reclaim(start, end)
        assert not await store.latest.page(start, end, max_rows=1, max_bytes=1)


REFUSED: Sequence[tuple[int, bytes, type[Exception]]] = [
    (9, MIDDLE, ValidationException),
    (1, b"", ValidationException),
    (1, MIDDLE + b"\x00" * 8, ValidationException),
]


@pytest.mark.parametrize(("number", "at", "error"), REFUSED)
async def test_an_impossible_split_is_refused(number, at, error):
    """The last case is a position within an item collection of a table with local indexes (S74)."""
    async with one_partition(table_definition(local_sort_keys=["posts"])) as (database, table):
        with pytest.raises(error):
            await database.ask(SplitPartition("Thread", number, at))
        assert numbers(table) == [1]


UNSETTLED = [
    structs.replace(indexed(), status="UPDATING"),
    structs.replace(
        indexed(), global_indexes=(GlobalIndex(BY_POSTS, status="CREATING", backfilling=True),)
    ),
    structs.replace(indexed(), global_indexes=(GlobalIndex(BY_POSTS, status="UPDATING"),)),
    structs.replace(indexed(), global_indexes=(GlobalIndex(BY_POSTS, status="DELETING"),)),
    structs.replace(indexed(), time_to_live=TimeToLive("at", "ENABLING", 0.0)),
    structs.replace(indexed(), time_to_live=TimeToLive("at", "DISABLING", 0.0)),
    structs.replace(indexed(), destinations=(StreamingDestination(1, "topic", "ENABLING"),)),
]


@pytest.mark.parametrize("definition", UNSETTLED)
def test_a_table_in_a_temporary_phase_is_not_settled(definition):
    assert not is_settled(definition)


def test_a_table_whose_followers_are_active_or_deleted_is_settled():
    definition = structs.replace(
        indexed(),
        time_to_live=TimeToLive("at", "ENABLED", 0.0),
        destinations=(
            StreamingDestination(1, "topic", "ACTIVE"),
            StreamingDestination(2, "other", "DISABLED"),
            StreamingDestination(3, "third", "BROKEN"),
        ),
    )
    assert is_settled(definition)


async def test_a_table_that_is_being_changed_is_not_split():
    async with running_database(partitions_per_table=1, table_transition_seconds=60.0) as database:
        await database.ask(CreateTable(table_definition()))
        with pytest.raises(ResourceInUseException):
            await database.ask(SplitPartition("Thread", 1, MIDDLE))
