"""A backup of a table has the items of one moment, and can be restored once it is complete."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Awaitable, Sequence
from pathlib import Path
from random import Random

import pytest
from msgspec import structs
from structlog.testing import capture_logs

from dynactor.actors.backups.messages import CreateTableBackup, DeleteTableBackup
from dynactor.actors.backups.table_backups import TableBackups
from dynactor.actors.table.messages import CreateTable, DeleteTable
from dynactor.model.definitions.table import StreamSettings, TableDefinition
from dynactor.model.errors import (
    BackupInUseException,
    BackupNotFoundException,
    DynamoDBError,
    LimitExceededException,
    ResourceInUseException,
    TableInUseException,
    TableNotFoundException,
)
from dynactor.model.tables.table_backup import TableBackup
from dynactor.model.writes.write import Delete
from dynactor.storage import key_layout
from dynactor.storage.store import Full, Group, Store
from tests.support.databases.backed_up import (
    ARN,
    CURSORS,
    HoldingCopies,
    back_up,
    begin_restore,
    counts_of,
    filled_table,
    indexed_definition,
    rows_of,
    wait_available,
    wait_followed,
    wait_restored,
    write_something,
)
from tests.support.databases.databases import (
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.stored_items import items
from tests.support.databases.transacting import stepped, transact, until
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.stepped_store import Call, Commit, stepped_database
from tests.support.stores.store import disk_store, memory_store

ITEMS = 600


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_a_restored_table_equals_its_source_at_the_moment_of_the_backup(seed: int) -> None:
    async with memory_store() as store, running_database(store) as database:
        table = await filled_table(database, seed=seed)
        before = await rows_of(store, table.definition.table_id)
        counts = await counts_of(database, "Thread")
        asked = await database.ask(CreateTableBackup("Thread", "nightly"))
        source = Random(-seed)
        for _ in range(300):
            await write_something(table, source)
        backup = await wait_available(database, asked.backup_id)
        assert (backup.item_count, backup.size_bytes) == counts[""]
        await begin_restore(database, backup)
        other = await wait_restored(database)
        assert await rows_of(store, other.definition.table_id) == before
        assert await counts_of(database, "Restored") == counts
        assert await rows_of(store, table.definition.table_id) != before


@pytest.mark.parametrize("partitions", [1, 3])
async def test_a_restored_table_equals_its_source_with_any_number_of_partitions(
    partitions: int,
) -> None:
    async with memory_store() as store:
        async with running_database(store, partitions_per_table=7) as database:
            table = await filled_table(database)
            before = await rows_of(store, table.definition.table_id)
            backup = await back_up(database)
        async with running_database(store, partitions_per_table=partitions) as database:
            await begin_restore(database, backup)
            other = await wait_restored(database)
            assert await rows_of(store, other.definition.table_id) == before


async def test_a_restored_table_accepts_writes() -> None:
    async with memory_store() as store, running_database(store) as database:
        table = await filled_table(database)
        await begin_restore(database, await back_up(database))
        other = await wait_restored(database)
        sources = Random(7), Random(7)
        for _ in range(400):
            await write_something(table, sources[0])
            await write_something(other, sources[1])
        for each in (table, other):
            await wait_followed(each)
        expected = await rows_of(store, table.definition.table_id)
        assert await rows_of(store, other.definition.table_id) == expected
        assert await counts_of(database, "Restored") == await counts_of(database, "Thread")


async def test_a_backup_is_of_one_moment_while_writes_continue() -> None:
    async with memory_store() as store, running_database(store) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        asked = None
        answered_before = 0
        # The writes are sequential, so a backup must have the first items without a gap.
        for number in range(1_500):
            await table.write(put(thread(f"{number}", "subject", number=number)))
            if number == 700:
                answered_before = number
                asked = await database.ask(CreateTableBackup("Thread", "nightly"))
        assert asked is not None
        backup = await wait_available(database, asked.backup_id)
        await begin_restore(database, backup)
        other = await wait_restored(database)
        count = backup.item_count
        assert answered_before < count <= 1_500
        expected = await store.durable().load(
            [
                key_layout.item_row(other.definition, thread(f"{number}", "subject"))
                for number in range(1_500)
            ]
        )
        assert [value is not None for value in expected] == [
            number < count for number in range(1_500)
        ]


async def test_a_table_is_not_deleted_while_its_backup_is_made() -> None:
    async with memory_store() as store, running_database(store) as database:
        await filled_table(database, 50, definition=table_definition())
        # Send both requests together, because the copy starts after all messages in the mailbox of
        # the database's actor.
        async with asyncio.TaskGroup() as tasks:
            asked = tasks.create_task(database.ask(CreateTableBackup("Thread", "nightly")))
            deleted = tasks.create_task(refused(database.ask(DeleteTable("Thread"))))
        backup = asked.result()
        assert isinstance(deleted.result(), ResourceInUseException)
        assert deleted.result().message.endswith("Table is being backed up: Thread")
        await wait_available(database, backup.backup_id)
        await database.ask(DeleteTable("Thread"))


async def test_an_incomplete_backup_cannot_be_used() -> None:
    async with stepped_database() as (store, database):
        await filled_table(database, 50, definition=table_definition())
        copy = store.gate_before(_copies)
        backup = await database.ask(CreateTableBackup("Thread", "nightly"))
        for request in (
            database.ask(DeleteTableBackup(backup.backup_id, ARN)),
            begin_restore(database, backup),
        ):
            assert isinstance(await refused(request), BackupInUseException)
        copy.open()
        await wait_available(database, backup.backup_id)


def _copies(call: Call) -> bool:
    return isinstance(call, Commit) and any(
        group.head_key.startswith(CURSORS) for group in call.groups
    )


async def test_a_backup_is_not_deleted_during_a_restore_from_it() -> None:
    async with memory_store() as inner:
        store = HoldingCopies(inner)
        store.is_holding = False
        async with running_database(store) as database:
            await filled_table(database, 50, definition=table_definition())
            backup = await back_up(database)
            store.is_holding = True
            await begin_restore(database, backup)
            assert isinstance(await refused(begin_restore(database, backup)), TableInUseException)
            # A table is not there for backups while it is CREATING, as on AWS.
            early = await refused(database.ask(CreateTableBackup("Restored", "nightly")))
            assert isinstance(early, TableNotFoundException)
            deletion = database.ask(DeleteTableBackup(backup.backup_id, ARN))
            assert isinstance(await refused(deletion), BackupInUseException)
            assert database.usable_table("Restored") is None
            store.is_holding = False
            await wait_restored(database)
            await database.ask(DeleteTableBackup(backup.backup_id, ARN))
            again = await refused(database.ask(DeleteTableBackup(backup.backup_id, ARN)))
            assert isinstance(again, BackupNotFoundException)


async def refused(request: Awaitable[object]) -> DynamoDBError:
    with pytest.raises(DynamoDBError) as caught:
        await request
    return caught.value


async def test_a_backup_without_space_is_removed_and_logged() -> None:
    async with memory_store() as inner:
        store = HoldingCopies(inner)
        store.is_holding = False
        async with running_database(store) as database:
            await filled_table(database, 300, definition=table_definition())
            store.is_holding = True
            with capture_logs() as logs:
                backup = await database.ask(CreateTableBackup("Thread", "nightly"))
                await until(lambda: not database.part(TableBackups).backups)
            [told] = [each for each in logs if each["event"] == "table_backup_failed"]
            assert (told["log_level"], told["reason"]) == ("error", "the disk is full")
            assert await rows_of(inner, backup.rows_id) == {}
            await database.ask(DeleteTable("Thread"))


@pytest.mark.parametrize("definition", [table_definition(), indexed_definition()])
async def test_a_table_without_space_can_be_deleted_during_its_restore(
    definition: TableDefinition,
) -> None:
    async with memory_store() as inner:
        store = HoldingCopies(inner)
        store.is_holding = False
        async with running_database(store) as database:
            await filled_table(database, 300, definition=definition)
            backup = await back_up(database)
            store.is_holding = True
            with capture_logs() as logs:
                await begin_restore(database, backup)
                await until(lambda: any(each["event"] == "scan_refused" for each in logs))
            state = await database.ask(DeleteTable("Restored"))
            assert state.definition.status == "DELETING"
            assert database.table_names() == ["Thread"]
            await database.ask(DeleteTableBackup(backup.backup_id, ARN))


async def test_a_restore_continues_once_the_disk_is_no_longer_full() -> None:
    async with memory_store() as inner:
        store = FaultyStore(inner)
        async with running_database(store) as database:
            table = await filled_table(database)
            before = await rows_of(store, table.definition.table_id)
            backup = await back_up(database)
            await begin_restore(database, backup)
            store.refuse_commits(Full("the disk is full"))
            for _ in range(20):
                await asyncio.sleep(0)
            store.allow_commits()
            other = await wait_restored(database)
            assert await rows_of(store, other.definition.table_id) == before


async def test_the_server_stops_on_a_full_disk_and_continues_restoring_afterwards() -> None:
    async with memory_store() as inner:
        store = FaultyStore(inner)
        async with running_database(store) as database:
            table = await filled_table(database)
            before = await rows_of(store, table.definition.table_id)
            first = await back_up(database)
            second = await database.ask(CreateTableBackup("Thread", "weekly"))
            await begin_restore(database, first)
            store.refuse_commits(Full("the disk is full"))
        store.allow_commits()
        async with running_database(store) as database:
            # The deletion that the stop interrupted was not stored, so the backup is completed.
            whole = await wait_available(database, second.backup_id)
            assert whole.item_count == first.item_count
            other = await wait_restored(database)
            assert await rows_of(store, other.definition.table_id) == before


async def test_a_deleted_backup_leaves_no_row() -> None:
    async with memory_store() as store:
        async with running_database(store) as database:
            await filled_table(database, 300, definition=table_definition())
            backup = await back_up(database)
            assert await rows_of(store, backup.rows_id)
            await database.ask(DeleteTableBackup(backup.backup_id, ARN))
            assert await rows_of(store, backup.rows_id) == {}
            assert database.part(TableBackups).backups == []
        async with running_database(store) as database:
            assert database.part(TableBackups).backups == []


async def test_a_backup_exists_after_its_table_was_deleted_and_after_a_restart() -> None:
    async with memory_store() as store:
        async with running_database(store) as database:
            table = await filled_table(database)
            before = await rows_of(store, table.definition.table_id)
            backup = await back_up(database)
            await database.ask(DeleteTable("Thread"))
        async with running_database(store) as database:
            assert database.part(TableBackups).backups == [backup]
            # The new table has the same name, but is independent of the backup.
            await filled_table(database, 10, definition=table_definition())
            await begin_restore(database, backup)
            other = await wait_restored(database)
            assert await rows_of(store, other.definition.table_id) == before


async def test_a_restored_table_has_no_log_of_its_restored_items() -> None:
    async with memory_store() as store, running_database(store) as database:
        source = structs.replace(
            table_definition(), stream=StreamSettings("label", "NEW_IMAGE", enabled=True)
        )
        await filled_table(database, 100, definition=source)
        await begin_restore(database, await back_up(database))
        other = await wait_restored(database)
        assert not other.definition.records_changes
        for partition in other.record.partitions:
            start, end = key_layout.change_range(partition.number)
            assert await store.latest.page(start, end, max_rows=1, max_bytes=1) == []


async def test_backups_created_at_the_same_time_have_different_ids() -> None:
    # The virtual clock does not advance, so all backups are created at the same time.
    async with running_database(clock=SetClock()) as database:
        await database.ask(CreateTable(table_definition()))
        made = {(await back_up(database)).backup_id for _ in range(20)}
        assert len(made) == 20


@pytest.mark.parametrize("step", range(3))
async def test_a_backup_has_all_or_no_writes_of_a_transaction_in_progress(step: int) -> None:
    async with memory_store() as store, running_database(store) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        keys = [thread("EC2", "a"), thread("S3", "b")]
        for key in keys:
            await table.write(put({**key, "posts": {"N": "1"}}))
        backups: list[TableBackup] = []

        async def between(passed: int) -> None:
            # The backup changes the table's definition, so the transaction starts again.
            if passed == step and not backups:
                backups.append(await back_up(database))

        stepped(database, between)
        await transact(database, *((table, put({**key, "posts": {"N": "2"}})) for key in keys))
        backups.append(await back_up(database))
        found = []
        for number, backup in enumerate(backups):
            await begin_restore(database, backup, f"Restored{number}")
            other = await wait_restored(database, f"Restored{number}")
            found.append([item and item["posts"]["N"] for item in await items(other, *keys)])
        # The last step comes after the commit.
        assert found == [["2", "2"] if step == 2 else ["1", "1"], ["2", "2"]]


class WatchedCopies(FaultyStore):
    """A store that records the number of copies in progress at each commit of the catalog."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.copies: list[Future[None]] = []
        self.in_progress_counts: list[int] = []

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        durable = await super().commit(groups)
        for group in groups:
            if group.head_key.startswith(CURSORS):
                self.copies.append(durable)
            elif group.head_key == key_layout.CATALOG_WRITER:
                self.in_progress_counts.append(sum(not copy.done() for copy in self.copies))
        return durable


