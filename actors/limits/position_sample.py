"""A bounded sample of the positions of requests, to split a busy partition."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Final

# Average number of units between two sampled requests, so that sampling costs almost nothing.
_UNITS: Final = 16
_MOST_SAMPLES: Final = 256


class PositionSample:
    """The latest sampled positions of each partition, also of indexes' partitions."""

    def __init__(self) -> None:
        self._positions: dict[int, deque[bytes]] = {}
        self._draws = Random(_UNITS)  # noqa: S311 - which requests are noted
        # Number of units to skip before the next sampled request.
        self._left_units = 0.0

    def is_due(self, units: float) -> bool:
        """Whether to sample a request of this number of units."""
        self._left_units -= units
        if self._left_units > 0:
            return False
        # Skip a random number of units, because clients often use their keys in turn.
        self._left_units = self._draws.random() * (2 * _UNITS)
        return True

    def note(self, partition_number: int, position: bytes) -> None:
        """Note the position of a request."""
        known = self._positions.get(partition_number)
        if known is None:
            known = self._positions[partition_number] = deque(maxlen=_MOST_SAMPLES)
        known.append(position)

    def positions(self, partition_number: int) -> list[bytes]:
        """The positions of a partition."""
        return list(self._positions.get(partition_number, ()))

    def forget(self, partition_number: int) -> None:
        """Forget a partition that was split or deleted."""
        self._positions.pop(partition_number, None)
