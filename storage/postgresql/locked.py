"""Locks heads in a transaction, which then loads rows and commits groups."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from dynactor.storage.postgresql.commit_call import CommitCall
from dynactor.storage.postgresql.commits import CommitRunner
from dynactor.storage.postgresql.connections import STATEMENT_SECONDS, Connections
from dynactor.storage.postgresql.errors import FAILURES, terminable, translate
from dynactor.storage.postgresql.keys import by_tables, stored
from dynactor.storage.postgresql.pages import PageReader
from dynactor.storage.postgresql.sql import END_IDLE_TRANSACTION, Statements
from dynactor.storage.store import Conflict, Group

_BEGIN: Final = f"BEGIN ISOLATION LEVEL READ COMMITTED; {END_IDLE_TRANSACTION}"


class LockingSessions:
    """Runs transactions that lock heads."""

    def __init__(
        self, connections: Connections, statements: Statements, commits: CommitRunner
    ) -> None:
        self._connections = connections
        self._statements = statements
        self._commits = commits

    @asynccontextmanager
    async def locked(self, heads: Sequence[bytes]) -> AsyncIterator[LockedHeads]:
        """Lock heads while the context lasts: see ``Store``."""
        by_table = by_tables(heads)

        async def lock(connection: Any) -> Any:
            await connection.execute(_BEGIN)
            for table, keys in by_table.items():
                await connection.fetch(self._statements.lock(table), keys)
            return connection

        connection = await self._connections.run(lock, keeps=True)
        timer = asyncio.get_running_loop().call_later(STATEMENT_SECONDS, connection.terminate)
        try:
            yield LockedHeads(connection, self._statements, self._commits)
        finally:
            timer.cancel()
            await self._connections.roll_back(connection)


class LockedHeads:
    """The locks of one transaction, which end with its commit."""

    def __init__(self, connection: Any, statements: Statements, commits: CommitRunner) -> None:
        self._connection = connection
        self._pages = PageReader(statements)
        self._commits = commits

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """See ``Locked``."""
        self._raise_if_ended()
        try:
            with terminable(self._connection):
                values = await self._pages.load(self._connection, keys) if keys else {}
        except FAILURES as error:
            if self._connection.is_closed():
                raise _ended() from error
            raise translate(error) from error
        return [values.get(stored(key).key) for key in keys]

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        """See ``Locked``."""
        self._raise_if_ended()
        return await self._commits.commit_in(self._connection, CommitCall(groups))

    def _raise_if_ended(self) -> None:
        if self._connection.is_closed() or not self._connection.is_in_transaction():
            raise _ended()


def _ended() -> Conflict:
    return Conflict("the locks on the heads have ended")
