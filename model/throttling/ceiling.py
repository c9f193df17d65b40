"""A ceiling: a number of units in each second. Unused units expire with the second.

A second is a whole second of the clock. Within it, units may be taken all at once, as when a
partition takes a batch of writes; over many seconds, the ceiling is never exceeded. A bucket that
fills evenly either refuses such a batch or admits too much at first.
"""

from __future__ import annotations


class Ceiling:
    """A ceiling. Like a token bucket, it admits a request of any size while units are left.

    Invariant: ``used_units`` are the units of the second that ends at ``ends_at_seconds``, plus the
    debt of earlier seconds. Fast paths read both attributes directly instead of calling
    ``is_reached``.
    """

    __slots__ = ("ends_at_seconds", "units_per_second", "used_units")

    def __init__(self, units_per_second: float, now_seconds: float) -> None:
        self.units_per_second = units_per_second
        self.ends_at_seconds = int(now_seconds) + 1
        self.used_units = 0.0

    def is_reached(self, now_seconds: float) -> bool:
        """Whether no units are left in this second."""
        if now_seconds >= self.ends_at_seconds:
            self.begin_second(now_seconds)
        return self.used_units >= self.units_per_second

    def take(self, units: float, now_seconds: float) -> None:
        """Take units, even if too few are left."""
        if now_seconds >= self.ends_at_seconds:
            self.begin_second(now_seconds)
        self.used_units += units

    def give_back(self, units: float, now_seconds: float) -> None:
        """Return units; units of an earlier second are lost."""
        self.take(-units, now_seconds)
        if self.used_units < 0:
            self.used_units = 0.0

    def begin_second(self, now_seconds: float) -> None:
        """Start the second that contains the current time."""
        ends_at_seconds = int(now_seconds) + 1
        passed = ends_at_seconds - self.ends_at_seconds
        overdrawn = self.used_units - passed * self.units_per_second
        self.used_units = overdrawn if overdrawn > 0 else 0.0
        self.ends_at_seconds = ends_at_seconds

    def wait_seconds(self, now_seconds: float) -> float:
        """The time until units are available, unless other requests take them; may be 0."""
        if not self.is_reached(now_seconds):
            return 0.0
        seconds = self.used_units // self.units_per_second
        return self.ends_at_seconds - 1 + seconds - now_seconds

    def copy(self, now_seconds: float) -> Ceiling:
        """A copy with the units used in this second, for a child of the partition."""
        copied = Ceiling(self.units_per_second, now_seconds)
        copied.ends_at_seconds, copied.used_units = self.ends_at_seconds, self.used_units
        return copied
