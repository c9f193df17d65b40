"""No write is lost during random splits, index changes, expiry, stream changes and crashes.

DYNACTOR_TEST_CHANGED_TABLES is the number of seeds.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from random import Random

import pytest
from structlog.testing import capture_logs

from dynactor.actors.database.database import Database
from dynactor.actors.derived.expiry.time_to_live_settings import TimeToLiveSettings
from dynactor.actors.phases.streams import StreamRegistry
from dynactor.actors.runtime.mailbox import MailboxClosed, Message
from dynactor.actors.table.messages import CreateTable, UpdateTable, UpdateTimeToLive
from dynactor.actors.table.pages import ReadRange, read_page
from dynactor.actors.table.table import Table
from dynactor.model.definitions.index import IndexDefinition
from dynactor.model.errors import DynamoDBError, InternalServerError
from dynactor.model.key_conditions import key_range
from dynactor.model.keys.key import KeyAttribute
from dynactor.model.reads.page import PageRules
from dynactor.model.tables.global_index_rules import NewGlobalIndex
from dynactor.model.tables.schema_rules import KeyElement
from dynactor.model.tables.stream_rules import StreamChange
from dynactor.model.tables.table_edits import TableEdit
from dynactor.model.tables.time_to_live import TimeToLiveChange
from dynactor.model.values import item as items
from dynactor.model.values.item import Item
from dynactor.model.writes.write import Delete
from dynactor.storage.store import Full
from dynactor.streams.shard import Shard, Stream
from tests.support.databases.databases import (
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.expiry import listed, rebuilt, until_listed
from tests.support.databases.splitting import halve
from tests.support.databases.transacting import transact
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store
from tests.support.tables.index_lag import index_lag_records

NOW = 1_700_000_000
SEEDS = int(os.environ.get("DYNACTOR_TEST_CHANGED_TABLES", "3"))
SETTINGS = TimeToLiveSettings(
    delay_seconds=0.0, deletes_per_second=100_000.0, change_interval_seconds=0.0
)
WRITERS = 6
CHANGES = 120
MOST_PARTITIONS = 12
POSTS = KeyAttribute("posts", "N")

# An item as JSON, so that items can be compared; None for a missing item.
State = bytes | None


class Poison(Message[None], frozen=True):
    """A message that no actor knows."""


def state_of(item: Item | None) -> State:
    return None if item is None else items.encode(dict(sorted(item.items())))


class Crowd:
    """Writers, each with its own items, and a task that changes their table.

    Invariant: each item has one of its ``possible`` states, or had one and has expired since.
    """

    def __init__(self, database: Database, store: FaultyStore, clock: SetClock, seed: int) -> None:
        self.possible: dict[str, set[State]] = {}
        self._database = database
        self._store = store
        self._clock = clock
        self._draw = Random(seed)
        self._is_changing = True

    async def work(self) -> None:
        """Change the table ``CHANGES`` times while all clients write."""
        async with asyncio.TaskGroup() as group:
            for writer in range(WRITERS):
                group.create_task(self._write(writer))
            await self._change()
            self._is_changing = False

    async def _write(self, writer: int) -> None:
        draw, number = self._draw, 0
        own = [thread(f"f{writer} {each}", "s") for each in range(4)]
        while self._is_changing:
            number += 1
            table = self._database.table("Thread")
            new: dict[str, Item | None] = {}
            writes = []
            for key in draw.sample(own, draw.choice([1, 1, 2, 3])):
                item = None if draw.random() < 0.25 else self._item(key, number)
                writes.append((table, Delete(key) if item is None else put(item)))
                new[key["forum"]["S"]] = item
            try:
                if len(writes) == 1:
                    await table.write(writes[0][1])
                else:
                    await transact(self._database, *writes)
            except InternalServerError as error:
                if "Nothing was written" not in error.message:
                    for name, item in new.items():
                        self.possible.setdefault(name, {None}).add(state_of(item))
            except DynamoDBError:
                # A transaction has locked the items, or the table is restarting.
                await asyncio.sleep(0.001)
            else:
                for name, item in new.items():
                    self.possible[name] = {state_of(item)}
            await asyncio.sleep(0)

    def _item(self, key: Item, number: int) -> Item:
        draw = self._draw
        item: Item = {**key, "number": {"N": str(number)}, "text": {"S": "x" * draw.randrange(50)}}
        if draw.random() < 0.7:
            item["posts"] = {"N": str(draw.randrange(8))}
        if draw.random() < 0.3:
            at = int(self._clock.now_epoch_seconds()) + draw.randrange(-3, 40)
            item["at"] = {"N": str(at)}
        return item

    async def _change(self) -> None:
        changes: list[Callable[[Table], Awaitable[object]]] = [
            *[self._split] * 4,
            *[self._index] * 2,
            self._stream,
            self._time_to_live,
            self._later,
            self._keep,
            self._fill_disk,
            self._crash_partition,
            self._crash_database,
        ]
        for _ in range(CHANGES):
            table = self._database.table("Thread")
            try:
                await self._draw.choice(changes)(table)
            except (DynamoDBError, MailboxClosed):
                # The change is not possible now, or the table is restarting.
                await asyncio.sleep(0.002)
            for _ in range(self._draw.randrange(30)):
                await asyncio.sleep(0)

    async def _split(self, table: Table) -> None:
        if len(table.record.partitions) < MOST_PARTITIONS:
            number = self._draw.choice(table.record.partitions).number
            await halve(self._database, table, number)

    async def _index(self, table: Table) -> None:
        if table.definition.global_indexes:
            edit = TableEdit(index_deletes=("by_posts",))
        else:
            index = NewGlobalIndex("by_posts", (KeyElement("posts", "HASH"),), "ALL")
            edit = TableEdit(index_creates=(index,), attribute_definitions=(POSTS,))
        await self._database.ask(UpdateTable("Thread", edit))

    async def _stream(self, table: Table) -> None:
        stream = table.definition.stream
        change = StreamChange(enabled=True, view_type="NEW_AND_OLD_IMAGES")
        if stream is not None and stream.enabled:
            change = StreamChange(enabled=False)
        await self._database.ask(UpdateTable("Thread", TableEdit(stream=change)))

    async def _time_to_live(self, table: Table) -> None:
        settings = table.definition.time_to_live
        change = TimeToLiveChange(settings is None or not settings.deletes, "at")
        await self._database.ask(UpdateTimeToLive("Thread", change))

    async def _later(self, _: Table) -> None:
        self._clock.step(self._draw.randrange(1, 6))

    async def _keep(self, _: Table) -> None:
        await self._database.actor.keep_streams()

    async def _fill_disk(self, _: Table) -> None:
        self._store.refuse_commits(Full("the disk is full"))
        for _ in range(self._draw.randrange(60)):
            await asyncio.sleep(0)
        self._store.allow_commits()

    async def _crash_partition(self, table: Table) -> None:
        number = self._draw.choice(table.partitions.map.numbers)
        await table.partitions[number].ask(Poison(), always=True)

    async def _crash_database(self, _: Table) -> None:
        await self._database.actor.mailbox.put_nowait(Poison())


async def whole(table: Table, index: IndexDefinition | None = None) -> dict[str, Item]:
    """All items, or entries, by their key."""
    page = await read_page(table, ReadRange(key_range.WHOLE, PageRules(), index=index))
    assert page.last is None
    return {item["forum"]["S"]: item for item in map(items.decode, page.items)}


async def settle(database: Database) -> Table:
    """Wait until the table's followers have processed all changes; return the table."""
    async with asyncio.timeout(HANG_SECONDS):
        while True:
            table = database.table("Thread")
            definition = table.definition
            settings = definition.time_to_live
            if (
                all(index.backfilling is None for index in definition.global_indexes)
                and all(index.status == "ACTIVE" for index in definition.global_indexes)
                and (settings is None or settings.status in ("ENABLED", "DISABLED"))
                and definition.status == "ACTIVE"
            ):
                return table
            await asyncio.sleep(0.002)


