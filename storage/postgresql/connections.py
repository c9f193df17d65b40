"""Connections to PostgreSQL: opened when they are needed, kept, and replaced when they break."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeVar

import anyio
import asyncpg
import structlog

from dynactor.model.pauses import CONNECT_SECONDS
from dynactor.storage.postgresql.address import Address
from dynactor.storage.postgresql.errors import (
    FAILURES,
    ends_connection,
    terminable,
    translate,
)
from dynactor.storage.postgresql.sql import SESSION_SETTINGS
from dynactor.storage.store import Closed, Unavailable

_CONNECT_SECONDS: Final = 5.0
# A shorter time for each of several hosts, because one that failed may not answer at all.
_CONNECT_SECONDS_OF_SEVERAL: Final = 2.5
# After this time a statement is aborted by closing its connection.
STATEMENT_SECONDS: Final = 30.0
# How long a read-only statement is retried while PostgreSQL is unreachable.
RETRY_SECONDS: Final = 5.0

T = TypeVar("T")

_log = structlog.get_logger("storage")


class ConnectionPolicy(NamedTuple):
    """How connections are opened and used.

    ``connect_seconds``: the time limit for each host. ``retry_seconds``: how long a read-only
    statement is retried while PostgreSQL is unreachable.
    """

    connect_seconds: float | None = None
    statement_seconds: float = STATEMENT_SECONDS
    retry_seconds: float = RETRY_SECONDS
    needs_primary: bool = True
    is_logged: bool = True


_USUAL: Final = ConnectionPolicy()


class Connections:
    """A bounded number of connections. Invariant: those in ``_idle`` run no statement."""

    def __init__(self, address: Address, most: int, policy: ConnectionPolicy = _USUAL) -> None:
        self._address = address
        self._policy = policy
        self._idle: list[Any] = []
        # The number of further connections that may be taken, and the tasks that wait for one.
        self._free = most
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_closed = False
        self._is_reachable = True

    @property
    def retry_seconds(self) -> float:
        """How long a read-only statement is retried while PostgreSQL is unreachable."""
        return self._policy.retry_seconds

    async def run(
        self,
        work: Callable[[Any], Awaitable[T]],
        *,
        keeps: bool = False,
    ) -> T:
        """Run read-only statements, and repeat them if the connection breaks.

        With ``keeps``, the caller keeps the connection and calls ``give_back`` later. Raises
        ``Unavailable`` after ``retry_seconds`` without PostgreSQL, or the error that PostgreSQL
        reported.
        """
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + self.retry_seconds
        while True:
            try:
                return await self.run_once(work, self._policy.statement_seconds, keeps=keeps)
            except Unavailable:
                if self._is_closed or loop.time() >= give_up_at:
                    raise
            await anyio.sleep(CONNECT_SECONDS)

    async def run_once(
        self,
        work: Callable[[Any], Awaitable[T]],
        seconds: float = STATEMENT_SECONDS,
        *,
        keeps: bool = False,
    ) -> T:
        """Run statements on a connection; ``keeps``: see ``run``.

        Raises ``Lost`` if the connection broke, or ``work`` took longer than ``seconds``; the
        outcome is unknown. After another ``StoreError``, nothing was changed.
        """
        connection = await self.take()
        # At the time limit, close the connection. asyncpg would send a request to cancel instead.
        # If that arrives while a commit waits for its standby, PostgreSQL reports success.
        timer = asyncio.get_running_loop().call_later(seconds, connection.terminate)
        is_usable = False
        try:
            with terminable(connection):
                result = await work(connection)
        except FAILURES as error:
            # A transaction that failed would refuse the next statements.
            is_lost = ends_connection(error) or connection.is_closed()
            is_usable = not is_lost and not connection.is_in_transaction()
            raise translate(error) from error
        else:
            is_usable = True
            return result
        finally:
            timer.cancel()
            if not (keeps and is_usable):
                self.give_back(connection, is_usable=is_usable)

    async def open(self) -> Any:
        """Open a connection for the caller alone, outside of the pool; raises ``Unavailable``."""
        if self._is_closed:
            raise Closed("the store is closed")
        try:
            connection = await connect(self._address, self._policy)
        except (*FAILURES, TimeoutError) as error:
            self._note(reachable=False, reason=str(error))
            raise Unavailable("PostgreSQL can't be reached") from error
        self._note(reachable=True)
        return connection

    async def close(self) -> None:
        """Close the idle connections; the others are closed when they are given back."""
        self._is_closed = True
        idle, self._idle = self._idle, []
        for connection in idle:
            await close_connection(connection)
        while self._waiting:
            _wake(self._waiting.popleft())

    async def take(self) -> Any:
        """Take a connection; the caller must give it back. Raises ``Unavailable`` or ``Closed``."""
        while not self._free and not self._is_closed:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake_next()
                raise
        if self._is_closed:
            raise Closed("the store is closed")
        self._free -= 1
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        try:
            return await self.open()
        except BaseException:
            self._free += 1
            self._wake_next()
            raise

    def give_back(self, connection: Any, *, is_usable: bool) -> None:
        """Return a connection to the pool, or close it if it is broken."""
        self._free += 1
        if not is_usable or self._is_closed:
            connection.terminate()
        elif not connection.is_closed():
            self._idle.append(connection)
        self._wake_next()

    async def roll_back(self, connection: Any) -> None:
        """End the transaction of a connection, and return the connection to the pool."""
        is_usable = False
        try:
            with terminable(connection):
                if connection.is_in_transaction():
                    await connection.execute("ROLLBACK")
            is_usable = True
        except FAILURES as error:
            # PostgreSQL has ended the session, and its transaction with it.
            translate(error)
        finally:
            self.give_back(connection, is_usable=is_usable)

    def _wake_next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if _wake(turn):
                return

    def _note(self, *, reachable: bool, reason: str = "") -> None:
        """Log when PostgreSQL becomes unreachable, and when it is reachable again."""
        if reachable != self._is_reachable and self._policy.is_logged:
            self._is_reachable = reachable
            if reachable:
                _log.info("connection_restored")
            else:
                _log.error("connection_lost", reason=reason)


async def connect(address: Address, policy: ConnectionPolicy = _USUAL) -> Any:
    """Connect to the first host that answers; if ``policy`` needs the primary, to the primary only.

    asyncpg could try several hosts itself, but all of its time would go to a first host that does
    not answer. Raises ``asyncpg.PostgresError``, ``OSError`` or ``TimeoutError``.
    """
    seconds = policy.connect_seconds
    if seconds is None:
        seconds = _CONNECT_SECONDS if len(address.urls) == 1 else _CONNECT_SECONDS_OF_SEVERAL
    failures: list[Exception] = []
    for url in address.urls:
        try:
            return await asyncpg.connect(
                url,
                timeout=seconds,
                server_settings=SESSION_SETTINGS,
                target_session_attrs="read-write" if policy.needs_primary else "any",
            )
        except (*FAILURES, TimeoutError) as error:
            failures.append(error)
    # A refusal by PostgreSQL itself says more than a host that is down or a standby.
    refusals = [error for error in failures if isinstance(error, asyncpg.PostgresError)]
    raise (refusals or failures)[0]


async def close_connection(connection: Any) -> None:
    """Close a connection; terminate it if PostgreSQL does not answer."""
    try:
        await connection.close(timeout=1)
    except (*FAILURES, TimeoutError):
        connection.terminate()


def _wake(turn: asyncio.Future[None]) -> bool:
    if turn.done():
        return False
    turn.set_result(None)
    return True
