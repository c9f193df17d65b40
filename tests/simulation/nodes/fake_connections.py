"""Fake connections of asyncpg to a fake PostgreSQL, with a network that loses and delays messages.

A statement is executed at a moment between its request and its reply. A connection may break
before the statement arrives, before the reply arrives, or while the statement is on its way, which
is then executed later. All messages to and from a node that is cut off wait until the cut ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import Context
from itertools import count
from random import Random
from typing import Any, Final
from unittest.mock import patch

from dynactor.storage.postgresql import connections, members, ownership, sql, store
from tests.simulation.nodes.fake_postgresql import (
    FakeMemberStatements,
    FakePostgresql,
    FakeStatements,
    Session,
    Statement,
)
from tests.support.environment.simulated_loop import NODE

_CONNECT_SECONDS: Final = 5.0
# PostgreSQL ends the session of a machine that does not answer.
_KEEPALIVE_SECONDS: Final = 20.0
_MOST_LATE_SECONDS: Final = 4.0
_LATE: Final = 0.3
# Slower messages are counted.
_SLOW_SECONDS: Final = 0.25
# A node has a slow store while one of its connections waits so much for such messages.
_SLOW_SHARE: Final = 0.3


class Network:
    """The connections of all nodes to one PostgreSQL.

    ``breaks`` is the probability that a connection breaks during a statement, and ``slow`` that a
    message takes long. Many messages take up to ``late_seconds``.
    """

    def __init__(self, server: FakePostgresql, draw: Random) -> None:
        self.server = server
        self.draw = draw
        self.breaks = self.slow = self.late_seconds = 0.0
        self.trace: Callable[[str], None] = lambda _: None
        # The nodes that can't reach PostgreSQL, and the messages that wait for the end of the cut.
        self.cut: dict[str, list[Callable[[], None]]] = {}
        self.open: list[FakeConnection] = []
        # The name of the node with this number of a queue.
        self.name_of: Callable[[int], str] = lambda _: ""
        self._numbers = count(1)
        self._server_context = Context()

    def name(self) -> str:
        """The node that runs now."""
        return self.name_of(NODE.get())

    async def connect(self, *_: object) -> FakeConnection:
        """Connect the node that runs now."""
        name = self.name()
        if name in self.cut:
            await asyncio.sleep(_CONNECT_SECONDS)
            raise OSError("no route to host")
        await asyncio.sleep(self.delay())
        if self.draw.random() < self.breaks:
            raise ConnectionRefusedError("refused")
        connection = FakeConnection(self, Session(next(self._numbers), name), NODE.get())
        self.open.append(connection)
        return connection

    def slow_nodes(self, window_seconds: float) -> frozenset[str]:
        """The nodes with a connection that waited much of the last seconds for slow messages."""
        since = asyncio.get_running_loop().time() - window_seconds
        return frozenset(
            each.session.node
            for each in self.open
            if each.slow_seconds(since) >= _SLOW_SHARE * window_seconds
        )

    def delay(self) -> float:
        """The time of a message."""
        if self.draw.random() < self.slow:
            return self.draw.random() * 2
        if self.late_seconds and self.draw.random() < _LATE:
            return self.draw.random() * self.late_seconds
        return 0.0002 + self.draw.random() / 1_000

    def at_server(self, node: str, delay: float, work: Callable[..., None], *parts: Any) -> None:
        """Do something at the server after a delay, and after the end of a cut."""

        def arrive() -> None:
            waiting = self.cut.get(node)
            if waiting is None:
                work(*parts)
            else:
                waiting.append(lambda: work(*parts))

        asyncio.get_running_loop().call_later(delay, arrive, context=self._server_context)

    def heal(self, node: str) -> None:
        """End a cut."""
        for work in self.cut.pop(node, ()):
            asyncio.get_running_loop().call_later(self.delay(), work, context=self._server_context)

    def break_all(self, node: str) -> None:
        """Break the connections of a node; its statements in flight may still be executed."""
        for each in [each for each in self.open if each.session.node == node]:
            each.terminate()

    def kill(self, node: str, *, is_machine: bool) -> None:
        """End the sessions of a node that was killed, later if its machine has failed."""
        seconds = _KEEPALIVE_SECONDS if is_machine else 0.0
        gone = [each for each in self.open if each.session.node == node]
        self.open = [each for each in self.open if each.session.node != node]
        for each in gone:
            delay = seconds + self.draw.random() / 20
            self.at_server("", max(delay, each.arrival_seconds), self.server.end, each.session)


class FakeConnection:
    """One connection, with the methods of asyncpg's that are used."""

    def __init__(self, network: Network, session: Session, queue: int) -> None:
        self.session = session
        self._network = network
        self._is_closed = False
        self._in_transaction = False
        self._reply: asyncio.Future[list[Any]] | None = None
        # The time at which the last message arrives at the server, by the loop's clock.
        self._arrives_at = 0.0
        # When each slow message was sent, and the seconds that it takes.
        self._slow: list[tuple[float, float]] = []
        self._node_context = Context()
        self._node_context.run(NODE.set, queue)
        session.ended = self._server_ended
        network.server.begin(session)

    @property
    def arrival_seconds(self) -> float:
        """The time until the last message arrives at the server."""
        return max(0.0, self._arrives_at - asyncio.get_running_loop().time())

    async def fetch(self, query: Any, *arguments: Any, timeout: float | None = None) -> list[Any]:  # noqa: ASYNC109 - of asyncpg
        """The rows of a statement."""
        if self._is_closed:
            raise ConnectionResetError("the connection is closed")
        assert self._reply is None, "a connection runs one statement at a time"
        loop = asyncio.get_running_loop()
        self._reply = reply = loop.create_future()
        timer = None if timeout is None else loop.call_later(timeout, self._time_out, reply)
        self._send(query, arguments, reply)
        try:
            rows = await reply
        except asyncio.CancelledError:
            self.terminate()
            raise
        finally:
            if timer is not None:
                timer.cancel()
            self._reply = None
        return rows

    async def fetchrow(self, query: Any, *arguments: Any, timeout: float | None = None) -> Any:  # noqa: ASYNC109 - of asyncpg
        """The first row."""
        rows = await self.fetch(query, *arguments, timeout=timeout)
        return rows[0] if rows else None

    async def fetchval(self, query: Any, *arguments: Any) -> Any:
        """The first column of the first row."""
        rows = await self.fetch(query, *arguments)
        return rows[0][0] if rows and rows[0] else None

    async def execute(self, query: Any, *arguments: Any) -> None:
        """Execute a statement."""
        await self.fetch(query, *arguments)
        if isinstance(query, str):
            self._in_transaction = query.startswith("BEGIN")

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """A transaction."""
        await self.execute("BEGIN")
        try:
            yield
        except BaseException:
            if not self._is_closed:
                await self.execute("ROLLBACK")
            raise
        await self.execute("COMMIT")

    def is_closed(self) -> bool:
        """Whether the connection has ended."""
        return self._is_closed

    def is_in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._in_transaction

    def get_server_pid(self) -> int:
        """The number of the session."""
        return self.session.number

    def add_log_listener(self, hear: object) -> None:
        """Do nothing, because the fake has no warnings."""

    def remove_log_listener(self, hear: object) -> None:
        """See ``add_log_listener``."""

    async def close(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - of asyncpg
        """Close the connection."""
        del timeout
        self.terminate()

    def terminate(self) -> None:
        """Close the connection; a statement in flight may still be executed."""
        if not self._is_closed:
            self._lose()
            network, session = self._network, self.session
            if session.node in network.cut:
                network.at_server("", _KEEPALIVE_SECONDS, network.server.end, session)
            delay = max(network.delay(), self.arrival_seconds)
            network.at_server(session.node, delay, network.server.end, session)

    def slow_seconds(self, since: float) -> float:
        """The time that slow messages have taken since then."""
        return sum(seconds for at, seconds in self._slow if at >= since)

    def _delay(self) -> float:
        seconds = self._network.delay()
        if seconds > _SLOW_SECONDS:
            self._slow.append((asyncio.get_running_loop().time(), seconds))
        return seconds

    def _send(self, query: Any, arguments: Any, reply: asyncio.Future[list[Any]]) -> None:
        network = self._network
        draw, loop = network.draw, asyncio.get_running_loop()
        delay = self._delay()
        answer = self._answer
        if draw.random() < network.breaks:
            fate = draw.randrange(3)
            if fate == 0:
                # The statement does not arrive.
                loop.call_later(delay, self._break, context=self._node_context)
                return
            if fate == 1:
                # The reply does not arrive.
                answer = self._lose_answer
            else:
                # The client notices a break while the statement is still on its way.
                loop.call_later(delay, self._break, context=self._node_context)
                delay += draw.random() * _MOST_LATE_SECONDS
        delay = max(delay, self.arrival_seconds)
        self._arrives_at = loop.time() + delay
        network.at_server(self.session.node, delay, self._arrive, query, arguments, reply, answer)

    def _arrive(self, query: Any, arguments: Any, reply: Any, answer: Any) -> None:
        network = self._network
        if not self.session.is_open:
            return
        kind = query.kind if isinstance(query, Statement) else query[:8]

        def done(outcome: list[Any] | Exception) -> None:
            network.trace(f"{self.session.node}.{self.session.number} {kind} {outcome!r:.300}")
            answer(reply, outcome)

        network.server.run(self.session, query, arguments, done)

    def _answer(self, reply: asyncio.Future[list[Any]], outcome: list[Any] | Exception) -> None:
        network = self._network

        def depart() -> None:
            asyncio.get_running_loop().call_later(
                self._delay(), self._deliver, reply, outcome, context=self._node_context
            )

        waiting = network.cut.get(self.session.node)
        if waiting is None:
            depart()
        else:
            waiting.append(depart)

    def _lose_answer(self, _: object, __: object) -> None:
        asyncio.get_running_loop().call_later(
            self._network.delay(), self._break, context=self._node_context
        )

    def _deliver(self, reply: asyncio.Future[list[Any]], outcome: list[Any] | Exception) -> None:
        if reply.done() or self._is_closed:
            return
        if isinstance(outcome, Exception):
            reply.set_exception(outcome)
        else:
            reply.set_result(outcome)

    def _break(self) -> None:
        """The node notices that the connection has ended."""
        if not self._is_closed:
            self._lose()
            network = self._network
            delay = max(network.delay(), self.arrival_seconds)
            network.at_server(self.session.node, delay, network.server.end, self.session)

    def _server_ended(self) -> None:
        """The server has ended the session."""
        network = self._network

        def depart() -> None:
            asyncio.get_running_loop().call_later(
                network.delay(), self._lose, context=self._node_context
            )

        waiting = network.cut.get(self.session.node)
        if waiting is None:
            depart()
        else:
            waiting.append(depart)

    def _time_out(self, reply: asyncio.Future[list[Any]]) -> None:
        if not reply.done():
            reply.set_exception(TimeoutError())

    def _lose(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._in_transaction = False
        self._network.open = [each for each in self._network.open if each is not self]
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(ConnectionResetError("the connection was lost"))


async def _nothing(*_: object) -> None:
    """Stands in for the creation and checks of the tables."""


@contextmanager
def replacing_connections(network: Network) -> Iterator[None]:
    """Let ``storage/postgresql`` use the network within the context."""
    with (
        patch.object(connections, "connect", network.connect),
        patch.object(store, "connect", network.connect),
        patch.object(ownership, "connect", network.connect),
        patch.object(members, "connect", network.connect),
        patch.object(store, "Statements", FakeStatements),
        patch.object(ownership, "Statements", FakeStatements),
        patch.object(sql, "MemberStatements", FakeMemberStatements),
        patch.object(store, "open_schema", _nothing),
        patch.object(store, "check_format", _nothing),
        patch.object(store, "raise_format", _nothing),
        patch.object(members, "open_schema", _nothing),
        patch.object(members, "open_members_table", _nothing),
        patch.object(members, "_check_clock", _nothing),
    ):
        yield
