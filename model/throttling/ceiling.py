"""A ceiling: so many units in each second, and nothing kept for later.

A second is a whole second of the clock. Within it the units may come all at once, as they do
when a partition takes a batch of writes, and over many seconds there are never more than the
ceiling's. A bucket that fills evenly either refuses such a batch or lets more pass at first.
"""

from __future__ import annotations


class Ceiling:
    """The ceiling. As a bucket it admits a request of any size while something is left.

    Invariant: the units used are those of ``_second``, and what earlier seconds overdrew.
    """

    __slots__ = ("_second", "_used_units", "units_per_second")

    def __init__(self, units_per_second: float, now_seconds: float) -> None:
        self.units_per_second = units_per_second
        self._second = int(now_seconds)
        self._used_units = 0.0

    def is_reached(self, now_seconds: float) -> bool:
        """Whether nothing is left of this second."""
        second = int(now_seconds)
        if second != self._second:
            self._begin(second)
        return self._used_units >= self.units_per_second

    def take(self, units: float, now_seconds: float) -> None:
        """Take units, whether they are left or not."""
        second = int(now_seconds)
        if second != self._second:
            self._begin(second)
        self._used_units += units

    def wait_seconds(self, now_seconds: float) -> float:
        """How long until something is left, 0 if it is, if nobody else takes."""
        if not self.is_reached(now_seconds):
            return 0.0
        seconds = self._used_units // self.units_per_second
        return self._second + seconds - now_seconds

    def _begin(self, second: int) -> None:
        overdrawn = self._used_units - (second - self._second) * self.units_per_second
        self._used_units = overdrawn if overdrawn > 0 else 0.0
        self._second = second

    def copy(self, now_seconds: float) -> Ceiling:
        """Another one, as much used: what a partition's child may still take of this second."""
        copied = Ceiling(self.units_per_second, now_seconds)
        copied._second, copied._used_units = self._second, self._used_units
        return copied
