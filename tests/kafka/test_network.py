"""An idempotent producer loses and duplicates no record when the network fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError

from tests.support.environment.hanging import HANG_SECONDS
from tests.support.kafka.kafka_broker import BrokerAddress, KafkaBroker
from tests.support.kafka.kafka_consumer import read_topic
from tests.support.kafka.kafka_topics import created_topic, produced


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while not is_so():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def producing(broker: BrokerAddress) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, enable_idempotence=True)
    try:
        await producer.start()
        yield producer
    finally:
        await producer.stop()


async def values(broker: BrokerAddress, topic: str) -> list[bytes | None]:
    return [record.value for record in await read_topic(broker, topic)]


async def test_a_lost_acknowledgment_causes_no_duplicate_record(own_broker: KafkaBroker):
    topic = await created_topic(own_broker)
    with own_broker.network() as (network, seen):
        async with producing(seen) as producer:
            await producer.send_and_wait(topic, b"first")
            with network.losing_answers():
                sent = await producer.send(topic, b"second")
                await until(lambda: network.lost_bytes > 0)
                assert await values(own_broker, topic) == [b"first", b"second"]
                assert not sent.done()
            assert (await sent).offset == 1
            await producer.send_and_wait(topic, b"third")
    assert await values(own_broker, topic) == [b"first", b"second", b"third"]


async def test_records_sent_into_a_silent_network_arrive_when_it_recovers(
    own_broker: KafkaBroker,
):
    topic = await created_topic(own_broker)
    with own_broker.network() as (network, seen):
        async with producing(seen) as producer:
            await producer.send_and_wait(topic, b"first")
            with network.silent():
                sent = await producer.send(topic, b"second")
                done, _ = await asyncio.wait([sent], timeout=0.5)
                assert done == set()
                assert await values(own_broker, topic) == [b"first"]
            await sent
    assert await values(own_broker, topic) == [b"first", b"second"]


async def test_a_cut_network_refuses_connections_and_the_broker_continues(own_broker: KafkaBroker):
    topic = await created_topic(own_broker)
    with own_broker.network() as (network, seen):
        async with producing(seen) as producer:
            await producer.send_and_wait(topic, b"first")
            with network.cut():
                with pytest.raises(KafkaConnectionError):
                    await produced(seen, topic, b"by a new connection")
                sent = await producer.send(topic, b"second")
                assert await produced(own_broker, topic, b"by another way") == 1
            await sent
    assert await values(own_broker, topic) == [b"first", b"by another way", b"second"]
