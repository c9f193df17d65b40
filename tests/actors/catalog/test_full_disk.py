"""Work that a full disk interrupts continues once there is space."""

from __future__ import annotations

import asyncio
import gc
from asyncio import Future, TaskGroup
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import count

import pytest
from msgspec import structs
from structlog.testing import capture_logs

from dynactor.actors.database.database import Database
from dynactor.actors.derived.expiry.time_to_live_settings import TimeToLiveSettings
from dynactor.actors.phases.streams import StreamRegistry
from dynactor.actors.table.messages import CreateTable, UpdateTable
from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import GlobalIndex
from dynactor.model.errors import InternalServerError
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.tables.global_index_rules import NewGlobalIndex
from dynactor.model.tables.schema_rules import KeyElement
from dynactor.model.tables.stream_rules import StreamChange
from dynactor.model.tables.table_edits import TableEdit
from dynactor.storage import key_layout
from dynactor.storage.store import Full, Group
from tests.support.databases.databases import (
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.expiry import switch, until_items, until_listed, until_status
from tests.support.databases.transacting import until
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store


def status(database: Database) -> str:
    [index] = database.table("Thread").definition.global_indexes
    return index.status


async def test_an_index_reaches_its_next_phase_once_the_disk_has_space(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dynactor.actors.database.database_actor.CATALOG_SECONDS", 0.01)
    async with memory_store() as inner:
        store = FaultyStore(inner)
        async with running_database(store, index_allocation_seconds=3_600) as database:
            await database.ask(CreateTable(table_definition()))
            index = NewGlobalIndex("by_posts", (KeyElement("posts", "HASH"),), "ALL")
            attributes = (KeyAttribute("posts", "N"),)
            edit = TableEdit(index_creates=(index,), attribute_definitions=attributes)
            await database.ask(UpdateTable("Thread", edit))
        # The partitions log that the disk is full even if no client writes.
        async with running_database(store, index_allocation_seconds=0.01) as database:
            store.refuse_commits(Full("the disk is full"))
            with capture_logs() as logs:
                await until(lambda: any(each["event"] == "catalog_change_delayed" for each in logs))
            assert status(database) == "CREATING"
            store.allow_commits()
            await until(lambda: status(database) == "ACTIVE")


@pytest.fixture
async def unseen() -> list[object]:
    """The event loop's messages about errors that were never retrieved."""
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    return told


class FullForSome(FaultyStore):
    """A store without space for the writers under these heads."""

    full_for: AbstractSet[bytes] = frozenset()

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        if any(group.head_key in self.full_for for group in groups):
            raise Full("the disk is full")
        return await super().commit(groups)


async def test_followers_stop_without_errors_on_a_full_disk(
    unseen: list[object],
) -> None:
    async with memory_store() as inner:
        store = FullForSome(inner)
        posts = KeyAttribute("posts", "N")
        by_posts = IndexDefinition(1, "by_posts", KeySchema((posts,), ()), Projection("ALL"))
        definition = structs.replace(
            table_definition(),
            attribute_definitions=(*table_definition().attribute_definitions, posts),
            global_indexes=(GlobalIndex(by_posts),),
        )
        with capture_logs() as logs:
            async with running_database(store) as database:
                await database.ask(CreateTable(definition))
                table = database.table("Thread")
                # The disk is full for several index partitions, to which each table partition sends
                # messages.
                store.full_for = {
                    key_layout.partition_head(partition.number)
                    for partition in table.record.index_partitions[1]
                }
                threads = [thread(f"f{number}", "a", posts=number) for number in range(40)]
                await asyncio.gather(*(table.write(put(each)) for each in threads))
                await until(lambda: any(each["event"] == "index_write_refused" for each in logs))
        assert not [each for each in logs if each["log_level"] == "error"]
    gc.collect()
    assert not unseen


class FullBehindTheCatalog(FaultyStore):
    """A store whose disk is full after the next change of the catalog."""

    is_next = False

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        durable = await super().commit(groups)
        if self.is_next and any(group.head_key == key_layout.CATALOG_WRITER for group in groups):
            self.is_next = False
            await durable
            self.refuse_commits(Full("the disk is full"))
            # Let the actors that write continuously get refusals.
            for _ in range(10):
                await asyncio.sleep(0)
        return durable


async def test_a_backfill_stops_without_errors_on_a_full_disk() -> None:
    async with memory_store() as inner:
        store = FullBehindTheCatalog(inner)
        with capture_logs() as logs:
            async with running_database(store, index_allocation_seconds=0.01) as database:
                await database.ask(CreateTable(table_definition()))
                await database.table("Thread").write(put(thread("EC2", "a", posts=1)))
                index = NewGlobalIndex("by_posts", (KeyElement("posts", "HASH"),), "ALL")
                attributes = (KeyAttribute("posts", "N"),)
                edit = TableEdit(index_creates=(index,), attribute_definitions=attributes)
                await database.ask(UpdateTable("Thread", edit))
                store.is_next = True
                await until(lambda: any(each["event"] == "index_write_refused" for each in logs))
        assert not [each for each in logs if each["log_level"] == "error"]


async def test_a_stream_that_was_stored_just_before_the_disk_was_full_is_shown() -> None:
    async with memory_store() as inner:
        store = FullBehindTheCatalog(inner)
        async with running_database(store, partitions_per_table=1) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            stopping = False

            async def write(subject: str) -> None:
                for posts in count():
                    if stopping:
                        return
                    with suppress(InternalServerError):
                        await table.write(put(thread("EC2", subject, posts=posts)))

            async with TaskGroup() as writers:
                for number in range(8):
                    writers.create_task(write(f"{number}"))
                store.is_next = True
                await database.ask(
                    UpdateTable(
                        "Thread",
                        TableEdit(stream=StreamChange(enabled=True, view_type="KEYS_ONLY")),
                    )
                )
                stopping = True
            store.allow_commits()
            await table.write(put(thread("EC2", "shown")))
            [stream] = database.part(StreamRegistry).all()
            [shard] = stream.shards
            *_, last = await database.part(StreamRegistry).read(
                shard, 0, max_records=99, max_bytes=99_999
            )
            assert last.key["subject"] == {"S": "shown"}


@pytest.mark.parametrize("items", [1, 3])
async def test_expired_items_are_deleted_once_the_disk_has_space(items: int) -> None:
    clock = SetClock()
    now = int(clock.now_epoch_seconds())
    settings = TimeToLiveSettings(delay_seconds=0.0)
    async with memory_store() as inner:
        store = FaultyStore(inner)
        async with running_database(store, clock, time_to_live=settings) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            await switch(database, "Thread", "at", enabled=True)
            await until_status(table, "ENABLED")
            for number in range(items):
                await table.write(put(thread("f", f"{number}", at=now + 1)))
            await until_listed(table)
            store.refuse_commits(Full("the disk is full"))
            with capture_logs() as logs:
                clock.step(2)
                await until(lambda: any("swe" in each["event"] for each in logs))
            store.allow_commits()
            await until_items(database, "Thread", 0)
