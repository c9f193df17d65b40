"""The two clocks.

*Domain time* is the time of the data: creation times, expiry, retention. It may be virtual, for
testers. *I/O time* is the time of sockets and syncs: time-outs and delays. It is the event loop's
own time, which is real in a running server.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, Protocol

# Later times can't be written as ISO 8601 dates: 9999-12-31T23:59:59Z.
LATEST_EPOCH_SECONDS: Final = 253_402_300_799.0
MAX_SPEED: Final = 1_000_000.0

# Maximum time until domain time is read again: the machine's clock may be set, and the loop's clock
# stops while a laptop sleeps.
_LOOK_AGAIN_SECONDS: Final = 10.0
# uvloop's timers have a resolution of a millisecond.
_SHORTEST_PAUSE_SECONDS: Final = 0.001
_ENDED_ENTRIES: Final = 64


class Clock(Protocol):
    """The clock of domain time."""

    def now_epoch_seconds(self) -> float:
        """Seconds since 1970; never goes back."""

    def wait_until(self, epoch_seconds: float) -> asyncio.Future[None]:
        """A future that completes at this time, or immediately if the time has passed.

        Canceling the future removes its timer. Never use one future for two waiters.
        """


class SystemClock:
    """Domain time from the machine's clock; if that clock is set back, domain time waits for it."""

    def __init__(self) -> None:
        self._latest_epoch_seconds = 0.0
        self._sleepers = _Sleepers(self.now_epoch_seconds, self._pause_seconds)

    def now_epoch_seconds(self) -> float:
        """The machine's time, or the latest returned time if that is later."""
        now = time.time()
        if now < self._latest_epoch_seconds:
            return self._latest_epoch_seconds
        self._latest_epoch_seconds = now
        return now

    def wait_until(self, epoch_seconds: float) -> asyncio.Future[None]:
        """See ``Clock``; up to ten seconds late if the machine's clock is set forward."""
        return self._sleepers.add(epoch_seconds)

    def _pause_seconds(self, epoch_seconds: float) -> float:
        return epoch_seconds - time.time()


class ClockRefusal(ValueError):
    """The clock can't be set to this value; the message says why."""


class VirtualClock:
    """Domain time that can be set and stepped, and runs at a speed: 1 is real time, 0 stops it.

    Invariants: time never goes back; while it runs it never passes ``limit_epoch_seconds``.
    """

    def __init__(
        self,
        start_epoch_seconds: float,
        speed: float = 0.0,
        *,
        io_seconds: Callable[[], float] | None = None,
    ) -> None:
        """``io_seconds`` returns the loop's time, and may be replaced in tests."""
        self._io_seconds = io_seconds or _loop_seconds
        # One moment in domain time, and the same moment in the loop's time.
        self._since_epoch_seconds = _checked_time(start_epoch_seconds)
        self._since_io_seconds = 0.0
        self._speed = 0.0
        self._limit_epoch_seconds = LATEST_EPOCH_SECONDS
        self._sleepers = _Sleepers(self.now_epoch_seconds, self._pause_seconds)
        self.set_speed(speed)

    @property
    def speed(self) -> float:
        """Seconds of domain time per second of the loop's time."""
        return self._speed

    def now_epoch_seconds(self) -> float:
        """The time that was set last, plus the loop's time since then multiplied by the speed."""
        if not self._speed:
            return self._since_epoch_seconds
        passed = (self._io_seconds() - self._since_io_seconds) * self._speed
        limit = max(self._since_epoch_seconds, self._limit_epoch_seconds)
        return min(self._since_epoch_seconds + max(passed, 0.0), limit)

    def wait_until(self, epoch_seconds: float) -> asyncio.Future[None]:
        """See ``Clock``; every change of the time or of the speed wakes the waiters."""
        return self._sleepers.add(epoch_seconds)

    def set(self, epoch_seconds: float) -> None:
        """Set the time, and continue from it; raises ``ClockRefusal`` if it is past or invalid."""
        now = self.now_epoch_seconds()
        if _checked_time(epoch_seconds) < now:
            raise ClockRefusal(
                f"The clock never goes back: it stands at {now:.6f}, which is later than "
                f"{epoch_seconds:.6f}"
            )
        self._go_on(epoch_seconds, self._speed)

    def step(self, seconds: float) -> None:
        """Step the time forward; raises ``ClockRefusal`` if it would be invalid or earlier."""
        self.set(self.now_epoch_seconds() + seconds)

    def set_speed(self, speed: float) -> None:
        """Run at this speed from now on; raises ``ClockRefusal`` if it is not valid."""
        if not 0 <= speed <= MAX_SPEED:
            raise ClockRefusal(f"A speed is a number from 0 to {MAX_SPEED:,.0f}, not {speed}")
        self._go_on(self.now_epoch_seconds(), speed)

    def limit(self, epoch_seconds: float) -> None:
        """Stop when the time reaches this limit, which may be raised later."""
        self._go_on(self.now_epoch_seconds(), self._speed)
        self._limit_epoch_seconds = min(epoch_seconds, LATEST_EPOCH_SECONDS)
        self._sleepers.look()

    def _go_on(self, epoch_seconds: float, speed: float) -> None:
        self._since_epoch_seconds = epoch_seconds
        self._since_io_seconds = self._io_seconds() if speed else 0.0
        self._speed = speed
        self._sleepers.look()

    def _pause_seconds(self, epoch_seconds: float) -> float | None:
        if not self._speed or epoch_seconds > self._limit_epoch_seconds:
            return None
        return (epoch_seconds - self.now_epoch_seconds()) / self._speed


