"""A ceiling: so many units in each second, and nothing kept for later.

A second is a whole second of the clock. Within it the units may come all at once, as they do
when a partition takes a batch of writes, and over many seconds there are never more than the
ceiling's. A bucket that fills evenly either refuses such a batch or lets more pass at first.
"""

from __future__ import annotations


class Ceiling:
    """The ceiling. As a bucket it admits a request of any size while something is left.

    Invariant: ``used_units`` are those of the second that ends at ``ends_at_seconds``, and what
    earlier seconds overdrew. Whoever has to be quick looks at both, as ``is_reached`` does.
    """

    __slots__ = ("ends_at_seconds", "units_per_second", "used_units")

    def __init__(self, units_per_second: float, now_seconds: float) -> None:
        self.units_per_second = units_per_second
        self.ends_at_seconds = int(now_seconds) + 1
        self.used_units = 0.0

    def is_reached(self, now_seconds: float) -> bool:
        """Whether nothing is left of this second."""
        if now_seconds >= self.ends_at_seconds:
            self.begin_second(now_seconds)
        return self.used_units >= self.units_per_second

    def take(self, units: float, now_seconds: float) -> None:
        """Take units, whether they are left or not."""
        if now_seconds >= self.ends_at_seconds:
            self.begin_second(now_seconds)
        self.used_units += units

    def give_back(self, units: float, now_seconds: float) -> None:
        """Give units back that were taken: what is left of an earlier second is lost."""
        self.take(-units, now_seconds)
        if self.used_units < 0:
            self.used_units = 0.0

    def begin_second(self, now_seconds: float) -> None:
        """Begin another second, in which time stands now."""
        ends_at_seconds = int(now_seconds) + 1
        passed = ends_at_seconds - self.ends_at_seconds
        overdrawn = self.used_units - passed * self.units_per_second
        self.used_units = overdrawn if overdrawn > 0 else 0.0
        self.ends_at_seconds = ends_at_seconds

    def wait_seconds(self, now_seconds: float) -> float:
        """How long until something is left, 0 if it is, if nobody else takes."""
        if not self.is_reached(now_seconds):
            return 0.0
        seconds = self.used_units // self.units_per_second
        return self.ends_at_seconds - 1 + seconds - now_seconds

    def copy(self, now_seconds: float) -> Ceiling:
        """Another one, as much used: what a partition's child may still take of this second."""
        copied = Ceiling(self.units_per_second, now_seconds)
        copied.ends_at_seconds, copied.used_units = self.ends_at_seconds, self.used_units
        return copied
