"""Keys go to the Kafka partitions of Java's default partitioner."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynactor.streams.kafka.partitioner import kafka_partition, murmur2

# From Kafka's own UtilsTest; Java's ints are signed.
JAVA_HASHES = [
    (b"21", -973932308),
    (b"foobar", -790332482),
    (b"a-little-bit-long-string", -985981536),
    (b"a-little-bit-longer-string", -1486304829),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    (b"abc", 479470107),
]


@pytest.mark.parametrize(("key", "java_hash"), JAVA_HASHES)
def test_the_hash_is_that_of_java(key: bytes, java_hash: int):
    assert murmur2(key) == java_hash % (1 << 32)


def test_the_sign_is_masked_away():
    # Java: toPositive(-973932308) is 1173551340; its absolute value would be elsewhere.
    assert kafka_partition(b"21", 1000) == 1173551340 % 1000


@given(st.binary(max_size=200), st.integers(1, 1000))
def test_every_key_has_a_partition(key: bytes, partition_count: int):
    assert 0 <= kafka_partition(key, partition_count) < partition_count
