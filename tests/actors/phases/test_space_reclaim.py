"""The disk space of a large deleted table or backup is reclaimed, even over restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from dynactor.actors.backups.messages import DeleteTableBackup
from dynactor.actors.catalog.catalog_owner import CatalogOwner
from dynactor.actors.catalog.tables import Tables
from dynactor.actors.database.database import Database
from dynactor.actors.feeds.change_feed import RecentChanges
from dynactor.actors.limits.burst_balances import BalanceWriter
from dynactor.actors.partition.table_partition import PartitionSettings
from dynactor.actors.parts.database_settings import DatabaseSettings
from dynactor.actors.parts.part import Parts
from dynactor.actors.phases.space_reclaim import EndReclaim, SpaceReclaimer, reclaim_row
from dynactor.actors.runtime.clock import SystemClock
from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.runtime.supervisor import Supervisor
from dynactor.actors.table.environment import TableEnvironment
from dynactor.actors.table.messages import CreateTable, DeleteTable
from dynactor.model.limits import KIB, MIB
from dynactor.storage import burst_balances, key_layout
from dynactor.storage.store import Damaged, Full, Store, StoreError
from tests.support.databases.backed_up import ARN, back_up
from tests.support.databases.databases import (
    HeldStore,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.published import published_table, relay_settings, write_threads
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.kafka.fake_broker import FakeBroker
from tests.support.stores.store import memory_store

LARGE_BYTES = 17 * MIB


class WatchedStore(HeldStore):
    """A store whose reclaims end or fail when the test says so."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.asked: list[tuple[bytes, bytes]] = []
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.failure: StoreError | None = None

    async def reclaim(self, start: bytes, end: bytes) -> None:
        self.asked.append((start, end))
        self.begun.set()
        await self.may_end.wait()
        if self.failure is not None:
            raise self.failure


@pytest.fixture
async def store() -> AsyncIterator[WatchedStore]:
    async with memory_store() as real:
        yield WatchedStore(real)


