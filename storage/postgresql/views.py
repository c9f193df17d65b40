"""Views of the database.

Each call of the shared view runs a new statement, which shows everything that was committed before.
A snapshot is a read-only transaction on a connection of its own.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from dynactor.storage.postgresql.connections import STATEMENT_SECONDS, Connections
from dynactor.storage.postgresql.errors import FAILURES, terminable, translate
from dynactor.storage.postgresql.keys import stored
from dynactor.storage.postgresql.pages import Bounds, NotInOneStatement, PageReader
from dynactor.storage.postgresql.point_reads import PointReads
from dynactor.storage.postgresql.sql import Statements
from dynactor.storage.store import NOT_CACHED, Closed, NotCached, Row

T = TypeVar("T")

BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class SecondCall(Exception):
    """A ``OneCallView`` was called a second time, so the reads need a transaction."""


class SnapshotLost(Closed):
    """The connection of a snapshot has ended."""


class UncachedView:
    """A view without rows in memory. ``raise_if_closed`` raises ``Closed``."""

    raise_if_closed: Callable[[], None]

    def cached(self, key: bytes) -> bytes | NotCached | None:  # noqa: ARG002 - of the port
        """Return NOT_CACHED."""
        self.raise_if_closed()
        return NOT_CACHED

    def page_nowait(self, *_: object, **__: object) -> NotCached:
        """Return NOT_CACHED."""
        self.raise_if_closed()
        return NOT_CACHED


class CommittedView(UncachedView):
    """The view of the rows that are committed when a method is called."""

    def __init__(
        self,
        connections: Connections,
        statements: Statements,
        point_reads: PointReads,
        raise_if_closed: Callable[[], None],
    ) -> None:
        self.raise_if_closed = raise_if_closed
        self._connections = connections
        self._pages = PageReader(statements)
        self._point_reads = point_reads

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values under these keys."""
        self.raise_if_closed()
        return await self._point_reads.load(keys)

    async def page(
        self, start: bytes, end: bytes, *, reverse: bool = False, max_rows: int, max_bytes: int
    ) -> list[Row]:
        """The rows of a range, up to the row that fills the page."""
        self.raise_if_closed()
        if start >= end or max_rows <= 0 or max_bytes <= 0:
            return []

        def bounds() -> Bounds:
            return Bounds(reverse=reverse, max_rows=max_rows, max_bytes=max_bytes)

        async def at_once(connection: Any) -> list[Row] | None:
            try:
                return await self._pages.read_at_once(connection, start, end, bounds())
            except NotInOneStatement:
                return None

        async def in_one_state(connection: Any) -> list[Row]:
            await connection.execute(BEGIN)
            rows = await self._pages.read(connection, start, end, bounds())
            await connection.execute("COMMIT")
            return rows

        rows = await self._connections.run(at_once)
        return await self._connections.run(in_one_state) if rows is None else rows

    async def first_rows(
        self, ranges: Sequence[tuple[bytes, bytes]], *, max_rows: int, reverse: bool = False
    ) -> list[list[Row]]:
        """The first rows of each range."""
        self.raise_if_closed()

        async def read(connection: Any) -> list[list[Row]]:
            try:
                return await self._pages.first_rows(
                    connection, ranges, max_rows=max_rows, reverse=reverse
                )
            except NotInOneStatement:
                await connection.execute(BEGIN)
                found = await self._pages.first_rows_in_turn(
                    connection, ranges, max_rows=max_rows, reverse=reverse
                )
                await connection.execute("COMMIT")
                return found

        return await self._connections.run(read)

    async def load_with_page(
        self, keys: Sequence[bytes], start: bytes, end: bytes, *, max_rows: int, max_bytes: int
    ) -> tuple[list[bytes | None], list[Row]]:
        """The values under these keys and a page."""
        self.raise_if_closed()

        def bounds() -> Bounds:
            return Bounds(reverse=False, max_rows=max_rows, max_bytes=max_bytes)

        async def read(connection: Any) -> tuple[dict[bytes, bytes], list[Row]]:
            try:
                return await self._pages.read_with_values(connection, keys, start, end, bounds())
            except NotInOneStatement:
                await connection.execute(BEGIN)
                values = await self._pages.load(connection, keys)
                rows = await self._pages.read(connection, start, end, bounds())
                await connection.execute("COMMIT")
                return values, rows

        values, rows = await self._connections.run(read)
        return [values.get(stored(key).key) for key in keys], rows


