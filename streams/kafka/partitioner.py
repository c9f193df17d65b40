"""Maps a key to its Kafka partition like Java's default partitioner.

So the records of a key have the same partition, whichever producer sends them, as joins in Kafka
Streams and ksqlDB require. Source: ``org.apache.kafka.common.utils.Utils``.
"""

from __future__ import annotations

from struct import unpack_from
from typing import Final

_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = 0x5BD1E995
_SHIFT: Final = 24
_32_BITS: Final = 0xFFFF_FFFF
# Java's ints are signed; the partitioner masks the sign.
_POSITIVE: Final = 0x7FFF_FFFF
_WORD_BYTES: Final = 4


def kafka_partition(key: bytes, partition_count: int) -> int:
    """The number of the key's partition, from 0, for this number of partitions."""
    return (murmur2(key) & _POSITIVE) % partition_count


def murmur2(data: bytes) -> int:
    """The 32-bit hash of some bytes, unsigned."""
    words, rest = divmod(len(data), _WORD_BYTES)
    found = _SEED ^ len(data)
    for word in unpack_from(f"<{words}I", data):
        mixed = word * _MULTIPLIER & _32_BITS
        mixed = (mixed ^ mixed >> _SHIFT) * _MULTIPLIER
        found = (found * _MULTIPLIER ^ mixed) & _32_BITS
    if rest:
        found = (found ^ int.from_bytes(data[-rest:], "little")) * _MULTIPLIER & _32_BITS
    found = (found ^ found >> 13) * _MULTIPLIER & _32_BITS
    return found ^ found >> 15
