"""After another owner's change of the catalog, the database reloads it and repeats its change."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from dynactor.actors.catalog.database import Database
from dynactor.model.errors import InternalServerError
from dynactor.model.indexes.global_index_rules import NewGlobalIndex
from dynactor.model.keys.key import KeyAttribute
from dynactor.model.tables.schema_rules import KeyElement
from dynactor.model.tables.table_rules import TableEdit
from dynactor.storage import key_layout
from dynactor.storage.store import Conflict, Group
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

BY_POSTS = TableEdit(
    index_creates=(NewGlobalIndex("by_posts", (KeyElement("posts", "HASH"),), "ALL"),),
    attribute_definitions=(KeyAttribute("posts", "N"),),
)


async def until(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not is_so():
            await asyncio.sleep(0.001)


def adopted(logs: Sequence[Any]) -> int:
    return sum(each["event"] == "catalog_reloaded" for each in logs)


async def make(database: Database, name: str = "Thread") -> None:
    await database.create_table(table_definition(name))


class OtherOwner(FaultyStore):
    """A store that refuses changes of the catalog, because another owner has changed it."""

    refused = 0
    _allowed = 1 << 30
    _refusals = 0

    def refuse_after(self, changes: int, times: int = 1) -> None:
        """Refuse changes after this many accepted ones."""
        self._allowed, self._refusals = changes, times

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        if any(each.head_key == key_layout.CATALOG_HEAD for each in groups):
            if not self._allowed and self._refusals:
                self._refusals -= 1
                self.refused += 1
                raise Conflict("the head is another one: played by a test")
            self._allowed = max(0, self._allowed - 1)
        return await super().commit(groups)


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
                await database.update_table("Thread", BY_POSTS)
                await until(lambda: is_active(database))
                state = await database.describe("Thread")
                assert state.indexes["by_posts"].item_count == 20
    assert (store.refused, adopted(logs)) == (1, 1)
    assert not any(each["event"] == "actor_crashed" for each in logs)


def is_active(database: Database) -> bool:
    indexes = database.table("Thread").definition.global_indexes
    return all(index.status == "ACTIVE" for index in indexes)


async def test_a_catalog_that_others_change_again_and_again_refuses_a_change():
    async with memory_store() as inner:
        store = OtherOwner(inner)
        async with running_database(store) as database:
            await make(database)
            store.refuse_after(0, times=4)
            with pytest.raises(InternalServerError, match="Nothing was changed"):
                await make(database, "Other")
            assert store.refused == 4
            await make(database, "Other")
