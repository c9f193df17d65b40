"""A destination with too large a backlog is cut off, and later resynchronized."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import json

from dynactor.actors.database.database import Database
from dynactor.actors.phases.destination_messages import DisableDestination
from dynactor.actors.phases.destination_phases import DestinationPhases
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import StreamingDestination
from dynactor.model.writes.write import Delete
from dynactor.storage import key_layout
from dynactor.storage.store import Store
from dynactor.streams.kafka.message import KafkaMessage
from tests.support.databases.databases import SetClock, running_database
from tests.support.databases.published import (
    TOPIC,
    item_of,
    published_table,
    relay_of,
    relay_settings,
    write_threads,
)
from tests.support.databases.stored_items import items
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.kafka.fake_broker import FakeBroker
from tests.support.stores.store import memory_store

CAP_BYTES = 20_000


@pytest.fixture(params=["at-least-once", "exactly-once"])
def relays(request):
    return relay_settings(delivery=request.param, retention_bytes=CAP_BYTES)


def destination_of(table: Table) -> StreamingDestination:
    return table.definition.destinations[-1]


async def cut_off(table: Table) -> None:
    """Write until the destination is cut off."""
    number = 1_000
    while destination_of(table).status != "BROKEN":
        await write_threads(table, [number])
        number += 1


async def stored_changes(store: Store, table: Table) -> int:
    found = 0
    for partition in table.record.partitions:
        start, end = key_layout.change_range(partition.number)
        found += len(
            await store.durable().page(start, end, max_rows=100_000, max_bytes=1_000_000_000)
        )
    return found


def rebuilt(messages: list[KafkaMessage]) -> dict[bytes, object]:
    """The final items of a consumer of one Kafka partition; it discards its items at a gap."""
    items: dict[bytes, object] = {}
    for message in messages:
        assert message.value is not None
        value = json.decode(message.value)
        if value["eventName"] == "GAP":
            items.clear()
        elif value["eventName"] == "REMOVE":
            items.pop(message.key, None)
        else:
            items[message.key] = value["dynamodb"]["NewImage"]
    return items


def rebuilt_table(broker: FakeBroker) -> list[object]:
    found = [item for at in range(3) for item in rebuilt(broker.partition(TOPIC, at)).values()]
    return sorted(found, key=repr)


def gaps(broker: FakeBroker) -> list[int]:
    """The number of gaps in each Kafka partition."""
    return [
        sum(
            dict(message.headers)["event-name"] == b"GAP" for message in broker.partition(TOPIC, at)
        )
        for at in range(3)
    ]


async def test_writes_continue_and_logs_stay_small_when_a_destination_is_cut_off(relays):
    broker = FakeBroker()
    async with (
        memory_store() as store,
        running_database(store, broker=broker, relays=relays) as database,
    ):
        table = await published_table(database)
        await write_threads(table, range(10))
        await broker.wait_messages(TOPIC, 10)
        with broker.unreachable():
            await cut_off(table)
            destination = destination_of(table)
            assert destination.status_description is not None
            assert destination.status_description.startswith("BROKEN: more than 20000 bytes")
            await write_threads(table, range(10, 500))
            # The actor answers this message after it has cut off the destination and trimmed the
            # logs.
            await database.describe("Thread")
            while await stored_changes(store, table):
                await asyncio.sleep(0)


def is_caught_up(database: Database, table: Table) -> bool:
    """Whether the table's destination is ACTIVE and has all changes."""
    destination = destination_of(table)
    relay = database.part(DestinationPhases).relay(table, destination)
    return destination.status == "ACTIVE" and relay is not None and not relay.lag_records


async def test_an_answer_canceled_by_the_client_library_does_not_end_the_wait_for_the_broker(
    relays,
):
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relays) as database:
        table = await published_table(database)
        with broker.unreachable():
            await cut_off(table)
            broker.cancelled_answers = 3
            while broker.cancelled_answers:
                await asyncio.sleep(0.001)
            assert destination_of(table).status == "BROKEN"
        async with asyncio.timeout(HANG_SECONDS):
            while destination_of(table).status != "ACTIVE":
                await asyncio.sleep(0.001)


