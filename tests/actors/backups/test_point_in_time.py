"""A table can be restored to any time of its window, whatever happened since."""

from __future__ import annotations

import asyncio
from typing import Final

import anyio
import pytest

from dynactor.actors.backups.table_backups import TableBackups
from dynactor.actors.database.database import Database
from dynactor.actors.table.messages import CreateTable, DeleteTable
from dynactor.actors.table.table import Table
from dynactor.model.errors import (
    InternalServerError,
    InvalidRestoreTimeException,
    LimitExceededException,
    PointInTimeRecoveryUnavailableException,
    ResourceInUseException,
    TableInUseException,
)
from dynactor.model.keys import key as keys
from tests.support.databases.backed_up import (
    CutStore,
    WithoutCursors,
    begin_restore,
    filled_table,
    rows_of,
    wait_followed,
    wait_restored,
)
from tests.support.databases.databases import (
    SetClock,
    TickingClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.recovered import (
    NAME,
    History,
    enable_recovery,
    items_of,
    rebuilt,
    record_times,
    recoverable_table,
    restore_to,
    transactions_apart,
    trim,
    wait_active,
    wait_held,
    write_in_flight,
)
from tests.support.databases.splitting import halve
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

_DAY: Final = 24 * 60 * 60
_STEPS = 60
_FEW_ROUNDS = 2
_TIMES = 5


async def test_a_table_is_restored_to_any_time(
    rounds: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynactor.actors.followers.scan.PAGE_ROWS", 10)
    monkeypatch.setattr("dynactor.actors.followers.log_positions._RECORDS", 7)
    for seed in range(rounds or _FEW_ROUNDS):
        await _history(seed)


async def _history(seed: int) -> None:
    """A history with restarts; restores run beside its writes, and through a crash."""
    clock = SetClock()
    history = History(seed, clock)
    async with memory_store() as store:
        async with running_database(store, clock) as database:
            await history.begin(database)
            await history.run(database, _STEPS)
        wanted: list[float] = []
        cut = CutStore(store)
        async with running_database(cut, clock) as database:
            await history.run(database, _STEPS)
            await history.step(database)
            for number in range(_TIMES - 1):
                wanted.append(history.time(database))
                await restore_to(database, wanted[-1], f"Restored{number}")
                await history.step(database, 0.001)
                await history.write(database)
            # The server dies at any commit of the restores.
            cut.commits_left = history.draw.randrange(40)
            with anyio.fail_after(60):
                while not cut.was_cut and _is_restoring_any(database):
                    await asyncio.sleep(0)
        async with running_database(store, clock) as database:
            wanted.append(clock.now_epoch_seconds())
            await restore_to(database, None, f"Restored{_TIMES - 1}")
            await history.step(database, 0.001)
            await history.run(database, 5)
            for number, epoch_seconds in enumerate(wanted):
                table = await wait_active(database, f"Restored{number}")
                found = await items_of(store, table)
                assert found == history.state_at(epoch_seconds), (seed, epoch_seconds)
            again = await rebuilt(database, store, found, "Rebuilt")
            await wait_followed(table)
            assert await rows_of(store, table.definition.table_id) == again, seed


def _is_restoring_any(database: Database) -> bool:
    """Whether a restore is still in progress."""
    return any(table.definition.status != "ACTIVE" for table in database.tables)


async def test_transactions_are_restored_whole() -> None:
    clock = TickingClock()
    async with memory_store() as store, running_database(store, clock) as database:
        keys, times = await transactions_apart(database, store, clock)
        for number, time in enumerate(times):
            await restore_to(database, time, f"Restored{number}")
            copy = await wait_active(database, f"Restored{number}")
            found = await items_of(store, copy)
            assert len(found) in (0, len(keys))
            assert len({repr(item["votes"]) for item in found.values()}) <= 1
            await database.ask(DeleteTable(copy.definition.name))


async def test_a_write_before_the_time_is_restored_although_it_was_not_durable_yet() -> None:
    clock = SetClock()
    async with memory_store() as inner:
        store = FaultyStore(inner)
        async with running_database(store, clock) as database:
            async with write_in_flight(store, database, clock) as written:
                restoring = asyncio.ensure_future(restore_to(database, clock.now_epoch_seconds()))
                await wait_held(store, 2, unless=restoring)
            await restoring
            copy = await wait_active(database, "Restored")
            assert list((await items_of(store, copy)).values()) == [written]


@pytest.mark.embedded_store("the store is cut off below its engine")
async def test_a_restore_is_complete_after_a_crash_at_any_commit(
    rounds: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynactor.actors.followers.scan.PAGE_ROWS", 20)
    crashes = 0
    for commits in range(0, 200, 1 if rounds else 9):
        clock = SetClock()
        history = History(commits, clock)
        async with memory_store() as inner:
            store = CutStore(inner)
            async with running_database(store, clock) as database:
                await history.begin(database)
                await history.run(database, 20)
                epoch_seconds = clock.now_epoch_seconds()
                await history.step(database, 1)
                await history.write(database)
                store.commits_left = commits
                try:
                    await restore_to(database, epoch_seconds)
                except InternalServerError:
                    continue
                with anyio.fail_after(60):
                    while not store.was_cut and not _is_active(database):
                        await asyncio.sleep(0)
                if not store.was_cut:
                    assert crashes > 1
                    return
            crashes += 1
            async with running_database(inner, clock) as database:
                copy = await wait_active(database, "Restored")
                assert await items_of(inner, copy) == history.state_at(epoch_seconds)
                await trim(database)
                assert database.part(TableBackups)._backups == {}
    raise AssertionError("the restore takes more commits than expected")


def _is_active(database: Database) -> bool:
    return database.table_in_any_state("Restored").definition.status == "ACTIVE"


async def test_changes_outside_of_the_window_are_deleted() -> None:
    clock = SetClock()
    async with memory_store() as store, running_database(store, clock) as database:
        table = await recoverable_table(database, days=2)
        first = table.number_at(_position(table))
        for number in range(5):
            await table.write(put(thread("f", f"s{number}")))
            await halve(database, table, table.number_at(_position(table)))
            clock.step(_DAY / 2)
            await trim(database)
        times = await record_times(store, table)
        assert len(times) == 4, "the first change is 2.5 days old"
        assert first not in table.record.log_numbers
        clock.step(_DAY / 2)
        await enable_recovery(database, days=1)
        await trim(database)
        assert len(await record_times(store, table)) == 1
        # A window that was shortened does not become longer again.
        await enable_recovery(database, days=35)
        with pytest.raises(InvalidRestoreTimeException):
            await restore_to(database, clock.now_epoch_seconds() - _DAY - 1)
        await enable_recovery(database, days=None)
        await trim(database)
        assert await record_times(store, table) == []
        assert table.record.ended_logs == ()


def _position(table: Table) -> bytes:
    return keys.encode(table.definition.key_schema, thread("f", "s"))


async def test_only_times_of_the_window_can_be_restored() -> None:
    clock = SetClock()
    async with running_database(None, clock) as database:
        await database.ask(CreateTable(table_definition()))
        with pytest.raises(PointInTimeRecoveryUnavailableException) as unavailable:
            await restore_to(database, None)
        assert unavailable.value.message == (
            "Point in time recovery is not enabled for table 'Thread'"
        )
        await enable_recovery(database)
        enabled_at = clock.now_epoch_seconds()
        clock.step(10)
        for epoch_seconds in (enabled_at - 1, enabled_at + 11):
            with pytest.raises(InvalidRestoreTimeException):
                await restore_to(database, epoch_seconds)
        await enable_recovery(database, days=None)
        await enable_recovery(database)
        with pytest.raises(InvalidRestoreTimeException):
            await restore_to(database, enabled_at)
        await restore_to(database, clock.now_epoch_seconds())
        await wait_active(database, "Restored")


async def test_a_table_is_not_deleted_while_it_is_restored_and_the_new_one_may_be() -> None:
    async with memory_store() as inner, running_database(WithoutCursors(inner)) as database:
        await database.ask(CreateTable(table_definition()))
        await database.table(NAME).write(put(thread("f", "s")))
        await enable_recovery(database)
        await restore_to(database, None)
        with pytest.raises(ResourceInUseException):
            await database.ask(DeleteTable(NAME))
        with pytest.raises(TableInUseException):
            await restore_to(database, None)
        await database.ask(DeleteTable("Restored"))
        await database.ask(DeleteTable(NAME))
        assert database.table_names() == []


async def test_a_deleted_table_can_be_restored_for_35_days() -> None:
    clock = SetClock()
    async with memory_store() as store, running_database(store, clock) as database:
        table = await filled_table(database, writes=200)
        before = await rows_of(store, table.definition.table_id)
        await enable_recovery(database)
        await database.ask(DeleteTable(NAME))
        (backup,) = database.part(TableBackups).backups
        assert backup.is_system
        assert backup.name == "Thread$DeletedTableBackup"
        await begin_restore(database, backup)
        copy = await wait_restored(database)
        assert await rows_of(store, copy.definition.table_id) == before
        clock.step(35 * _DAY - 1)
        await trim(database)
        assert database.part(TableBackups).find(backup.backup_id) is not None
        clock.step(1)
        await trim(database)
        assert database.part(TableBackups).find(backup.backup_id) is None
        assert await rows_of(store, backup.rows_id) == {}


async def test_at_most_50_tables_are_restored_at_a_time() -> None:
    async with memory_store() as inner, running_database(WithoutCursors(inner)) as database:
        await recoverable_table(database)
        for number in range(50):
            await restore_to(database, None, f"Restored{number}")
        with pytest.raises(LimitExceededException) as refused:
            await restore_to(database, None, "OneTooMany")
        assert "Only 50 tables can be restored simultaneously" in refused.value.message
