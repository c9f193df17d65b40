"""Changes are published in order while the table's partitions are split."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from dynactor.actors.database.database import Database
from dynactor.actors.derived.kafka.relay_settings import RelaySettings
from dynactor.actors.phases.destination_messages import DisableDestination, EnableDestination
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import StreamSettings
from dynactor.storage import key_layout
from dynactor.storage.store import Full, Group, Store
from dynactor.storage.subscriber_names import destination_subscriber
from dynactor.streams.kafka.message import KafkaMessage
from tests.support.databases.databases import put, running_database, table_definition
from tests.support.databases.published import (
    TOPIC,
    in_order,
    item_of,
    numbers_by_item,
    published_table,
    relay_of,
    relay_settings,
    without_duplicates,
    write_threads,
)
from tests.support.databases.replays import ConsumedTable, items_of
from tests.support.databases.splitting import halve, splitting
from tests.support.databases.transacting import stepped, transact
from tests.support.kafka.fake_broker import FakeBroker
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

EXACTLY_ONCE = relay_settings(delivery="exactly-once")
ITEMS = 60


@pytest.fixture(params=["at-least-once", "exactly-once"])
def relays(request: pytest.FixtureRequest) -> RelaySettings:
    return relay_settings(delivery=request.param)


async def active_table(database: Database) -> Table:
    table = await published_table(database)
    while table.definition.destinations[0].status != "ACTIVE":
        await asyncio.sleep(0)
    return table


async def halve_all(database: Database, table: Table) -> list[int]:
    """Split every partition; return the numbers of the split partitions."""
    parents = [partition.number for partition in table.record.partitions]
    for parent in parents:
        await halve(database, table, parent)
    return parents


async def all_published(database: Database, table: Table) -> None:
    relay = relay_of(database, table)
    while relay.lag_records or relay.state != "PUBLISHING":
        await asyncio.sleep(0)


def assert_in_order(messages: list[KafkaMessage], count: int) -> None:
    """Check that each item's changes have rising numbers and rising sequence numbers."""
    assert sorted(numbers_by_item(messages).values()) == in_order(count, ITEMS)
    last: dict[bytes, int] = {}
    for message in messages:
        number = int(dict(message.headers)["sequence-number"])
        assert number > last.get(message.key, 0)
        last[message.key] = number


async def test_changes_of_an_item_arrive_in_order_over_splits_and_outages(relays):
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relays) as database:
        table = await active_table(database)
        async with splitting(database, table, 24):
            for first in range(0, 1_800, 300):
                await write_threads(table, range(first, first + 150), of_items=ITEMS)
                with broker.unreachable():
                    await write_threads(table, range(first + 150, first + 200), of_items=ITEMS)
                broker.failures = 2
                await write_threads(table, range(first + 200, first + 300), of_items=ITEMS)
        await all_published(database, table)
        messages = broker.messages(TOPIC)
        if relays.delivery == "exactly-once":
            assert len(messages) == 1_800
        assert_in_order(without_duplicates(messages), 1_800)
        # The logs of split partitions are not needed any more, so they are deleted.
        await database.actor.keep_streams()
        assert table.record.ended_logs == ()
        await write_threads(table, range(1_800, 1_900), of_items=ITEMS)
        await all_published(database, table)
        assert_in_order(without_duplicates(broker.messages(TOPIC)), 1_900)


async def test_a_split_after_a_committed_transaction_and_a_full_disk_keeps_the_order(relays):
    broker = FakeBroker()
    async with memory_store() as real:
        store = FaultyStore(real)
        async with running_database(store, broker=broker, relays=relays) as database:
            table = await active_table(database)
            await write_threads(table, range(ITEMS), of_items=ITEMS)
            await all_published(database, table)

            async def fill(step: int) -> None:
                if step == 2:
                    store.refuse_commits(Full("the disk is full"), is_silent=True)

            stepped(database, fill)
            numbers = range(ITEMS, 2 * ITEMS)
            with broker.unreachable():
                await transact(database, *((table, put(item_of(each, ITEMS))) for each in numbers))
                store.allow_commits()
                # Split the partitions before they can confirm that the change is durable.
                await halve_all(database, table)
                await write_threads(table, range(2 * ITEMS, 3 * ITEMS), of_items=ITEMS)
            await all_published(database, table)
            assert_in_order(without_duplicates(broker.messages(TOPIC)), 3 * ITEMS)


