"""Periodic work of an actor, on both clocks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from dynactor.actors.runtime.clock import Clock

# Minimum pause, for a virtual clock that runs fast.
_PAUSE_SECONDS: Final = 0.5


async def remind(clock: Clock, work: Callable[[], Awaitable[float]]) -> None:
    """Repeat ``work`` until the calling task is canceled.

    ``work`` returns a pause in seconds. The pause ends as soon as domain time or the loop's time
    has passed it: domain time because data age, the loop's time because other things change, too.
    """
    while True:
        pause_seconds = await work()
        due = clock.wait_until(clock.now_epoch_seconds() + pause_seconds)
        try:
            # The minimum pause keeps a fast domain clock from making the work run all the time.
            await anyio.sleep(min(_PAUSE_SECONDS, pause_seconds))
            await asyncio.wait({due}, timeout=max(pause_seconds - _PAUSE_SECONDS, 0.0))
        finally:
            due.cancel()
