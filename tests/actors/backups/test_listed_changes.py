"""The rows that list changes by key: which ones are written, and when they are deleted."""

from __future__ import annotations

from typing import Final

from dynactor.actors.database.database import Database
from dynactor.actors.table.messages import CreateTable
from dynactor.model.writes.write import Delete
from dynactor.storage import key_layout
from dynactor.storage.store import Store
from dynactor.streams import changes_by_key
from tests.support.databases.databases import (
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.recovered import NAME, enable_recovery, recoverable_table, trim
from tests.support.stores.store import memory_store

_DAY: Final = 24 * 60 * 60
_PERIOD_SECONDS: Final = changes_by_key.PERIOD_US / 1e6
_EVERYTHING: Final = {"max_rows": 1_000, "max_bytes": 1 << 24}


async def listed(store: Store, database: Database) -> list[tuple[int, bool]]:
    """The counters of the listed changes in order, and whether each is a first one."""
    found = []
    for number in database.table(NAME).record.log_numbers:
        # PostgreSQL deletes discarded rows in the background.
        await store.reclaim(*key_layout.listed_range(number))
        rows = await store.durable().page(*key_layout.listed_range(number), **_EVERYTHING)
        for row in rows:
            change = changes_by_key.decode(row)
            period = key_layout.listed_period(row.key)
            prefix = key_layout.listed_prefix(number, period, is_first=True)
            found.append((change.counter, row.key.startswith(prefix)))
    return sorted(found)


async def test_the_first_change_of_an_item_in_a_period_is_listed_apart() -> None:
    clock = SetClock()
    async with memory_store() as store:
        async with running_database(store, clock) as database:
            table = await recoverable_table(database)
            for votes in range(3):
                await table.write(put(thread("f", "s", votes=votes)))
            await table.write(Delete(thread("f", "s")))
            await table.write(put(thread("f", "s")))
            assert await listed(store, database) == [
                (1, True),
                (2, False),
                (3, False),
                (4, False),
                # The last change of a missing item is not known.
                (5, True),
            ]
            clock.step(_PERIOD_SECONDS)
            for votes in range(2):
                await table.write(put(thread("f", "s", votes=votes)))
            assert (await listed(store, database))[5:] == [(6, True), (7, False)]
        async with running_database(store, clock) as database:
            # The beginning of the period is not known after a restart.
            for votes in range(2, 4):
                await database.table(NAME).write(put(thread("f", "s", votes=votes)))
            assert (await listed(store, database))[7:] == [(8, True), (9, False)]


async def test_only_tables_with_recovery_list_their_changes() -> None:
    async with memory_store() as store, running_database(store, SetClock()) as database:
        await database.ask(CreateTable(table_definition()))
        await database.table(NAME).write(put(thread("f", "s")))
        await enable_recovery(database)
        assert await listed(store, database) == []
        await database.table(NAME).write(put(thread("f", "s", votes=1)))
        assert await listed(store, database) == [(2, True)]


async def test_listed_changes_are_deleted_within_an_hour_after_they_have_left_the_window() -> None:
    clock = SetClock()
    async with memory_store() as store, running_database(store, clock) as database:
        table = await recoverable_table(database, days=1)
        for _ in range(3):
            await table.write(put(thread("f", "s")))
            await table.write(Delete(thread("f", "s")))
            clock.step(_DAY / 2)
        assert len(await listed(store, database)) == 6
        clock.step(3_600)
        await trim(database)
        assert [counter for counter, _ in await listed(store, database)] == [5, 6]
        # The log of a quiet table has nothing more to trim.
        clock.step(_DAY / 2 - 600)
        await trim(database)
        clock.step(_PERIOD_SECONDS)
        await trim(database)
        assert await listed(store, database) == []


async def test_listed_changes_are_deleted_within_an_hour_after_recovery_was_disabled() -> None:
    clock = SetClock()
    async with memory_store() as store, running_database(store, clock) as database:
        table = await recoverable_table(database)
        await table.write(put(thread("f", "s")))
        await enable_recovery(database, days=None)
        await trim(database)
        clock.step(3_600)
        await trim(database)
        assert await listed(store, database) == []
