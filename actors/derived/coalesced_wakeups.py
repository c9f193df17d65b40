"""When the followers that keep up take their next runs: together, and right behind a sync.

What came meanwhile goes in one run, and what all of them send to one partition in one of its
batches. A sync has just made durable what they are to tell of, and what their runs commit goes in
the one after it: by a clock of their own they would wait for both.
"""

from __future__ import annotations

import asyncio
from typing import Final

# The first changes that become durable so long after the last tick make the next one.
_SHORTEST_SECONDS: Final = 0.004
# Where nothing changes any more, who waits goes on all the same: something may have come before.
_LONGEST_SECONDS: Final = 0.008
# Followers without a feed to wait at share these ticks of the loop's clock.
_TICK_SECONDS: Final = 0.008


class CoalescedWakeups:
    """What followers wait for. Invariant: while anybody waits there is a timer."""

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
        """Changes have become durable, perhaps others in the same turn of the loop, too."""
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
    """Wait until the next tick of the loop's clock, the same for all followers."""
    # A pause between two runs: changes that come meanwhile go together.
    await asyncio.sleep(_TICK_SECONDS - asyncio.get_running_loop().time() % _TICK_SECONDS)