async def test_a_child_is_not_published_before_its_parent_even_after_a_restart(relays):
    broker = FakeBroker()
    settings = {"broker": broker, "relays": relays, "partitions_per_table": 1}
    async with memory_store() as store:
        async with running_database(store, **settings) as database:
            table = await active_table(database)
            await write_threads(table, range(100), of_items=ITEMS)
            await broker.wait_messages(TOPIC, 100)
        with broker.unreachable():
            async with running_database(store, **settings) as database:
                table = database.table("Thread")
                # The relay needs several reads for this many changes.
                await write_threads(table, range(100, 1_000), of_items=ITEMS)
                await halve_all(database, table)
                await write_threads(table, range(1_000, 1_900), of_items=ITEMS)
                await halve_all(database, table)
                await write_threads(table, range(1_900, 2_000), of_items=ITEMS)
                await database.actor.keep_streams()
                assert len(table.record.ended_logs) == 3
                assert relay_of(database, table).lag_records == 1_900
        async with running_database(store, **settings) as database:
            table = database.table("Thread")
            assert relay_of(database, table).lag_bytes > 0
            await write_threads(table, range(2_000, 2_100), of_items=ITEMS)
            await all_published(database, table)
            assert relay_of(database, table).lag_bytes == 0
            assert_in_order(without_duplicates(broker.messages(TOPIC)), 2_100)
            await database.actor.keep_streams()
            assert table.record.ended_logs == ()


async def test_an_empty_log_between_two_others_keeps_the_order(relays):
    broker = FakeBroker()
    settings = {"broker": broker, "relays": relays, "partitions_per_table": 1}
    async with memory_store() as store:
        async with running_database(store, **settings) as database:
            table = await active_table(database)
            with broker.unreachable():
                await write_threads(table, range(900), of_items=ITEMS)
                for _ in range(3):
                    await halve_all(database, table)
                await write_threads(table, range(900, 1_800), of_items=ITEMS)
                # No record of the empty log is needed, but the log is kept.
                await database.actor.keep_streams()
                assert len(table.record.ended_logs) == 7
            await all_published(database, table)
            assert_in_order(without_duplicates(broker.messages(TOPIC)), 1_800)
            with broker.unreachable():
                await write_threads(table, range(1_800, 2_700), of_items=ITEMS)
                for _ in range(2):
                    await halve_all(database, table)
                await write_threads(table, range(2_700, 3_600), of_items=ITEMS)
                await database.actor.keep_streams()
        async with running_database(store, **settings) as database:
            table = database.table("Thread")
            await all_published(database, table)
            assert_in_order(without_duplicates(broker.messages(TOPIC)), 3_600)
            await database.actor.keep_streams()
            assert table.record.ended_logs == ()


async def test_with_exactly_once_a_crash_before_the_checkpoints_duplicates_no_split_log():
    broker = FakeBroker()
    settings = {"broker": broker, "relays": EXACTLY_ONCE, "keep_streams_seconds": 600}
    async with memory_store() as store:
        async with running_database(store, **settings) as database:
            table = await active_table(database)
            await write_threads(table, range(200), of_items=ITEMS)
            await halve_all(database, table)
            await write_threads(table, range(200, 400), of_items=ITEMS)
            await halve(database, table, table.record.partitions[0].number)
            await write_threads(table, range(400, 600), of_items=ITEMS)
            await broker.wait_messages(TOPIC, 600)
            subscriber = destination_subscriber(table.definition.table_id, 1)
            numbers = table.record.log_numbers
            assert len(numbers) == 14
        for number in numbers:
            # Set the checkpoints back, as if the server had been killed before it stored them.
            await forget_checkpoint(store, key_layout.checkpoint(subscriber, number))
        async with running_database(store, **settings) as database:
            table = database.table("Thread")
            await write_threads(table, range(600, 700), of_items=ITEMS)
            await all_published(database, table)
        assert len(broker.messages(TOPIC)) == 700
        assert_in_order(broker.messages(TOPIC), 700)


