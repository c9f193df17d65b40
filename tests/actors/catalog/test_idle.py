"""An idle server with many tables sets few timers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any, Final

import pytest
from msgspec import structs

from dynactor.actors.database.database import Database
from dynactor.actors.table.messages import CreateTable
from dynactor.model.definitions.table import StreamSettings
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.expiry import switch
from tests.support.environment.stepped_time import SteppedLoop, pass_seconds, settle

FAR_AWAY: Final = {"at": {"N": "99999999999"}}
IDLE_SECONDS: Final = 60


class CountingLoop(SteppedLoop):
    """An event loop that counts the timers that are set."""

    def __init__(self) -> None:
        super().__init__()
        self.timers = 0

    def call_at(
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        self.timers += 1
        return super().call_at(when, callback, *args, context=context)


async def make(database: Database, tables: int) -> None:
    """Create tables with a stream and time to live, each with an item that expires much later."""
    for number in range(tables):
        name = f"Thread{number}"
        stream = StreamSettings("", "NEW_AND_OLD_IMAGES")
        await database.ask(CreateTable(structs.replace(table_definition(name), stream=stream)))
        await switch(database, name, "at", enabled=True)
        await database.table(name).write(put(thread("EC2", "a") | FAR_AWAY))


async def timers_of(loop: CountingLoop, tables: int) -> int:
    """The number of timers that are set during a minute without requests."""
    async with running_database() as database:
        await make(database, tables)
        # Let the work end that the last changes started.
        await pass_seconds(10)
        states = [table.definition.time_to_live for table in database.tables]
        assert all(state is not None and state.status == "ENABLED" for state in states)
        before = loop.timers
        await pass_seconds(IDLE_SECONDS, step_seconds=0.125)
        await settle()
        return loop.timers - before


@pytest.mark.embedded_store("each statement of PostgreSQL has a timer, and so has the beat")
@pytest.mark.parametrize("tables", [1, 100])
def test_a_minute_without_requests_sets_few_timers(tables: int) -> None:
    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, CountingLoop)
        # One timer per second checks for blocked destinations.
        assert runner.run(timers_of(loop, tables)) <= 2 * IDLE_SECONDS
