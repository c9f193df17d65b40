"""When the requests of an open loop are due: from a ramp on at an even rate.

A latency counts from that moment, whether or not a connection was free then: a server that stands
still is not spared those that could not be sent meanwhile.
"""

from __future__ import annotations

import math

from msgspec import Struct


class Pacing(Struct, frozen=True):
    """One worker's share of a rate: every ``stride``-th request from ``first`` on.

    Over the ramp the rate rises evenly from nothing to ``rate``, in requests a second.
    """

    rate: float
    ramp_seconds: float = 0.0
    first: int = 0
    stride: int = 1

    def due_seconds(self, number: int) -> float:
        """When this worker's request of that number is due, from the start of the run."""
        at = self.first + number * self.stride
        of_ramp = self.rate * self.ramp_seconds / 2
        if at < of_ramp:
            return math.sqrt(2 * at * self.ramp_seconds / self.rate)
        return self.ramp_seconds + (at - of_ramp) / self.rate