async def forget_checkpoint(store: Store, key: bytes) -> None:
    (stored,) = await store.latest.load([key])
    await (await store.commit([Group(key, stored, bytes(16))]))


async def test_splits_while_a_snapshot_is_published_leave_no_gap():
    """The database is restored from a backup, so its topic has more changes than its logs."""
    broker = FakeBroker()
    settings = {"broker": broker, "relays": EXACTLY_ONCE}
    async with memory_store() as store:
        async with running_database(store, **settings) as database:
            table = await active_table(database)
            await write_threads(table, range(600), of_items=600)
            await all_published(database, table)
        for key in {message.key for message in broker.messages("dynactor.__positions")}:
            publisher = await broker.open_publisher("somebody")
            await publisher.begin()
            message = KafkaMessage(key, b"1000", (), 0)
            await publisher.publish("dynactor.__positions", 0, [message], 1_000)
            await publisher.commit()
            await publisher.close()
        async with running_database(store, **settings) as database:
            table = database.table("Thread")
            async with splitting(database, table, 16):
                await write_threads(table, range(600, 1_000), of_items=600)
            await all_published(database, table)
            consumed = ConsumedTable.of(broker, TOPIC)
            assert consumed.gaps == 3
            assert consumed.items == await items_of(table)
            # Items that changed since the snapshot began are not in it.
            assert 0 < len(consumed.snapshot) <= 600


@pytest.mark.parametrize("snapshot", ["initial", "never"])
async def test_a_table_with_items_is_not_new_although_all_its_partitions_are(snapshot: str):
    broker = FakeBroker()
    relays = relay_settings(snapshot=snapshot)
    settings = {"broker": broker, "relays": relays, "keep_streams_seconds": 600}
    async with running_database(**settings) as database:
        table = await active_table(database)
        await write_threads(table, range(100), of_items=ITEMS)
        await all_published(database, table)
        await database.ask(DisableDestination("Thread", TOPIC))
        while table.definition.destinations[-1].status != "DISABLED":
            await asyncio.sleep(0)
        await halve_all(database, table)
        assert not any(head.counter for head in await table.heads())
        await active_again(database)
        await write_threads(table, range(100, 110), of_items=ITEMS)
        await all_published(database, table)
        consumed = ConsumedTable.of(broker, TOPIC)
        if snapshot == "initial":
            assert (consumed.gaps, len(consumed.snapshot)) == (3, ITEMS)
            assert consumed.items == await items_of(table)
        else:
            assert (consumed.gaps, len(consumed.snapshot)) == (0, 0)


async def test_records_of_ended_logs_count_toward_the_limit():
    broker = FakeBroker()
    relays = relay_settings(retention_bytes=60_000)
    async with running_database(broker=broker, relays=relays) as database:
        table = await active_table(database)
        await write_threads(table, range(100), of_items=ITEMS)
        await broker.wait_messages(TOPIC, 100)
        with broker.unreachable():
            first = 1_000
            while table.definition.destinations[0].status != "BROKEN":
                first += 10
                await write_threads(table, range(first, first + 10), of_items=ITEMS)
                if len(table.record.partitions) < 30:
                    await halve(database, table, table.record.partitions[0].number)
            # The destination was cut off, so no log is kept for it.
            await database.describe("Thread")
            await database.actor.keep_streams()
            assert table.record.ended_logs == ()
            await write_threads(table, range(100), of_items=ITEMS)
            await halve(database, table, table.record.partitions[0].number)
            await write_threads(table, range(100, 200), of_items=ITEMS)
        while table.definition.destinations[0].status != "ACTIVE":
            await asyncio.sleep(0)
        await write_threads(table, range(30), of_items=ITEMS)
        await all_published(database, table)
        consumed = ConsumedTable.of(broker, TOPIC)
        assert consumed.gaps == 3
        assert consumed.items == await items_of(table)
        assert len(consumed.snapshot) == ITEMS


