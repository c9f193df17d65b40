"""Backups and restores while the store can't be read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import anyio
import pytest
from structlog.testing import capture_logs

from dynactor.actors.backups.messages import CreateTableBackup, DeleteTableBackup
from dynactor.actors.backups.table_backups import TableBackups
from dynactor.actors.database.database import Database
from dynactor.actors.table.messages import CreateTable, DeleteTable
from dynactor.storage.store import Closed, Damaged, Store
from tests.support.databases.backed_up import ARN, back_up, begin_restore, rows_of, wait_available
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.failing_pages import FailingPages
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.stores.store import memory_store

ITEMS: Final = 60
FEW_ROWS: Final = 20


@pytest.fixture(autouse=True)
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pages so short that a copy needs several."""
    monkeypatch.setattr("dynactor.actors.followers.scan.PAGE_ROWS", FEW_ROWS)
    monkeypatch.setattr("dynactor.actors.followers.table_snapshot.PAGE_ROWS", FEW_ROWS)
    monkeypatch.setattr("dynactor.actors.followers.table_copy.SCAN_SECONDS", 0.01)


class ReopenedStore(FailingPages):
    """A store that was reopened: a read fails once, and items change meanwhile."""

    def __init__(self, inner: Store, database: Callable[[], Database]) -> None:
        super().__init__(inner)
        self._database = database

    async def met(self) -> None:
        # The restarted copy must have the items as they were before these writes.
        table = self._database().table("Thread")
        for number in range(ITEMS):
            await table.write(put(thread(f"{number}", "subject", later=number)))
        failure, self.failure = self.failure, None
        assert failure is not None
        raise failure


async def write_items(database: Database) -> None:
    await database.ask(CreateTable(table_definition()))
    table = database.table("Thread")
    for number in range(ITEMS):
        await table.write(put(thread(f"{number}", "subject")))


async def until(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(HANG_SECONDS):
        while not is_so():
            await asyncio.sleep(0)


async def test_a_backup_that_starts_over_has_the_items_of_its_own_moment() -> None:
    async with memory_store() as inner:
        opened: list[Database] = []
        store = ReopenedStore(inner, lambda: opened[0])
        async with running_database(store) as database:
            opened.append(database)
            await write_items(database)
            before = await rows_of(inner, database.table("Thread").definition.table_id)
            store.failure = Closed("the store was opened again")
            asked = await database.ask(CreateTableBackup("Thread", "nightly"))
            backup = await wait_available(database, asked.backup_id)
            assert backup.item_count == ITEMS
            assert store.failure is None
            assert await rows_of(inner, backup.rows_id) == before


async def test_a_backup_of_unreadable_rows_is_removed_and_logged() -> None:
    async with memory_store() as inner:
        store = FailingPages(inner)
        async with running_database(store) as database:
            await write_items(database)
            store.failure = Damaged("a block is damaged")
            with capture_logs() as logs:
                asked = await database.ask(CreateTableBackup("Thread", "nightly"))
                await until(lambda: not database.part(TableBackups).backups)
            [told] = [each for each in logs if each["event"] == "table_backup_failed"]
            assert told["log_level"] == "error"
            assert told["reason"] == "a block is damaged"
            assert await rows_of(inner, asked.rows_id) == {}
            # A table can be deleted if no backup of it is in progress.
            await database.ask(DeleteTable("Thread"))


async def test_a_table_that_cannot_be_restored_is_deleted_and_logged() -> None:
    async with memory_store() as inner:
        store = FailingPages(inner)
        async with running_database(store) as database:
            await write_items(database)
            backup = await back_up(database)
            store.failing_table_id = backup.rows_id
            store.failure = Damaged("a block is damaged")
            with capture_logs() as logs:
                await begin_restore(database, backup)
                table_id = database.table_in_any_state("Restored").definition.table_id
                await until(lambda: "Restored" not in database.table_names())
            [told] = [each for each in logs if each["event"] == "table_not_restored"]
            assert told["log_level"] == "error"
            assert await rows_of(inner, table_id) == {}
            await database.ask(DeleteTableBackup(backup.backup_id, ARN))
        async with running_database(inner) as database:
            assert database.table_names() == ["Thread"]


async def test_an_abandoned_backup_can_be_deleted() -> None:
    async with memory_store() as inner:
        store = FailingPages(inner)
        async with running_database(store) as database:
            await write_items(database)
            whole = await back_up(database)
            store.failure = RuntimeError("played by a test")
            with capture_logs() as logs:
                asked = await database.ask(CreateTableBackup("Thread", "nightly"))
                await until(lambda: count(logs, "actor_abandoned") == 1)
                store.failing_table_id = whole.rows_id
                await begin_restore(database, whole)
                await until(lambda: count(logs, "actor_abandoned") == 2)
            await database.ask(DeleteTable("Restored"))
            await database.ask(DeleteTable("Thread"))
            await database.ask(DeleteTableBackup(asked.backup_id, ARN))
            assert database.table_names() == []
            assert database.part(TableBackups).backups == [whole]


async def test_a_failed_backup_of_a_deleted_table_is_never_shown_as_available() -> None:
    async with memory_store() as inner:
        store = FailingPages(inner)
        async with running_database(store) as database:
            await write_items(database)
            store.failure = RuntimeError("played by a test")
            with capture_logs() as logs:
                await database.ask(CreateTableBackup("Thread", "nightly"))
                await until(lambda: count(logs, "actor_abandoned") == 1)
            await database.ask(DeleteTable("Thread"))
        async with running_database(inner) as database:
            await until(lambda: not database.part(TableBackups).backups)
            assert database.table_names() == []


def count(logs: Sequence[Mapping[str, object]], event: str) -> int:
    return sum(each["event"] == event for each in logs)
