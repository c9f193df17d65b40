"""The units of entries that a backfill puts into an index."""

from __future__ import annotations

import asyncio
from typing import Final

from dynactor.actors.limits.throttle import TableThrottle
from dynactor.actors.runtime.clock import Clock

_LONGEST_WAIT_SECONDS: Final = 1.0


class BackfillUnits:
    """The write units of an index for its backfill: the units that writes leave (S168)."""

    def __init__(self, throttle: TableThrottle, index_id: int, clock: Clock) -> None:
        self._throttle = throttle
        self._index_id = index_id
        self._clock = clock

    def take(self, partition_number: int, units: int) -> asyncio.Future[None] | None:
        """Take the units of an entry; None if it may be put, else a future of the next attempt."""
        wait_seconds = self._throttle.take_backfill(self._index_id, partition_number, units)
        if wait_seconds is None:
            return None
        # The units may be raised meanwhile (S194).
        wait_seconds = min(wait_seconds, _LONGEST_WAIT_SECONDS)
        return self._clock.wait_until(self._clock.now_epoch_seconds() + wait_seconds)


class FreeUnits(BackfillUnits):
    """Units for an index of a table that is being restored: they are unlimited."""

    def __init__(self) -> None:
        pass

    def take(self, _partition_number: int, _units: int) -> None:
        """Do nothing: without limits, an index entry may always be put."""
