"""The tests' broker behaves as the outage tests assume."""

from __future__ import annotations

import asyncio
from contextlib import closing

import pytest
from aiokafka.errors import KafkaConnectionError

from tests.support.kafka.kafka_broker import LARGEST_MESSAGE_BYTES, BrokerAddress, KafkaBroker
from tests.support.kafka.kafka_topics import created_topic, first_value, produced


async def test_a_record_of_the_largest_size_comes_back(kafka_broker: BrokerAddress):
    topic = await created_topic(kafka_broker, max_message_bytes=LARGEST_MESSAGE_BYTES)
    value = b"x" * (LARGEST_MESSAGE_BYTES - 1024)
    await produced(kafka_broker, topic, value)
    assert await first_value(kafka_broker, topic) == value


@pytest.mark.parametrize("end", [KafkaBroker.stop, KafkaBroker.kill])
async def test_it_comes_back_on_its_port_with_its_data(breakable_broker: KafkaBroker, end):
    topic = await created_topic(breakable_broker)
    await produced(breakable_broker, topic, b"before")
    end(breakable_broker)
    with pytest.raises(KafkaConnectionError):
        await produced(breakable_broker, topic, b"meanwhile")
    breakable_broker.start()
    assert await produced(breakable_broker, topic, b"after") == 1
    assert await first_value(breakable_broker, topic) == b"before"


async def test_a_suspended_broker_takes_connections_and_answers_when_it_continues(
    breakable_broker: KafkaBroker,
):
    topic = await created_topic(breakable_broker)
    host, port = breakable_broker.bootstrap_servers.split(":")
    with breakable_broker.suspended():
        _, writer = await asyncio.open_connection(host, int(port))
        with closing(writer):
            waiting = asyncio.create_task(produced(breakable_broker, topic, b"waited"))
            done, _ = await asyncio.wait([waiting], timeout=0.5)
            assert done == set()
    assert await waiting == 0
