"""A server that was killed at any commit of a backup or restore completes it at the next start."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import pytest

from dynactor.actors.backups.messages import CreateTableBackup
from dynactor.actors.backups.table_backups import TableBackups
from dynactor.actors.database.database import Database
from dynactor.model.errors import InternalServerError
from dynactor.model.tables.table_backup import TableBackup
from dynactor.model.writes.write import Delete
from dynactor.storage import key_layout
from dynactor.storage.store import Group
from tests.support.databases.backed_up import (
    CutStore,
    WithoutCursors,
    back_up,
    begin_restore,
    counts_of,
    filled_table,
    rows_of,
    wait_available,
    wait_restored,
)
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.replays import items_of
from tests.support.stores.store import memory_store

WRITES = 80
FEW_ROWS = 20
MORE_COMMITS_THAN_IT_TAKES = 100
_ITEMS = b"\x00\x00\x00\x00"

ReplyT = TypeVar("ReplyT")


@pytest.fixture(autouse=True)
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pages so short that a copy needs several."""
    monkeypatch.setattr("dynactor.actors.followers.scan.PAGE_ROWS", FEW_ROWS)
    monkeypatch.setattr("dynactor.actors.followers.table_snapshot.PAGE_ROWS", FEW_ROWS)
    monkeypatch.setattr("dynactor.actors.followers.log_positions._RECORDS", FEW_ROWS)
    monkeypatch.setattr("dynactor.actors.restores.table_restore.RestoredItems.pages_per_cursor", 2)


async def answered(request: Awaitable[ReplyT]) -> ReplyT | None:
    """The answer to a request; None if the store refused commits before."""
    try:
        return await request
    except InternalServerError:
        return None


async def until_cut_or(store: CutStore, is_done: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not (store.was_cut or is_done()):
            await asyncio.sleep(0)


def is_available(database: Database) -> bool:
    return all(backup.status == "AVAILABLE" for backup in database.part(TableBackups).backups)


async def test_a_backup_is_complete_after_the_next_start() -> None:
    for commits in range(MORE_COMMITS_THAN_IT_TAKES):
        async with memory_store() as inner:
            store = CutStore(inner)
            async with running_database(store) as database:
                table = await filled_table(database, WRITES)
                rows = await rows_of(inner, table.definition.table_id)
                store.commits_left = commits
                asked = await answered(database.ask(CreateTableBackup("Thread", "nightly")))
                await until_cut_or(store, lambda: is_available(database))
            async with running_database(inner) as database:
                backups = database.part(TableBackups).backups
                assert bool(backups) == (asked is not None)
                for each in backups:
                    backup = await wait_available(database, each.backup_id)
                    copied = await rows_of(inner, backup.rows_id)
                    assert copied == {
                        place: value for place, value in rows.items() if place.startswith(_ITEMS)
                    }
                    assert backup.item_count == len(copied)
        if not store.was_cut:
            break
    # The commits are the backup's record, one for each page of items, and the end.
    assert commits > WRITES // 2 // FEW_ROWS


async def test_a_restored_table_is_complete_after_the_next_start() -> None:
    for commits in range(MORE_COMMITS_THAN_IT_TAKES):
        async with memory_store() as inner:
            store = CutStore(inner)
            async with running_database(store) as database:
                table = await filled_table(database, WRITES)
                rows = await rows_of(inner, table.definition.table_id)
                counts = await counts_of(database, "Thread")
                backup = await back_up(database)
                store.commits_left = commits
                begun = await answered(begun_restore(database, backup))
                await until_cut_or(
                    store,
                    lambda: database.usable_table("Restored") is not None,
                )
            async with running_database(inner) as database:
                assert ("Restored" in database.table_names()) == (begun is not None)
                if begun is not None:
                    other = await wait_restored(database)
                    assert await rows_of(inner, other.definition.table_id) == rows
                    assert await counts_of(database, "Restored") == counts
        if not store.was_cut:
            break
    # The commits are the table's record, the pages of items, the start of the indexes, the pages of
    # the indexes, and the end.
    assert commits > 10


async def begun_restore(database: Database, backup: TableBackup) -> bool:
    await begin_restore(database, backup)
    return True


async def test_a_backup_after_a_crash_has_the_items_of_its_own_moment() -> None:
    async with memory_store() as inner:
        store = CutStore(inner)
        async with running_database(store) as database:
            source = await filled_table(database, WRITES, definition=table_definition())
            before = await rows_of(inner, source.definition.table_id)
            # The 5 commits are the backup's record, 2 that end earlier work, and 2 pages.
            store.commits_left = 5
            asked = await database.ask(CreateTableBackup("Thread", "nightly"))
            await until_cut_or(store, lambda: False)
        assert len(await rows_of(inner, asked.rows_id)) == 2 * FEW_ROWS
        async with running_database(WithoutCursors(inner)) as database:
            table = database.table("Thread")
            for item in (await items_of(table)).values():
                await table.write(Delete(table.definition.key_schema.extract_key(item)))
            await table.write(put(thread("EC2", "new")))
        stray = key_layout.row_prefix(asked.rows_id) + b"\xff" * 8
        await (await inner.commit([Group(b"\xfe", None, b"1", [(stray, b"of an earlier copy")])]))
        async with running_database(inner) as database:
            backup = await wait_available(database, asked.backup_id)
            assert backup.item_count == len(before)
            assert await rows_of(inner, backup.rows_id) == before
