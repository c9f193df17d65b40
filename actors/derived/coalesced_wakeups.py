"""Wakes the followers that keep up together, right after a sync.

Changes that arrive meanwhile go in one run, and the messages of all followers to one partition go
in one of its batches. A sync has just made their changes durable, and the next sync covers their
commits. With a timer of its own each follower would wait for both.
"""

from __future__ import annotations

import asyncio
from typing import Final

# A tick comes this long after the first durable change since the last tick.
_SHORTEST_SECONDS: Final = 0.004
# Maximum wait without any change: the waiter may have missed one.
_LONGEST_SECONDS: Final = 0.008
# Followers that wait for no single feed share these ticks of the loop's clock.
_TICK_SECONDS: Final = 0.008


class CoalescedWakeups:
    """The wakeups of followers. Invariant: while there is a waiter there is a timer."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._struck_at = 0.0

    def wait(self) -> asyncio.Future[None]:
        """A future that completes with the next tick."""
        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._timer = loop.call_later(_LONGEST_SECONDS, self._strike)
        future = loop.create_future()
        self._waiting.append(future)
        return future

    def changed(self) -> None:
        """Note that changes are durable; often called several times in a turn of the loop."""
        if self._timer is not None:
            now = asyncio.get_running_loop().time()
            if now - self._struck_at >= _SHORTEST_SECONDS:
                self._timer.cancel()
                self._strike()

    def _strike(self) -> None:
        self._timer = None
        self._struck_at = asyncio.get_running_loop().time()
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


async def wait_wakeup() -> None:
    """Wait until the next tick of the loop's clock, which all followers share."""
    # A pause between two runs, so that changes that arrive meanwhile go together.
    await asyncio.sleep(_TICK_SECONDS - asyncio.get_running_loop().time() % _TICK_SECONDS)