class _Sleepers:
    """Waiters for domain times, with one timer of the loop for the earliest of them.

    Invariant: while there is a waiter, either a timer runs or the time is stopped.
    """

    def __init__(
        self, now: Callable[[], float], pause_seconds: Callable[[float], float | None]
    ) -> None:
        """``pause_seconds``: the loop's seconds until a domain time; None if time is stopped."""
        self._now = now
        self._pause_seconds = pause_seconds
        self._order = count()
        self._heap: list[tuple[float, int, asyncio.Future[None]]] = []
        self._waiting = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, epoch_seconds: float) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if epoch_seconds <= self._now():
            future.set_result(None)
            return future
        self._waiting += 1
        future.add_done_callback(self._ended)
        heappush(self._heap, (epoch_seconds, next(self._order), future))
        if self._heap[0][2] is future:
            self.look()
        return future

    def look(self) -> None:
        """Wake the waiters whose time has come, and set a timer for the next one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._heap:
            return
        now = self._now()
        while self._heap and (self._heap[0][0] <= now or self._heap[0][2].done()):
            future = heappop(self._heap)[2]
            if not future.done():
                future.set_result(None)
        if not self._heap:
            return
        pause_seconds = self._pause_seconds(self._heap[0][0])
        if pause_seconds is not None:
            pause_seconds = min(max(pause_seconds, _SHORTEST_PAUSE_SECONDS), _LOOK_AGAIN_SECONDS)
            self._timer = asyncio.get_running_loop().call_later(pause_seconds, self.look)

    def _ended(self, _: asyncio.Future[None]) -> None:
        self._waiting -= 1
        # A heap can't remove an entry in the middle, so canceled waiters stay until they are due.
        if not self._waiting or len(self._heap) > 2 * self._waiting + _ENDED_ENTRIES:
            self._heap = [entry for entry in self._heap if not entry[2].done()]
            heapify(self._heap)
            self.look()


def _loop_seconds() -> float:
    return asyncio.get_running_loop().time()


def _checked_time(epoch_seconds: float) -> float:
    if math.isnan(epoch_seconds) or not 0 <= epoch_seconds <= LATEST_EPOCH_SECONDS:
        raise ClockRefusal(
            f"A time is a number of seconds from 0 (1970) to {LATEST_EPOCH_SECONDS:.0f} "
            f"(the end of 9999), not {epoch_seconds}"
        )
    return epoch_seconds
