"""The clients of a worker: each has one connection, reconnects, and runs one dialogue at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Final, Protocol

from dynactor.load.wire.answers import Answer, no_answer
from dynactor.load.wire.connection import Connection
from dynactor.load.wire.endpoint import Endpoint
from dynactor.load.work.operations import Dialogue

_FIRST_PAUSE_SECONDS: Final = 0.02
_LONGEST_PAUSE_SECONDS: Final = 1.0
_WATCH_SECONDS: Final = 0.5
_SHOWN_CHARACTERS: Final = 300


class Loop(Protocol):
    """Starts dialogues on free clients."""

    def freed(self, client: Client, outcome: str) -> None:
        """The client's dialogue has ended with this outcome."""
        ...


class Client:
    """One connection and its dialogue. Invariant: a request is waiting only while there is a
    dialogue and no connection.
    """

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._connection: Connection | None = None
        self._dialogue: Dialogue | None = None
        self._waiting: bytes | None = None
        self._sent_at = 0.0
        self.operation = ""
        self.due_at = 0.0

    def start(self, operation: str, dialogue: Dialogue, due_at: float) -> None:
        """Begin a dialogue; the loop is notified of its end."""
        assert self._dialogue is None
        self.operation = operation
        self.due_at = due_at
        self._dialogue = dialogue
        self._send(next(dialogue))

    def _send(self, request: bytes) -> None:
        self._sent_at = perf_counter()
        if self._connection is None:
            self._waiting = request
        else:
            self._connection.send(request)

    def answered(self, answer: Answer) -> None:
        if answer.status not in {0, 200}:
            self._clients.note_error(answer)
        assert self._dialogue is not None
        try:
            request = self._dialogue.send(answer)
        except StopIteration as end:
            self._dialogue = None
            self._clients.loop.freed(self, end.value)
        else:
            self._send(request)

    def connected(self, connection: Connection) -> None:
        """The client has a connection, the first one or a new one."""
        self._connection = connection
        if self._waiting is not None:
            request, self._waiting = self._waiting, None
            self._send(request)

    def lost(self, reason: str) -> None:
        self._connection = None
        self._clients.reopen(self)
        # An unsent request can be sent on the next connection.
        if self._dialogue is not None and self._waiting is None:
            self.answered(no_answer(reason))

    def watch(self, timeout_seconds: float) -> None:
        """Give up an overdue answer or connection."""
        if self._dialogue is None or perf_counter() - self._sent_at <= timeout_seconds:
            return
        if self._connection is not None:
            self._connection.close("Timeout")
        else:
            self._waiting = None
            self.answered(no_answer("NotConnected"))

    def close(self) -> None:
        """Abort the current dialogue."""
        if self._connection is not None:
            self._connection.close("GivenUp")
        elif self._dialogue is not None:
            self._waiting = None
            self.answered(no_answer("GivenUp"))


class Clients:
    """All clients of a worker; ``loop`` is notified of each free one."""

    def __init__(
        self, endpoint: Endpoint, timeout_seconds: float, tasks: asyncio.TaskGroup
    ) -> None:
        self.loop: Loop = _Nothing()
        self.clients: list[Client] = []
        self.error_examples: dict[str, str] = {}
        self._endpoint = endpoint
        self._timeout_seconds = timeout_seconds
        self._tasks = tasks
        self._reopening: set[asyncio.Task[None]] = set()
        self._closed = False

    def note_error(self, answer: Answer) -> None:
        """Remember one answer of each kind of error for the report."""
        name = answer.error
        if name not in self.error_examples:
            self.error_examples[name] = answer.body.decode(errors="replace")[:_SHOWN_CHARACTERS]

    def reopen(self, client: Client) -> None:
        """Reconnect; retry until it succeeds."""
        if not self._closed:
            task = self._tasks.create_task(self._reopen(client))
            self._reopening.add(task)
            task.add_done_callback(self._reopening.discard)

    async def _reopen(self, client: Client) -> None:
        pause_seconds = _FIRST_PAUSE_SECONDS
        while True:
            await asyncio.sleep(pause_seconds)
            try:
                connection = await Connection.open(self._endpoint, client)
            except OSError:
                pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)
            else:
                client.connected(connection)
                return

    async def open(self, count: int) -> None:
        """Connect all clients.

        Raises:
            OSError: the endpoint is unreachable.
        """
        for _ in range(count):
            client = Client(self)
            client.connected(await Connection.open(self._endpoint, client))
            self.clients.append(client)

    async def watch(self) -> None:
        """Stop waiting for overdue answers; runs until canceled."""
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            for client in self.clients:
                client.watch(self._timeout_seconds)

    async def close(self) -> None:
        """Close all connections, without reconnecting."""
        self._closed = True
        for task in tuple(self._reopening):
            task.cancel()
        self.loop = _Nothing()
        for client in self.clients:
            client.close()
        # The transports report their end in the loop's next turn.
        await asyncio.sleep(0)


class _Nothing:
    """The loop while no other loop runs; it starts no dialogues."""

    def freed(self, client: Client, outcome: str) -> None:
        """Leave the client free."""


@asynccontextmanager
async def open_clients(
    endpoint: Endpoint, count: int, timeout_seconds: float
) -> AsyncIterator[Clients]:
    """A worker's clients, connected.

    Raises:
        OSError: in an exception group: the endpoint is unreachable.
    """
    async with asyncio.TaskGroup() as tasks:
        clients = Clients(endpoint, timeout_seconds, tasks)
        watching = tasks.create_task(clients.watch())
        try:
            await clients.open(count)
            yield clients
        finally:
            watching.cancel()
            await clients.close()
