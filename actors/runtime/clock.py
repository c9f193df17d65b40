"""The two clocks.

*Domain time* is what data means by now: creation times, expiry, retention. It may be virtual,
for testers. *I/O time* is what sockets and syncs mean: time-outs and delays; it is the event
loop's own, real in a running server.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final, Protocol

# Behind it, times can't be written as ISO 8601 dates: 9999-12-31T23:59:59Z.
LATEST_EPOCH_SECONDS: Final = 253_402_300_799.0
MAX_SPEED: Final = 1_000_000.0

# The machine's clock may be set, and the loop's stands still while a laptop sleeps.
_LOOK_AGAIN_SECONDS: Final = 10.0
# Timers of uvloop count milliseconds.
_SHORTEST_PAUSE_SECONDS: Final = 0.001
_ENDED_ENTRIES: Final = 64


class Clock(Protocol):
    """Domain time."""

    def now_epoch_seconds(self) -> float:
        """Seconds since 1970; never goes back."""
        ...

    def wait_until(self, epoch_seconds: float) -> asyncio.Future[None]:
        """A future that completes once that time has come; at once if it has already.

        Whoever waits no longer cancels it: nothing of it is left then. Never use one future
        for two waiters.
        """
        ...


class SystemClock:
    """Domain time as the machine tells it, held where the machine's clock is set back."""

    def __init__(self) -> None:
        self._latest_epoch_seconds = 0.0
        self._sleepers = _Sleepers(self.now_epoch_seconds, self._pause_seconds)

    def now_epoch_seconds(self) -> float:
        """The machine's time, or the latest time told if that is later."""
        now = time.time()
        if now < self._latest_epoch_seconds:
            return self._latest_epoch_seconds
        self._latest_epoch_seconds = now
        return now

    def wait_until(self, epoch_seconds: float) -> asyncio.Future[None]:
        """As ``Clock``; up to ten seconds late where the machine's clock is set forward."""
        return self._sleepers.add(epoch_seconds)

    def _pause_seconds(self, epoch_seconds: float) -> float:
        return epoch_seconds - time.time()


class ClockRefusal(ValueError):
    """A clock can't be set so; the message says why."""


class VirtualClock:
    """Domain time that is set, stepped, and runs at a speed: 1 as the loop's, 0 stands still.

    Invariants: time never goes back; while it runs it never passes ``limit_epoch_seconds``.
    """

    def __init__(
        self,
        start_epoch_seconds: float,
        speed: float = 0.0,
        *,
        io_seconds: Callable[[], float] | None = None,
    ) -> None:
        """``io_seconds`` tells the loop's time, and may be replaced in tests."""
        self._io_seconds = io_seconds or _loop_seconds
        # Time stood there when the loop's time was that.
        self._since_epoch_seconds = _checked_time(start_epoch_seconds)
        self._since_io_seconds = 0.0
        self._speed = 0.0
        self._limit_epoch_seconds = LATEST_EPOCH_SECONDS
        self._sleepers = _Sleepers(self.now_epoch_seconds, self._pause_seconds)
        self.set_speed(speed)

    @property
    def speed(self) -> float:
        """Seconds of domain time in a second of the loop's."""
        return self._speed

    def now_epoch_seconds(self) -> float:
        """The time as it was set, and what has passed since then."""
        if not self._speed:
            return self._since_epoch_seconds
        passed = (self._io_seconds() - self._since_io_seconds) * self._speed
        limit = max(self._since_epoch_seconds, self._limit_epoch_seconds)
        return min(self._since_epoch_seconds + max(passed, 0.0), limit)

    def wait_until(self, epoch_seconds: float) -> asyncio.Future[None]:
        """As ``Clock``; woken by all that moves the time."""
        return self._sleepers.add(epoch_seconds)

    def set(self, epoch_seconds: float) -> None:
        """Go on from that time.

        Raises:
            ClockRefusal: it is past, or no time of a clock.
        """
        now = self.now_epoch_seconds()
        if _checked_time(epoch_seconds) < now:
            raise ClockRefusal(
                f"The clock never goes back: it stands at {now:.6f}, which is later than "
                f"{epoch_seconds:.6f}"
            )
        self._go_on(epoch_seconds, self._speed)

    def step(self, seconds: float) -> None:
        """Go on from so much later.

        Raises:
            ClockRefusal: it is negative, or leads behind the last time of a clock.
        """
        self.set(self.now_epoch_seconds() + seconds)

    def set_speed(self, speed: float) -> None:
        """Run at that speed from now on.

        Raises:
            ClockRefusal: it is none.
        """
        if not 0 <= speed <= MAX_SPEED:
            raise ClockRefusal(f"A speed is a number from 0 to {MAX_SPEED:,.0f}, not {speed}")
        self._go_on(self.now_epoch_seconds(), speed)

    def limit(self, epoch_seconds: float) -> None:
        """Stand still where the time, as it runs, reaches this; the limit may be raised then."""
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
    """Those who wait for a time, with one timer of the loop for the earliest.

    Invariant: while somebody waits, either a timer runs or the time stands still.
    """

    def __init__(
        self, now: Callable[[], float], pause_seconds: Callable[[float], float | None]
    ) -> None:
        """``pause_seconds``: how long until that time of the clock; None, not of its own."""
        self._now = now
        self._pause_seconds = pause_seconds
        self._order = count()
        self._heap: list[tuple[float, int, asyncio.Future[None]]] = []
        self._waiting = 0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, epoch_seconds: float) -> asyncio.Future[None]:
        """A future that completes at that time."""
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
        """Wake those whose time has come, and have a timer look again for the next."""
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
        # Those who were cancelled are not taken out one by one: a heap has no way to find them.
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
