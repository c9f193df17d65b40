"""Reminds an actor of what it has to do now and then, on both clocks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from dynactor.actors.runtime.clock import Clock

# Where domain time runs fast, no more often than this.
_PAUSE_SECONDS: Final = 0.5


async def remind(clock: Clock, work: Callable[[], Awaitable[float]]) -> None:
    """Do some work again and again, until this is cancelled.

    ``work`` returns when it is due again, in seconds: of domain time, for what grows old, or of
    the loop's, for what others have done meanwhile, whichever comes first.
    """
    while True:
        pause_seconds = await work()
        due = clock.wait_until(clock.now_epoch_seconds() + pause_seconds)
        try:
            # A pace: where domain time runs fast, the work is not done all the time.
            await anyio.sleep(min(_PAUSE_SECONDS, pause_seconds))
            await asyncio.wait({due}, timeout=max(pause_seconds - _PAUSE_SECONDS, 0.0))
        finally:
            due.cancel()
