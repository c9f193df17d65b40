"""Reads from one PostgreSQL server, in single statements and in read-only transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from anyio.abc import TaskGroup

from dynactor.storage.postgresql.connections import STATEMENT_SECONDS, Connections
from dynactor.storage.postgresql.point_reads import PointReads
from dynactor.storage.postgresql.sql import Statements
from dynactor.storage.postgresql.views import (
    BEGIN,
    CommittedView,
    OneCallView,
    SecondCall,
    SnapshotLost,
    SnapshotView,
)
from dynactor.storage.store import Unavailable, View

# A snapshot keeps old versions of rows from being removed, so it ends after this time.
SNAPSHOT_SECONDS: Final = STATEMENT_SECONDS

T = TypeVar("T")


class Reader:
    """Reads from one server: statements use ``connections``, and transactions ``for_snapshots``."""

    def __init__(
        self,
        tasks: TaskGroup,
        connections: Connections,
        for_snapshots: Connections,
        statements: Statements,
        raise_if_closed: Callable[[], None],
    ) -> None:
        self._tasks = tasks
        self._connections = connections
        self._for_snapshots = for_snapshots
        self._statements = statements
        self._raise_if_closed = raise_if_closed
        self._snapshots: set[SnapshotView] = set()
        self.view = CommittedView(
            connections, statements, PointReads(tasks, connections, statements), raise_if_closed
        )

    async def in_snapshot(self, read: Callable[[View], Awaitable[T]], *, calls_once: bool) -> T:
        """See ``Store``; raises ``Unavailable`` after ``retry_seconds`` without the server."""
        self._raise_if_closed()
        if calls_once:
            try:
                return await read(OneCallView(self.view))
            except SecondCall:
                # The transaction below may see another state, so ``read`` starts again.
                pass
        give_up_at = asyncio.get_running_loop().time() + self._for_snapshots.retry_seconds
        while True:
            try:
                return await self._in_transaction(read)
            except SnapshotLost as error:
                self._raise_if_closed()
                if asyncio.get_running_loop().time() >= give_up_at:
                    raise Unavailable(str(error)) from error

    async def _in_transaction(self, read: Callable[[View], Awaitable[T]]) -> T:
        async def begin(connection: Any) -> Any:
            await connection.execute(BEGIN)
            return connection

        connection = await self._for_snapshots.run(begin, keeps=True)
        timer = asyncio.get_running_loop().call_later(SNAPSHOT_SECONDS, connection.terminate)
        view = SnapshotView(connection, self._statements, self._end)
        self._snapshots.add(view)
        try:
            return await read(view)
        finally:
            timer.cancel()
            view.close()

    async def close(self) -> None:
        """End all snapshots, and close the connections."""
        for view in list(self._snapshots):
            view.close()
        await self._connections.close()
        await self._for_snapshots.close()

    def _end(self, view: SnapshotView, connection: Any) -> None:
        self._snapshots.discard(view)
        if connection.is_closed():
            self._for_snapshots.give_back(connection, is_usable=False)
        else:
            self._tasks.start_soon(self._for_snapshots.roll_back, connection)
