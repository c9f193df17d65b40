"""A steady rate of units, which each use delays. Pure: the caller waits."""

from __future__ import annotations


class SteadyRate:
    """Spreads the use of units over time, in the order of the requests.

    Unused time is lost, except for ``most_behind_seconds``.

    Invariant: at ``free_at_seconds``, of the caller's clock, the rate covers all units so far.
    """

    def __init__(self, units_per_second: float, *, most_behind_seconds: float = 0.0) -> None:
        assert units_per_second > 0
        self.free_at_seconds = 0.0
        self._units_per_second = units_per_second
        self._most_behind_seconds = most_behind_seconds

    def take(self, units: float, now_seconds: float) -> float:
        """Take units; returns the seconds to wait before their use."""
        at_seconds = max(self.free_at_seconds, now_seconds - self._most_behind_seconds)
        self.free_at_seconds = at_seconds + units / self._units_per_second
        return max(0.0, at_seconds - now_seconds)
