"""The consumer of the tests reads a whole topic, or only its committed records."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaProducer

from tests.support.kafka.kafka_broker import BrokerAddress
from tests.support.kafka.kafka_consumer import read_topic
from tests.support.kafka.kafka_topics import created_topic


@asynccontextmanager
async def producing(
    broker: BrokerAddress, transactional_id: str | None = None
) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(
        bootstrap_servers=broker.bootstrap_servers, transactional_id=transactional_id
    )
    try:
        await producer.start()
        yield producer
    finally:
        await producer.stop()


async def test_the_consumer_reads_each_partition_in_order_and_to_its_end(
    kafka_broker: BrokerAddress,
):
    topic = await created_topic(kafka_broker, partition_count=3)
    async with producing(kafka_broker) as producer:
        for number in range(100):
            await producer.send(
                topic,
                b"%d" % number,
                key=b"key",
                partition=number % 2,
                timestamp_ms=1_000 + number,
                headers=[("name", "grün".encode())],
            )
        await producer.flush()
    records = await read_topic(kafka_broker, topic)
    numbers = [*range(0, 100, 2), *range(1, 100, 2)]
    assert [int(record.value or b"") for record in records] == numbers
    assert [record.timestamp_ms for record in records] == [1_000 + number for number in numbers]
    assert {(record.key, record.headers["name"]) for record in records} == {(b"key", "grün")}


async def test_an_empty_topic_has_no_records(kafka_broker: BrokerAddress):
    assert await read_topic(kafka_broker, await created_topic(kafka_broker)) == []


async def test_with_read_committed_only_committed_records_are_read(kafka_broker: BrokerAddress):
    topic = await created_topic(kafka_broker)
    async with producing(kafka_broker, f"{topic}-one") as producer:
        for value, is_committed in ((b"a", True), (b"b", False), (b"c", True), (b"d", False)):
            await producer.begin_transaction()
            await producer.send_and_wait(topic, value)
            if is_committed:
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()
    all_records = await read_topic(kafka_broker, topic, "read_uncommitted")
    assert [record.value for record in all_records] == [b"a", b"b", b"c", b"d"]
    committed = await read_topic(kafka_broker, topic, "read_committed")
    assert [record.value for record in committed] == [b"a", b"c"]


async def test_with_read_committed_reading_stops_at_an_open_transaction(
    kafka_broker: BrokerAddress,
):
    topic = await created_topic(kafka_broker)
    async with producing(kafka_broker) as other:
        await other.send_and_wait(topic, b"before")
    async with producing(kafka_broker, f"{topic}-open") as producer:
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"open")
        committed = await read_topic(kafka_broker, topic, "read_committed")
        assert [record.value for record in committed] == [b"before"]
        await producer.commit_transaction()
    committed = await read_topic(kafka_broker, topic, "read_committed")
    assert [record.value for record in committed] == [b"before", b"open"]
