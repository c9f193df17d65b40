"""The broker of the tests behaves as the tests of outages assume."""

from __future__ import annotations

import asyncio
from contextlib import closing

import pytest
from aiokafka.errors import KafkaConnectionError

from tests.support.kafka.kafka_broker import LARGEST_MESSAGE_BYTES, BrokerAddress, KafkaBroker
from tests.support.kafka.kafka_topics import created_topic, first_value, produced


async def test_a_record_of_the_largest_size_can_be_written_and_read(kafka_broker: BrokerAddress):
    topic = await created_topic(kafka_broker, max_message_bytes=LARGEST_MESSAGE_BYTES)
    value = b"x" * (LARGEST_MESSAGE_BYTES - 1024)
    await produced(kafka_broker, topic, value)
    assert await first_value(kafka_broker, topic) == value


@pytest.mark.parametrize("end", [KafkaBroker.stop, KafkaBroker.kill])
async def test_a_restarted_broker_has_the_same_port_and_data(breakable_broker: KafkaBroker, end):
    topic = await created_topic(breakable_broker)
    await produced(breakable_broker, topic, b"before")
    end(breakable_broker)
    with pytest.raises(KafkaConnectionError):
        await produced(breakable_broker, topic, b"meanwhile")
    breakable_broker.start()
    assert await produced(breakable_broker, topic, b"after") == 1
    assert await first_value(breakable_broker, topic) == b"before"


async def test_a_suspended_broker_accepts_connections_and_answers_once_it_is_resumed(
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
