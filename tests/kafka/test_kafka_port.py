"""The Kafka implementation of the broker port, on a real broker."""

from __future__ import annotations

import asyncio
import gc
import time
from collections import Counter
from collections.abc import Awaitable, Callable

import anyio
import pytest

from dynactor.streams.kafka.aiokafka_broker import Kafka
from dynactor.streams.kafka.broker import (
    BatchTooLarge,
    BrokerRefused,
    BrokerSettings,
    DeliveryFailed,
    FoundTopic,
    PublisherFenced,
    Topic,
    Unreachable,
)
from dynactor.streams.kafka.message import KafkaMessage
from tests.support.kafka.kafka_broker import BrokerAddress, KafkaBroker
from tests.support.kafka.kafka_consumer import read_topic
from tests.support.tables.tables import unique_name

BATCH_BYTES = 1 << 19
# Every test record has this header.
HEADERS = (("sequence-number", b"1"),)


def kafka(broker: BrokerAddress, **settings) -> Kafka:
    return Kafka(BrokerSettings((broker.bootstrap_servers,), **settings))


def messages(count: int, size_bytes: int = 500) -> list[KafkaMessage]:
    return [
        KafkaMessage(b"key %d" % at, b"%d " % at + b"x" * size_bytes, HEADERS, 0)
        for at in range(count)
    ]


async def created(broker: Kafka, **settings: str) -> str:
    name = unique_name("topic")
    assert await broker.ensure_topic(Topic(name, 3, 1, settings)) == FoundTopic(3, is_new=True)
    return name


async def test_an_existing_topic_is_not_changed(kafka_broker: BrokerAddress):
    broker = kafka(kafka_broker)
    name = await created(broker)
    assert await broker.ensure_topic(Topic(name, 5, 1)) == FoundTopic(3, is_new=False)


async def test_a_topic_is_empty_until_a_record_is_in_any_partition(kafka_broker: BrokerAddress):
    broker = kafka(kafka_broker)
    topic = await created(broker)
    assert await broker.is_empty(topic, 3)
    publisher = await broker.open_publisher()
    await publisher.publish(topic, 2, messages(1), BATCH_BYTES)
    await publisher.close()
    assert not await broker.is_empty(topic, 3)


async def seconds_of(work: Callable[[], Awaitable[object]]) -> float:
    began_at = time.perf_counter()
    await work()
    return time.perf_counter() - began_at


async def test_a_cancelled_call_leaves_no_connection_behind(kafka_broker: BrokerAddress):
    broker = kafka(kafka_broker)
    topic = await created(broker)
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))

    async def publish() -> None:
        publisher = await broker.open_publisher()
        await publisher.close()

    works = {
        "ensure": lambda: broker.ensure_topic(Topic(topic, 3, 1)),
        "is_empty": lambda: broker.is_empty(topic, 3),
        "read_last": lambda: broker.read_last(topic, [b"key"]),
        "publish": publish,
    }
    cancelled = Counter[str]()
    for name, work in works.items():
        # The call is canceled after each 25th of its duration, which depends on the machine.
        took_seconds = min([await seconds_of(work) for _ in range(3)])
        for part in range(25):
            with anyio.move_on_after(part / 25 * took_seconds) as scope:
                await work()
            cancelled[name] += scope.cancelled_caught
            gc.collect()
    assert told == []
    assert min(cancelled.values()) > 3


async def test_records_are_in_the_given_partition_in_order(kafka_broker: BrokerAddress):
    broker = kafka(kafka_broker)
    topic = await created(broker)
    before_ms = int(time.time() * 1_000)
    publisher = await broker.open_publisher()
    first, second = messages(5_000), messages(7)
    await asyncio.gather(
        publisher.publish(topic, 0, first, BATCH_BYTES),
        publisher.publish(topic, 2, second, BATCH_BYTES),
    )
    await publisher.close()
    found = await read_topic(kafka_broker, topic)
    assert [record.key for record in found if record.partition == 0] == [
        message.key for message in first
    ]
    assert [record.value for record in found if record.partition == 2] == [
        message.value for message in second
    ]
    # A record's timestamp is the real time, and not the change's time, which may be virtual.
    assert all(record.timestamp_ms >= before_ms for record in found)


async def test_the_error_names_the_record_of_a_batch_that_is_too_large(kafka_broker: BrokerAddress):
    broker = kafka(kafka_broker)
    topic = await created(broker, **{"max.message.bytes": "100000"})
    publisher = await broker.open_publisher()
    sent = [*messages(10), *messages(1, 200_000), *messages(10)]
    with pytest.raises(BatchTooLarge) as raised:
        await publisher.publish(topic, 0, sent, BATCH_BYTES)
    assert (raised.value.delivered, raised.value.count) == (10, 1)
    await publisher.close()
    assert len(await read_topic(kafka_broker, topic)) == 10


async def test_a_batch_of_several_records_that_is_too_large_is_reported(
    kafka_broker: BrokerAddress,
):
    broker = kafka(kafka_broker)
    topic = await created(broker, **{"max.message.bytes": "100000"})
    publisher = await broker.open_publisher()
    with pytest.raises(BatchTooLarge) as raised:
        await publisher.publish(topic, 0, messages(1_000), BATCH_BYTES)
    assert raised.value.delivered == 0
    assert raised.value.count > 1
    await publisher.close()


