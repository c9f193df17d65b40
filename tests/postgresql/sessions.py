"""Sessions that call the SQL function ``commit`` in separate transactions, step by step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from secrets import token_bytes
from typing import Any

from dynactor.storage.postgresql.address import parse_address
from dynactor.storage.postgresql.commit_call import Arrays, CommitCall
from dynactor.storage.postgresql.connections import connect
from dynactor.storage.postgresql.keys import stored, table_number
from dynactor.storage.postgresql.schema import open_schema
from dynactor.storage.postgresql.sql import Statements
from dynactor.storage.store import Group


class Session:
    """A connection. A call after ``begin`` runs in that transaction; others commit at once."""

    def __init__(self, connection: Any, statements: Statements, observer: Any) -> None:
        self.connection = connection
        self._statements = statements
        self._observer = observer
        self._calling: asyncio.Task[list[int]] | None = None

    async def begin(self, isolation: str = "READ COMMITTED") -> None:
        """Open a transaction."""
        await self.connection.execute(f"BEGIN ISOLATION LEVEL {isolation}")

    async def end(self, how: str = "COMMIT") -> None:
        """End the transaction."""
        await self.connection.execute(how)

    async def commit(
        self, *calls: Group | Sequence[Group], batch: bytes | None = None, epoch: int = 0
    ) -> list[int]:
        """Call the function ``commit`` with these groups; return the verdict on each group."""
        groups = [[call] if isinstance(call, Group) else call for call in calls]
        arguments = Arrays(map(CommitCall, groups)).arguments(epoch, batch or token_bytes(16))
        said: list[int] = await self.connection.fetchval(self._statements.commit, *arguments)
        return said

    async def start(self, *calls: Group, batch: bytes | None = None, epoch: int = 0) -> None:
        """Start a call that must wait for a lock; return when the call waits."""
        self._calling = asyncio.create_task(self.commit(*calls, batch=batch, epoch=epoch))
        await self.wait_blocked()

    async def wait_blocked(self) -> None:
        """Wait until the session waits for a lock."""
        assert self._calling is not None
        pid = self.connection.get_server_pid()
        while not self._calling.done():
            if await self._observer.fetchval("SELECT cardinality(pg_blocking_pids($1)) > 0", pid):
                return
        raise AssertionError(f"it did not wait: {await self._calling}")

    async def wait_blocking(self) -> None:
        """Wait until another session waits for a lock of this one."""
        pid = self.connection.get_server_pid()
        blocked = "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid))"
        while not await self._observer.fetchval(blocked, pid):
            continue

    async def finish(self) -> list[int]:
        """Wait for the call of ``start``; return its verdicts."""
        assert self._calling is not None
        return await self._calling

    async def load(self, *keys: bytes) -> list[bytes | None]:
        """The values under these keys."""
        found = {}
        for key in keys:
            query = self._statements.load((table_number(key),))
            found |= dict(await self.connection.fetch(query, [stored(key).key]))
        return [found.get(stored(key).key) for key in keys]


@asynccontextmanager
async def sessions(url: str, count: int = 3) -> AsyncIterator[list[Session]]:
    """Open this many sessions on a new schema."""
    address = parse_address(url)
    # Sessions read the rows of any owner.
    statements = Statements(address.schema, 1 << 62)
    async with AsyncExitStack() as stack:
        connections = []
        for _ in range(count + 1):
            connection = await connect(address)
            stack.push_async_callback(connection.close)
            connections.append(connection)
        observer, *others = connections
        await open_schema(observer, address)
        yield [Session(each, statements, observer) for each in others]
