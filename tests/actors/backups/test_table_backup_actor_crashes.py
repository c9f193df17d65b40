"""Backups and restores are completed although the database's actor crashes at any commit."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Awaitable, Sequence
from contextlib import suppress

import pytest
from structlog.testing import capture_logs

from dynactor.actors.backups.messages import CreateTableBackup, DeleteTableBackup
from dynactor.actors.backups.table_backups import TableBackups
from dynactor.actors.database.database import Database
from dynactor.actors.table.messages import DeleteTable
from dynactor.model.errors import InternalServerError
from dynactor.storage import key_layout
from dynactor.storage.store import Group, Store
from tests.support.databases.backed_up import (
    back_up,
    begin_restore,
    counts_of,
    filled_table,
    rows_of,
    wait_available,
    wait_restored,
)
from tests.support.databases.databases import running_database
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

MORE_COMMITS_THAN_IT_TAKES = 20
_ITEMS = b"\x00\x00\x00\x00"


class CrashingOwner(FaultyStore):
    """A store in which one commit of the catalog raises an unexpected error."""

    def __init__(self, inner: Store, *, is_written: bool) -> None:
        super().__init__(inner)
        self._is_written = is_written
        self.commits_left: int | None = None
        # Whether the commit that raises the error has happened.
        self.was_met = False

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        if self.commits_left is None or groups[0].head_key != key_layout.CATALOG_WRITER:
            return await super().commit(groups)
        self.commits_left -= 1
        if self.commits_left >= 0:
            return await super().commit(groups)
        self.commits_left, self.was_met = None, True
        if self._is_written:
            await (await super().commit(groups))
        raise RuntimeError("played by a test")


@pytest.mark.parametrize("is_written", [False, True])
async def test_a_backup_is_complete_after_a_crash_of_the_databases_actor(is_written: bool) -> None:
    for commits in range(MORE_COMMITS_THAN_IT_TAKES):
        async with memory_store() as inner:
            store = CrashingOwner(inner, is_written=is_written)
            async with running_database(store) as database:
                table = await filled_table(database, 80)
                rows = await rows_of(inner, table.definition.table_id)
                store.commits_left = commits
                with capture_logs():
                    await answered(database.ask(CreateTableBackup("Thread", "nightly")))
                    await wait_restarted(database)
                    for each in database.part(TableBackups).backups:
                        backup = await wait_available(database, each.backup_id)
                        copied = await rows_of(inner, backup.rows_id)
                        assert copied == {
                            place: value
                            for place, value in rows.items()
                            if place.startswith(_ITEMS)
                        }
                store.commits_left = None
                await database.ask(DeleteTable("Thread"))
        if not store.was_met:
            break
    assert commits == 2


@pytest.mark.parametrize("is_written", [False, True])
async def test_a_restored_table_is_complete_after_a_crash_of_the_databases_actor(
    is_written: bool,
) -> None:
    for commits in range(MORE_COMMITS_THAN_IT_TAKES):
        async with memory_store() as inner:
            store = CrashingOwner(inner, is_written=is_written)
            async with running_database(store) as database:
                table = await filled_table(database, 80)
                rows = await rows_of(inner, table.definition.table_id)
                counts = await counts_of(database, "Thread")
                backup = await back_up(database)
                store.commits_left = commits
                with capture_logs():
                    await answered(begin_restore(database, backup))
                    await wait_restarted(database)
                    if "Restored" in database.table_names():
                        other = await wait_restored(database)
                        store.commits_left = None
                        assert await rows_of(inner, other.definition.table_id) == rows
                        assert await counts_of(database, "Restored") == counts
                        await database.ask(DeleteTable("Restored"))
                await database.ask(DeleteTableBackup(backup.backup_id, "arn"))
        if not store.was_met:
            break
    # The commits are the table's record, the start of the indexes, the end of each index, and the
    # end of the restore.
    assert commits > 3


async def answered(request: Awaitable[object]) -> None:
    with suppress(InternalServerError):
        await request


async def wait_restarted(database: Database) -> None:
    """Wait until the restarted actor answers a message."""
    await database.actor.keep_streams()
