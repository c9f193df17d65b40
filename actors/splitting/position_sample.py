"""A bounded sample of the positions that requests go to: where a busy partition may be divided."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Final

# Of so many units a request is noted, on average: taking the sample costs next to nothing.
_UNITS: Final = 16
_MOST_SAMPLES: Final = 256


class PositionSample:
    """The latest positions noted of each partition; numbers of indexes' partitions are others."""

    def __init__(self) -> None:
        self._positions: dict[int, deque[bytes]] = {}
        self._draws = Random(_UNITS)  # noqa: S311 - which requests are noted
        # How many units are passed over before the next request is noted.
        self._left_units = 0.0

    def is_due(self, units: float) -> bool:
        """Whether a request of so many units is to be noted."""
        self._left_units -= units
        if self._left_units > 0:
            return False
        # In step with nothing: clients often take their keys in turn.
        self._left_units = self._draws.random() * (2 * _UNITS)
        return True

    def note(self, partition_number: int, position: bytes) -> None:
        """A request went there."""
        known = self._positions.get(partition_number)
        if known is None:
            known = self._positions[partition_number] = deque(maxlen=_MOST_SAMPLES)
        known.append(position)

    def positions(self, partition_number: int) -> list[bytes]:
        """Those of a partition."""
        return list(self._positions.get(partition_number, ()))

    def forget(self, partition_number: int) -> None:
        """The partition was split, or went."""
        self._positions.pop(partition_number, None)
