"""Checks and encodes a typical key in one pass.

A key from the wire is checked (``item.check``), compared with the schema (``key_rules.check_key``)
and encoded (``key.encode``). Nearly all keys are valid and canonical, and one pass can do all 3
steps for them. This module returns None for every other key. The caller then takes the 3 steps,
which raise DynamoDB's errors in DynamoDB's order.
"""

from __future__ import annotations

from base64 import b64encode
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from dynactor.model.keys.key import (
    END,
    ESCAPED_ZERO,
    HASH_BYTES,
    NUMBER_END,
    OUTLIERS,
    KeySchema,
    KeyType,
)
from dynactor.model.limits import PARTITION_KEY_BYTES, SORT_KEY_BYTES
from dynactor.model.values import number

# Maps a key from the wire to its position as ``key.encode`` does; None for an unusual key.
PositionOf: TypeAlias = Callable[[dict[str, Any]], bytes | None]
# Maps an item or key from the wire to the partition key and sort key of its position; None for an
# unusual one. Other attributes are ignored.
PartsOf: TypeAlias = Callable[[dict[str, Any]], tuple[bytes, bytes] | None]
# Maps an attribute value from the wire to its bytes; None for an unusual value.
Read: TypeAlias = Callable[[Any], bytes | None]


def encode_position(schema: KeySchema) -> PositionOf:
    """A function from keys of a table to positions; None for a key with other attributes, too."""
    parts = encode_parts(schema)
    attributes = len(schema.attributes)

    def position(key: dict[str, Any]) -> bytes | None:
        found = parts(key)
        return None if found is None or len(key) != attributes else found[0] + found[1]

    return position


def encode_parts(schema: KeySchema) -> PartsOf:
    """A function from items of a table to both parts of their positions; writes need the parts."""
    (partition,) = schema.partition
    name, read, is_number = partition.name, READ[partition.type], partition.type == "N"
    sort_name: str | None = None
    read_sort, sort_is_number = read, False
    for sort in schema.sort:
        sort_name, read_sort, sort_is_number = sort.name, READ[sort.type], sort.type == "N"

    # Runs for every request, so it avoids function calls.
    def parts(item: dict[str, Any]) -> tuple[bytes, bytes] | None:
        raw = read(item.get(name))
        if not raw or len(raw) > PARTITION_KEY_BYTES:
            return None
        digest = OUTLIERS.copy()
        digest.update(raw)
        ended = raw + NUMBER_END if is_number else raw.replace(b"\x00", ESCAPED_ZERO) + END
        partition_key = digest.digest()[:HASH_BYTES] + ended
        if sort_name is None:
            return partition_key, b""
        raw = read_sort(item.get(sort_name))
        if not raw or len(raw) > SORT_KEY_BYTES:
            return None
        ended = raw + NUMBER_END if sort_is_number else raw.replace(b"\x00", ESCAPED_ZERO) + END
        return partition_key, ended

    return parts


def _text(value: Any) -> bytes | None:
    if type(value) is not dict or len(value) != 1:
        return None
    text = value.get("S")
    return text.encode() if type(text) is str else None


def _number(value: Any) -> bytes | None:
    if type(value) is not dict or len(value) != 1:
        return None
    text = value.get("N")
    return number.encode(text) if type(text) is str and number.is_plain(text) else None


def _binary(value: Any) -> bytes | None:
    if type(value) is not dict or len(value) != 1:
        return None
    text = value.get("B")
    if type(text) is not str or not text.isascii():
        return None
    try:
        raw = a2b_base64(text)
    except Base64Error:
        return None
    # The decoder ignores some characters and accepts other spellings, so encode again and compare.
    return raw if b64encode(raw).decode() == text else None


READ: Final[dict[KeyType, Read]] = {"S": _text, "N": _number, "B": _binary}
