"""The partition map: which partition owns which range of positions.

A boundary is a position: only a hash, unless an item collection was split by sort key. Partitions
are identified by number, because their places in the map change with every split.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from dynactor.model.key_conditions.key_range import KeyRange
from dynactor.storage.catalog import PartitionRange

_HASH_SPACE: Final = 1 << 64
_HASH_BYTES: Final = 8


def divide_evenly(first_number: int, count: int) -> tuple[PartitionRange, ...]:
    """New partitions with equal shares of the hash space, numbered from ``first_number``."""
    return tuple(
        PartitionRange(
            first_number + at,
            (at * _HASH_SPACE // count).to_bytes(_HASH_BYTES, "big") if at else b"",
        )
        for at in range(count)
    )


def divide(
    ranges: tuple[PartitionRange, ...], parent: int, at: bytes, children: tuple[int, int]
) -> tuple[PartitionRange, ...]:
    """The ranges after two partitions have replaced one; the second starts at this position."""
    divided: list[PartitionRange] = []
    for partition in ranges:
        if partition.number == parent:
            divided.append(PartitionRange(children[0], partition.start))
            divided.append(PartitionRange(children[1], at))
        else:
            divided.append(partition)
    return tuple(divided)


class PartitionMap:
    """The ranges of one table's partitions, in order; the first starts at the empty position."""

    def __init__(self, ranges: tuple[PartitionRange, ...]) -> None:
        assert ranges[0].start == b""
        self.ranges = ranges
        self._starts = [partition.start for partition in ranges]
        self._places = {partition.number: place for place, partition in enumerate(ranges)}

    def __contains__(self, partition_number: int) -> bool:
        return partition_number in self._places

    @property
    def numbers(self) -> list[int]:
        """The numbers of all partitions, in the order of their ranges."""
        return list(self._places)

    def partition_range(self, partition_number: int) -> KeyRange:
        """The range of positions that a partition owns."""
        place = self._places[partition_number]
        end = self._starts[place + 1] if place + 1 < len(self._starts) else None
        return KeyRange(self._starts[place], end)

    def place_at(self, position: bytes) -> int:
        """The place in the map of the partition that owns a position."""
        return bisect_right(self._starts, position) - 1

    def number_at(self, position: bytes) -> int:
        """The number of the partition that owns a position."""
        return self.ranges[bisect_right(self._starts, position) - 1].number

    def pieces(self, key_range: KeyRange, *, reverse: bool = False) -> Sequence[KeyRange]:
        """A range cut at the partitions' boundaries, in reading order."""
        first = self.place_at(key_range.start)
        last = len(self.ranges) - 1
        if key_range.end is not None:
            last = self.place_at(key_range.end)
            if self._starts[last] == key_range.end and last > first:
                last -= 1
        if first == last:
            return (key_range,)
        pieces = [
            KeyRange(
                key_range.start if place == first else self._starts[place],
                key_range.end if place == last else self._starts[place + 1],
            )
            for place in range(first, last + 1)
        ]
        if reverse:
            pieces.reverse()
        return pieces
