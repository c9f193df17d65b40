"""The topic of a destination may start with every item of the table."""

from __future__ import annotations

import asyncio

import pytest

from dynactor.actors.phases.destination_messages import EnableDestination
from dynactor.actors.table.messages import CreateTable
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.published import TOPIC, published_table, relay_settings, write_threads
from tests.support.databases.replays import ConsumedTable, items_of
from tests.support.kafka.fake_broker import FakeBroker
from tests.support.stores.store import memory_store


@pytest.fixture(params=["at-least-once", "exactly-once"])
def relays(request: pytest.FixtureRequest):
    return relay_settings(delivery=request.param, snapshot="initial")


async def filled_table(database, items: int = 300):
    await database.ask(CreateTable(table_definition()))
    table = database.table("Thread")
    for number in range(items):
        await table.write(put(thread(f"forum {number}", "subject", n=number)))
    return table


async def wait_active(table) -> None:
    while table.definition.destinations[0].status != "ACTIVE":
        await asyncio.sleep(0)


async def test_the_topic_of_a_table_with_items_starts_with_every_item(relays):
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relays) as database:
        table = await filled_table(database)
        with broker.unreachable():
            await database.ask(EnableDestination("Thread", TOPIC))
            await write_threads(table, range(1_000, 1_100))
        await write_threads(table, range(1_100, 1_200))
        await wait_active(table)
        assert not table.definition.destinations[0].needs_snapshot
        await write_threads(table, range(1_200, 1_210))
        while (consumed := ConsumedTable.of(broker, TOPIC)).items != await items_of(table):
            await asyncio.sleep(0)
        # Items that changed since the snapshot began are not in it.
        assert 0 < len(consumed.snapshot) <= 300
        assert consumed.gaps == 3


async def test_the_topic_of_an_unused_table_starts_with_the_first_change(relays):
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relays) as database:
        table = await published_table(database)
        await write_threads(table, range(50))
        await broker.wait_messages(TOPIC, 50)
        consumed = ConsumedTable.of(broker, TOPIC)
        assert (consumed.gaps, consumed.snapshot) == (0, {})
        assert consumed.items == await items_of(table)


async def test_a_snapshot_that_a_restart_interrupts_starts_over(relays):
    broker = FakeBroker()
    async with memory_store() as store:
        async with running_database(store, broker=broker, relays=relays) as database:
            table = await filled_table(database)
            await database.ask(EnableDestination("Thread", TOPIC))
            await broker.wait_messages(TOPIC, 20)
            broker.answers.clear()
        broker.answers.set()
        async with running_database(store, broker=broker, relays=relays) as database:
            table = database.table("Thread")
            await write_threads(table, range(1_000, 1_050))
            await wait_active(table)
            while (consumed := ConsumedTable.of(broker, TOPIC)).items != await items_of(table):
                await asyncio.sleep(0)
            assert consumed.gaps == 6


async def test_by_default_a_topic_starts_with_new_changes():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relay_settings()) as database:
        table = await filled_table(database)
        await database.ask(EnableDestination("Thread", TOPIC))
        await write_threads(table, range(1_000, 1_010))
        await broker.wait_messages(TOPIC, 10)
        assert ConsumedTable.of(broker, TOPIC).gaps == 0
