"""Topics of a broker, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.support.kafka_broker import BrokerAddress
from tests.support.tables import unique_name


async def created_topic(
    broker: BrokerAddress,
    name: str | None = None,
    *,
    partition_count: int = 1,
    **configs: str | int,
) -> str:
    """Create a topic and return its name, one that no other test uses if none is given.

    ``configs`` are the topic's own, ``_`` standing for a dot: ``cleanup_policy="compact"``.
    """
    name = name or unique_name("topic")
    texts = {config.replace("_", "."): str(value) for config, value in configs.items()}
    topic = NewTopic(name, partition_count, replication_factor=1, topic_configs=texts)
    async with admin(broker) as client:
        answer = await client.create_topics([topic])
    for _, code, message in answer.topic_errors:
        assert code == 0, message
    return name


@asynccontextmanager
async def admin(broker: BrokerAddress) -> AsyncIterator[AIOKafkaAdminClient]:
    """An admin client within the context."""
    client = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    try:
        await client.start()
        yield client
    finally:
        await client.close()
