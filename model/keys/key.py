"""Primary keys and index keys: schema, values and bytes.

The bytes of keys sort as DynamoDB sorts keys. No key's bytes are a prefix of another's, so a row's
key can hold several keys in sequence.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from functools import cached_property
from hashlib import md5
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from dynactor.model.values import attribute_value, number
from dynactor.model.values.attribute_value import AttributeValue
from dynactor.model.values.item import Item

KeyType: TypeAlias = Literal["S", "N", "B"]

END: Final = b"\x00\x00"
ESCAPED_ZERO: Final = b"\x00\xff"
# An encoded number has a zero byte only as its first byte, so one zero byte marks its end.
NUMBER_END: Final = b"\x00"
HASH_BYTES: Final = 8
# Copied for each key, because a copy is cheaper than a new hash object.
OUTLIERS: Final = md5(b"Outliers", usedforsecurity=False)


class KeyAttribute(Struct, frozen=True):
    """An attribute that is part of a key, and its type."""

    name: str
    type: KeyType


class KeySchema(Struct, frozen=True, dict=True):
    """The key of a table or index.

    A table's and a local index's schema has one partition attribute and at most one sort
    attribute; only a global index may have up to four of each.
    """

    partition: tuple[KeyAttribute, ...]
    sort: tuple[KeyAttribute, ...] = ()

    @cached_property
    def attributes(self) -> tuple[KeyAttribute, ...]:
        """All attributes of the key, partition attributes first."""
        return self.partition + self.sort

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all attributes of the key."""
        return frozenset(attribute.name for attribute in self.attributes)

    def extract_key(self, item: Item) -> Item:
        """The attributes of the key in the schema's order; the item must have all of them."""
        return {attribute.name: item[attribute.name] for attribute in self.attributes}


def encode_value(value: AttributeValue) -> bytes:
    """Encode one key value as bytes that sort like the value, with an end mark."""
    if "N" in value:
        return number.encode(value["N"]) + NUMBER_END
    return encode_prefix(value) + END


def ended(raw: bytes, kind: KeyType) -> bytes:
    """Ordered bytes with an end mark, for bytes from ``attribute_value.order_key``."""
    return raw + NUMBER_END if kind == "N" else raw.replace(b"\x00", ESCAPED_ZERO) + END


def escaped(raw: bytes) -> bytes:
    """The common prefix of all encoded strings or binaries that begin with ``raw``."""
    return raw.replace(b"\x00", ESCAPED_ZERO)


def encode_prefix(value: AttributeValue) -> bytes:
    """The common prefix of all encoded strings or binaries that begin with ``value``."""
    raw = value["S"].encode() if "S" in value else b64decode(value["B"])
    return raw.replace(b"\x00", ESCAPED_ZERO)


def key_hash(raw: bytes) -> bytes:
    """The hash of a partition key that consists of one value, from its bytes."""
    digest = OUTLIERS.copy()
    digest.update(raw)
    return digest.digest()[:HASH_BYTES]


def encode_partition(schema: KeySchema, item: Item) -> bytes:
    """The partition key of an item or key: its hash, then its values in order."""
    digest = OUTLIERS.copy()
    encoded = b""
    for attribute in schema.partition:
        value = item[attribute.name]
        digest.update(attribute_value.order_key(value))
        encoded += encode_value(value)
    return digest.digest()[:HASH_BYTES] + encoded


def split(schema: KeySchema, position: bytes) -> tuple[bytes, bytes]:
    """The encoded partition key and sort key of a table's position: the inverse of ``encode``."""
    assert len(schema.partition) == 1, "a table's key has one partition attribute"
    if schema.partition[0].type == "N":
        # The first byte of a number may be zero.
        end = position.index(NUMBER_END, HASH_BYTES + 1) + len(NUMBER_END)
    else:
        # A zero byte within a value is never followed by another zero byte.
        end = position.index(END, HASH_BYTES) + len(END)
    return position[:end], position[end:]


def encode_sort(schema: KeySchema, item: Item) -> bytes:
    """The sort key of an item or key; empty if the schema has none."""
    encoded = b""
    for attribute in schema.sort:
        encoded += encode_value(item[attribute.name])
    return encoded


def encoded_parts(schema: KeySchema, item: Item) -> tuple[bytes, bytes]:
    """Both parts of the encoded key of an item; ``encode`` concatenates them."""
    return encode_partition(schema, item), encode_sort(schema, item)


def encode(schema: KeySchema, item: Item) -> bytes:
    """The whole key of an item or key: ``hash | partition key | sort key``."""
    return encode_partition(schema, item) + encode_sort(schema, item)


def without_hash(position: bytes) -> bytes:
    """An encoded key without its hash."""
    return position[HASH_BYTES:]


def partition_hash(values: Sequence[AttributeValue]) -> bytes:
    """The hash that places a partition key: 8 bytes of MD5 of ``Outliers`` and the key's bytes.

    The order of DynamoDB's scans suggests that DynamoDB uses the same hash.
    """
    digest = OUTLIERS.copy()
    for value in values:
        digest.update(attribute_value.order_key(value))
    return digest.digest()[:HASH_BYTES]
