"""Wakes all followers that keep up at the same time, right after a sync.

The changes since the last wakeup make one run of each follower, and the messages of all followers
to a partition make one batch. The sync has made the changes durable, and the next sync covers the
followers' commits. If each follower had its own timer, a change would wait for the timer and then
for another sync.
"""

from __future__ import annotations

import asyncio
from typing import Final

# Minimum time between two ticks.
_SHORTEST_SECONDS: Final = 0.004
# Maximum time of a wait without a change, because a waiter may have missed a change.
_LONGEST_SECONDS: Final = 0.008
# Interval of the ticks for followers that read several feeds.
_TICK_SECONDS: Final = 0.008


class CoalescedWakeups:
    """The wakeups of followers. Invariant: while there is a waiter there is a timer."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._ticked_at = 0.0

    def wait(self) -> asyncio.Future[None]:
        """A future that completes with the next tick."""
        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._timer = loop.call_later(_LONGEST_SECONDS, self._tick)
        future = loop.create_future()
        self._waiting.append(future)
        return future

    def changed(self) -> None:
        """Tick, because changes are durable, unless the last tick was less than 4 ms ago."""
        if self._timer is not None:
            now = asyncio.get_running_loop().time()
            if now - self._ticked_at >= _SHORTEST_SECONDS:
                self._timer.cancel()
                self._tick()

    def _tick(self) -> None:
        self._timer = None
        self._ticked_at = asyncio.get_running_loop().time()
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


async def wait_wakeup() -> None:
    """Wait until the next tick of the loop's clock, which all followers share."""
    # Pause between two runs, so that the changes that arrive meanwhile make one run.
    await asyncio.sleep(_TICK_SECONDS - asyncio.get_running_loop().time() % _TICK_SECONDS)
