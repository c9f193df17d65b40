"""Periodic work is due in domain time, and is not repeated too often in real time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import structs

from dynactor.actors.phases.streams import StreamRegistry
from dynactor.actors.runtime.clock import MAX_SPEED, Clock
from dynactor.actors.runtime.reminder import remind
from dynactor.actors.table.messages import CreateTable
from dynactor.model.definitions.table import StreamSettings
from dynactor.storage.store import Full
from tests.support.databases.databases import (
    HeldStore,
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.environment.simulated_loop import simulated
from tests.support.stores.store import memory_store


class Work:
    """Work that is due again after ``pause_seconds``."""

    def __init__(self, pause_seconds: float) -> None:
        self.pause_seconds = pause_seconds
        self.done_at_seconds: list[float] = []
        self._done = asyncio.Event()

    async def __call__(self) -> float:
        self.done_at_seconds.append(asyncio.get_running_loop().time())
        self._done.set()
        return self.pause_seconds

    async def until_done(self, times: int) -> None:
        while len(self.done_at_seconds) < times:
            self._done.clear()
            await self._done.wait()


@asynccontextmanager
async def reminded(clock: Clock, work: Work) -> AsyncIterator[None]:
    task = asyncio.ensure_future(remind(clock, work))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


@simulated
async def test_work_runs_at_once_and_again_on_a_stopped_clock():
    work = Work(30)
    async with reminded(SetClock(), work):
        await work.until_done(3)
    assert work.done_at_seconds == [0, 30, 60]


@simulated
async def test_a_step_of_domain_time_makes_the_work_due():
    clock, work = SetClock(), Work(3_600)
    async with reminded(clock, work):
        for times in (1, 2, 3):
            await work.until_done(times)
            clock.step(3_600)
        await work.until_done(4)
    # The work runs at most twice a second.
    assert work.done_at_seconds == [0, 0.5, 1, 1.5]
    await asyncio.sleep(0)
    assert not clock._sleepers._heap


@simulated
async def test_fast_domain_time_does_not_run_the_work_continuously():
    clock, work = SetClock(), Work(30)
    clock.set_speed(MAX_SPEED)
    async with reminded(clock, work):
        await work.until_done(3)
    assert work.done_at_seconds == [0, 0.5, 1]


async def test_failed_maintenance_of_streams_is_soon_repeated():
    clock = SetClock()
    stream = StreamSettings("", "KEYS_ONLY")
    async with memory_store() as inner:
        store = HeldStore(inner)
        async with running_database(store, clock, keep_streams_seconds=86_400) as database:
            await database.ask(CreateTable(structs.replace(table_definition(), stream=stream)))
            await database.table("Thread").write(put(thread("EC2", "a")))
            assert await database.actor.keep_streams() == 86_400
            # A shard must be rolled now, but the store refuses the commit.
            clock.step(5 * 3_600)
            store.refusal = Full("the disk is full")
            assert await database.actor.keep_streams() == 1
            store.refusal = None
            assert await database.actor.keep_streams() == 86_400
            (kept,) = database.part(StreamRegistry).all()
            assert len(kept.shards) == 5
