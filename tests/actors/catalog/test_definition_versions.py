"""A change of a table is one commit over its record and the heads of its partitions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from msgspec import structs

from dynactor.actors.database.database import Database
from dynactor.actors.phases.streams import StreamRegistry
from dynactor.actors.table.messages import CreateTable, UpdateTable
from dynactor.actors.table.table import Table
from dynactor.model.errors import InternalServerError
from dynactor.model.tables.stream_rules import StreamChange
from dynactor.model.tables.table_edits import TableEdit
from dynactor.model.writes.write import Delete
from dynactor.storage import catalog, key_layout
from dynactor.storage.store import Conflict, Group, Locked, Store, Unavailable, View
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.failing_pages import FailingPages, FailingView
from tests.support.databases.stored_items import items
from tests.support.databases.transacting import transact
from tests.support.stores.doubtful_store import DoubtfulStore, Fate
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.stepped_store import commits_of, loads_of, soon, stepped_database
from tests.support.stores.store import memory_store

ON = TableEdit(stream=StreamChange(enabled=True, view_type="KEYS_ONLY"))
OFF = TableEdit(stream=StreamChange(enabled=False, view_type=None))
BEFORE, MEANWHILE, AFTER = (thread("EC2", name) for name in ("before", "meanwhile", "after"))


async def one_partition(database: Database) -> tuple[Table, bytes]:
    """A table with a written item, and the key of its partition's head."""
    await database.ask(CreateTable(table_definition()))
    table = database.table("Thread")
    await table.write(put(BEFORE))
    [number] = table.partitions.map.numbers
    return table, key_layout.partition_head(number)


async def versions(store: Store) -> tuple[int, set[int]]:
    """The version of the table's definition, in its record and in its heads."""
    [record] = (await catalog.load(store.latest)).tables
    keys = [key_layout.partition_head(each.number) for each in record.partitions]
    heads = [catalog.decode_partition_head(head or b"") for head in await store.latest.load(keys)]
    return record.definition_version, {head.definition_version for head in heads}


async def recorded(table: Table) -> int:
    [feed] = await table.followers.feeds()
    return len(await feed.read(0, max_records=99, max_bytes=1 << 20))


async def test_the_record_and_all_heads_have_the_version_of_the_definition() -> None:
    async with memory_store() as store, running_database(store) as database:
        await database.ask(CreateTable(table_definition()))
        assert await versions(store) == (0, {0})
        for number, edit in enumerate((ON, OFF), 1):
            await database.ask(UpdateTable("Thread", edit))
            assert await versions(store) == (number, {number})
        # A setting that partitions don't decide by leaves them alone.
        await database.ask(UpdateTable("Thread", TableEdit(tags_to_add=(("team", "storage"),))))
        assert await versions(store) == (2, {2})


async def test_a_write_under_the_old_definition_is_decided_again() -> None:
    async with stepped_database(partitions_per_table=1) as (store, database):
        table, head = await one_partition(database)
        committing = store.gate_before(commits_of(head))
        writing = asyncio.ensure_future(table.write(put(MEANWHILE)))
        # The write is decided, without a change record.
        await committing.reached()
        store.remove_gate(committing)
        await database.ask(UpdateTable("Thread", ON))
        committing.open()
        await writing
        await table.write(put(AFTER))
        [stream] = database.part(StreamRegistry).all()
        assert [shard.after for shard in stream.shards] == [1]
        assert await recorded(table) == 2
        assert await items(table, BEFORE, MEANWHILE, AFTER) == [BEFORE, MEANWHILE, AFTER]


async def test_a_write_between_the_read_of_the_heads_and_the_commit_is_before_the_stream() -> None:
    async with stepped_database(partitions_per_table=1) as (store, database):
        table, _ = await one_partition(database)
        reading = store.gate_behind(loads_of(key_layout.table_record("Thread")))
        changing = asyncio.ensure_future(database.ask(UpdateTable("Thread", ON)))
        await reading.reached()
        await table.write(put(MEANWHILE))
        reading.open()
        await changing
        [stream] = database.part(StreamRegistry).all()
        assert [shard.after for shard in stream.shards] == [2]
        await table.write(put(AFTER))
        assert await recorded(table) == 1


class BusyStore(FaultyStore):
    """Writes an item before each commit of a change of the table, unless its heads are locked."""

    table: Table | None = None
    attempts = 0
    locks = 0

    async def commit(self, groups: Sequence[Group]) -> asyncio.Future[None]:
        record = key_layout.table_record("Thread")
        if self.table is not None and any(group.head_key == record for group in groups):
            self.attempts += 1
            await self.table.write(put(thread("EC2", "busy")))
        return await super().commit(groups)

    def locked(self, heads: Sequence[bytes]) -> AbstractAsyncContextManager[Locked]:
        self.locks += 1
        return self._inner.locked(heads)


async def test_a_partition_that_writes_all_the_time_is_locked_for_the_change() -> None:
    async with memory_store() as inner:
        store = BusyStore(inner)
        async with running_database(store, partitions_per_table=1) as database:
            store.table, _ = await one_partition(database)
            await database.ask(UpdateTable("Thread", ON))
            assert (store.attempts, store.locks) == (3, 1)
            assert await versions(store) == (1, {1})


