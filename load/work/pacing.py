"""The schedule of an open loop: a ramp, then an even rate.

A latency counts from the scheduled time, even if no connection was free. So a server that stalls
does not hide the requests that could not be sent meanwhile.
"""

from __future__ import annotations

import math

from msgspec import Struct


class Pacing(Struct, frozen=True):
    """One worker's share of a rate: every ``stride``-th request, beginning with ``first``.

    During the ramp, the rate rises evenly from zero to ``rate``, in requests per second.
    """

    rate: float
    ramp_seconds: float = 0.0
    first: int = 0
    stride: int = 1

    def due_seconds(self, number: int) -> float:
        """The scheduled time of this worker's request of that number, from the start of the run."""
        at = self.first + number * self.stride
        of_ramp = self.rate * self.ramp_seconds / 2
        if at < of_ramp:
            return math.sqrt(2 * at * self.ramp_seconds / self.rate)
        return self.ramp_seconds + (at - of_ramp) / self.rate
