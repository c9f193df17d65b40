"""Chooses the position that divides a partition: between two hashes if possible.

A boundary within an item collection, by sort key, is for a collection that is too large or too busy
for a partition of its own (S137, S139). A table with local indexes never has such a boundary (S74),
because index entries have another order than the items.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from dynactor.model.key_conditions.key_range import KeyRange
from dynactor.model.keys.key import HASH_BYTES

_HASH_SPACE: Final = 1 << (8 * HASH_BYTES)
# A boundary between collections is good enough if each side keeps this share.
_EVEN_ENOUGH: Final = 0.25
# A boundary that leaves one side a smaller share is not worth a split.
_LEAST_SHARE: Final = 0.05
# A smaller sample does not show where later requests will go.
_LEAST_SAMPLES: Final = 16


class SplitPoint(NamedTuple):
    """The position where a partition's second child begins, and the share of the first child."""

    at: bytes
    share: float

    @property
    def least_share(self) -> float:
        """The share of the smaller child."""
        return min(self.share, 1 - self.share)


def divides_collection(at: bytes) -> bool:
    """Whether a boundary lies within an item collection."""
    return len(at) > HASH_BYTES


class SizeProfile:
    """The distribution of a partition's bytes, built from rows in the order of their positions.

    At most one boundary for each ``grain_bytes`` of rows is kept, so the size is bounded.
    """

    def __init__(self, grain_bytes: int) -> None:
        self.total_bytes = 0
        self._grain_bytes = grain_bytes
        self._next_bytes = 0
        self._hash: bytes | None = None
        # Bytes before the collection of the last row.
        self._before_hash = 0
        # Whether the start of the next collection is a boundary, too.
        self._wants_next_hash = False
        # Boundaries, each with the number of bytes before it.
        self._collections: list[tuple[bytes, int]] = []
        self._rows: list[tuple[bytes, int]] = []

    def add(self, position: bytes, size_bytes: int) -> None:
        """Add the next row."""
        hashed = position[:HASH_BYTES]
        if hashed != self._hash:
            self._hash, self._before_hash = hashed, self.total_bytes
            if self._wants_next_hash:
                self._wants_next_hash = False
                self._collections.append((hashed, self.total_bytes))
        if self.total_bytes >= self._next_bytes:
            self._next_bytes = self.total_bytes + self._grain_bytes
            self._collections.append((hashed, self._before_hash))
            self._rows.append((position, self.total_bytes))
            self._wants_next_hash = True
        self.total_bytes += size_bytes

    def halves(self, *, divides_collections: bool) -> SplitPoint | None:
        """The position that halves the bytes approximately; None if no split is useful."""
        return _chosen(
            self._points(self._collections), self._points(self._rows) if divides_collections else []
        )

    def _points(self, boundaries: Iterable[tuple[bytes, int]]) -> list[SplitPoint]:
        return [SplitPoint(at, before / self.total_bytes) for at, before in boundaries if before]


def by_heat(positions: Sequence[bytes], *, divides_collections: bool) -> SplitPoint | None:
    """The position that halves the requests; ``positions`` is a sample in order of time.

    An item that gets more requests than all others together is put in a partition of its own. It
    still can't exceed the partition's ceiling (S139), but no longer shares that ceiling. None if
    there are too few requests, or if nearly all are for one position, which no split divides. None
    also if keys rise or fall with time, because all later requests would go to one child again and
    again.
    """
    ordered = sorted(positions)
    count = len(ordered)
    if count < _LEAST_SAMPLES:
        return None
    collections: list[SplitPoint] = []
    rows: list[SplitPoint] = []
    for at in range(1, count):
        before, position = ordered[at - 1], ordered[at]
        if before[:HASH_BYTES] != position[:HASH_BYTES]:
            collections.append(SplitPoint(position[:HASH_BYTES], at / count))
        elif before != position:
            rows.append(SplitPoint(position, at / count))
    point = _chosen(collections, rows if divides_collections else [])
    return point if point is not None and _stays_divided(positions, point) else None


def _stays_divided(positions: Sequence[bytes], point: SplitPoint) -> bool:
    """Whether the later half of the requests also goes to both sides of a boundary."""
    latest = positions[len(positions) // 2 :]
    before = sum(position < point.at for position in latest) / len(latest)
    return _LEAST_SHARE <= before <= 1 - _LEAST_SHARE


def middle(key_range: KeyRange) -> SplitPoint | None:
    """The middle of a range of hashes; None for a range within a single hash."""
    start, end = _hashes(key_range)
    between = (start + end) // 2
    if between <= start:
        return None
    return SplitPoint(between.to_bytes(HASH_BYTES, "big"), 0.5)


def width(key_range: KeyRange) -> int:
    """The approximate number of hashes in a range."""
    start, end = _hashes(key_range)
    return end - start


def share_before(key_range: KeyRange, at: bytes) -> float:
    """The share of a range's hashes before a position; half if the range is within one hash."""
    start, end = _hashes(key_range)
    if end <= start:
        return 0.5
    return (int.from_bytes(at[:HASH_BYTES].ljust(HASH_BYTES, b"\x00"), "big") - start) / (
        end - start
    )


def _chosen(collections: Sequence[SplitPoint], rows: Sequence[SplitPoint]) -> SplitPoint | None:
    """The most even boundary between collections, or one within a collection if more even."""
    best = max(collections, key=_least_share, default=None)
    if best is None or best.least_share < _EVEN_ENOUGH:
        best = max((*collections, *rows), key=_least_share, default=None)
    return best if best is not None and best.least_share >= _LEAST_SHARE else None


def _least_share(point: SplitPoint) -> float:
    return point.least_share


def _hashes(key_range: KeyRange) -> tuple[int, int]:
    start = int.from_bytes(key_range.start[:HASH_BYTES].ljust(HASH_BYTES, b"\x00"), "big")
    if key_range.end is None:
        return start, _HASH_SPACE
    return start, int.from_bytes(key_range.end[:HASH_BYTES].ljust(HASH_BYTES, b"\x00"), "big")
