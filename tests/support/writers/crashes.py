"""Rounds of crashes: many clients write, the server dies and restarts, the data is compared."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from random import Random

from tests.support.clients.wire import Connection
from tests.support.histories.history import History
from tests.support.servers.server import PROJECT, Server, running_server, serve_command
from tests.support.stores.power_loss import PowerLoss
from tests.support.writers.whole_database import violations
from tests.support.writers.writers import Writers, make_tables

# The approximate duration of a start if the log is short.
_START_SECONDS = 1.0


def address(server: Server) -> tuple[str, int]:
    """Host and port of a server."""
    host, _, port = server.endpoint.removeprefix("http://").partition(":")
    return host, int(port)


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Connection]:
    """A connection to a server."""
    connection = await Connection.open(*address(server))
    try:
        yield connection
    finally:
        await connection.close()


class CrashingDatabase:
    """One data directory over many crashes, and the history of all answers to its clients."""

    def __init__(
        self, directory: Path, draw: Random, *, power: bool = False, project: Path = PROJECT
    ) -> None:
        self.data_directory = directory / "data"
        self.history = History()
        self.power = PowerLoss(directory / "power", self.data_directory) if power else None
        self._draw = draw
        self._project = project

    @contextmanager
    def running(self) -> Iterator[Server]:
        """Run a server on the data directory; kill it at the end if it still runs."""
        with running_server(
            data_dir=self.data_directory, environment=self._environment(), project=self._project
        ) as server:
            yield server

    def _environment(self) -> Mapping[str, str]:
        return self.power.environment() if self.power else {}

    async def make(self) -> None:
        """Start for the first time, create the tables, stop."""
        with self.running() as server:
            async with connected(server) as connection:
                await make_tables(connection)
            assert server.stop() == 0, server.log

    async def crash(
        self,
        most_answers: int = 1_000,
        fault: Callable[[], None] | None = None,
        *,
        graceful: bool = False,
    ) -> list[str]:
        """Start a server, compare its data, write, kill it at random; return the differences.

        ``fault`` is called at a random moment before the kill. ``graceful``: instead of a kill, the
        server is stopped as by an operator, and must exit normally.
        """
        with self.running() as server:
            async with connected(server) as connection:
                found = await violations(connection, self.history)
            writers = Writers(self.history, self._draw)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(writers.run(*address(server)))
                await writers.wait_answers(self._draw.randrange(1, most_answers))
                if fault is not None:
                    fault()
                    more = self._draw.randrange(most_answers // 2, most_answers)
                    await writers.wait_answers(writers.answers + more)
                if graceful:
                    assert server.stop() == 0, server.log
                    assert "error" not in server.log, server.log
                else:
                    server.kill()
        return found

    async def kill_while_starting(self) -> None:
        """Kill a server at a random moment of its start, possibly while it replays its log."""
        process = await asyncio.create_subprocess_exec(
            *serve_command(data_dir=self.data_directory),
            cwd=self._project,
            env={**os.environ, **self._environment()},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), self._draw.uniform(0, _START_SECONDS))
        if process.returncode is None:
            process.kill()
        await process.wait()

    async def compare(self, *, then_kill: bool = False) -> list[str]:
        """Start a server, compare its data with the history, and stop or kill it."""
        with self.running() as server:
            async with connected(server) as connection:
                found = await violations(connection, self.history)
            if then_kill:
                server.kill()
            else:
                assert server.stop() == 0, server.log
        return found

    def cut_power(self) -> None:
        """Remove all unsynced writes of the killed server, or a random part of them."""
        assert self.power is not None
        self.power.cut(self._draw if self._draw.random() < 0.5 else None)
