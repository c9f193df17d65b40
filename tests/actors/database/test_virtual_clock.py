"""The virtual clock is stored, so its time never goes back before a time that was shown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec import msgpack

from dynactor.actors.database import virtual_clock
from dynactor.actors.database.virtual_clock import (
    ClockBehindData,
    ClockState,
    KeepClock,
    MoveClock,
    StoredClock,
    VirtualClockControl,
)
from dynactor.actors.runtime.clock import MAX_SPEED, ClockRefusal, SystemClock, VirtualClock
from dynactor.actors.table.messages import CreateTable
from dynactor.model.errors import InternalServerError
from dynactor.storage import key_layout
from dynactor.storage.store import Full, Store, View
from tests.support.databases.databases import HeldStore, running_database, table_definition
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.stores.store import memory_store

START = 1_800_000_000.0
# A time in the far future.
AHEAD = 32_503_680_000.0


@asynccontextmanager
async def running_control(
    store: Store, clock: VirtualClock | None = None
) -> AsyncIterator[VirtualClockControl]:
    async with running_database(store, clock or VirtualClock(START)) as database:
        assert database.clock_control is not None
        yield database.clock_control


async def stored(view: View) -> StoredClock:
    (row,) = await view.load([key_layout.VIRTUAL_CLOCK])
    return msgpack.decode(row, type=StoredClock)


@pytest.fixture
async def store() -> AsyncIterator[HeldStore]:
    async with memory_store() as inner:
        yield HeldStore(inner)


async def test_the_clock_can_be_stepped_set_and_run_at_a_speed(store: HeldStore):
    async with running_control(store) as control:
        assert control.state == ClockState(START, 0)
        assert await control.move(MoveClock(by_seconds=60)) == ClockState(START + 60, 0)
        assert await control.move(MoveClock(START + 90)) == ClockState(START + 90, 0)
        assert (await control.move(MoveClock(START + 100, speed=2))).speed == 2
        assert (await control.move(MoveClock(by_seconds=5))).speed == 2
        stopped = await control.move(MoveClock(speed=0))
        assert stopped.speed == 0
        assert stopped.now_epoch_seconds >= START + 105
        assert control.state == stopped


async def test_a_change_of_the_clock_is_durable_before_it_is_answered_or_visible(
    store: HeldStore,
):
    clock = VirtualClock(START)
    async with running_control(store, clock) as control:
        store.hold()
        moving = asyncio.ensure_future(control.move(MoveClock(by_seconds=60)))
        while not store.held:
            await asyncio.sleep(0)
        assert not moving.done()
        assert clock.now_epoch_seconds() == START
        await store.release()
        assert await moving == ClockState(START + 60, 0)
        assert (await stored(store.durable())).epoch_seconds == START + 60


@pytest.mark.parametrize(
    "refused", [MoveClock(START - 1), MoveClock(by_seconds=-1), MoveClock(speed=-1)]
)
async def test_a_refused_change_of_the_clock_has_no_effect(store: HeldStore, refused: MoveClock):
    async with running_control(store) as control:
        with pytest.raises(ClockRefusal):
            await control.move(refused)
        assert control.state == ClockState(START, 0)
        assert await stored(store.latest) == StoredClock(START, 0)


async def test_a_clock_whose_change_could_not_be_stored_continues_unchanged(store: HeldStore):
    async with running_control(store) as control:
        await control.move(MoveClock(speed=1))
        store.refusal = Full("the disk is full")
        with pytest.raises(InternalServerError, match="the disk is full"):
            await control.move(MoveClock(by_seconds=3_600, speed=0))
        assert control.state.speed == 1
        assert control.state.now_epoch_seconds < START + 3_600
        store.refusal = None
        assert (await control.move(MoveClock(by_seconds=3_600))).speed == 1


async def test_a_clock_continues_unchanged_after_a_crash_of_its_actor(store: HeldStore):
    async with running_control(store) as control:
        await control.move(MoveClock(speed=1))
        store.refusal = RuntimeError("a bug")
        with pytest.raises(InternalServerError, match="internal error"):
            await control.move(MoveClock(by_seconds=3_600, speed=0))
        assert control.state.speed == 1
        store.refusal = None
        moved = await control.move(MoveClock(by_seconds=3_600, speed=0))
        assert moved == ClockState(pytest.approx(START + 3_600, abs=HANG_SECONDS), 0)
        assert (await stored(store.durable())).epoch_seconds == moved.now_epoch_seconds


async def test_a_running_clock_never_passes_its_durable_limit(
    store: HeldStore, monkeypatch: pytest.MonkeyPatch
):
    # The clock soon reaches its stored limit, and a new limit is stored only when the test says so.
    monkeypatch.setattr(virtual_clock, "_AHEAD_SECONDS", 0.003)
    monkeypatch.setattr(virtual_clock, "_KEEP_SECONDS", 3_600)
    clock = VirtualClock(START)
    async with asyncio.timeout(HANG_SECONDS), running_control(store, clock) as control:
        await control.move(MoveClock(speed=MAX_SPEED))
        for _ in range(3):
            durable = (await stored(store.durable())).epoch_seconds
            await clock.wait_until(durable)
            store.hold()
            keeping = control.mailbox.put_nowait(KeepClock())
            while not store.held:
                await asyncio.sleep(0)
            assert clock.now_epoch_seconds() == durable
            await store.release()
            await keeping
            assert (await stored(store.durable())).epoch_seconds > durable


async def test_the_limit_of_a_running_clock_is_stored_again_in_time(
    store: HeldStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(virtual_clock, "_AHEAD_SECONDS", 0.003)
    monkeypatch.setattr(virtual_clock, "_KEEP_SECONDS", 0.001)
    clock = VirtualClock(START)
    async with asyncio.timeout(HANG_SECONDS), running_control(store, clock) as control:
        await control.move(MoveClock(speed=MAX_SPEED))
        await clock.wait_until(START + 20_000)
        store.refusal = Full("the disk is full")
        # The actor processes this message after all writes in flight.
        await control.mailbox.put_nowait(KeepClock())
        limit = clock._limit_epoch_seconds
        await clock.wait_until(limit)
        assert clock.now_epoch_seconds() == limit
        store.refusal = None
        await clock.wait_until(limit + 20_000)


async def test_after_a_stop_of_the_server_the_clock_continues_at_its_time_and_speed(
    store: HeldStore,
):
    async with running_control(store) as control:
        await control.move(MoveClock(START + 3_600, speed=60))
        before = control.state
    clock = VirtualClock(START)
    assert (await stored(store.latest)).epoch_seconds < before.now_epoch_seconds + 60
    async with running_control(store, clock) as control:
        assert control.state.speed == 60
        assert control.state.now_epoch_seconds >= before.now_epoch_seconds


async def test_after_a_crash_the_clock_continues_after_every_time_that_was_shown(store: HeldStore):
    async with running_control(store) as control:
        await control.move(MoveClock(speed=3_600))
        (crashed,) = await store.latest.load([key_layout.VIRTUAL_CLOCK])
        told = control.state.now_epoch_seconds
        assert crashed is not None
        assert msgpack.decode(crashed, type=StoredClock).epoch_seconds > told


async def test_a_start_time_before_the_stored_time_is_ignored_and_a_later_one_is_used(
    store: HeldStore,
):
    async with running_control(store, VirtualClock(START)):
        pass
    async with running_control(store, VirtualClock(START - 1_000)) as control:
        assert control.state == ClockState(START, 0)
    async with running_control(store, VirtualClock(START + 1_000)) as control:
        assert control.state == ClockState(START + 1_000, 0)


async def test_real_time_never_goes_back_before_a_virtual_time(store: HeldStore):
    async with running_control(store, VirtualClock(AHEAD)):
        pass
    with pytest.raises(ClockBehindData) as caught:
        async with running_database(store, SystemClock()):
            pass
    assert caught.value.stored_epoch_seconds == AHEAD
    assert (await stored(store.latest)).is_virtual


async def test_real_time_continues_from_a_virtual_time_that_is_past(store: HeldStore):
    async with running_database(store, VirtualClock(1_000_000.0)) as database:
        await database.ask(CreateTable(table_definition()))
    async with running_database(store, SystemClock()):
        pass
    # From now on, writes have the real time.
    left = time.time()
    async with running_control(store, VirtualClock(1_000_000.0)) as control:
        assert control.state.now_epoch_seconds >= left
        assert control.state.speed == 0


async def test_data_of_real_time_gets_no_virtual_time_before_now(store: HeldStore):
    async with running_database(store, SystemClock()) as database:
        await database.ask(CreateTable(table_definition()))
    written = time.time()
    async with running_control(store, VirtualClock(1_000_000.0)) as control:
        assert written <= control.state.now_epoch_seconds <= time.time()


async def test_an_empty_store_starts_at_any_time(store: HeldStore):
    async with running_database(store, SystemClock()):
        pass
    async with running_control(store, VirtualClock(1_000_000.0)) as control:
        assert control.state == ClockState(1_000_000.0, 0)


async def test_with_real_time_there_is_no_clock_control_and_no_stored_clock(store: HeldStore):
    async with running_database(store, SystemClock()) as database:
        assert database.clock_control is None
    assert await store.latest.load([key_layout.VIRTUAL_CLOCK]) == [None]