async def make_large(database: Database, name: str = "Thread") -> None:
    await database.ask(CreateTable(table_definition(name)))
    table = database.table(name)
    text = "x" * 390 * KIB
    for at in range(LARGE_BYTES // len(text)):
        item = thread("EC2", str(at))
        item["text"] = {"S": text}
        await table.write(put(item))


def rows_of(table_id: int) -> tuple[bytes, bytes]:
    return key_layout.table_range(table_id)


async def ranges_to_reclaim(store: Store) -> list[bytes]:
    start, end = key_layout.RECLAIMS
    return [row.key for row in await store.latest.page(start, end, max_rows=9, max_bytes=KIB)]


async def wait_until_reclaimed(store: Store) -> None:
    with anyio.fail_after(HANG_SECONDS):
        while await ranges_to_reclaim(store):
            await asyncio.sleep(0)


async def test_the_space_of_a_small_table_is_not_reclaimed(store: WatchedStore) -> None:
    async with running_database(store) as database:
        await database.ask(CreateTable(table_definition()))
        await database.table("Thread").write(put(thread("EC2", "one")))
        await database.ask(DeleteTable("Thread"))
        assert await ranges_to_reclaim(store) == []
    assert store.asked == []


async def test_reclaimed_space_is_not_reclaimed_again(store: WatchedStore) -> None:
    store.may_end.set()
    async with running_database(store) as database:
        await make_large(database)
        await database.ask(DeleteTable("Thread"))
        await wait_until_reclaimed(store)
    async with running_database(store):
        pass
    assert store.asked == [rows_of(1)]


async def test_each_start_continues_the_reclaim_until_it_is_done(store: WatchedStore) -> None:
    async with running_database(store) as database:
        await make_large(database)
        await database.ask(DeleteTable("Thread"))
        await store.begun.wait()
    for _ in range(2):
        store.begun.clear()
        # Neither the start nor a request waits for the reclaim.
        async with running_database(store) as database:
            await database.ask(CreateTable(table_definition(f"Other{len(store.asked)}")))
            await store.begun.wait()
    assert len(await ranges_to_reclaim(store)) == 1
    store.may_end.set()
    async with running_database(store):
        await wait_until_reclaimed(store)
    async with running_database(store):
        pass
    assert store.asked == [rows_of(1)] * 4


async def test_the_space_of_tables_is_reclaimed_one_table_after_another(
    store: WatchedStore,
) -> None:
    async with running_database(store) as database:
        for name in ("First", "Second"):
            await make_large(database, name)
            await database.ask(DeleteTable(name))
        await store.begun.wait()
        assert store.asked == [rows_of(1)]
        assert len(await ranges_to_reclaim(store)) == 2
        store.may_end.set()
        await wait_until_reclaimed(store)
    assert store.asked == [rows_of(1), rows_of(2)]


async def test_the_space_of_a_large_deleted_backup_is_reclaimed(store: WatchedStore) -> None:
    store.may_end.set()
    async with running_database(store) as database:
        await make_large(database)
        backup = await back_up(database)
        await database.ask(DeleteTableBackup(backup.backup_id, ARN))
        await wait_until_reclaimed(store)
    assert store.asked == [rows_of(backup.rows_id)]


async def test_the_space_of_a_table_whose_deletion_failed_is_not_reclaimed(
    store: WatchedStore,
) -> None:
    async with running_database(store) as database:
        await make_large(database)
        store.refusal = Full("the disk is full")
        with pytest.raises(Exception, match="the disk is full"):
            await database.ask(DeleteTable("Thread"))
        store.refusal = None
        assert await ranges_to_reclaim(store) == []
    assert store.asked == []


async def test_a_reclaim_that_failed_on_a_full_disk_is_retried(store: WatchedStore) -> None:
    store.may_end.set()
    store.failure = Full("the disk is full")
    async with running_database(store, keep_streams_seconds=86_400) as database:
        await make_large(database)
        await database.ask(DeleteTable("Thread"))
        await store.begun.wait()
        store.failure = None
        await database.actor.keep_streams()
        await wait_until_reclaimed(store)
    assert store.asked == [rows_of(1)] * 2


async def test_a_failed_reclaim_delays_no_other_and_is_retried_at_the_next_start(
    store: WatchedStore,
) -> None:
    store.failure = Damaged("a file is damaged")
    async with running_database(store, keep_streams_seconds=86_400) as database:
        for name in ("First", "Second"):
            await make_large(database, name)
            await database.ask(DeleteTable(name))
        store.may_end.set()
        with anyio.fail_after(HANG_SECONDS):
            while len(store.asked) < 2:
                await asyncio.sleep(0)
        await database.actor.keep_streams()
    assert store.asked == [rows_of(1), rows_of(2)]
    store.failure = None
    async with running_database(store):
        await wait_until_reclaimed(store)


async def test_the_record_of_a_reclaimed_range_is_deleted_later_if_that_failed(
    store: WatchedStore,
) -> None:
    async with running_database(store) as database:
        await make_large(database)
        await database.ask(DeleteTable("Thread"))
        await store.begun.wait()
        store.refusal = Full("the disk is full")
        store.may_end.set()
        # The actor answers this message after all messages that were sent before.
        await database.actor.keep_streams()
        assert len(await ranges_to_reclaim(store)) == 1
        store.refusal = None
        await wait_until_reclaimed(store)
    assert store.asked == [rows_of(1)]


async def test_the_logs_kept_for_a_cut_off_destination_are_reclaimed_after_a_restart(
    store: WatchedStore,
) -> None:
    broker, relays = FakeBroker(), relay_settings(retention_bytes=20_000)
    with broker.unreachable():
        async with running_database(store, broker=broker, relays=relays) as database:
            table = await published_table(database)
            number = 0
            while table.definition.destinations[-1].status != "BROKEN":
                await write_threads(table, [number])
                number += 1
            await store.begun.wait()
            logs = [key_layout.change_range(each.number) for each in table.record.partitions]
        assert store.asked == logs[:1]
        store.asked.clear()
        store.may_end.set()
        async with running_database(store, broker=broker, relays=relays):
            await wait_until_reclaimed(store)
    assert set(store.asked) <= set(logs)
    assert store.asked


async def test_a_range_requested_again_during_its_reclaim_is_reclaimed_again(
    store: WatchedStore,
) -> None:
    told: asyncio.Queue[Message[Any]] = asyncio.Queue()
    rows = rows_of(1)
    await CatalogOwner(store).change(puts=[reclaim_row(rows)])
    async with anyio.create_task_group() as tasks:
        clock = SystemClock()
        loaded = await burst_balances.load(store.latest)
        environment = TableEnvironment(
            store,
            Supervisor(tasks),
            clock,
            RecentChanges(),
            PartitionSettings(MIB),
            BalanceWriter(store, clock, loaded, owners=list),
        )
        parts = Parts(
            [SpaceReclaimer],
            environment,
            DatabaseSettings(),
            Tables(),
            None,
            tell=told.put_nowait,
            tell_later=lambda _, message: told.put_nowait(message),
        )
        await parts.adopt()
        reclaimer, end = parts[SpaceReclaimer], parts.handlers[EndReclaim]
        await store.begun.wait()
        # More rows of the range are deleted while the engine is already compacting it.
        reclaimer.begin(rows)
        store.may_end.set()
        first = await told.get()
        await store.begun.wait()
        reclaimer.begin(rows)
        await end(first)
        assert len(await ranges_to_reclaim(store)) == 1
    while not told.empty():
        await end(told.get_nowait())
    assert await ranges_to_reclaim(store) == []
    assert len(store.asked) == 3
