"""A steady rate of units, for commands that share a table with applications."""

from __future__ import annotations

import anyio

from dynactor.model.throttling.steady_rate import SteadyRate


async def wait_after(rate: SteadyRate, units: float) -> None:
    """Wait until the rate covers the units that a request has used."""
    now = anyio.current_time()
    rate.take(units, now)
    await anyio.sleep(rate.free_at_seconds - now)
