"""Keys of any length in the indexes of PostgreSQL, which hold at most 2,704 bytes.

A key of up to 2,600 bytes is stored unchanged. A longer key is stored as its first 2,600 bytes and
a digest; the column ``tail`` has the remaining bytes. Stored keys sort like the keys themselves.
The exception is long keys with the same first 2,600 bytes, which are sorted by ``tail``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final, NamedTuple

from dynactor.storage import key_layout

PREFIX_BYTES: Final = 2_600
_DIGEST_BYTES: Final = 32
# Appended to a prefix, this sorts after every stored key that begins with the prefix.
_BEHIND_DIGESTS: Final = b"\xff" * (_DIGEST_BYTES + 1)

HEADS, ROWS, LOG = range(3)
# The table of each first byte of a key.
_TABLE_NUMBERS: Final = [
    HEADS if first in key_layout.HEAD_KINDS else LOG if first in key_layout.CHANGE_KINDS else ROWS
    for first in range(256)
]


class StoredKey(NamedTuple):
    """A key as it is stored; ``tail`` is None for a short one."""

    key: bytes
    tail: bytes | None


class Range(NamedTuple):
    """The part of a range of keys that is in one table.

    ``low`` and ``high`` bound the stored keys. If a bound is a long key, rows with its prefix
    are compared with its tail, too.
    """

    table: int
    low: bytes
    high: bytes
    low_tail: bytes | None = None
    high_tail: bytes | None = None


def table_number(key: bytes) -> int:
    """The table that a key is in."""
    return _TABLE_NUMBERS[key[0]]


def stored(key: bytes) -> StoredKey:
    """A key as it is stored."""
    if len(key) <= PREFIX_BYTES:
        return StoredKey(key, None)
    return StoredKey(key[:PREFIX_BYTES] + sha256(key).digest(), key[PREFIX_BYTES:])


def by_tables(keys: Iterable[bytes]) -> dict[int, list[bytes]]:
    """The keys as they are stored, by table, in the order of the tables."""
    found: dict[int, list[bytes]] = {}
    for key in keys:
        found.setdefault(table_number(key), []).append(stored(key).key)
    return dict(sorted(found.items()))


def original(key: bytes, tail: bytes | None) -> bytes:
    """The key of a stored row."""
    return key if tail is None else key[:PREFIX_BYTES] + tail


def behind_cluster(prefix: bytes) -> bytes:
    """The first stored key after all long keys that begin with a prefix."""
    return prefix + _BEHIND_DIGESTS


def ranges(start: bytes, end: bytes) -> Iterator[Range]:
    """The parts of a range in the order of the keys."""
    while start < end:
        table = _TABLE_NUMBERS[start[0]] if start else _TABLE_NUMBERS[0]
        behind = start[0] + 1 if start else 1
        last = end[0] if len(end) > 1 else end[0] - 1
        while behind <= last and _TABLE_NUMBERS[behind] == table:
            behind += 1
        part_end = end if behind > last else bytes([behind])
        yield _range(table, start, part_end)
        start = part_end


def _range(table: int, start: bytes, end: bytes) -> Range:
    low, low_tail = start, None
    if len(start) > PREFIX_BYTES:
        low, low_tail = start[:PREFIX_BYTES] + b"\x00", start[PREFIX_BYTES:]
    high, high_tail = end, None
    if len(end) > PREFIX_BYTES:
        high, high_tail = behind_cluster(end[:PREFIX_BYTES]), end[PREFIX_BYTES:]
    return Range(table, low, high, low_tail, high_tail)
