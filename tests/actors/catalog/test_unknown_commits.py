"""After a commit of the catalog with an unknown outcome, the database loads the stored state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from dynactor.actors.database.database import Database
from dynactor.actors.database.virtual_clock import MoveClock
from dynactor.actors.runtime.clock import VirtualClock
from dynactor.actors.splitting.messages import SplitPartition
from dynactor.actors.table.messages import CreateTable, DeleteTable, UpdateTable
from dynactor.model.errors import (
    InternalServerError,
    ResourceInUseException,
    ResourceNotFoundException,
)
from dynactor.model.keys.key import KeyAttribute
from dynactor.model.tables.global_index_rules import NewGlobalIndex
from dynactor.model.tables.schema_rules import KeyElement
from dynactor.model.tables.table_edits import TableEdit
from dynactor.storage import catalog, key_layout
from dynactor.storage.store import Closed, Conflict, Store
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.expiry import switch, until_status
from tests.support.databases.stored_items import read_item
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.stores.doubtful_store import DoubtfulStore, Fate
from tests.support.stores.store import memory_store

MIDDLE = b"\x80"
BY_POSTS = TableEdit(
    index_creates=(NewGlobalIndex("by_posts", (KeyElement("posts", "HASH"),), "ALL"),),
    attribute_definitions=(KeyAttribute("posts", "N"),),
)

either_way = pytest.mark.parametrize("fate", [Fate.WRITTEN, Fate.DROPPED])


@asynccontextmanager
async def doubtful() -> AsyncIterator[tuple[DoubtfulStore, list[Any]]]:
    async with memory_store() as inner:
        with capture_logs() as logs:
            yield DoubtfulStore(inner), logs
    assert not any(each["event"] == "actor_crashed" for each in logs)


async def until(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(HANG_SECONDS):
        while not is_so():
            await asyncio.sleep(0.001)


async def until_adopted(logs: Sequence[Any]) -> None:
    await until(lambda: any(each["event"] == "catalog_reloaded" for each in logs))


async def make(database: Database, name: str = "Thread") -> None:
    await database.ask(CreateTable(table_definition(name)))


async def works(database: Database, name: str) -> None:
    table = database.table(name)
    await table.write(put(thread("EC2", "works")))
    read = await read_item(table, thread("EC2", "works"), consistent=True)
    assert read.stored is not None


async def stored_tables(store: Store) -> list[str]:
    return sorted(each.definition.name for each in (await catalog.load(store.latest)).tables)


@either_way
async def test_a_table_exists_if_the_unknown_commit_was_written(fate: Fate):
    async with doubtful() as (store, logs), running_database(store) as database:
        await make(database)
        store.lose_next(key_layout.CATALOG_WRITER, fate)
        with pytest.raises(InternalServerError, match="is unknown"):
            await make(database, "Lost")
        await until_adopted(logs)
        assert database.table_names() == await stored_tables(store)
        if fate is Fate.WRITTEN:
            with pytest.raises(ResourceInUseException):
                await make(database, "Lost")
        else:
            await make(database, "Lost")
        for name in ("Thread", "Lost"):
            await works(database, name)


async def test_a_late_commit_is_refused_once_the_catalog_was_reloaded():
    async with doubtful() as (store, logs), running_database(store) as database:
        # The first commit makes the count of commits, which later commits compare.
        await make(database)
        store.lose_next(key_layout.CATALOG_WRITER, Fate.LATE)
        with pytest.raises(InternalServerError, match="is unknown"):
            await make(database, "Lost")
        await until_adopted(logs)
        with pytest.raises(Conflict):
            await store.write_late()
        assert database.table_names() == await stored_tables(store) == ["Thread"]


async def test_the_catalog_is_reloaded_when_the_store_accepts_commits_again(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("dynactor.actors.database.database_actor.CATALOG_SECONDS", 0.01)
    async with doubtful() as (store, logs), running_database(store) as database:
        await make(database)
        store.lose_next(key_layout.CATALOG_WRITER)
        making = asyncio.ensure_future(make(database, "Lost"))
        await until(lambda: store.lost == 1)
        store.refuse_commits(Closed("no connection: played by a test"))
        with pytest.raises(InternalServerError, match="is unknown"):
            await making
        with pytest.raises(InternalServerError, match="Nothing was changed"):
            await make(database, "Third")
        store.allow_commits()
        await until_adopted(logs)
        assert database.table_names() == ["Lost", "Thread"]


@either_way
async def test_a_table_whose_deletion_is_unknown_is_deleted_or_accepts_writes(fate: Fate):
    async with doubtful() as (store, logs), running_database(store) as database:
        await make(database)
        await works(database, "Thread")
        table = database.table("Thread")
        refused: list[BaseException | None] = []

        async def write_meanwhile() -> None:
            with pytest.raises(ResourceNotFoundException) as error:
                await table.write(put(thread("EC2", "meanwhile")))
            refused.append(error.value)

        store.before_next = write_meanwhile
        store.lose_next(key_layout.CATALOG_WRITER, fate)
        with pytest.raises(InternalServerError, match="is unknown"):
            await database.ask(DeleteTable("Thread"))
        await until_adopted(logs)
        assert len(refused) == 1
        if fate is Fate.WRITTEN:
            with pytest.raises(ResourceNotFoundException):
                database.table("Thread")
        else:
            await works(database, "Thread")


@either_way
async def test_time_to_live_whose_enabling_is_unknown_is_enabled_or_can_be_enabled(fate: Fate):
    async with doubtful() as (store, logs), running_database(store) as database:
        await make(database)

        async def write_meanwhile() -> None:
            await database.table("Thread").write(put(thread("EC2", "meanwhile")))

        store.before_next = write_meanwhile
        store.lose_next(key_layout.CATALOG_WRITER, fate)
        with pytest.raises(InternalServerError, match="is unknown"):
            await switch(database, "Thread", "at", enabled=True)
        await until_adopted(logs)
        feeds = await database.table("Thread").followers.feeds()
        is_recorded = sum(feed.logged_bytes for feed in feeds) > 0
        assert is_recorded == (fate is Fate.WRITTEN)
        if fate is Fate.DROPPED:
            await switch(database, "Thread", "at", enabled=True)
        await until_status(database.table("Thread"), "ENABLED")


@pytest.mark.parametrize("changes", range(3))
@either_way
async def test_an_index_with_an_unknown_phase_change_has_every_item_written_meanwhile(
    fate: Fate, changes: int
):
    """``changes`` is the number of the index's phase change whose commit has an unknown outcome."""
    async with doubtful() as (store, _), running_database(store) as database:
        await make(database)
        committed = 0
        written = 0

        async def write_on() -> None:
            nonlocal written
            while not is_active(database):
                item = put(thread("EC2", f"{written}", posts=written))
                try:
                    await database.table("Thread").write(item)
                except InternalServerError:
                    # The table is restarting, so no item was written.
                    await asyncio.sleep(0)
                else:
                    written += 1

        commit = store.commit

        async def counted(groups: Any) -> Any:
            nonlocal committed
            if groups and groups[0].head_key == key_layout.CATALOG_WRITER:
                if committed == changes:
                    store.lose_next(key_layout.CATALOG_WRITER, fate)
                committed += 1
            return await commit(groups)

        async def write_meanwhile() -> None:
            nonlocal written
            await database.table("Thread").write(put(thread("S3", "meanwhile", posts=1)))
            written += 1

        store.before_next = write_meanwhile
        store.commit = counted  # type: ignore[method-assign]
        async with asyncio.TaskGroup() as tasks:
            try:
                await database.ask(UpdateTable("Thread", BY_POSTS))
            except InternalServerError:
                assert changes == 0
                if fate is Fate.DROPPED:
                    await database.ask(UpdateTable("Thread", BY_POSTS))
            await until(lambda: bool(database.table("Thread").definition.global_indexes))
            writing = tasks.create_task(write_on())
            with anyio.fail_after(HANG_SECONDS):
                await asyncio.wait([writing])
        # The followers start a moment after the definition shows the index.
        await until(lambda: is_followed(database))
        await database.table("Thread").followers.indexes[1].wait_caught_up()
        state = await database.describe("Thread")
        assert state.indexes["by_posts"].item_count == state.item_count == written
        assert store.lost == 1