async def check_items(crowd: Crowd, table: Table, now: float) -> None:
    """Check that each item has a possible state, and that expired items are deleted."""
    settings = table.definition.time_to_live
    async with asyncio.timeout(HANG_SECONDS):
        while settings is not None and settings.deletes:
            if not any(has_expired(item, now) for item in (await whole(table)).values()):
                break
            await asyncio.sleep(0.002)
    found = await whole(table)
    for name, states in crowd.possible.items():
        state = state_of(found.get(name))
        expired = any(each and has_expired(items.decode(each), now) for each in states)
        assert state in states or (state is None and expired), name
    assert found.keys() <= crowd.possible.keys()


def has_expired(item: Item, now: float) -> bool:
    return "at" in item and float(item["at"]["N"]) < now


async def check_indexes(database: Database, table: Table) -> None:
    """Check that each index has exactly the entries of the table's items, and the right count."""
    state = await database.describe("Thread")
    found = await whole(table)
    assert state.item_count == len(found)
    assert state.size_bytes == sum(map(items.size_bytes, found.values()))
    for index in table.definition.global_indexes:
        async with asyncio.timeout(HANG_SECONDS):
            while index_lag_records(table, index.definition):
                await asyncio.sleep(0.002)
        expected = {name: item for name, item in found.items() if "posts" in item}
        assert await whole(table, index.definition) == expected
        state = await database.describe("Thread")
        assert state.indexes["by_posts"].item_count == len(expected)