async def test_a_destination_that_was_cut_off_is_not_notified_of_ended_logs(relays):
    broker = FakeBroker()
    relays = structs.replace(relays, retention_bytes=20_000)
    async with running_database(broker=broker, relays=relays) as database:
        # With a stream, the logs are kept although the destination was cut off.
        stream = StreamSettings("", "NEW_AND_OLD_IMAGES")
        await database.ask(CreateTable(structs.replace(table_definition(), stream=stream)))
        table = await active_again(database)
        with broker.unreachable():
            number = 0
            while table.definition.destinations[0].status != "BROKEN":
                await write_threads(table, [number], of_items=ITEMS)
                number += 1
            await halve_all(database, table)
            await write_threads(table, range(100), of_items=ITEMS)
        while table.definition.destinations[0].status != "ACTIVE":
            await asyncio.sleep(0)
        assert len(table.record.ended_logs) == 4
        await write_threads(table, range(100, 130), of_items=ITEMS)
        await all_published(database, table)
        consumed = ConsumedTable.of(broker, TOPIC)
        assert consumed.items == await items_of(table)
        assert sum(map(len, consumed.changes.values())) == 30


async def test_a_disabled_destination_gets_the_changes_of_ended_logs(relays):
    broker = FakeBroker()
    async with memory_store() as store:
        with broker.unreachable():
            async with running_database(store, broker=broker, relays=relays) as database:
                table = await published_table(database)
        async with running_database(store, broker=broker, relays=relays) as database:
            table = database.table("Thread")
            while table.definition.destinations[0].status != "ACTIVE":
                await asyncio.sleep(0)
            broker.answers.clear()
            await write_threads(table, range(100), of_items=ITEMS)
            await halve_all(database, table)
            await write_threads(table, range(100, 200), of_items=ITEMS)
            await database.ask(DisableDestination("Thread", TOPIC))
            broker.answers.set()
            while table.definition.destinations[0].status != "DISABLED":
                await asyncio.sleep(0)
            assert_in_order(without_duplicates(broker.messages(TOPIC)), 200)
            await database.actor.keep_streams()
            assert table.record.ended_logs == ()
            rows = await store.durable().page(
                *key_layout.checkpoint_range(table.definition.table_id),
                max_rows=10,
                max_bytes=1_000,
            )
            assert rows == []


async def test_a_destination_that_is_enabled_again_reads_no_log_that_ended_before(relays):
    broker = FakeBroker()
    settings = {"broker": broker, "relays": relays, "keep_streams_seconds": 600}
    async with running_database(**settings) as database:
        table = await active_table(database)
        await write_threads(table, range(60), of_items=ITEMS)
        await halve_all(database, table)
        await database.ask(DisableDestination("Thread", TOPIC))
        while table.definition.destinations[-1].status != "DISABLED":
            await asyncio.sleep(0)
        await write_threads(table, range(60, 120), of_items=ITEMS)
        table = await active_again(database)
        await write_threads(table, range(120, 180), of_items=ITEMS)
        await all_published(database, table)
        written = sorted(
            n for numbers in numbers_by_item(broker.messages(TOPIC)).values() for n in numbers
        )
        assert written == [*range(60), *range(120, 180)]


async def active_again(database: Database) -> Table:
    await database.ask(EnableDestination("Thread", TOPIC))
    table = database.table("Thread")
    while table.definition.destinations[-1].status != "ACTIVE":
        await asyncio.sleep(0)
    return table