class ForwardingView(UncachedView, ABC):
    """A view whose calls go to another view."""

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values under these keys."""
        return await self._forward(lambda view: view.load(keys))

    async def page(
        self, start: bytes, end: bytes, *, reverse: bool = False, max_rows: int, max_bytes: int
    ) -> list[Row]:
        """The rows of a range, up to the row that fills the page."""
        return await self._forward(
            lambda view: view.page(
                start, end, reverse=reverse, max_rows=max_rows, max_bytes=max_bytes
            )
        )

    async def first_rows(
        self, ranges: Sequence[tuple[bytes, bytes]], *, max_rows: int, reverse: bool = False
    ) -> list[list[Row]]:
        """The first rows of each range."""
        return await self._forward(
            lambda view: view.first_rows(ranges, max_rows=max_rows, reverse=reverse)
        )

    async def load_with_page(
        self, keys: Sequence[bytes], start: bytes, end: bytes, *, max_rows: int, max_bytes: int
    ) -> tuple[list[bytes | None], list[Row]]:
        """The values under these keys and a page."""
        return await self._forward(
            lambda view: view.load_with_page(
                keys, start, end, max_rows=max_rows, max_bytes=max_bytes
            )
        )

    @abstractmethod
    async def _forward(self, read: Callable[[CommittedView], Awaitable[T]]) -> T: ...


class OneCallView(ForwardingView):
    """A view that answers one call. A second call raises ``SecondCall``."""

    def __init__(self, view: CommittedView) -> None:
        self.raise_if_closed = view.raise_if_closed
        self._view: CommittedView | None = view

    async def _forward(self, read: Callable[[CommittedView], Awaitable[T]]) -> T:
        view, self._view = self._view, None
        if view is None:
            raise SecondCall
        return await read(view)


class SnapshotView(UncachedView):
    """One state of the database, for as long as its transaction is open."""

    def __init__(
        self, connection: Any, statements: Statements, ended: Callable[[SnapshotView, Any], None]
    ) -> None:
        self._connection = connection
        self._pages = PageReader(statements)
        self._ended = ended
        # The calls of one snapshot take turns on its connection.
        self._turn = asyncio.Lock()

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values under these keys."""
        if not keys:
            return []
        values = await self._run(lambda connection: self._pages.load(connection, keys))
        return [values.get(stored(key).key) for key in keys]

    async def page(
        self, start: bytes, end: bytes, *, reverse: bool = False, max_rows: int, max_bytes: int
    ) -> list[Row]:
        """The rows of a range, up to the row that fills the page."""
        bounds = Bounds(reverse=reverse, max_rows=max_rows, max_bytes=max_bytes)

        async def read(connection: Any) -> list[Row]:
            return await self._pages.read(connection, start, end, bounds)

        return await self._run(read)

    async def first_rows(
        self, ranges: Sequence[tuple[bytes, bytes]], *, max_rows: int, reverse: bool = False
    ) -> list[list[Row]]:
        """The first rows of each range."""

        async def read(connection: Any) -> list[list[Row]]:
            try:
                return await self._pages.first_rows(
                    connection, ranges, max_rows=max_rows, reverse=reverse
                )
            except NotInOneStatement:
                return await self._pages.first_rows_in_turn(
                    connection, ranges, max_rows=max_rows, reverse=reverse
                )

        return await self._run(read)

    async def load_with_page(
        self, keys: Sequence[bytes], start: bytes, end: bytes, *, max_rows: int, max_bytes: int
    ) -> tuple[list[bytes | None], list[Row]]:
        """The values under these keys and a page."""
        values = await self.load(keys)
        return values, await self.page(start, end, max_rows=max_rows, max_bytes=max_bytes)

    def close(self) -> None:
        """End the transaction; may be repeated."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self._ended(self, connection)

    async def _run(self, work: Callable[[Any], Awaitable[T]]) -> T:
        async with self._turn:
            self.raise_if_closed()
            connection = self._connection
            timer = asyncio.get_running_loop().call_later(STATEMENT_SECONDS, connection.terminate)
            is_done = False
            try:
                with terminable(connection):
                    result = await work(connection)
            except FAILURES as error:
                failure = translate(error)
                if isinstance(failure, Closed):
                    raise failure from error
                raise SnapshotLost(f"the snapshot is gone: {failure}") from error
            else:
                is_done = True
                return result
            finally:
                timer.cancel()
                if not is_done:
                    # Terminate also if the caller was canceled: a statement may still be running.
                    connection.terminate()

    def raise_if_closed(self) -> None:
        """Raise ``SnapshotLost`` if the connection has ended."""
        if self._connection is None or self._connection.is_closed():
            raise SnapshotLost("the snapshot is closed")
