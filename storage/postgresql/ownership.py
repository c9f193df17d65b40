"""Ownership of a database: a lock shows that a server runs, an epoch fences its predecessor.

A session holds the lock, so the lock ends with the server or with its connection. Each commit
names the epoch. A new owner raises the epoch after the commits in flight; later commits of the
previous owner are refused. So two servers never write at the same time.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import anyio
import structlog

from dynactor.model.pauses import OWNERSHIP_SECONDS
from dynactor.storage.postgresql.address import Address
from dynactor.storage.postgresql.connections import STATEMENT_SECONDS, close_connection, connect
from dynactor.storage.postgresql.errors import FAILURES, is_lock_timeout
from dynactor.storage.postgresql.sql import COMMIT_SECONDS, Statements
from dynactor.storage.store import InUse, TakenOver
from dynactor.storage.store_figures import EngineFigures

# Time to wait for the lock of a server that was just killed. PostgreSQL releases the lock when it
# reads from the closed connection.
_LOCK_SECONDS: Final = 5.0
_BEAT_SECONDS: Final = 1.0
_BEATS_PER_QUIET_READ: Final = 5
_BEATS_PER_SIZE: Final = 30
NO_SIZES: Final = EngineFigures(0, 0, 0, 0, None)

T = TypeVar("T")

_log = structlog.get_logger("storage")


class Ownership:
    """This server's ownership of a database. ``sizes`` are the sizes of the tables and the log."""

    def __init__(
        self, address: Address, statements: Statements, connection: Any, epoch: int
    ) -> None:
        self.epoch = epoch
        self.sizes = NO_SIZES
        self._address = address
        self._statements = statements
        self._connection = connection

    async def keep(
        self,
        lost: Callable[[TakenOver], None],
        beat: Callable[[bool], None],
        is_quiet: Callable[[], bool] = lambda: False,
    ) -> None:
        """Hold the lock until another server takes over; lock again after a lost connection.

        Each second ``beat`` gets whether PostgreSQL answers, and each 5 s while ``is_quiet``. When
        this task ends, it releases the lock, so that another server can start.
        """
        try:
            await self._keep(lost, beat, is_quiet)
        finally:
            with anyio.CancelScope(shield=True):
                await close_connection(self._connection)

    async def _keep(
        self,
        lost: Callable[[TakenOver], None],
        beat: Callable[[bool], None],
        is_quiet: Callable[[], bool],
    ) -> None:
        beats = 0
        is_locked = True
        while True:
            is_kept = is_locked and not self._connection.is_closed()
            if beats % _BEATS_PER_QUIET_READ and is_kept and is_quiet():
                beats += 1
                await anyio.sleep(_BEAT_SECONDS)
                continue
            try:
                if self._connection.is_closed():
                    self._connection = await connect(self._address)
                    is_locked = False
                if not is_locked:
                    # PostgreSQL may not have noticed yet that the previous session has ended.
                    (is_locked,) = await self._ask(self._statements.try_lock)
                (epoch,) = await self._ask(self._statements.epoch)
                if epoch != self.epoch:
                    lost(TakenOver("another server has taken over the database"))
                    return
                if beats % _BEATS_PER_SIZE == 0:
                    tables, log = await self._ask(self._statements.sizes)
                    self.sizes = EngineFigures(tables, log, 0, 0, None)
                beats += 1
                beat(True)
            except (*FAILURES, TimeoutError) as error:
                _log.debug("beat_failed", error=str(error))
                self._connection.terminate()
                beat(False)
            await anyio.sleep(_BEAT_SECONDS)

    async def _ask(self, query: str) -> Any:
        return await self._connection.fetchrow(query, timeout=STATEMENT_SECONDS)


async def take_ownership(
    address: Address,
    statements: Statements,
    connection: Any,
    lock_seconds: float | None = None,
) -> Ownership:
    """Make this server the owner of a database.

    The connection holds the lock from now on, and must stay open. Raises ``InUse`` if another
    server owns it, and has not ended within ``lock_seconds``, 5 by default.
    """
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + (_LOCK_SECONDS if lock_seconds is None else lock_seconds)
    while not await connection.fetchval(statements.try_lock):
        if loop.time() >= give_up_at:
            owner = await connection.fetchrow(statements.owner)
            raise InUse(
                f"{address.shown} is in use by {owner['name']}, which was started at "
                f"{owner['started_at']:%Y-%m-%d %H:%M:%S} UTC. Stop that server first, or choose "
                "another database"
            )
        await anyio.sleep(OWNERSHIP_SECONDS)
    return await _take_over(address, statements, connection)


async def take_share(address: Address, connection: Any) -> tuple[Ownership, int]:
    """Take the ownership of a share that no running server owns; return also the share's slot.

    The connection holds the share's lock from now on, and must stay open.
    """
    schema_statements = Statements(address.schema)
    while True:
        for (slot,) in await connection.fetch(schema_statements.share_slots):
            statements = Statements(address.schema, 0, slot)
            if await connection.fetchval(statements.try_lock):
                return await _take_over(address, statements, connection), slot
        await connection.execute(schema_statements.add_share)


async def _take_over(address: Address, statements: Statements, connection: Any) -> Ownership:
    """Raise the epoch, after the commits in flight."""
    name = f"process {os.getpid()} on {socket.gethostname()}"

    async def raise_epoch() -> int:
        epoch: int = await connection.fetchval(statements.take_over, name)
        return epoch

    epoch = await after_commits(connection, statements, raise_epoch)
    return Ownership(address, statements, connection, epoch)


async def after_commits(
    connection: Any, statements: Statements, change: Callable[[], Awaitable[T]]
) -> T:
    """Run ``change`` in a transaction that starts after all commits in flight.

    Later commits wait for the transaction. So it does not wait for slow commits, but lets
    PostgreSQL end them, and tries again. Their servers repeat them. A commit that waits for a
    synchronous standby goes on, and later commits would wait for the standby, too.
    """
    while True:
        try:
            async with connection.transaction():
                await connection.execute(statements.wait_for_commits)
                return await change()
        except FAILURES as error:
            if not is_lock_timeout(error):
                raise
        ended = await connection.fetchval(statements.end_slow_commits)
        _log.warning("slow_commits_ended", count=ended)
        # Wait for the lock again before the other servers repeat their commits.
        if not ended:
            await anyio.sleep(COMMIT_SECONDS)
