"""Ranges of positions: the part of a table or index that a Query or Scan reads.

A position is an encoded key: ``hash | partition key | sort key``. In an index, the table's own key
follows. Ranges include their start and exclude their end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from dynactor.model.key_conditions.key_condition import KeyCondition, KeyOperator
from dynactor.model.keys import key as keys

_HASH_BITS: Final = 64


class KeyRange(NamedTuple):
    """A range of positions; ``end`` None is the end of the table or index."""

    start: bytes
    end: bytes | None


WHOLE: Final = KeyRange(b"", None)


def selected_range(condition: KeyCondition) -> KeyRange:
    """The positions that a Query's key condition selects."""
    prefix = keys.partition_hash(condition.partition) + b"".join(
        map(keys.encode_value, condition.partition)
    )
    for sort in condition.sort:
        if sort.operator == "begins_with":
            return beginning_with(prefix + keys.encode_prefix(sort.values[0]))
        if sort.operator != "=":
            return within(prefix, sort.operator, list(map(keys.encode_value, sort.values)))
        prefix += keys.encode_value(sort.values[0])
    return beginning_with(prefix)


def within(prefix: bytes, operator: KeyOperator, values: Sequence[bytes]) -> KeyRange:
    """The range of a comparison on the sort key after ``prefix``, with encoded values.

    Other bytes may follow a value in a position, so the range ends at the first position without
    the value as its prefix. No fixed byte can serve as an end mark, because a binary value may
    begin with any byte.
    """
    first = prefix + values[0]
    match operator:
        case "=":
            return beginning_with(first)
        case "<":
            return KeyRange(prefix, first)
        case "<=":
            return KeyRange(prefix, _end_of_prefix(first))
        case ">":
            return KeyRange(_end_of_prefix(first), _end_of_prefix(prefix))
        case ">=":
            return KeyRange(first, _end_of_prefix(prefix))
        case "BETWEEN":
            return KeyRange(first, _end_of_prefix(prefix + values[1]))
        case _:
            raise AssertionError(operator)


def beginning_with(prefix: bytes) -> KeyRange:
    """The positions with this prefix, which contains a whole partition key."""
    return KeyRange(prefix, _end_of_prefix(prefix))


def _end_of_prefix(prefix: bytes) -> bytes:
    """The first position after all positions with ``prefix``.

    The prefix contains a whole partition key, so it does not consist of 0xff bytes only.
    """
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes([trimmed[-1] + 1])


def segment_range(segment: int, total_segments: int) -> KeyRange:
    """The positions of one segment of a parallel scan: an even share of the hash space."""
    return KeyRange(
        _boundary(segment, total_segments) if segment else b"",
        _boundary(segment + 1, total_segments) if segment + 1 < total_segments else None,
    )


def _boundary(segment: int, total_segments: int) -> bytes:
    return ((segment << _HASH_BITS) // total_segments).to_bytes(_HASH_BITS // 8, "big")


def contains(key_range: KeyRange, position: bytes) -> bool:
    """Whether a position lies in a range."""
    return key_range.start <= position and (key_range.end is None or position < key_range.end)
