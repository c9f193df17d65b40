"""A server with faults of its processes, and clients that continue across them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final, Literal, Protocol, TypeAlias

from tests.support.clients.wire import Answer, Connection, ConnectionLost
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.servers.history_server import MODULE, StoreFaults
from tests.support.servers.postgresql import Postgresql
from tests.support.servers.server import Server, ServerDidNotStart, running_server
from tests.support.stores.power_loss import PowerLoss

CLIENT_COUNT: Final = 32

# Much longer than any simulated delay, so a request that takes longer hangs.
_SOON_SECONDS: Final = (0.1, 0.4)
_TAKEOVERS_TRIED: Final = 5
# A server that starts asks for the lock; the owner only reads its row.
_ASKS_FOR_LOCK: Final = (
    "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%try_advisory_lock%' "
    "AND application_name = 'dynactor'"
)
_END_OWNER: Final = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_locks "
    "WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND granted"
)

# The server is killed, loses its power, or loses PostgreSQL for a moment. Or a second server takes
# the data over while the first one runs.
Fault: TypeAlias = Literal["server", "power", "postgresql", "second server"]


class RestartingServer:
    """One place of data, and its present server.

    A power cut loses unsynced writes. Syncs are blocked shortly before it, so that there are
    unsynced writes. ``postgresql`` has the data if the tests run with ``--store``.
    """

    def __init__(
        self,
        directory: Path,
        faults: StoreFaults,
        *arguments: str,
        fault: Fault | None = "server",
        postgresql: Postgresql | None = None,
    ) -> None:
        self.fault = fault
        self.kills = 0
        self.timeouts = 0
        self.draw = Random(faults.seed)
        self._data_directory = directory / "data"
        self._faults = faults
        self._arguments = arguments
        self._power = None
        if fault == "power":
            self._power = PowerLoss(directory / "power", self._data_directory)
        self._postgresql = postgresql
        self._is_up = asyncio.Event()
        # The present server, and those before it that still run.
        self._life = ExitStack()
        self._server: Server | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run a server, and kill it at the end."""
        self._start()
        self._is_up.set()
        try:
            yield
        finally:
            self._end()

    async def disturb(self) -> None:
        """Let the fault happen soon, with all requests in flight, and repair it.

        Clients that lost their connection wait for the next server.
        """
        match self.fault:
            case "postgresql":
                await asyncio.to_thread(self._kill_postgresql)
            case "second server":
                await self._take_over()
            case _:
                await self._kill_and_restart()
        self.kills += 1

    def _kill_postgresql(self) -> None:
        assert self._postgresql is not None
        self._postgresql.kill()
        self._postgresql.start()

    async def _take_over(self) -> None:
        """Start another server, and end the session by which the present one owns the data.

        The present server may be quicker to get its lock again, and the other one then ends.
        """
        for _ in range(_TAKEOVERS_TRIED):
            async with asyncio.TaskGroup() as tasks:
                started = tasks.create_task(asyncio.to_thread(self._is_started))
                await asyncio.to_thread(self._end_owner)
            if started.result():
                return
        raise AssertionError("no second server got the lock")

    def _is_started(self) -> bool:
        try:
            self._start()
        except ServerDidNotStart:
            return False
        return True

    def _end_owner(self) -> None:
        assert self._postgresql is not None
        while self._postgresql.sql(_ASKS_FOR_LOCK) == "0":
            continue
        self._postgresql.sql(_END_OWNER)

    async def _kill_and_restart(self) -> None:
        # Without this, most kills would come right after a sync, when few writes are unsynced.
        if self._power is not None:
            self._power.hold_syncs()
        await asyncio.sleep(self.draw.uniform(*_SOON_SECONDS))
        self._is_up.clear()
        # In a thread: while the event loop is blocked, a request may time out before its lost
        # connection is noticed.
        await asyncio.to_thread(self._end)
        if self._power is not None:
            self._power.release_syncs()
            self._power.cut(self.draw if self.draw.random() < 0.5 else None)
        await asyncio.to_thread(self._start)
        self._is_up.set()

    async def connect(self) -> Connection:
        """Open a connection to the present server, or wait for the next one if none runs."""
        await self._is_up.wait()
        assert self._server is not None
        assert self._server.process.poll() is None, self._server.log
        host, _, port = self._server.endpoint.removeprefix("http://").partition(":")
        return await Connection.open(host, int(port))

    def _start(self) -> None:
        power = self._power.environment() if self._power else {}
        self._server = self._life.enter_context(
            running_server(
                *self._arguments,
                data_dir=self._data_directory,
                environment={**self._faults.environment(), **power},
                module=MODULE,
            )
        )

    def _end(self) -> None:
        self._life.close()


class MakeServer(Protocol):
    """Makes the server of a history, with the directory and the fault that are chosen for it."""

    def __call__(self, faults: StoreFaults, *arguments: str) -> RestartingServer: ...


class ReconnectingClient:
    """One client: one request at a time, reconnecting after a lost connection."""

    def __init__(self, server: RestartingServer) -> None:
        self._server = server
        self._connection: Connection | None = None

    async def ready(self) -> None:
        """Connect if necessary; call this before recording the time of a request."""
        while self._connection is None:
            try:
                self._connection = await self._server.connect()
            except ConnectionLost:
                # The server was killed meanwhile; connect to the next one.
                continue

    async def ask(self, operation: str, body: dict[str, Any]) -> Answer | None:
        """Send a request; None if no answer arrives, so the outcome is unknown."""
        await self.ready()
        assert self._connection is not None
        try:
            async with asyncio.timeout(HANG_SECONDS):
                answer = await self._connection.call(operation, body)
        except ConnectionLost:
            await self.close()
        except TimeoutError:
            self._server.timeouts += 1
            await self.close()
        else:
            if "another server has taken over" in str(answer.body.get("message", "")):
                await self.close()
            return answer
        return None

    async def must(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send a request that must succeed, while no faults are injected."""
        answer = await self.ask(operation, body)
        assert answer is not None, f"no answer to {operation}"
        assert answer.status == 200, answer
        return answer.body

    async def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            await self._connection.close()
            self._connection = None


class Progress:
    """The number of successful operations, and the waiters for a number of them."""

    def __init__(self, enough: int) -> None:
        self.enough = enough
        self.count = 0
        self._milestones: dict[int, asyncio.Event] = {}

    def add(self) -> None:
        """Count one more successful operation."""
        self.count += 1
        if (reached := self._milestones.get(self.count)) is not None:
            reached.set()

    @property
    def is_enough(self) -> bool:
        """Whether clients may stop."""
        return self.count >= self.enough

    async def wait(self, count: int) -> None:
        """Wait until this many operations have succeeded; at most one caller for each number."""
        if self.count < count:
            await self._milestones.setdefault(count, asyncio.Event()).wait()


async def make_tables(client: ReconnectingClient, tables: list[str]) -> None:
    """Create on-demand tables with a string ``pk`` and several partitions each."""
    for table in tables:
        await client.must(
            "CreateTable",
            {
                "TableName": table,
                "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            },
        )
    for table in tables:
        status = "CREATING"
        while status != "ACTIVE":
            described = await client.must("DescribeTable", {"TableName": table})
            status = described["Table"]["TableStatus"]
