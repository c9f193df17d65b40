"""Records are in the partitions that a Java producer chooses, which joins by key require."""

from __future__ import annotations

import random

import pytest

from dynactor.streams.kafka.partitioner import kafka_partition
from tests.support.kafka.java_references import java_partitions, partitions_of_java_producer
from tests.support.kafka.kafka_broker import BrokerAddress
from tests.support.kafka.kafka_topics import created_topic

_RANDOM = random.Random(20)
# Keys of every length that the hash function treats separately, real keys, and bytes above 127,
# which are negative in Java.
KEYS = [
    *(bytes(range(length)) for length in range(1, 17)),
    *(b"\xff" * length for length in range(1, 9)),
    *(b'{"pk":{"S":"item-%d"}}' % number for number in range(500)),
    *(b'{"pk":{"N":"%d"},"sk":{"B":"AAE="}}' % number for number in range(500)),
    '{"pk":{"S":"Größe 🙂"}}'.encode(),
    *(_RANDOM.randbytes(_RANDOM.randrange(1, 300)) for _ in range(2_000)),
    _RANDOM.randbytes(2_048),
]


@pytest.mark.parametrize("partition_count", [6, 2**31 - 1])
def test_each_key_has_the_partition_of_javas_partitioner(partition_count: int):
    ours = [kafka_partition(key, partition_count) for key in KEYS]
    assert ours == java_partitions(KEYS, partition_count)


async def test_each_key_is_in_the_partition_that_a_java_producer_chose(kafka_broker: BrokerAddress):
    topic = await created_topic(kafka_broker, partition_count=12)
    ours = [kafka_partition(key, 12) for key in KEYS]
    assert set(ours) == set(range(12))
    assert ours == partitions_of_java_producer(kafka_broker, topic, KEYS)