async def test_a_copy_is_available_only_when_it_is_durable(tmp_path: Path) -> None:
    async with disk_store(tmp_path) as inner:
        store = WatchedCopies(inner)
        async with running_database(store) as database:
            await filled_table(database, 300, definition=table_definition())
            await begin_restore(database, await back_up(database))
            await wait_restored(database)
        # The commits are 2 of the copy, and 2 of the restore.
        assert len(store.copies) >= 4
        # The commits are those of the tables, 2 of the backup, and the end of the restore.
        assert len(store.in_progress_counts) >= 5
        assert set(store.in_progress_counts) == {0}


async def test_at_most_the_maximum_number_of_tables_are_restored_concurrently(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dynactor.actors.restores.restore_phases.RESTORES", 2)
    async with memory_store() as inner:
        store = HoldingCopies(inner)
        store.is_holding = False
        async with running_database(store) as database:
            await filled_table(database, 50, definition=table_definition())
            backup = await back_up(database)
            store.is_holding = True
            for number in range(2):
                await begin_restore(database, backup, f"Restored{number}")
            third = await refused(begin_restore(database, backup, "Restored2"))
            assert isinstance(third, LimitExceededException)
            store.is_holding = False
            await wait_restored(database, "Restored0")
            await begin_restore(database, backup, "Restored2")


async def test_an_item_deleted_after_the_backup_is_in_the_backup() -> None:
    async with memory_store() as store, running_database(store) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        for number in range(ITEMS):
            await table.write(put(thread(f"{number}", "subject")))
        asked = await database.ask(CreateTableBackup("Thread", "nightly"))
        for number in range(ITEMS):
            await table.write(Delete(thread(f"{number}", "subject")))
        backup = await wait_available(database, asked.backup_id)
        assert backup.item_count == ITEMS