class ContestedStore(FaultyStore):
    """Conflicts with each write, and changes the table just before the partition locks its head.

    While the head is locked, only the lock loads rows: on PostgreSQL all other connections may be
    in use by other locks.
    """

    database: Database | None = None
    is_locked = False

    @property
    def latest(self) -> View:
        assert not self.is_locked, "a load outside of the lock"
        return self._inner.latest

    async def commit(self, groups: Sequence[Group]) -> asyncio.Future[None]:
        if self.database is not None:
            raise Conflict("another node has written: played by a test")
        return await super().commit(groups)

    @asynccontextmanager
    async def locked(self, heads: Sequence[bytes]) -> AsyncIterator[Locked]:
        assert self.database is not None
        database, self.database = self.database, None
        await database.ask(UpdateTable("Thread", ON))
        async with self._inner.locked(heads) as locked:
            self.is_locked = True
            try:
                yield locked
            finally:
                self.is_locked = False


async def test_a_partition_loads_a_changed_definition_through_the_lock_of_its_head() -> None:
    async with memory_store() as inner:
        store = ContestedStore(inner)
        async with running_database(store, partitions_per_table=1) as database:
            table, _ = await one_partition(database)
            store.database = database
            await table.write(put(AFTER))
            assert await recorded(table) == 1


class UnreadableRecords(FailingView):
    """A view that fails to load the table's record as often as the store says."""

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        store = self._store
        assert isinstance(store, UnreadableDefinition)
        if store.failures and list(keys) == [key_layout.table_record("Thread")]:
            store.failures -= 1
            raise Unavailable("no connection: played by a test")
        return await super().load(keys)


class UnreadableDefinition(FailingPages):
    """A store whose table record can't be loaded as many times as ``failures`` says."""

    failures = 0

    @property
    def latest(self) -> View:
        return UnreadableRecords(super().latest, self)


async def test_a_write_whose_definition_could_not_be_read_is_not_decided_by_the_old_one() -> None:
    async with memory_store() as inner:
        store = UnreadableDefinition(inner)
        async with running_database(store, partitions_per_table=1) as database:
            table, _ = await one_partition(database)
            await database.ask(UpdateTable("Thread", ON))
            store.failures = 1
            with pytest.raises(InternalServerError, match="Nothing was written"):
                await table.write(put(MEANWHILE))
            assert store.failures == 0
            await table.write(put(AFTER))
            assert await recorded(table) == 1


async def test_nothing_is_answered_by_a_head_that_could_not_be_read_again() -> None:
    async with memory_store() as inner:
        store = UnreadableDefinition(inner)
        async with running_database(store, partitions_per_table=1) as database:
            table, _ = await one_partition(database)
            await table.write(put(AFTER))
            await database.ask(UpdateTable("Thread", ON))
            store.failures = 3
            # Deleting a missing item writes no row, so no commit compares the head.
            for write in (put(AFTER), Delete(MEANWHILE), Delete(MEANWHILE)):
                with pytest.raises(InternalServerError, match="Nothing was written"):
                    await table.write(write)
            assert store.failures == 0
            await table.write(Delete(MEANWHILE))


async def test_a_head_of_another_writer_stays_stale_until_it_could_be_read() -> None:
    async with memory_store() as inner:
        store = UnreadableDefinition(inner)
        async with running_database(store, partitions_per_table=1) as database:
            table, key = await one_partition(database)
            (row,) = await inner.latest.load([key])
            assert row is not None
            changed = structs.replace(catalog.decode_partition_head(row), definition_version=1)
            await inner.commit([Group(key, row, catalog.encode_partition_head(changed))])
            store.failures = 2
            for write in (put(AFTER), Delete(MEANWHILE)):
                with pytest.raises(InternalServerError, match="Nothing was written"):
                    await table.write(write)
            assert store.failures == 0


async def test_locks_of_transactions_survive_a_change_of_the_table() -> None:
    async with stepped_database(partitions_per_table=1) as (store, database):
        table, head = await one_partition(database)
        await database.ask(CreateTable(table_definition("Other")))
        other = database.table("Other")
        committing = store.gate_before(commits_of(head))
        written = asyncio.ensure_future(
            transact(database, (table, put(AFTER)), (other, put(AFTER)))
        )
        await committing.reached()
        store.remove_gate(committing)
        await database.ask(UpdateTable("Thread", ON))
        committing.open()
        await written
        assert await items(table, AFTER) + await items(other, AFTER) == [AFTER, AFTER]
        assert await recorded(table) == 1


@pytest.mark.parametrize("fate", [Fate.WRITTEN, Fate.DROPPED])
async def test_partitions_have_the_stored_definition_after_an_unknown_commit(fate: Fate) -> None:
    async with memory_store() as inner:
        store = DoubtfulStore(inner)
        async with running_database(store, partitions_per_table=1) as database:
            table, _ = await one_partition(database)
            store.lose_next(key_layout.table_record("Thread"), fate)
            with pytest.raises(InternalServerError, match="is unknown"):
                await database.ask(UpdateTable("Thread", ON))
            await soon(lambda: database.table("Thread") is not table)
            table = database.table("Thread")
            await table.write(put(AFTER))
            is_on = table.definition.stream is not None and table.definition.stream.enabled
            assert is_on == (fate is Fate.WRITTEN)
            assert await recorded(table) == int(is_on)
            assert await versions(inner) == (int(is_on), {int(is_on)})
