"""An added index becomes ACTIVE once its followers have caught up, and has the right counts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from dynactor.actors.database.database import Database
from dynactor.actors.table.messages import CreateTable, UpdateTable
from dynactor.actors.table.table import Table
from dynactor.model.keys.key import KeyAttribute
from dynactor.model.tables.global_index_rules import NewGlobalIndex
from dynactor.model.tables.schema_rules import KeyElement
from dynactor.model.tables.table_edits import TableEdit
from dynactor.model.writes.write import Delete
from dynactor.storage import key_layout
from dynactor.storage.subscriber_names import index_subscriber
from tests.support.databases.databases import put, table_definition, thread
from tests.support.stores.stepped_store import (
    Gate,
    SteppedStore,
    commits_that_put,
    loads_of,
    soon,
    stepped_database,
    turns,
)
from tests.support.tables.index_lag import index_lag_records

BY_POSTS = TableEdit(
    index_creates=(NewGlobalIndex("by_posts", (KeyElement("posts", "HASH"),), "ALL"),),
    attribute_definitions=(KeyAttribute("posts", "N"),),
)
ITEM = thread("EC2", "a", posts=1)


class Filled(NamedTuple):
    """An index whose backfill has ended, while its follower waits at a gate."""

    store: SteppedStore
    database: Database
    table: Table
    following: Gate

    @property
    def status(self) -> str:
        return self.table.definition.global_indexes[0].status


@asynccontextmanager
async def filled_index() -> AsyncIterator[Filled]:
    """Fill an index after the item was put, deleted and put again."""
    settings = {"partitions_per_table": 1, "index_allocation_seconds": 0.0}
    async with stepped_database(**settings) as (store, database):
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        [number] = table.partitions.map.numbers
        table_id = table.definition.table_id
        subscriber = index_subscriber(table_id, 1)
        filling = store.gate_before(loads_of(key_layout.backfill_cursor(table_id, 1)))
        following = store.gate_before(loads_of(key_layout.checkpoint(subscriber, number)))
        await database.ask(UpdateTable("Thread", BY_POSTS))
        await filling.reached()
        for write in (put(ITEM), Delete(ITEM), put(ITEM)):
            await table.write(write)
        filling.open()
        await following.reached()
        yield Filled(store, database, table, following)


async def test_an_index_is_not_active_before_its_followers_have_caught_up() -> None:
    async with filled_index() as it:
        storing = it.store.gate_before(commits_that_put(key_layout.table_record("Thread")))
        await turns()
        assert not storing.is_reached

        it.following.open()
        await storing.reached()
        assert not index_lag_records(it.table, it.table.definition.global_indexes[0].definition)


async def test_changes_before_the_backfill_are_not_counted_twice() -> None:
    async with filled_index() as it:
        await turns()
        it.following.open()
        await soon(lambda: it.status == "ACTIVE")
        assert (await it.database.describe("Thread")).indexes["by_posts"].item_count == 1
