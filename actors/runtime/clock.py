"""The two clocks.

*Domain time* is what data means by now: creation times, expiry, retention. *I/O time* is what
sockets and syncs mean: time-outs and delays; it is the event loop's own, real in a running
server.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Domain time."""

    def now_epoch_seconds(self) -> float:
        """Seconds since 1970; never goes back."""
        ...


class SystemClock:
    """Domain time as the machine tells it, held where the machine's clock is set back."""

    def __init__(self) -> None:
        self._latest_epoch_seconds = 0.0

    def now_epoch_seconds(self) -> float:
        """The machine's time, or the latest time told if that is later."""
        self._latest_epoch_seconds = max(self._latest_epoch_seconds, time.time())
        return self._latest_epoch_seconds