async def check_streams(database: Database, table: Table) -> None:
    """Check that an item's records are consecutive, and that the last one has the present item."""
    found = await whole(table)
    for stream in database.part(StreamRegistry).all():
        told: dict[str, State] = {}
        for shard in parents_first(stream):
            for record in await database.part(StreamRegistry).read(
                shard, shard.horizon, max_records=100_000, max_bytes=1 << 30
            ):
                name = record.key["forum"]["S"]
                old, new = (
                    None if image is None else state_of(items.decode(image.data))
                    for image in (record.old, record.new)
                )
                assert told.get(name, old) == old, name
                told[name] = new
        if stream.disabled_epoch_seconds is None:
            assert {name: state_of(found.get(name)) for name in told} == told


def parents_first(stream: Stream) -> list[Shard]:
    ordered: dict[str | None, Shard] = {}
    known = {shard.shard_id for shard in stream.shards}
    while len(ordered) < len(stream.shards):
        for shard in stream.shards:
            if shard.parent_id not in known or shard.parent_id in ordered:
                ordered[shard.shard_id] = shard
    return list(ordered.values())


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_table_indexes_and_streams_show_all_writes(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without this, supervisors would give up after a few crashes.
    monkeypatch.setattr("dynactor.actors.runtime.supervisor.RESTARTS", 1_000)
    monkeypatch.setattr("dynactor.actors.database.database_actor.CATALOG_SECONDS", 0.01)
    # Logging all crashes would take most of the time.
    with capture_logs():
        await write_and_check(seed)


async def write_and_check(seed: int) -> None:
    clock = SetClock(NOW)
    async with memory_store() as real:
        store = FaultyStore(real)
        async with running_database(store, clock, time_to_live=SETTINGS) as database:
            await database.ask(CreateTable(table_definition()))
            crowd = Crowd(database, store, clock, seed)
            await crowd.work()
        # Check again after a restart.
        async with running_database(real, clock, time_to_live=SETTINGS) as database:
            table = await settle(database)
            await check_items(crowd, table, clock.now_epoch_seconds())
            await check_indexes(database, table)
            await check_streams(database, table)
            settings = table.definition.time_to_live
            expected = set()
            if settings is not None and settings.deletes:
                await until_listed(table)
                expected = await rebuilt(real, table.definition, "at")
            assert await listed(real, table.definition.table_id) == expected
