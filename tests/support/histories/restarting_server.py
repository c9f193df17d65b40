"""A server that is killed and restarted, and clients that continue across restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.support.clients.wire import Answer, Connection, ConnectionLost
from tests.support.servers.history_server import MODULE, StoreFaults
from tests.support.servers.server import Server, running_server
from tests.support.stores.power_loss import PowerLoss

CLIENT_COUNT: Final = 32

# Much longer than any simulated delay, so a request that takes longer hangs.
_TIMEOUT_SECONDS: Final = 30.0
_SOON_SECONDS: Final = (0.1, 0.4)


class RestartingServer:
    """One data directory, and its present server.

    With ``power``, a kill is a power cut: unsynced writes are lost. Syncs are blocked shortly
    before the kill, so that there are unsynced writes.
    """

    def __init__(
        self, directory: Path, faults: StoreFaults, *arguments: str, power: bool = False
    ) -> None:
        self.kills = 0
        self.timeouts = 0
        self.draw = Random(faults.seed)
        self._data_directory = directory / "data"
        self._faults = faults
        self._arguments = arguments
        self._power = PowerLoss(directory / "power", self._data_directory) if power else None
        self._is_up = asyncio.Event()
        self._life: ExitStack | None = None
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

    async def kill_and_restart(self) -> None:
        """Kill the server soon with all its requests in flight, and restart it.

        Clients that lost their connection wait for the next server.
        """
        # Without this, most kills would come right after a sync, when few writes are unsynced.
        if self._power is not None:
            self._power.hold_syncs()
        await asyncio.sleep(self.draw.uniform(*_SOON_SECONDS))
        self._is_up.clear()
        # In a thread: while the event loop is blocked, a request may time out before its lost
        # connection is noticed.
        await asyncio.to_thread(self._end)
        self.kills += 1
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
        self._life = ExitStack()
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
        assert self._life is not None
        self._life.close()


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
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                return await self._connection.call(operation, body)
        except ConnectionLost:
            await self.close()
        except TimeoutError:
            self._server.timeouts += 1
            await self.close()
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
