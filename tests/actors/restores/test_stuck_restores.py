"""A table whose restore the store blocks can be deleted in each phase of the restore."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable, Sequence

import pytest
from structlog.testing import capture_logs

from dynactor.actors.backups.messages import DeleteTableBackup
from dynactor.actors.database.database import Database
from dynactor.actors.table.messages import DeleteTable
from dynactor.model.errors import ResourceInUseException
from dynactor.model.tables.table_backup import TableBackup
from dynactor.storage import key_layout
from dynactor.storage.store import Full, Group, Store
from dynactor.storage.subscriber_names import index_subscriber
from tests.support.databases.backed_up import (
    ARN,
    back_up,
    begin_restore,
    filled_table,
    rows_of,
    wait_restored,
)
from tests.support.databases.databases import running_database, table_definition
from tests.support.databases.failing_pages import FailingPages
from tests.support.databases.transacting import until
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.stepped_store import SteppedStore, commits_of, loads_of, turns
from tests.support.stores.store import memory_store


class FullFor(FaultyStore):
    """A store that is full for the owners of the selected heads: it accepts only their deletes."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.is_full_for: Callable[[bytes], bool] = lambda _: False

    def allow(self) -> None:
        """Accept all commits again."""
        self.is_full_for = lambda _: False

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        is_deletion = any(group.ranges for group in groups)
        if not is_deletion and any(self.is_full_for(group.head_key) for group in groups):
            raise Full("the disk is full")
        return await super().commit(groups)


def is_catalog(head_key: bytes) -> bool:
    return head_key == key_layout.CATALOG_WRITER


async def test_a_table_can_be_deleted_when_the_end_of_its_item_copy_cannot_be_stored() -> None:
    async with memory_store() as inner:
        store = FullFor(inner)
        async with running_database(store) as database:
            await filled_table(database, 50, definition=table_definition())
            backup = await back_up(database)
            await begin_restore(database, backup)
            store.is_full_for = is_catalog
            with capture_logs() as logs:
                await until(lambda: any(each["event"] == "catalog_change_delayed" for each in logs))
            await database.ask(DeleteTable("Restored"))
            assert database.table_names() == ["Thread"]


async def test_a_table_can_be_deleted_when_the_start_of_its_indexes_cannot_be_stored() -> None:
    async with memory_store() as inner:
        store = FullFor(inner)
        async with running_database(store) as database:
            backup = await backed_up(database)
            await begin_restore(database, backup)
            store.is_full_for = is_catalog
            with capture_logs() as logs:
                await until(lambda: any(each["event"] == "catalog_change_delayed" for each in logs))
            await deleted(database, backup, inner)


async def test_a_table_can_be_deleted_when_its_index_entries_cannot_be_stored() -> None:
    async with memory_store() as inner:
        store = FullFor(inner)
        async with running_database(store) as database:
            backup = await backed_up(database)
            await begin_restore(database, backup)
            record = database.table_in_any_state("Restored").record
            heads = {
                key_layout.partition_head(partition.number)
                for partitions in record.index_partitions.values()
                for partition in partitions
            }
            store.is_full_for = heads.__contains__
            with capture_logs() as logs:
                await until(lambda: any(each["event"] == "index_write_refused" for each in logs))
            await deleted(database, backup, inner)


async def test_a_table_can_be_deleted_when_the_end_of_its_backfill_cannot_be_stored() -> None:
    async with memory_store() as inner:
        store = FullFor(inner)
        async with running_database(store) as database:
            backup = await backed_up(database)
            await begin_restore(database, backup)
            table = database.table_in_any_state("Restored")
            await until(lambda: table.definition.restore_phase == "INDEXES")
            store.is_full_for = is_catalog
            with capture_logs() as logs:
                await until(lambda: any(each["event"] == "catalog_change_delayed" for each in logs))
            await deleted(database, backup, inner)


async def test_a_table_can_be_deleted_when_only_one_of_its_indexes_makes_progress() -> None:
    async with memory_store() as inner:
        full = FullFor(inner)
        store = SteppedStore(full)
        async with running_database(store) as database:
            backup = await backed_up(database)
            await begin_restore(database, backup)
            table = database.table_in_any_state("Restored")
            table_id = table.definition.table_id
            backfill = store.gate_before(commits_of(key_layout.backfill_cursor(table_id, 3)))
            subscriber = index_subscriber(table_id, 3)
            first_log = key_layout.checkpoint(subscriber, table.partitions.map.numbers[0])
            await until(lambda: table.definition.restore_phase == "INDEXES")
            full.is_full_for = is_catalog
            with capture_logs() as logs:
                await until(lambda: any(each["event"] == "catalog_change_delayed" for each in logs))
            await until(lambda: backfill.is_reached)
            # The store refuses the next phase of index 2. Index 3 enters a phase in memory.
            catching_up = store.gate_before(loads_of(first_log))
            backfill.open()
            await until(lambda: catching_up.is_reached)
            deletion = asyncio.create_task(database.ask(DeleteTable("Restored")))
            await turns()
            catching_up.open()
            await deletion
            assert database.table_names() == ["Thread"]


async def test_a_table_can_be_deleted_when_the_actor_of_its_backfill_was_abandoned() -> None:
    async with memory_store() as inner:
        store = FailingPages(inner)
        async with running_database(store) as database:
            backup = await backed_up(database)
            await begin_restore(database, backup)
            store.failing_table_id = database.table_in_any_state("Restored").definition.table_id
            store.failure = RuntimeError("played by a test")
            with capture_logs() as logs:
                await until(lambda: any(each["event"] == "actor_abandoned" for each in logs))
            store.failure = None
            await deleted(database, backup, inner)


async def test_a_table_cannot_be_deleted_while_its_restore_makes_progress() -> None:
    async with memory_store() as inner:
        store = FullFor(inner)
        async with running_database(store) as database:
            backup = await backed_up(database)
            await begin_restore(database, backup)
            table = database.table_in_any_state("Restored")
            store.is_full_for = is_catalog
            with capture_logs() as logs:
                await until(lambda: any(each["event"] == "catalog_change_delayed" for each in logs))
            store.allow()
            await until(lambda: table.definition.restore_phase == "INDEXES")
            with pytest.raises(ResourceInUseException):
                await database.ask(DeleteTable("Restored"))
            await wait_restored(database)


async def backed_up(database: Database) -> TableBackup:
    await filled_table(database, 300)
    return await back_up(database)


async def deleted(database: Database, backup: TableBackup, store: Store) -> None:
    table_id = database.table_in_any_state("Restored").definition.table_id
    await database.ask(DeleteTable("Restored"))
    assert database.table_names() == ["Thread"]
    assert await rows_of(store, table_id) == {}
    await database.ask(DeleteTableBackup(backup.backup_id, ARN))
