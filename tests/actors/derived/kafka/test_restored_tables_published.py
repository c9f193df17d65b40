"""The items of a table that is restored from a backup are not published as changes."""

from __future__ import annotations

import asyncio

import pytest

from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.table import Table
from dynactor.model.tables.destination_rules import default_topic
from tests.support.databases.backed_up import (
    back_up,
    begin_restore,
    indexed_definition,
    wait_restored,
)
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.published import relay_settings, write_threads
from tests.support.databases.replays import ConsumedTable, items_of
from tests.support.kafka.fake_broker import FakeBroker
from tests.support.stores.store import memory_store

ITEMS = 50


async def wait_active(table: Table) -> str:
    """Wait until the relay has reached the table's topic; return the topic's name."""
    while not (
        table.definition.destinations and table.definition.destinations[0].status == "ACTIVE"
    ):
        await asyncio.sleep(0)
    return table.definition.destinations[0].topic


@pytest.mark.parametrize("indexed", [False, True])
async def test_the_topic_of_a_restored_table_starts_with_its_first_change(indexed: bool) -> None:
    broker = FakeBroker()
    relays = relay_settings(all_tables=True)
    definition = indexed_definition() if indexed else table_definition()
    async with running_database(broker=broker, relays=relays) as database:
        await database.ask(CreateTable(definition))
        source = database.table("Thread")
        for number in range(ITEMS):
            await source.write(put(thread(f"forum {number}", "subject", n=number, votes=1)))
        await begin_restore(database, await back_up(database))
        table = await wait_restored(database)
        topic = table.definition.destinations[0].topic
        assert topic == default_topic(relays.topic_prefix, "Restored")
        # The relay must publish even the first write after the restore.
        await write_threads(table, range(1_000, 1_010), of_items=10)
        await broker.wait_messages(topic, 10)
        consumed = ConsumedTable.of(broker, topic)
        assert len(consumed.items) == 10
        assert consumed.snapshot == {}


async def test_a_topic_that_starts_with_a_snapshot_has_the_restored_items() -> None:
    broker = FakeBroker()
    relays = relay_settings(all_tables=True, snapshot="initial")
    async with running_database(broker=broker, relays=relays) as database:
        await database.ask(CreateTable(table_definition()))
        source = database.table("Thread")
        for number in range(ITEMS):
            await source.write(put(thread(f"forum {number}", "subject", n=number)))
        await begin_restore(database, await back_up(database))
        table = await wait_restored(database)
        topic = await wait_active(table)
        consumed = ConsumedTable.of(broker, topic)
        assert len(consumed.snapshot) == ITEMS
        assert consumed.items == await items_of(table)


async def test_a_table_that_is_restored_after_a_restart_gets_its_topic() -> None:
    broker = FakeBroker()
    relays = relay_settings(all_tables=True)
    async with memory_store() as store:
        async with running_database(store, broker=broker, relays=relays) as database:
            await database.ask(CreateTable(table_definition()))
            await write_threads(database.table("Thread"), range(ITEMS), of_items=ITEMS)
            await begin_restore(database, await back_up(database))
        async with running_database(store, broker=broker, relays=relays) as database:
            table = await wait_restored(database)
            topic = await wait_active(table)
            await write_threads(table, range(1_000, 1_005))
            await broker.wait_messages(topic, 5)
            assert ConsumedTable.of(broker, topic).snapshot == {}
