"""A steady rate of units, for commands that share a table with applications."""

from __future__ import annotations

import anyio


class UnitRate:
    """Spreads the use of units over time, at a rate per second.

    Invariant: at ``_free_at``, in the clock's seconds, the rate covers all units used so far.
    """

    def __init__(self, units_per_second: float) -> None:
        assert units_per_second > 0
        self._units_per_second = units_per_second
        self._free_at = 0.0

    def delay_seconds(self, units: float, now: float) -> float:
        """Seconds to wait after a request that used these units and ended at this time."""
        self._free_at = max(self._free_at, now) + units / self._units_per_second
        return self._free_at - now

    async def wait_after(self, units: float) -> None:
        """Wait until the rate covers the units of a request."""
        await anyio.sleep(self.delay_seconds(units, anyio.current_time()))
