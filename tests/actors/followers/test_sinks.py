"""Followers and scans keep a sink correct despite a split, a crash and a full disk."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
from msgspec import structs

from dynactor.actors.database.database import Database
from dynactor.actors.runtime.supervisor import Supervisor
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import StreamSettings
from dynactor.model.values.stored_item import StoredItem
from dynactor.model.writes.write import Delete
from dynactor.storage.store import Full, Group, Store
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.item_counts import CountedTable, ItemCounts
from tests.support.databases.splitting import halve, splitting
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

COLORS = ("red", "green", "blue")


class Crowd:
    """A client that puts and deletes items, and counts the items of each color."""

    def __init__(self) -> None:
        self._draw = random.Random(5)
        self._colors: dict[tuple[str, str], str | None] = {}

    async def write(self, table: Table, writes: int) -> None:
        for _ in range(writes):
            forum, subject = f"f{self._draw.randrange(12)}", f"s{self._draw.randrange(12)}"
            color = self._draw.choice([*COLORS, None])
            item = thread(forum, subject)
            if self._draw.random() < 0.2:
                self._colors.pop((forum, subject), None)
                await table.write(Delete(item))
                continue
            self._colors[forum, subject] = color
            await table.write(put(item if color is None else item | {"color": {"S": color}}))

    @property
    def counts(self) -> Counter[str]:
        return Counter(color for color in self._colors.values() if color is not None)


@asynccontextmanager
async def counted(
    store: Store, crowd: Crowd, sink: ItemCounts | None = None
) -> AsyncIterator[tuple[Database, Table, CountedTable]]:
    """A database with a counted table. The first call for a store creates and fills the table."""
    async with running_database(store) as database, anyio.create_task_group() as tasks:
        if not database.table_names():
            settings = StreamSettings("", "NEW_AND_OLD_IMAGES")
            await database.ask(CreateTable(structs.replace(table_definition(), stream=settings)))
            await crowd.write(database.table("Thread"), 300)
        table = database.table("Thread")
        sink = sink or ItemCounts(table.definition.key_schema, "color")
        counting = CountedTable(table, sink, store, Supervisor(tasks))
        await counting.start()
        try:
            yield database, table, counting
        finally:
            await table.followers.detach(counting.subscriber_id)


async def assert_counts(counting: CountedTable, crowd: Crowd) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while not counting.followers:
            await asyncio.sleep(0)
        assert await counting.followers.wait_caught_up()
    assert await counting.counts() == crowd.counts
    assert crowd.counts.total() > 30


async def test_existing_items_and_concurrent_changes_are_counted():
    async with memory_store() as store:
        crowd = Crowd()
        async with counted(store, crowd) as (_, table, counting):
            await crowd.write(table, 300)
            await assert_counts(counting, crowd)
        async with counted(store, crowd) as (_, table, counting):
            await crowd.write(table, 100)
            await assert_counts(counting, crowd)


async def test_counts_are_right_after_splits():
    async with memory_store() as store:
        crowd = Crowd()
        async with counted(store, crowd) as (database, table, counting):
            async with splitting(database, table, 12):
                await crowd.write(table, 600)
            await assert_counts(counting, crowd)
        async with counted(store, crowd) as (database, table, counting):
            await halve(database, table, table.record.partitions[0].number)
            await crowd.write(table, 100)
            await assert_counts(counting, crowd)


class CrashingCounts(ItemCounts):
    """Crashes its actor at every 100th item, as often as the supervisor allows."""

    crashes = 3
    items = 0

    def entry(self, item: StoredItem) -> str | None:
        self.items += 1
        if self.items % 100 == 0 and self.crashes:
            self.crashes -= 1
            raise RuntimeError("played by a test")
        return super().entry(item)


async def test_counts_are_right_after_crashes_of_scans_and_followers():
    async with memory_store() as store:
        crowd = Crowd()
        sink = CrashingCounts(table_definition().key_schema, "color")
        async with counted(store, crowd, sink) as (_, table, counting):
            await crowd.write(table, 300)
            await assert_counts(counting, crowd)
        assert sink.crashes == 0


class FullForCounts(FaultyStore):
    """A store that refuses each commit of the counts twice, as on a full disk."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.refused = 0

    async def commit(self, groups: Sequence[Group]) -> asyncio.Future[None]:
        if any(key.startswith(b"\x7f") for group in groups for key, _ in group.puts):
            self.refused += 1
            if self.refused % 3:
                raise Full("the disk is full: played by a test")
        return await super().commit(groups)


async def test_counts_are_right_after_a_full_disk():
    async with memory_store() as inner:
        store, crowd = FullForCounts(inner), Crowd()
        async with counted(store, crowd) as (_, table, counting):
            await crowd.write(table, 300)
            await assert_counts(counting, crowd)
        assert store.refused >= 3