async def test_a_consumer_of_a_cut_off_destination_gets_a_gap_and_then_equals_the_table(relays):
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relays) as database:
        table = await published_table(database)
        await write_threads(table, range(100), of_items=100)
        await broker.wait_messages(TOPIC, 100)
        with broker.unreachable():
            await cut_off(table)
            for number in range(50):
                item = item_of(number, 100)
                key = {name: item[name] for name in ("forum", "subject")}
                await table.write(Delete(key))
        number = 10_000
        while destination_of(table).status != "ACTIVE":
            # These writes come before, during and after the snapshot.
            await write_threads(table, [number], of_items=100)
            number += 1
        # These writes may exceed the limit, too; then the destination is cut off and resynchronized
        # again.
        while not is_caught_up(database, table):
            await asyncio.sleep(0)
        assert number > 10_000
        # Every Kafka partition gets the same number of gaps.
        assert len(set(gaps(broker))) == 1
        assert rebuilt_table(broker) == sorted(await all_items(table), key=repr)
        assert destination_of(table).status_description is None


async def test_a_snapshot_continues_where_the_broker_failed(relays):
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relays) as database:
        table = await published_table(database)
        await write_threads(table, range(1_000), of_items=1_000)
        await broker.wait_messages(TOPIC, 1_000)
        with broker.unreachable():
            await cut_off(table)
        while database.part(DestinationPhases).relay(table, destination_of(table)) is None:
            await asyncio.sleep(0)
        broker.failures = 2
        broker.lost_acknowledgments = 1
        while destination_of(table).status != "ACTIVE":
            await asyncio.sleep(0)
        assert rebuilt_table(broker) == sorted(await all_items(table), key=repr)


async def test_a_cut_off_destination_is_resynchronized_after_a_restart(relays):
    broker = FakeBroker()
    async with memory_store() as store:
        with broker.unreachable():
            async with running_database(store, broker=broker, relays=relays) as database:
                table = await published_table(database)
                await cut_off(table)
            async with running_database(store, broker=broker, relays=relays) as database:
                table = database.table("Thread")
                assert destination_of(table).status == "BROKEN"
                assert not table.definition.records_changes
        async with running_database(store, broker=broker, relays=relays) as database:
            table = database.table("Thread")
            while destination_of(table).status != "ACTIVE":
                await asyncio.sleep(0)
            await write_threads(table, range(5))
            while relay_of(database, table).lag_records:
                await asyncio.sleep(0)
            assert rebuilt_table(broker) == sorted(await all_items(table), key=repr)


async def test_a_destination_is_cut_off_by_the_age_of_its_backlog():
    broker, clock = FakeBroker(), SetClock()
    relays = relay_settings(retention_seconds=3600.0)
    async with running_database(clock=clock, broker=broker, relays=relays) as database:
        table = await published_table(database)
        while destination_of(table).status != "ACTIVE":
            await asyncio.sleep(0)
        with broker.unreachable():
            await write_threads(table, range(3))
            clock.step(3_000)
            await write_threads(table, range(3))
            clock.step(601)
            while destination_of(table).status != "BROKEN":
                await asyncio.sleep(0)
        description = destination_of(table).status_description
        assert description is not None
        assert "for more than 3600.0 seconds" in description


async def test_a_cut_off_destination_can_be_disabled(relays):
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relays) as database:
        table = await published_table(database)
        with broker.unreachable():
            await cut_off(table)
            await database.ask(DisableDestination("Thread", TOPIC))
            while destination_of(table).status != "DISABLED":
                await asyncio.sleep(0)
            assert destination_of(table).status == "DISABLED"


async def test_the_limits_of_the_backlog_also_apply_without_a_broker():
    broker = FakeBroker()
    relays = relay_settings(retention_bytes=CAP_BYTES)
    async with memory_store() as store:
        async with running_database(store, broker=broker, relays=relays) as database:
            await published_table(database)
        async with running_database(store, relays=relays) as database:
            table = database.table("Thread")
            await cut_off(table)
            assert destination_of(table).status == "BROKEN"


async def all_items(table: Table) -> list[object]:
    keys = [
        {name: item[name] for name in ("forum", "subject")}
        for item in (item_of(number, 1_000) for number in range(1_000))
    ]
    return [item for item in await items(table, *keys) if item is not None]
