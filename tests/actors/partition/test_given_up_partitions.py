"""A table with an abandoned partition can be changed, and its other partitions continue."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from dynactor.actors.database.database import Database
from dynactor.actors.derived.expiry.time_to_live_settings import TimeToLiveSettings
from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.table.messages import CreateTable, UpdateTable
from dynactor.actors.table.table import Table
from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import GlobalIndex, TableDefinition
from dynactor.model.errors import InternalServerError
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.tables.stream_rules import StreamChange
from dynactor.model.tables.table_edits import TableEdit
from dynactor.streams import change_log
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.expiry import switch, until_status
from tests.support.stores.store import memory_store

STREAM = TableEdit(stream=StreamChange(enabled=True, view_type="KEYS_ONLY"))
SETTINGS = TimeToLiveSettings(change_interval_seconds=0.0)


@pytest.fixture(autouse=True)
def _sooner_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynactor.actors.runtime.supervisor.RESTARTS", 1)


class Poison(Message[None], frozen=True):
    """A message that no partition knows."""


def indexed() -> TableDefinition:
    """The table of threads, with an index on posts."""
    posts = KeyAttribute("posts", "N")
    index = IndexDefinition(1, "by_posts", KeySchema((posts,)), Projection("ALL"))
    definition = table_definition()
    return structs.replace(
        definition,
        attribute_definitions=(*definition.attribute_definitions, posts),
        global_indexes=(GlobalIndex(index),),
        next_index_id=2,
    )


async def with_abandoned_partition(database: Database, definition: TableDefinition) -> Table:
    """A table with items and an abandoned partition in the middle."""
    await database.ask(CreateTable(definition))
    table = database.table("Thread")
    for number in range(20):
        await table.write(put(thread(f"f{number}", "s")))
    number = sorted(table.partitions.map.numbers)[1]
    partition = table.partitions[number]
    while not partition.is_closed:
        with pytest.raises(InternalServerError):
            await partition.ask(Poison())
        await asyncio.sleep(0)
    return table


async def written(table: Table, posts: int) -> int:
    """Write to all partitions; return the number of successful writes."""
    replies = []
    for number in range(20):
        try:
            replies.append(table.submit(put(thread(f"f{number}", "s", posts=posts))))
        except InternalServerError:
            continue
    await asyncio.gather(*replies)
    assert replies
    return len(replies)


async def recorded(table: Table) -> int:
    """The number of changes in the logs of the table's partitions."""
    logs = [
        await change_log.read(table.durable(), number, 0, max_records=100, max_bytes=1 << 20)
        for number in table.partitions.map.numbers
    ]
    return sum(map(len, logs))


async def test_a_stream_of_a_table_with_an_abandoned_partition_has_all_writes():
    async with memory_store() as store:
        async with running_database(store) as database:
            table = await with_abandoned_partition(database, table_definition())
            await database.ask(UpdateTable("Thread", STREAM))
            before = await written(table, 1)
            assert before < 20
            assert await recorded(table) == before
            # The change did not restart the table.
            assert database.table("Thread") is table
        async with running_database(store) as database:
            table = database.table("Thread")
            assert await written(table, 2) == 20
            assert await recorded(table) == before + 20


async def test_an_index_of_a_table_with_an_abandoned_partition_can_be_deleted():
    async with running_database() as database:
        table = await with_abandoned_partition(database, indexed())
        await database.ask(UpdateTable("Thread", TableEdit(index_deletes=("by_posts",))))
        while table.definition.global_indexes:
            await asyncio.sleep(0.001)
        assert database.table("Thread") is table


async def test_time_to_live_of_a_table_with_an_abandoned_partition_can_be_switched():
    async with running_database(time_to_live=SETTINGS) as database:
        table = await with_abandoned_partition(database, indexed())
        await switch(database, "Thread", "at", enabled=True)
        await until_status(table, "ENABLED")
        await switch(database, "Thread", "at", enabled=False)
        await until_status(table, "DISABLED")
        assert database.table("Thread") is table
