"""Domain time never goes back, and wakes its waiters."""

from __future__ import annotations

import asyncio
import gc
import math
import time
import weakref

import pytest

from dynactor.actors.runtime.clock import (
    LATEST_EPOCH_SECONDS,
    MAX_SPEED,
    ClockRefusal,
    SystemClock,
    VirtualClock,
)
from tests.support.environment.hanging import HANG_SECONDS

START = 1_800_000_000.0


class LoopTime:
    """The loop's time, which the test sets."""

    def __init__(self) -> None:
        self.seconds = 50.0

    def __call__(self) -> float:
        return self.seconds


async def turns() -> None:
    """Let the loop run all due callbacks."""
    for _ in range(3):
        await asyncio.sleep(0)


async def test_a_virtual_clock_does_not_advance_until_it_is_set():
    clock = VirtualClock(START)
    assert clock.now_epoch_seconds() == START
    clock.step(90)
    assert clock.now_epoch_seconds() == START + 90
    clock.set(START + 86_400.5)
    assert clock.now_epoch_seconds() == START + 86_400.5


async def test_time_runs_at_the_given_speed_from_the_moment_it_is_set():
    io = LoopTime()
    clock = VirtualClock(START, io_seconds=io)
    io.seconds += 1_000
    clock.set_speed(60)
    io.seconds += 2
    assert clock.now_epoch_seconds() == START + 120
    clock.set_speed(1)
    io.seconds += 2
    assert clock.now_epoch_seconds() == START + 122
    clock.step(8)
    assert clock.now_epoch_seconds() == START + 130
    clock.set_speed(0)
    io.seconds += 2
    assert clock.now_epoch_seconds() == START + 130


async def test_time_does_not_go_back_when_the_loops_time_does():
    io = LoopTime()
    clock = VirtualClock(START, 1, io_seconds=io)
    io.seconds -= 5
    assert clock.now_epoch_seconds() == START


async def test_setting_the_clock_to_an_earlier_time_is_refused():
    clock = VirtualClock(START)
    with pytest.raises(ClockRefusal, match=r"stands at 1800000000\.000000, which is later"):
        clock.set(START - 0.001)
    with pytest.raises(ClockRefusal, match="never goes back"):
        clock.step(-1)
    clock.set(START)
    assert clock.now_epoch_seconds() == START


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1, LATEST_EPOCH_SECONDS + 1])
async def test_an_invalid_time_is_refused(wrong: float):
    with pytest.raises(ClockRefusal, match="A time is a number of seconds"):
        VirtualClock(wrong)
    with pytest.raises(ClockRefusal, match="A time is a number of seconds"):
        VirtualClock(START).set(wrong)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1, MAX_SPEED + 1])
async def test_an_invalid_speed_is_refused(wrong: float):
    with pytest.raises(ClockRefusal, match="A speed is a number from 0"):
        VirtualClock(START).set_speed(wrong)


async def test_running_time_stops_at_its_limit_and_continues_from_there():
    io = LoopTime()
    clock = VirtualClock(START, 1, io_seconds=io)
    clock.limit(START + 10)
    io.seconds += 25
    assert clock.now_epoch_seconds() == START + 10
    clock.limit(START + 20)
    assert clock.now_epoch_seconds() == START + 10
    io.seconds += 3
    assert clock.now_epoch_seconds() == START + 13
    clock.set(START + 100)
    io.seconds += 3
    assert clock.now_epoch_seconds() == START + 100


async def test_a_sleeper_wakes_when_the_clock_reaches_its_time_and_not_before():
    clock = VirtualClock(START)
    late, early = clock.wait_until(START + 20), clock.wait_until(START + 10)
    clock.step(9.999)
    assert not early.done()
    clock.step(0.001)
    assert early.done()
    assert not late.done()
    clock.set(START + 1_000_000)
    assert late.done()


async def test_a_wait_for_a_past_time_returns_at_once():
    for clock in (VirtualClock(START), SystemClock()):
        assert clock.wait_until(START - 1_000_000_000).done()
        assert clock.wait_until(clock.now_epoch_seconds()).done()


async def test_a_sleeper_of_a_running_clock_wakes_in_time():
    clock = VirtualClock(START)
    hour = clock.wait_until(START + 3_600)
    clock.set_speed(MAX_SPEED)
    async with asyncio.timeout(HANG_SECONDS):
        await hour
        assert clock.now_epoch_seconds() >= START + 3_600
        later = clock.now_epoch_seconds() + 10_000
        await clock.wait_until(later)
    assert clock.now_epoch_seconds() >= later


async def test_a_sleeper_beyond_the_limit_wakes_once_the_limit_is_raised():
    clock = VirtualClock(START, MAX_SPEED)
    clock.limit(START + 1_000)
    hour = clock.wait_until(START + 3_600)
    async with asyncio.timeout(HANG_SECONDS):
        await clock.wait_until(START + 1_000)
        assert not hour.done()
        clock.limit(START + 5_000)
        await hour
    assert START + 3_600 <= clock.now_epoch_seconds() <= START + 5_000


async def test_a_sleeper_of_the_machines_clock_wakes_in_time():
    clock = SystemClock()
    # This is no limit, but the time to sleep.
    wanted = time.time() + 0.01
    async with asyncio.timeout(HANG_SECONDS):
        await clock.wait_until(wanted)
    assert clock.now_epoch_seconds() >= wanted


async def test_the_clock_of_the_machine_is_read_again_after_it_was_changed(
    monkeypatch: pytest.MonkeyPatch,
):
    clock = SystemClock()
    machine = clock.now_epoch_seconds()
    day = clock.wait_until(machine + 86_400)
    monkeypatch.setattr(time, "time", lambda: machine + 86_401)
    timer = clock._sleepers._timer
    assert timer is not None
    # The timer's own delay is 10 seconds.
    assert timer.when() <= asyncio.get_running_loop().time() + 10
    timer._run()
    assert day.done()


@pytest.mark.parametrize("make", [SystemClock, lambda: VirtualClock(START, 1)])
async def test_canceled_sleepers_leave_no_entry(make):
    clock = make()
    now = clock.now_epoch_seconds()
    futures = [clock.wait_until(now + seconds) for seconds in range(1_000, 2_000)]
    first, *others = futures
    references = [weakref.ref(future) for future in others]
    for future in others:
        future.cancel()
    del futures, future, others
    await turns()
    gc.collect()
    assert sum(reference() is not None for reference in references) <= 100
    first.cancel()
    await turns()
    gc.collect()
    assert not any(reference() for reference in references)
    assert clock._sleepers._timer is None


async def test_other_sleepers_wake_after_one_was_canceled():
    clock = VirtualClock(START)
    early, late = clock.wait_until(START + 10), clock.wait_until(START + 20)
    early.cancel()
    clock.step(20)
    assert late.done()


async def test_a_task_canceled_while_it_sleeps_leaves_no_entry():
    clock = VirtualClock(START)

    async def sleep() -> None:
        await clock.wait_until(START + 10)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(sleep())
        await turns()
        task.cancel()
    await turns()
    assert not clock._sleepers._heap
