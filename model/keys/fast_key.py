"""The usual key: checked and encoded in one walk.

A key from the wire is checked for what it is (``item.check``), held against the schema
(``key_rules.check_key``) and encoded (``key.encode``). Nearly all keys pass, and are canonical as
they came: for those the three are one. Any other key is told apart here and no more: the three know
DynamoDB's words for what is wrong with it, and their order.
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

# Of a key as it came, the position that ``key.encode`` gives; None for an unusual one.
PositionOf: TypeAlias = Callable[[dict[str, Any]], bytes | None]
# Of an item, or a key as it came, its partition key and sort key as in its position; None for an
# unusual one. Other attributes are not looked at.
PartsOf: TypeAlias = Callable[[dict[str, Any]], tuple[bytes, bytes] | None]
# Of a value as it came, its bytes; None for an unusual one.
Read: TypeAlias = Callable[[Any], bytes | None]


def position_of(schema: KeySchema) -> PositionOf:
    """What finds the positions of a table's keys, if they are usual and exactly its keys."""
    parts = parts_of(schema)
    attributes = len(schema.attributes)

    def position(key: dict[str, Any]) -> bytes | None:
        found = parts(key)
        return None if found is None or len(key) != attributes else found[0] + found[1]

    return position


def parts_of(schema: KeySchema) -> PartsOf:
    """What finds both parts of the positions of a table's items: to a write, each has its use."""
    (partition,) = schema.partition
    name, read, is_number = partition.name, READ[partition.type], partition.type == "N"
    sort_name: str | None = None
    read_sort, sort_is_number = read, False
    for sort in schema.sort:
        sort_name, read_sort, sort_is_number = sort.name, READ[sort.type], sort.type == "N"

    # For every request: without calls that are not needed.
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
    # What was passed over, or spelled otherwise, is missing here.
    return raw if b64encode(raw).decode() == text else None


# What reads a value of a type.
READ: Final[dict[KeyType, Read]] = {"S": _text, "N": _number, "B": _binary}
