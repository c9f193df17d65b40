"""Creates topics of a broker, and writes and reads single records, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

from tests.support.kafka.kafka_broker import LARGEST_MESSAGE_BYTES, BrokerAddress
from tests.support.tables.tables import unique_name

_TIMEOUT_SECONDS = 30


async def created_topic(
    broker: BrokerAddress,
    name: str | None = None,
    *,
    partition_count: int = 1,
    **configs: str | int,
) -> str:
    """Create a topic and return its name, which is unique by default.

    ``configs`` are settings of the topic, with ``_`` instead of dots: ``cleanup_policy="compact"``.
    """
    name = name or unique_name("topic")
    texts = {config.replace("_", "."): str(value) for config, value in configs.items()}
    topic = NewTopic(name, partition_count, replication_factor=1, topic_configs=texts)
    async with admin(broker) as client:
        answer = await client.create_topics([topic])
    for _, code, message in answer.topic_errors:
        assert code == 0, message
    return name


async def partition_count(broker: BrokerAddress, topic: str) -> int:
    """The number of partitions of a topic; retries, because the broker may be starting."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _TIMEOUT_SECONDS
    while True:
        try:
            async with admin(broker) as client:
                (found,) = await client.describe_topics([topic])
        except KafkaError as error:
            if not error.retriable or loop.time() > deadline:
                raise
        else:
            assert found["error_code"] == 0, found
            return len(found["partitions"])


async def produced(broker: BrokerAddress, topic: str, value: bytes) -> int:
    """Write one record to partition 0; returns its offset."""
    producer = AIOKafkaProducer(
        bootstrap_servers=broker.bootstrap_servers,
        enable_idempotence=True,
        max_request_size=LARGEST_MESSAGE_BYTES,
    )
    try:
        await producer.start()
        offset: int = (await producer.send_and_wait(topic, value, partition=0)).offset
    finally:
        await producer.stop()
    return offset


async def first_value(broker: BrokerAddress, topic: str) -> bytes:
    """The value of the first record of partition 0."""
    consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap_servers)
    try:
        await consumer.start()
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.seek_to_beginning()
        value: bytes = (await consumer.getone()).value
    finally:
        await consumer.stop()
    return value


@asynccontextmanager
async def admin(broker: BrokerAddress) -> AsyncIterator[AIOKafkaAdminClient]:
    """An admin client within the context."""
    client = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    try:
        await client.start()
        yield client
    finally:
        await client.close()