def is_followed(database: Database) -> bool:
    index = database.table("Thread").followers.indexes.get(1)
    return index is not None and index.is_followed


def is_active(database: Database) -> bool:
    indexes = database.table("Thread").definition.global_indexes
    return bool(indexes) and all(index.status == "ACTIVE" for index in indexes)


@either_way
async def test_a_partition_whose_split_is_unknown_writes_only_if_it_was_not_split(fate: Fate):
    async with (
        doubtful() as (store, logs),
        running_database(store, partitions_per_table=1) as database,
    ):
        await make(database)
        await works(database, "Thread")
        (parent,) = database.table("Thread").partitions.map.numbers
        store.lose_next(key_layout.CATALOG_WRITER, fate)
        waiting: list[asyncio.Future[Any]] = []
        store.on_lost = lambda: waiting.append(
            database.table("Thread").submit(put(thread("EC2", "waits")))
        )
        with pytest.raises(InternalServerError, match="is unknown"):
            await database.ask(SplitPartition("Thread", parent, MIDDLE))
        if fate is Fate.WRITTEN:
            with pytest.raises(InternalServerError, match="Nothing was written"):
                await waiting[0]
        else:
            await waiting[0]
        await until_adopted(logs)
        await works(database, "Thread")
        numbers = database.table("Thread").partitions.map.numbers
        assert (parent in numbers) == (fate is Fate.DROPPED)
        (head,) = await store.latest.load([key_layout.partition_head(parent)])
        assert (head is None) == (fate is Fate.WRITTEN)


async def test_a_late_split_is_refused_after_its_partition_has_written():
    async with (
        doubtful() as (store, logs),
        running_database(store, partitions_per_table=1) as database,
    ):
        await make(database)
        await works(database, "Thread")
        (parent,) = database.table("Thread").partitions.map.numbers
        store.lose_next(key_layout.CATALOG_WRITER, Fate.LATE)
        with pytest.raises(InternalServerError, match="is unknown"):
            await database.ask(SplitPartition("Thread", parent, MIDDLE))
        await until_adopted(logs)
        await works(database, "Thread")
        with pytest.raises(Conflict):
            await store.write_late()
        await works(database, "Thread")
        assert database.table("Thread").partitions.map.numbers == [parent]


async def test_a_virtual_clock_can_be_set_after_a_setting_with_an_unknown_outcome():
    async with (
        doubtful() as (store, _),
        running_database(store, VirtualClock(1_800_000_000)) as database,
    ):
        control = database.clock_control
        assert control is not None
        store.lose_next(key_layout.VIRTUAL_CLOCK)
        with pytest.raises(InternalServerError, match="is unknown"):
            await control.move(MoveClock(by_seconds=60))
        assert (await control.move(MoveClock(by_seconds=10))).now_epoch_seconds == 1_800_000_010