async def test_a_transaction_shows_its_records_once_it_is_committed(kafka_broker: BrokerAddress):
    broker = kafka(kafka_broker)
    topic, transactional_id = await created(broker), unique_name("id")
    publisher = await broker.open_publisher(transactional_id)
    for _ in range(2):
        await publisher.begin()
        await publisher.publish(topic, 0, messages(3), BATCH_BYTES)
        await publisher.publish(topic, 1, messages(3), BATCH_BYTES)
        await publisher.commit()
    await publisher.begin()
    await publisher.publish(topic, 2, messages(5), BATCH_BYTES)
    # Opening a publisher with the same transactional id aborts the transaction of the previous one.
    another = await broker.open_publisher(transactional_id)
    with pytest.raises(PublisherFenced):
        await publisher.commit()
    await publisher.close()
    await another.close()
    assert len(await read_topic(kafka_broker, topic, "read_committed")) == 12
    assert len(await read_topic(kafka_broker, topic, "read_uncommitted")) == 17


async def test_the_last_committed_values_are_read(kafka_broker: BrokerAddress):
    broker = kafka(kafka_broker)
    topic, first_id, second_id = unique_name("topic"), unique_name("id"), unique_name("id")
    await broker.ensure_topic(Topic(topic, 1, 1, {"cleanup.policy": "compact"}))
    first, second = await broker.open_publisher(first_id), await broker.open_publisher(second_id)
    await second.begin()
    await second.publish(topic, 0, [KafkaMessage(b"b", b"open", (), 0)], BATCH_BYTES)
    for value in (b"1", b"2"):
        await first.begin()
        await first.publish(topic, 0, [KafkaMessage(b"a", value, (), 0)], BATCH_BYTES)
        await first.commit()
    await first.begin()
    await first.publish(topic, 0, [KafkaMessage(b"a", b"3", (), 0)], BATCH_BYTES)
    await first.close()
    # Opening the next publisher with this id aborts the transaction that the closed publisher left
    # open.
    first = await broker.open_publisher(first_id)
    reading = asyncio.create_task(broker.read_last(topic, [b"a", b"b", b"c"]))
    # The second publisher's transaction is still open, so the reader waits for its end.
    done, _ = await asyncio.wait([reading], timeout=1)
    assert not done
    await second.commit()
    assert await reading == {b"a": b"2", b"b": b"open"}
    await first.close()
    await second.close()


async def test_a_broker_without_a_listener_is_unreachable(breakable_broker: KafkaBroker):
    broker = kafka(breakable_broker)
    topic = await created(broker)
    with breakable_broker.stopped():
        for attempt in (
            broker.open_publisher(),
            broker.ensure_topic(Topic(topic, 1, 1)),
            broker.read_last(topic, [b"a"]),
        ):
            with pytest.raises(Unreachable, match=breakable_broker.bootstrap_servers):
                await attempt


async def test_a_silent_broker_is_unreachable_after_a_timeout(breakable_broker: KafkaBroker):
    broker = kafka(breakable_broker, request_timeout_seconds=1.0)
    with breakable_broker.suspended(), pytest.raises(Unreachable):
        await broker.open_publisher()


async def test_more_replicas_than_brokers_are_refused(kafka_broker: BrokerAddress):
    with pytest.raises(BrokerRefused, match="3"):
        await kafka(kafka_broker).ensure_topic(Topic(unique_name("topic"), 1, 3))


async def test_a_topic_that_is_missing_fails(kafka_broker: BrokerAddress):
    broker = kafka(kafka_broker, request_timeout_seconds=1.0)
    publisher = await broker.open_publisher()
    with pytest.raises(DeliveryFailed):
        await publisher.publish(unique_name("topic"), 0, messages(1), BATCH_BYTES)
    await publisher.close()


async def test_a_publisher_closes_in_time_although_the_broker_does_not_answer(
    breakable_broker: KafkaBroker,
):
    broker = kafka(breakable_broker)
    topic = await created(broker)
    publisher = await broker.open_publisher()
    await publisher.publish(topic, 0, messages(1), BATCH_BYTES)
    with breakable_broker.stopped():
        publishing = asyncio.create_task(publisher.publish(topic, 0, messages(1), BATCH_BYTES))
        await asyncio.wait([publishing], timeout=0.5)
        # A publisher that waited for the broker would wait until the end of this context.
        await publisher.close()
        with pytest.raises(DeliveryFailed):
            await publishing


async def test_records_sent_to_a_silent_broker_are_accepted_once(breakable_broker: KafkaBroker):
    topic = await created(kafka(breakable_broker))
    broker = kafka(breakable_broker, request_timeout_seconds=2.0)
    publisher = await broker.open_publisher()
    await publisher.publish(topic, 0, messages(1), BATCH_BYTES)
    with breakable_broker.suspended():
        publishing = asyncio.create_task(publisher.publish(topic, 0, messages(20), 1_000))
        await asyncio.wait([publishing], timeout=5)
    await publishing
    await publisher.close()
    assert len(await read_topic(breakable_broker, topic)) == 21
