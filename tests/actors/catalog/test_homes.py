"""Two databases share the tables of one store: the leader's, and that of another node's share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import pytest

from dynactor.actors.backups.messages import CreateTableBackup
from dynactor.actors.catalog.homes import MoveTables, TakeTables
from dynactor.actors.catalog.share import Share
from dynactor.actors.database.database import Database
from dynactor.actors.phases.streams import StreamRegistry
from dynactor.actors.phases.table_homes import TableHomes
from dynactor.actors.splitting.messages import SplitPartition
from dynactor.actors.table.messages import CreateTable, DeleteTable, UpdateTable
from dynactor.model.errors import ResourceInUseException
from dynactor.model.key_conditions.split_point import middle
from dynactor.model.tables.table_edits import TableEdit
from dynactor.model.tables.table_rules import StreamChange
from dynactor.storage import key_layout
from dynactor.storage.catalog import load_claims
from dynactor.storage.partition_map import PartitionMap
from dynactor.storage.store import Closed, Row, Store, View
from tests.support.databases.backed_up import back_up, wait_available
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.homes import EPOCH, OpenGuard, give, give_back, sharing
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.stepped_store import SteppedStore, loads_of
from tests.support.stores.store import memory_store

TAGGED: Final = TableEdit(tags_to_add=(("by", "the other home"),))
STREAMED: Final = TableEdit(stream=StreamChange(enabled=True, view_type="KEYS_ONLY"))


@asynccontextmanager
async def sharing_thread(store: Store) -> AsyncIterator[tuple[Database, Database]]:
    """The leader with the table Thread, and the database of a share without tables."""
    async with sharing(store) as (leader, other):
        await leader.ask(CreateTable(table_definition()))
        yield leader, other


async def split_first(database: Database, name: str = "Thread") -> None:
    """Split the first partition of a table."""
    ranges = PartitionMap(database.table(name).record.partitions)
    number = ranges.numbers[0]
    point = middle(ranges.partition_range(number))
    assert point is not None
    await database.ask(SplitPartition(name, number, point.at))


async def test_the_name_of_a_table_with_another_home_is_in_use():
    async with running_database(share=Share()) as leader:
        leader.guard_moves(OpenGuard())
        await leader.ask(CreateTable(table_definition()))
        await leader.ask(MoveTables(("Thread",), EPOCH))
        with pytest.raises(ResourceInUseException, match="Table already exists: Thread"):
            await leader.ask(CreateTable(table_definition()))
        await leader.ask(TakeTables(("Thread",), frozenset((EPOCH,))))
        assert leader.runs("Thread")


async def test_a_table_that_is_deleted_before_its_move_gets_no_other_home():
    async with memory_store() as store, sharing_thread(store) as (leader, other):
        assert "Thread" in leader.part(TableHomes).movable()
        await leader.ask(DeleteTable("Thread"))
        await leader.ask(MoveTables(("Thread",), EPOCH))
        assert await load_claims(store.latest) == {}
        await leader.ask(CreateTable(table_definition()))
        await other.ask(TakeTables(("Thread",)))
        assert leader.runs("Thread")
        assert not other.runs("Thread")


async def test_a_table_is_open_only_when_its_streams_can_be_read():
    async with memory_store() as inner:
        store = SteppedStore(inner)
        async with sharing(inner, store) as (leader, other):
            await leader.ask(CreateTable(table_definition()))
            await leader.ask(UpdateTable("Thread", STREAMED))
            table = leader.table("Thread")
            await table.write(put(thread("EC2", "a")))
            heads = store.gate_before(
                loads_of(key_layout.partition_head(table.record.partition_numbers[0]))
            )
            async with anyio.create_task_group() as group:
                group.start_soon(give, leader, other)
                await heads.reached()
                is_open = other.runs("Thread")
                heads.open()
            assert not is_open
            (stream,) = other.part(StreamRegistry).all()
            assert sum(map(other.part(StreamRegistry).tail, stream.shards)) == 1


async def test_a_leader_opens_its_tables_when_it_starts():
    async with memory_store() as store:
        async with sharing_thread(store) as (leader, other):
            await leader.ask(CreateTable(table_definition("Other")))
            await give(leader, other)
        async with running_database(store, share=Share()) as leader:
            assert leader.runs("Other")
            assert leader.tables_elsewhere == {"Thread": EPOCH}


async def test_a_backup_that_is_being_created_is_completed_by_the_next_leader():
    async with memory_store() as store:
        async with running_database(store, share=Share()) as leader:
            await leader.ask(CreateTable(table_definition()))
            await leader.table("Thread").write(put(thread("a", "b")))
            backup = await leader.ask(CreateTableBackup("Thread", "nightly"))
            assert backup.status == "CREATING"
        async with running_database(store, share=Share()) as leader:
            assert (await wait_available(leader, backup.backup_id)).item_count == 1


async def test_a_backup_assigns_no_number_again_that_another_home_has_assigned():
    async with memory_store() as store, sharing_thread(store) as (leader, other):
        await leader.ask(CreateTable(table_definition("Backed")))
        await give(leader, other)
        await split_first(other)
        await back_up(leader, "Backed")
        await split_first(other)
        await leader.ask(CreateTable(table_definition("Later")))
        numbers = [
            *other.table("Thread").record.partition_numbers,
            *leader.table("Backed").record.partition_numbers,
            *leader.table("Later").record.partition_numbers,
        ]
        assert len(numbers) == len(set(numbers))


class HookedView:
    """A view that calls a function once, after the first page of the tables' records."""

    def __init__(self, view: View, store: HookedStore) -> None:
        self._view = view
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)

    async def page(self, start: bytes, end: bytes, **members: Any) -> list[Row]:
        rows = await self._view.page(start, end, **members)
        if start == key_layout.TABLE_RECORDS[0] and self._store.hook is not None:
            hook, self._store.hook = self._store.hook, None
            await hook()
        return rows


class HookedStore(FaultyStore):
    """A store that calls ``hook`` while the catalog is loaded."""

    hook: Callable[[], Awaitable[None]] | None = None

    @property
    def latest(self) -> Any:
        return HookedView(super().latest, self)


async def test_a_table_given_back_during_the_start_of_a_leader_has_its_latest_record():
    async with memory_store() as inner:
        store = HookedStore(inner)
        async with sharing_thread(inner) as (leader, other):
            await give(leader, other)
        async with running_database(inner, share=Share(EPOCH)) as other:
            other.guard_moves(OpenGuard())
            await other.ask(TakeTables(("Thread",)))

            async def change_and_give_back() -> None:
                await other.ask(UpdateTable("Thread", TAGGED))
                await give_back(other)

            store.hook = change_and_give_back
            async with running_database(store, share=Share()) as leader:
                assert store.hook is None
                await leader.ask(TakeTables(("Thread",)))
                assert leader.table("Thread").definition.tags == TAGGED.tags_to_add


async def test_a_leader_that_loses_the_store_while_it_starts_raises_the_error_of_the_store():
    async with memory_store() as inner:
        store = HookedStore(inner)

        async def lose() -> None:
            store.refuse_reads(Closed("another server has taken over"))

        async def lose_later() -> None:
            store.hook = lose

        # The catalog is loaded twice.
        store.hook = lose_later
        # An ExceptionGroup would end a node, which otherwise continues without being the leader.
        with pytest.raises(Closed):
            async with running_database(store, share=Share()):
                pass
