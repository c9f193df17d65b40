"""A relay publishes every change in order, despite the broker's faults."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from msgspec import structs

from dynactor.actors.phases.destination_messages import DisableDestination, EnableDestination
from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.table.messages import CreateTable, DeleteTable
from dynactor.model.errors import ValidationException
from dynactor.storage import key_layout
from dynactor.storage.store import Group
from dynactor.storage.subscriber_names import destination_subscriber
from dynactor.streams.kafka.broker import BrokerRefused, Unreachable
from dynactor.streams.kafka.message import KafkaMessage
from dynactor.streams.kafka.partitioner import kafka_partition
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.published import (
    TOPIC,
    in_order,
    numbers_by_item,
    published_table,
    relay_of,
    relay_settings,
    without_duplicates,
    write_threads,
)
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.kafka.fake_broker import FakeBroker
from tests.support.stores.history_store import DelayedStore, Delays
from tests.support.stores.store import memory_store

EXACTLY_ONCE = relay_settings(delivery="exactly-once")


@pytest.fixture(params=["at-least-once", "exactly-once"])
def relays(request):
    return relay_settings(delivery=request.param)


async def test_changes_of_an_item_arrive_in_order_in_one_kafka_partition(relays):
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relays) as database:
        table = await published_table(database)
        await write_threads(table, range(50))
        messages = await broker.wait_messages(TOPIC, 50)
        assert sorted(numbers_by_item(messages).values()) == in_order(50)
        for number in range(3):
            keys = {message.key for message in broker.partition(TOPIC, number)}
            assert {kafka_partition(key, 3) for key in keys} <= {number}


async def test_the_destination_is_active_once_its_topic_exists(relays):
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relays) as database:
        with broker.unreachable():
            table = await published_table(database)
            assert table.definition.destinations[0].status == "ENABLING"
        while table.definition.destinations[0].status != "ACTIVE":
            await asyncio.sleep(0)
        assert table.definition.destinations[0].partition_count == 3
        assert broker.topics[TOPIC].settings["max.message.bytes"] == str(8 * 1024 * 1024)


async def test_writes_while_the_broker_is_unreachable_are_published_later(relays):
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relays) as database:
        table = await published_table(database)
        await write_threads(table, range(10))
        await broker.wait_messages(TOPIC, 10)
        with broker.unreachable():
            await write_threads(table, range(10, 100))
            assert relay_of(database, table).lag_records == 90
        messages = await broker.wait_messages(TOPIC, 100)
        assert sorted(numbers_by_item(messages).values()) == in_order(100)


async def test_a_silent_broker_is_reported_and_waited_for(relays):
    broker = FakeBroker()
    relays = structs.replace(relays, silent_seconds=0.01)
    async with running_database(broker=broker, relays=relays) as database:
        table = await published_table(database)
        await write_threads(table, range(10))
        await broker.wait_messages(TOPIC, 10)
        relay = relay_of(database, table)
        with broker.silent():
            await write_threads(table, range(10, 50))
            while relay.state != "WAITING":
                await asyncio.sleep(0)
            assert relay.problem == "the broker does not answer"
        messages = await broker.wait_messages(TOPIC, 50)
        assert sorted(numbers_by_item(messages).values()) == in_order(50)
        # The relay must not open a second publisher: late records of the first one could arrive
        # after records of the second.
        assert broker.opened == 1
        while relay.lag_records:
            await asyncio.sleep(0)
        assert (relay.state, relay.problem) == ("PUBLISHING", None)


async def test_a_stuck_publisher_is_replaced_if_the_broker_answers_others(relays):
    broker = FakeBroker()
    relays = structs.replace(relays, silent_seconds=0.01, probe_seconds=0.001)
    async with running_database(broker=broker, relays=relays) as database:
        table = await published_table(database)
        await write_threads(table, range(10))
        await broker.wait_messages(TOPIC, 10)
        broker.stuck |= broker.open_publishers
        await write_threads(table, range(10, 50))
        messages = without_duplicates(await broker.wait_messages(TOPIC, 50))
        assert sorted(numbers_by_item(messages).values()) == in_order(50)
        assert broker.opened > 1


async def test_a_record_too_large_even_without_images_is_reported_and_retried(relays):
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relays) as database:
        table = await published_table(database)
        await write_threads(table, range(10))
        await broker.wait_messages(TOPIC, 10)
        broker.max_batch_bytes = 10
        await write_threads(table, range(10, 12))
        relay = relay_of(database, table)
        while relay.problem is None:
            await asyncio.sleep(0)
        assert "not even a record without images" in relay.problem
        broker.max_batch_bytes = 1_000_000
        await broker.wait_messages(TOPIC, 12)


async def test_the_topic_of_a_recreated_table_gets_a_gap_first(relays):
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relays) as database:
        await write_threads(await published_table(database), range(10))
        await database.ask(DeleteTable("Thread"))
        before = len(await broker.wait_messages(TOPIC, 10))
        table = await published_table(database)
        await write_threads(table, range(5))
        while relay_of(database, table).lag_records:
            await asyncio.sleep(0)
        names = [dict(message.headers)["event-name"] for message in broker.messages(TOPIC)]
        assert before == 10
        assert names.count(b"GAP") == 3
        for number in range(3):
            names = [
                dict(message.headers)["event-name"] for message in broker.partition(TOPIC, number)
            ]
            behind = names[names.index(b"GAP") + 1 :]
            assert b"GAP" not in behind
        while table.definition.destinations[0].status != "ACTIVE":
            await asyncio.sleep(0)


async def test_a_new_topic_gets_no_gap(relays):
    broker = FakeBroker()
    # The first attempt creates the topic and then fails; the second attempt finds the topic.
    broker.failing_opens = 1
    async with running_database(broker=broker, relays=relays) as database:
        await write_threads(await published_table(database), range(5))
        messages = await broker.wait_messages(TOPIC, 5)
        assert {dict(message.headers)["event-name"] for message in messages} == {b"INSERT"}


async def test_an_existing_empty_topic_gets_no_gap(relays):
    """For example, a server may have created the topic and been killed before it stored that."""
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relays) as database:
        await broker.ensure_topic(relays.topic(TOPIC))
        await write_threads(await published_table(database), range(5))
        messages = await broker.wait_messages(TOPIC, 5)
        assert {dict(message.headers)["event-name"] for message in messages} == {b"INSERT"}


async def test_with_exactly_once_data_from_a_backup_causes_a_gap():
    broker = FakeBroker()
    async with memory_store() as backup:
        async with running_database(backup, broker=broker, relays=EXACTLY_ONCE) as database:
            await write_threads(await published_table(database), range(20))
            await broker.wait_messages(TOPIC, 20)
        for key in {message.key for message in broker.messages("dynactor.__positions")}:
            await _publish_position(broker, key, b"1000")
        async with running_database(backup, broker=broker, relays=EXACTLY_ONCE) as database:
            table = database.table("Thread")
            await write_threads(table, range(20, 40))
            while relay_of(database, table).lag_records or relay_of(database, table).state != (
                "PUBLISHING"
            ):
                await asyncio.sleep(0)
        async with running_database(backup, broker=broker, relays=EXACTLY_ONCE) as database:
            table = database.table("Thread")
            await write_threads(table, range(40, 45))
            while relay_of(database, table).lag_records or relay_of(database, table).state != (
                "PUBLISHING"
            ):
                await asyncio.sleep(0)
        names = [dict(message.headers)["event-name"] for message in broker.messages(TOPIC)]
        assert names.count(b"GAP") == 3


async def _publish_position(broker: FakeBroker, key: bytes, value: bytes) -> None:
    publisher = await broker.open_publisher("somebody")
    await publisher.begin()
    message = KafkaMessage(key, value, (), 0)
    await publisher.publish("dynactor.__positions", 0, [message], 1_000)
    await publisher.commit()
    await publisher.close()


async def test_after_a_failed_delivery_another_publisher_continues_without_missing_a_change(relays):
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relays) as database:
        table = await published_table(database)
        broker.failures = 3
        await write_threads(table, range(60))
        messages = await broker.wait_messages(TOPIC, 60)
        assert sorted(numbers_by_item(messages).values()) == in_order(60)
        assert broker.opened > 1
        assert len(broker.open_publishers) == 1


async def test_an_answer_canceled_by_the_client_library_is_a_failed_delivery(relays):
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relays) as database:
        table = await published_table(database)
        relay = relay_of(database, table)
        # More crashes than a supervisor tolerates, if each failure was a crash.
        for first in range(0, 400, 40):
            broker.cancelled_answers = 3
            await write_threads(table, range(first, first + 40))
            await broker.wait_messages(TOPIC, first + 40)
        messages = without_duplicates(broker.messages(TOPIC))
        assert sorted(numbers_by_item(messages).values()) == in_order(400)
        assert relay.errors >= 10
        assert relay_of(database, table).state == "PUBLISHING"


async def test_an_answer_canceled_by_the_client_library_while_the_broker_is_silent_is_no_crash(
    relays,
):
    broker = FakeBroker()
    relays = structs.replace(relays, silent_seconds=0.01, probe_seconds=0.01)
    async with running_database(broker=broker, relays=relays) as database:
        table = await published_table(database)
        await write_threads(table, range(10))
        await broker.wait_messages(TOPIC, 10)
        (stuck,) = broker.open_publishers
        broker.stuck.add(stuck)
        await write_threads(table, range(10, 20))
        while relay_of(database, table).state != "WAITING":
            await asyncio.sleep(0.001)
        broker.cancelled_answers = 3
        messages = await broker.wait_messages(TOPIC, 20)
        assert sorted(numbers_by_item(without_duplicates(messages)).values()) == in_order(20)
        assert relay_of(database, table).errors == 1


async def test_a_lost_acknowledgment_duplicates_records_with_equal_sequence_numbers():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relay_settings()) as database:
        table = await published_table(database)
        broker.lost_acknowledgments = 2
        await write_threads(table, range(30))
        await write_threads(table, range(30, 60))
        while relay_of(database, table).lag_records:
            await asyncio.sleep(0)
        messages = broker.messages(TOPIC)
        assert len(messages) > 60
        assert sorted(numbers_by_item(without_duplicates(messages)).values()) == in_order(60)


async def test_acknowledged_records_of_a_round_are_not_sent_again():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relay_settings()) as database:
        table = await published_table(database)
        with broker.unreachable():
            await asyncio.gather(*(write_threads(table, [n], of_items=90) for n in range(90)))
        await broker.wait_messages(TOPIC, 1)
        broker.failures = 1
        await broker.wait_messages(TOPIC, 90)
        while relay_of(database, table).lag_records:
            await asyncio.sleep(0)
        assert len(broker.messages(TOPIC)) == 90


async def test_with_exactly_once_a_lost_acknowledgment_duplicates_no_record():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=EXACTLY_ONCE) as database:
        table = await published_table(database)
        await write_threads(table, range(20))
        broker.lost_acknowledgments = 2
        await write_threads(table, range(20, 40))
        broker.lost_commits = 2
        written = 40
        # One Kafka transaction may contain all changes, so a second lost commit needs more writes.
        while broker.lost_acknowledgments or broker.lost_commits:
            await write_threads(table, range(written, written + 10))
            written += 10
            while relay_of(database, table).lag_records:
                await asyncio.sleep(0)
        assert sorted(numbers_by_item(broker.messages(TOPIC)).values()) == in_order(written)


async def test_with_exactly_once_a_crash_between_commit_and_checkpoint_duplicates_no_record():
    broker = FakeBroker()
    async with memory_store() as store:
        async with running_database(store, broker=broker, relays=EXACTLY_ONCE) as database:
            table = await published_table(database)
            await write_threads(table, range(30))
            await broker.wait_messages(TOPIC, 30)
            subscriber = destination_subscriber(table.definition.table_id, 1)
            numbers = [partition.number for partition in table.record.partitions]
        for number in numbers:
            # Set the checkpoints back, as if the server had been killed before it stored them.
            key = key_layout.checkpoint(subscriber, number)
            (stored,) = await store.latest.load([key])
            await (await store.commit([Group(key, stored, bytes(16))]))
        async with running_database(store, broker=broker, relays=EXACTLY_ONCE) as database:
            await write_threads(database.table("Thread"), range(30, 60))
            await broker.wait_messages(TOPIC, 60)
            while relay_of(database, database.table("Thread")).lag_records:
                await asyncio.sleep(0)
        assert sorted(numbers_by_item(broker.messages(TOPIC)).values()) == in_order(60)


async def test_with_exactly_once_a_fenced_relay_continues_from_the_committed_position():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=EXACTLY_ONCE) as database:
        table = await published_table(database)
        await write_threads(table, range(20))
        await broker.wait_messages(TOPIC, 20)
        publisher_id = relay_of(database, table)._place.publisher_id
        other = await broker.open_publisher(publisher_id)
        await write_threads(table, range(20, 40))
        await broker.wait_messages(TOPIC, 40)
        await other.close()
        assert sorted(numbers_by_item(broker.messages(TOPIC)).values()) == in_order(40)


class ForgetfulBroker(FakeBroker):
    """A broker whose first read of stored positions fails."""

    is_forgetful = True

    async def read_last(self, topic: str, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        if self.is_forgetful:
            self.is_forgetful = False
            raise Unreachable("played by a test")
        return await super().read_last(topic, keys)


async def test_a_topic_of_another_table_gets_a_gap_after_a_failed_attempt():
    broker = ForgetfulBroker()
    broker.topics[TOPIC] = EXACTLY_ONCE.topic(TOPIC)
    broker.append(TOPIC, 0, [KafkaMessage(b"key", b"{}", (), 0)], None)
    async with running_database(broker=broker, relays=EXACTLY_ONCE) as database:
        await write_threads(await published_table(database), range(5))
        async with asyncio.timeout(HANG_SECONDS):
            messages = await broker.wait_messages(TOPIC, 9)
        names = [dict(message.headers).get("event-name") for message in messages]
        assert names.count(b"GAP") == 3
        assert not broker.is_forgetful


async def test_a_relay_continues_from_its_checkpoint_after_a_restart(relays):
    broker = FakeBroker()
    async with memory_store() as store:
        async with running_database(store, broker=broker, relays=relays) as database:
            table = await published_table(database)
            await write_threads(table, range(30))
            await broker.wait_messages(TOPIC, 30)
        async with running_database(store, broker=broker, relays=relays) as database:
            await write_threads(database.table("Thread"), range(30, 60))
            await broker.wait_messages(TOPIC, 60)
        assert sorted(numbers_by_item(broker.messages(TOPIC)).values()) == in_order(60)


async def test_changes_that_a_stopped_server_did_not_publish_are_published_by_the_next_one(relays):
    broker = FakeBroker()
    async with memory_store() as store:
        with broker.unreachable():
            async with running_database(store, broker=broker, relays=relays) as database:
                await write_threads(await published_table(database), range(30))
        async with running_database(store, broker=broker, relays=relays):
            messages = await broker.wait_messages(TOPIC, 30)
        assert sorted(numbers_by_item(messages).values()) == in_order(30)


async def test_a_server_stops_in_time_although_the_broker_is_silent(relays):
    broker = FakeBroker()
    async with asyncio.timeout(60):
        async with running_database(broker=broker, relays=relays) as database:
            table = await published_table(database)
            await write_threads(table, range(10))
            await broker.wait_messages(TOPIC, 10)
            broker.answers.clear()
            await write_threads(table, range(10, 20))
            while not broker.waiting:
                await asyncio.sleep(0)
    assert broker.open_publishers == set()


async def test_a_record_that_is_too_large_is_published_without_images(relays):
    broker = FakeBroker()
    broker.max_batch_bytes = 2_000
    async with running_database(broker=broker, relays=relays) as database:
        table = await published_table(database)
        large = thread("forum 1", "subject", n=1000)
        large["text"] = {"S": "x" * 3_000}
        await write_threads(table, range(10))
        await table.write(put(large))
        await write_threads(table, range(10, 30))
        await write_threads(table, range(30, 32))
        messages = without_duplicates(await broker.wait_messages(TOPIC, 33))
        while relay_of(database, table).lag_records:
            await asyncio.sleep(0)
    omitted = [message for message in messages if "images-omitted" in dict(message.headers)]
    # One change put the large item; in the other one, the large item is the old image.
    assert [dict(message.headers)["event-name"] for message in omitted] == [b"MODIFY"] * 2
    assert not any(b"Image" in (message.value or b"") for message in omitted)
    assert len(messages) == 33


async def test_batches_become_smaller_if_the_broker_rejects_large_ones(relays):
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relays) as database:
        table = await published_table(database)
        with broker.unreachable():
            await asyncio.gather(*(write_threads(table, [n], of_items=200) for n in range(200)))
        broker.max_batch_bytes = 3_000
        messages = await broker.wait_messages(TOPIC, 200)
        assert not any("images-omitted" in dict(message.headers) for message in messages)
        assert broker.largest_batches[TOPIC] > 1


async def test_a_refusal_is_reported_and_retried():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relay_settings()) as database:
        with broker.unreachable(BrokerRefused("who are you")):
            table = await published_table(database)
            relay = relay_of(database, table)
            while relay.problem is None:
                await asyncio.sleep(0)
            assert (relay.state, relay.problem) == ("FAILING", "who are you")
        await write_threads(table, range(5))
        await broker.wait_messages(TOPIC, 5)
        assert (relay.state, relay.problem) == ("PUBLISHING", None)


async def test_a_disabled_destination_gets_all_earlier_changes(relays):
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relays) as database:
        table = await published_table(database)
        await write_threads(table, range(40))
        await _change(database, DisableDestination("Thread", TOPIC))
        await write_threads(table, range(40, 50))
        while table.definition.destinations[0].status != "DISABLED":
            await asyncio.sleep(0)
        assert sorted(numbers_by_item(broker.messages(TOPIC)).values()) == in_order(40)
        assert not table.definition.records_changes


@pytest.mark.parametrize("is_slow", [False, True])
async def test_a_destination_that_was_being_disabled_is_disabled_after_a_restart(relays, is_slow):
    broker = FakeBroker()
    async with memory_store() as store:
        async with running_database(store, broker=broker, relays=relays) as database:
            table = await published_table(database)
            await write_threads(table, range(10))
            await broker.wait_messages(TOPIC, 10)
            broker.answers.clear()
            await write_threads(table, range(10, 20))
            while not broker.waiting:
                await asyncio.sleep(0)
            await _change(database, DisableDestination("Thread", TOPIC))
            assert table.definition.destinations[0].status == "DISABLING"
        broker.answers.set()
        # With slow reads, the relay loads its positions only after it was asked to drain.
        slow = DelayedStore(store, Delays(seed=1, most_seconds=0.02)) if is_slow else store
        async with running_database(slow, broker=broker, relays=relays) as database:
            table = database.table("Thread")
            while table.definition.destinations[0].status != "DISABLED":
                await asyncio.sleep(0)
        messages = without_duplicates(broker.messages(TOPIC))
        assert sorted(numbers_by_item(messages).values()) == in_order(20)


async def test_a_destination_that_is_enabled_again_gets_only_new_changes(relays):
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relays) as database:
        table = await published_table(database)
        await write_threads(table, range(10))
        await _change(database, DisableDestination("Thread", TOPIC))
        while table.definition.destinations[0].status != "DISABLED":
            await asyncio.sleep(0)
        await write_threads(table, range(10, 20))
        await _change(database, EnableDestination("Thread", TOPIC))
        await write_threads(table, range(20, 30))
        messages = await broker.wait_messages(TOPIC, 20)
        written = [number for numbers in numbers_by_item(messages).values() for number in numbers]
        assert sorted(written) == [*range(10), *range(20, 30)]


async def test_all_changes_of_a_deleted_table_are_published(relays):
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relays) as database:
        table = await published_table(database)
        await write_threads(table, range(40))
        await database.ask(DeleteTable("Thread"))
        assert sorted(numbers_by_item(broker.messages(TOPIC)).values()) == in_order(40)


async def test_a_table_can_be_deleted_while_the_broker_is_unreachable(relays):
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relays) as database:
        table = await published_table(database)
        await write_threads(table, range(10))
        await broker.wait_messages(TOPIC, 10)
        with broker.unreachable():
            await write_threads(table, range(10, 20))
            while relay_of(database, table).problem is None:
                await asyncio.sleep(0)
            await database.ask(DeleteTable("Thread"))
        assert database.table_names() == []


async def test_without_a_broker_a_destination_keeps_recorded_changes():
    broker = FakeBroker()
    async with memory_store() as store:
        async with running_database(store, broker=broker, relays=relay_settings()) as database:
            await published_table(database)
        async with running_database(store, keep_streams_seconds=0.001) as database:
            await write_threads(database.table("Thread"), range(20))
            with pytest.raises(ValidationException, match="--kafka-bootstrap-servers"):
                await _change(database, EnableDestination("Thread", "other"))
        async with running_database(store, broker=broker, relays=relay_settings()):
            messages = await broker.wait_messages(TOPIC, 20)
        assert sorted(numbers_by_item(messages).values()) == in_order(20)


async def test_all_tables_are_published_if_configured():
    broker = FakeBroker()
    async with memory_store() as store:
        async with running_database(store) as database:
            await database.ask(CreateTable(table_definition("Old")))
        all_tables = relay_settings(all_tables=True, topic_prefix="shop")
        async with running_database(store, broker=broker, relays=all_tables) as database:
            await database.ask(CreateTable(table_definition("New")))
            await write_threads(database.table("New"), range(5))
            await broker.wait_messages("shop.New", 5)
            while not database.table("Old").definition.destinations:
                await asyncio.sleep(0)
            await write_threads(database.table("Old"), range(5))
            await broker.wait_messages("shop.Old", 5)
            # A destination that was disabled for one table stays disabled.
            await _change(database, DisableDestination("Old", "shop.Old"))
            while database.table("Old").definition.destinations[0].status != "DISABLED":
                await asyncio.sleep(0)
        async with running_database(store, broker=broker, relays=all_tables) as database:
            assert database.table("Old").definition.destinations[0].status == "DISABLED"


@pytest.mark.parametrize("name", ["__x", "a.__positions", "__positions", "x" * 255])
async def test_tables_with_any_names_get_a_topic(name: str):
    broker = FakeBroker()
    all_tables = relay_settings(all_tables=True)
    async with running_database(broker=broker, relays=all_tables) as database:
        await database.ask(CreateTable(table_definition(name)))
        await write_threads(database.table(name), range(3))
        topic = database.table(name).definition.destinations[0].topic
        await broker.wait_messages(topic, 3)
        assert not topic.endswith(".__positions")
        assert len(topic) <= 249


async def _change(database, message: Message):
    return await database.ask(message)
