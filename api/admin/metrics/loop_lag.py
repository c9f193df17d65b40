"""The event loop's lag: a callback that runs for long delays every request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from dynactor.model.latency_histogram import LatencyHistogram

_INTERVAL_SECONDS: Final = 1.0
_NANOSECONDS: Final = 1e9


@asynccontextmanager
async def measured_loop_lag() -> AsyncIterator[LatencyHistogram]:
    """Set a timer each second within the context, and count its delay."""
    loop = asyncio.get_running_loop()
    lag = LatencyHistogram()

    timers: list[asyncio.TimerHandle] = []

    def set_timer() -> None:
        due = loop.time() + _INTERVAL_SECONDS
        timers[:] = [loop.call_at(due, tick, due)]

    def tick(due: float) -> None:
        lag.observe(max(0, int((loop.time() - due) * _NANOSECONDS)))
        set_timer()

    set_timer()
    try:
        yield lag
    finally:
        timers.pop().cancel()
