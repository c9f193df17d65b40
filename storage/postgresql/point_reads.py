"""Reads of single keys: the reads of one turn of the event loop share a statement.

While the maximum number of statements is in flight, new reads wait and share the next statement.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from anyio.abc import TaskGroup

from dynactor.storage.postgresql.connections import Connections
from dynactor.storage.postgresql.keys import stored, table_number
from dynactor.storage.postgresql.sql import Statements
from dynactor.storage.store import StoreError

_STATEMENTS: Final = 4
_KEYS_AT_ONCE: Final = 1_000


class _PointRead(NamedTuple):
    keys: Sequence[bytes]
    values: asyncio.Future[list[bytes | None]]


class PointReads:
    """Runs the reads. Each call is answered from one snapshot, taken after the call was made."""

    def __init__(self, tasks: TaskGroup, connections: Connections, statements: Statements) -> None:
        self._tasks = tasks
        self._connections = connections
        self._statements = statements
        self._waiting: deque[_PointRead] = deque()
        self._in_flight = 0
        self._is_scheduled = False

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of these keys, in order; None for a missing key. Raises ``StoreError``."""
        if not keys:
            return []
        loop = asyncio.get_running_loop()
        call = _PointRead(keys, loop.create_future())
        self._waiting.append(call)
        if not self._is_scheduled and self._in_flight < _STATEMENTS:
            self._is_scheduled = True
            loop.call_soon(self._start)
        return await call.values

    def _start(self) -> None:
        self._is_scheduled = False
        while self._waiting and self._in_flight < _STATEMENTS:
            calls: list[_PointRead] = []
            keys = 0
            while self._waiting and keys < _KEYS_AT_ONCE:
                call = self._waiting.popleft()
                if not call.values.done():
                    calls.append(call)
                    keys += len(call.keys)
            if calls:
                self._in_flight += 1
                self._tasks.start_soon(self._read, calls)

    async def _read(self, calls: Sequence[_PointRead]) -> None:
        try:
            values = await self._fetch({key for call in calls for key in call.keys})
        except StoreError as error:
            for call in calls:
                if not call.values.done():
                    call.values.set_exception(type(error)(*error.args))
        else:
            for call in calls:
                if not call.values.done():
                    call.values.set_result([values.get(key) for key in call.keys])
        finally:
            self._in_flight -= 1
            self._start()

    async def _fetch(self, keys: set[bytes]) -> dict[bytes, bytes]:
        by_table: dict[int, dict[bytes, bytes]] = {}
        for key in keys:
            by_table.setdefault(table_number(key), {})[stored(key).key] = key
        tables = tuple(sorted(by_table))
        query = self._statements.load(tables)
        arguments = [list(by_table[table]) for table in tables]

        async def fetch(connection: Any) -> Sequence[tuple[bytes, bytes]]:
            found: Sequence[tuple[bytes, bytes]] = await connection.fetch(query, *arguments)
            return found

        rows = await self._connections.run(fetch)
        originals = {kept: key for each in by_table.values() for kept, key in each.items()}
        return {originals[kept]: value for kept, value in rows}
