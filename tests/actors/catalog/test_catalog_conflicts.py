"""After another owner changed the catalog, the database reloads it and repeats its own change."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest
from msgspec import structs
from structlog.testing import capture_logs

from dynactor.actors.catalog.catalog_owner import CatalogOwner
from dynactor.actors.database.database import Database
from dynactor.actors.table.messages import CreateTable, UpdateTable
from dynactor.model.errors import InternalServerError
from dynactor.model.keys.key import KeyAttribute
from dynactor.model.tables.global_index_rules import NewGlobalIndex
from dynactor.model.tables.schema_rules import KeyElement
from dynactor.model.tables.table_edits import TableEdit
from dynactor.storage import catalog, key_layout
from dynactor.storage.catalog import CatalogHead, TableRecord
from dynactor.storage.store import Conflict, Group, Store
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

BY_POSTS = TableEdit(
    index_creates=(NewGlobalIndex("by_posts", (KeyElement("posts", "HASH"),), "ALL"),),
    attribute_definitions=(KeyAttribute("posts", "N"),),
)


async def until(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(HANG_SECONDS):
        while not is_so():
            await asyncio.sleep(0.001)


def adopted(logs: Sequence[Any]) -> int:
    return sum(each["event"] == "catalog_reloaded" for each in logs)


async def make(database: Database, name: str = "Thread") -> None:
    await database.ask(CreateTable(table_definition(name)))


class OtherOwner(FaultyStore):
    """A store that refuses changes of the catalog, because another owner has changed it."""

    refused = 0
    _allowed = 1 << 30
    _refusals = 0

    def refuse_after(self, changes: int, times: int = 1) -> None:
        """Accept this many changes, and then refuse ``times`` changes."""
        self._allowed, self._refusals = changes, times

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        if any(each.head_key == key_layout.CATALOG_WRITER for each in groups):
            if not self._allowed and self._refusals:
                self._refusals -= 1
                self.refused += 1
                await self._change_table(groups)
                raise Conflict("the head is another one: played by a test")
            self._allowed = max(0, self._allowed - 1)
        return await super().commit(groups)

    async def _change_table(self, groups: Sequence[Group]) -> None:
        """Write the change of the other owner."""
        for group in groups:
            if group.head_key.startswith(key_layout.TABLE_RECORDS[0]) and group.expected_head:
                record = changed(catalog.decode_record(group.expected_head), "other")
                other = Group(group.head_key, group.expected_head, catalog.encode_record(record))
                await (await super().commit([other]))


@pytest.mark.parametrize("lost", range(3))
async def test_phases_continue_after_a_conflict_at_each_commit(lost: int):
    async with memory_store() as inner:
        store = OtherOwner(inner)
        with capture_logs() as logs:
            async with running_database(store, index_allocation_seconds=0.0) as database:
                await make(database)
                for number in range(20):
                    item = put(thread("EC2", f"{number}", posts=number))
                    await database.table("Thread").write(item)
                store.refuse_after(lost)
                await database.ask(UpdateTable("Thread", BY_POSTS))
                await until(lambda: is_active(database))
                state = await database.describe("Thread")
                assert state.indexes["by_posts"].item_count == 20
    assert (store.refused, adopted(logs)) == (1, 1)
    assert not any(each["event"] == "actor_crashed" for each in logs)


def is_active(database: Database) -> bool:
    indexes = database.table("Thread").definition.global_indexes
    return all(index.status == "ACTIVE" for index in indexes)


async def test_a_change_fails_if_other_owners_change_the_catalog_repeatedly():
    async with memory_store() as inner:
        store = OtherOwner(inner)
        async with running_database(store) as database:
            await make(database)
            store.refuse_after(0, times=4)
            with pytest.raises(InternalServerError, match="Nothing was changed"):
                await make(database, "Other")
            assert store.refused == 4
            await make(database, "Other")


async def two_owners(store: Store) -> list[tuple[CatalogOwner, TableRecord]]:
    """Two nodes, each with the record of a table that it is about to change."""
    async with running_database(store) as database:
        for name in ("Reply", "Thread"):
            await make(database, name)
    found = []
    for at, node in enumerate(("one", "two")):
        owner = CatalogOwner(store, node)
        loaded = await catalog.load(store.latest, node)
        owner.adopt(loaded)
        found.append((owner, loaded.tables[at]))
    return found


def changed(record: TableRecord, *tags: str) -> TableRecord:
    definition = structs.replace(record.definition, tags=tuple((tag, "1") for tag in tags))
    return structs.replace(record, definition=definition)


async def test_changes_of_two_tables_at_once_do_not_conflict():
    async with memory_store() as store:
        owners = await two_owners(store)
        version = (await catalog.load(store.latest)).version
        for tag in ("a", "b"):
            await asyncio.gather(*(owner.put(changed(record, tag)) for owner, record in owners))
        loaded = await catalog.load(store.latest)
        assert [dict(each.definition.tags) for each in loaded.tables] == [{"b": "1"}] * 2
        assert loaded.version == version + 4


async def test_the_second_of_two_changes_of_one_table_conflicts_and_is_not_written():
    async with memory_store() as store:
        (first, record), (second, _) = await two_owners(store)
        await first.put(changed(record, "first"))
        version = (await catalog.load(store.latest)).version
        with pytest.raises(Conflict):
            await second.put(changed(record, "second"))
        loaded = await catalog.load(store.latest, "two")
        assert dict(loaded.tables[0].definition.tags) == {"first": "1"}
        assert loaded.version == version
        second.adopt(loaded)
        await second.put(changed(record, "second"))


async def test_two_nodes_never_assign_the_same_numbers():
    async with memory_store() as store:
        (first, _), (second, _) = await two_owners(store)
        assigned = CatalogHead(first.head.next_table_id + 1, first.head.next_partition_number + 4)
        await first.change(head=assigned)
        with pytest.raises(Conflict):
            await second.change(head=assigned)
