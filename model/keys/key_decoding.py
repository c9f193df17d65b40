"""Decodes the bytes of a position, encoded by ``model/keys/key.py``, into key values."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Final

from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.values import number
from dynactor.model.values.attribute_value import AttributeValue
from dynactor.model.values.item import Item

_END: Final = b"\x00\x00"
_ESCAPED_ZERO: Final = b"\x00\xff"
_NUMBER_END: Final = b"\x00"
_HASH_BYTES: Final = 8


def partition_end(schema: KeySchema, position: bytes) -> int:
    """The end of the partition key in a position, or in a range's start with a whole key."""
    return _attribute_end(schema.partition, position, _HASH_BYTES)


def partition_values(schema: KeySchema, position: bytes) -> Item:
    """The attributes of a partition key."""
    return _values(schema.partition, position, _HASH_BYTES)


def key_values(schema: KeySchema, position: bytes) -> Item:
    """The attributes of a whole key."""
    return _values(schema.attributes, position, _HASH_BYTES)


def _attribute_end(attributes: Sequence[KeyAttribute], position: bytes, at: int) -> int:
    for attribute in attributes:
        if attribute.type == "N":
            # The first byte of a number may be zero.
            at = position.index(_NUMBER_END, at + 1) + len(_NUMBER_END)
        else:
            # A zero byte within a value is never followed by another zero byte.
            at = position.index(_END, at) + len(_END)
    return at


def _values(attributes: Sequence[KeyAttribute], position: bytes, at: int) -> Item:
    item: Item = {}
    for attribute in attributes:
        end = _attribute_end((attribute,), position, at)
        item[attribute.name] = _value(attribute, position[at:end])
        at = end
    return item


def _value(attribute: KeyAttribute, encoded: bytes) -> AttributeValue:
    if attribute.type == "N":
        return {"N": number.decode(encoded.removesuffix(_NUMBER_END))}
    raw = encoded.removesuffix(_END).replace(_ESCAPED_ZERO, b"\x00")
    if attribute.type == "S":
        return {"S": raw.decode()}
    return {"B": b64encode(raw).decode()}
