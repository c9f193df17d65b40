"""A database with indexes, streams, time to live and transactions, all under load, over faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.support.histories.history import History
from tests.support.servers.admin import ServerClock, server_with_clock
from tests.support.servers.server import Server
from tests.support.writers.crashes import address, connected
from tests.support.writers.expiring_database import OPTIONS as EXPIRY_OPTIONS
from tests.support.writers.expiring_database import START, ExpiringDatabase
from tests.support.writers.indexed_database import Comparison, IndexMaker, fill, make_indexed_tables
from tests.support.writers.transacting_writers import TransactingWriters
from tests.support.writers.writers import Writers

_OPTIONS = (
    *EXPIRY_OPTIONS,
    *("--gsi-lag", "random:0-0.05:7"),
    # The clock runs about 60 times as fast as real time.
    *("--shard-roll-seconds", "60"),
)
_FILLERS = 300
# The time for a round; one that takes longer hangs.
_ROUND_SECONDS = 180.0


class Running(NamedTuple):
    """A server, and its clock."""

    server: Server
    clock: ServerClock


class BusyDatabase:
    """One place of data over many faults, and what clients know of it."""

    def __init__(self, directory: Path, draw: Random) -> None:
        self.history = History()
        self.expiring = ExpiringDatabase(directory, draw)
        self.transacting = TransactingWriters(draw)
        # The coverage.
        self.answers = 0
        self.refusals = 0
        self.unknown_outcomes = 0
        self._directory = directory
        self._draw = draw
        self._comparison = Comparison(self.history)

    @contextmanager
    def running(self) -> Iterator[Running]:
        """The server, killed at the end if it still runs."""
        with server_with_clock(START, *_OPTIONS, data_dir=self._directory) as (server, clock):
            yield Running(server, clock)

    async def make(self) -> None:
        """Start for the first time, create and fill the tables, stop."""
        with self.running() as (server, _):
            async with connected(server) as connection:
                await make_indexed_tables(connection)
                await fill(connection, self.history, _FILLERS, self._draw)
                await self.expiring.make_table(connection)
                await self.transacting.make_tables(connection)
            assert server.stop() == 0, server.log

    async def load(self, running: Running, most_answers: int, fault: Callable[[], None]) -> None:
        """Write, with the fault at a random moment; continue if the server outlives it."""
        server = running.server
        writers = Writers(self.history, self._draw)
        async with (
            asyncio.timeout(_ROUND_SECONDS),
            connected(server) as making,
            asyncio.TaskGroup() as tasks,
        ):
            maker = IndexMaker(making, self._draw)
            tasks.create_task(writers.run(*address(server)))
            tasks.create_task(maker.run())
            tasks.create_task(self.expiring.run(server, running.clock))
            tasks.create_task(self.transacting.run(server))
            await writers.wait_answers(self._draw.randrange(1, most_answers))
            if self._draw.random() < 0.3:
                await maker.wait_filling()
            await asyncio.to_thread(fault)
            if server.process.poll() is None:
                await writers.wait_answers(writers.answers + self._draw.randrange(1, most_answers))
            for part in (writers, maker, self.expiring, self.transacting):
                part.stopping = True
        self.answers += writers.answers
        self.refusals += writers.refusals
        self.unknown_outcomes += writers.unknown_outcomes

    async def violations(self, server: Server) -> list[str]:
        """The differences between what a server shows and the history. No writes meanwhile."""
        async with connected(server) as connection:
            found = await self._comparison.violations(connection)
            await self.expiring.look(connection)
            return found + await self.transacting.violations(connection)

    async def complete(self, server: Server) -> None:
        """Retry unanswered transactions; each must then be done, and done once."""
        async with connected(server) as connection:
            await self.transacting.complete(connection)
            assert await self.transacting.violations(connection) == []
