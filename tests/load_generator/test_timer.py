"""A timer rings once after it was set, and never too early."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter

import pytest

from dynactor.load.run import timer
from dynactor.load.run.timer import Timer, open_timer

_KINDS = [open_timer, timer._LoopTimer]


@pytest.fixture(params=_KINDS, ids=["best", "loop"])
def make(request: pytest.FixtureRequest) -> Callable[[Callable[[], None]], Timer]:
    made: Callable[[Callable[[], None]], Timer] = request.param
    return made


async def test_a_timer_rings_after_its_time(make: Callable[[Callable[[], None]], Timer]):
    rung = asyncio.Event()
    made = make(rung.set)
    # This is no limit, but the time to ring.
    at = perf_counter() + 0.02
    made.set(at)
    await rung.wait()
    # A timer of the event loop may fire early, by the resolution of its clock.
    assert perf_counter() + 0.001 >= at
    made.close()


async def test_a_timer_set_to_a_past_time_rings_at_once(
    make: Callable[[Callable[[], None]], Timer],
):
    rung = asyncio.Event()
    made = make(rung.set)
    made.set(0.0)
    await rung.wait()
    made.close()
    assert rung.is_set()


async def test_the_callback_of_a_timer_can_set_the_timer_again(
    make: Callable[[Callable[[], None]], Timer],
):
    times: list[float] = []
    rung = asyncio.Event()

    def ring() -> None:
        times.append(perf_counter())
        if len(times) < 5:
            made.set(start + 0.002 * (len(times) + 1))
        else:
            rung.set()

    start = perf_counter()
    made = make(ring)
    made.set(start + 0.002)
    await rung.wait()
    made.close()
    assert len(times) == 5
    assert times == sorted(times)


async def test_a_closed_timer_does_not_ring(make: Callable[[Callable[[], None]], Timer]):
    rings: list[int] = []
    closed = make(lambda: rings.append(1))
    # The closed timer would ring first.
    closed.set(perf_counter() + 0.001)
    closed.close()
    later = asyncio.Event()
    other = make(later.set)
    # The other one rings later.
    other.set(perf_counter() + 0.01)
    await later.wait()
    other.close()
    assert not rings
