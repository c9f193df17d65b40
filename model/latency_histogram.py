"""A histogram of durations, cheap enough to record every request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

# Durations are in units of 1,024 nanoseconds: shifting by ten bits is faster than dividing.
_UNIT_SECONDS: Final = 1024e-9
# Bucket k counts durations below 2 ** k units. Each duration of 64 bits has a bucket.
_BUCKETS: Final = 64
# ``cumulative`` reports the bounds of these buckets. Shorter durations count in the first one, and
# longer durations in none.
_FIRST_SHOWN: Final = 5
_LAST_SHOWN: Final = 26


class LatencyHistogram:
    """Counts of durations, with doubling bounds from 33 µs to 69 s. Not thread-safe."""

    __slots__ = ("_counts", "total_nanoseconds")

    def __init__(self) -> None:
        self._counts = [0] * _BUCKETS
        self.total_nanoseconds = 0

    def observe(self, nanoseconds: int, times: int = 1) -> None:
        """Count a duration, or several equal ones."""
        self._counts[(nanoseconds >> 10).bit_length()] += times
        self.total_nanoseconds += nanoseconds * times

    @property
    def count(self) -> int:
        """The number of durations."""
        return sum(self._counts)

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """Upper bounds in seconds, exclusive, each with the number of shorter durations.

        Durations above the last bound appear only in ``count``.
        """
        below = 0
        for bucket, count in enumerate(self._counts[: _LAST_SHOWN + 1]):
            below += count
            if bucket >= _FIRST_SHOWN:
                yield (1 << bucket) * _UNIT_SECONDS, below
