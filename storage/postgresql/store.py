"""The store in PostgreSQL, behind the port of ``storage/store.py``.

A commit is accepted only when it is durable. So ``latest`` and ``durable()`` are the same view,
which shows the rows that are committed at the time of a call.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
from anyio.abc import TaskGroup

from dynactor.model.latency_histogram import LatencyHistogram
from dynactor.storage.postgresql.address import Address, parse_address
from dynactor.storage.postgresql.commit_call import CommitCall
from dynactor.storage.postgresql.commits import Commits
from dynactor.storage.postgresql.connections import (
    RETRY_SECONDS,
    STATEMENT_SECONDS,
    Connections,
    close_connection,
    connect,
)
from dynactor.storage.postgresql.errors import FAILURES, cannot_open, translate
from dynactor.storage.postgresql.ownership import Ownership, take_ownership
from dynactor.storage.postgresql.point_reads import PointReads
from dynactor.storage.postgresql.schema import open_schema, raise_format
from dynactor.storage.postgresql.sql import Statements
from dynactor.storage.postgresql.views import (
    BEGIN,
    CommittedView,
    OneCallView,
    SecondCall,
    SnapshotLost,
    SnapshotView,
)
from dynactor.storage.store import (
    CannotOpen,
    Closed,
    Full,
    Group,
    Snapshot,
    Store,
    StoreError,
    Unavailable,
    Unknown,
    View,
)
from dynactor.storage.store_figures import StoreFigures

T = TypeVar("T")

# Connections for reads and commits, and for short snapshots.
_CONNECTIONS: Final = 8
_SNAPSHOTS: Final = 8


@asynccontextmanager
async def open_postgresql(url: str) -> AsyncIterator[Store]:
    """Open the store in this database; its tables are created unless they exist.

    Raises:
        CannotOpen: the store can't be opened; the message says what to do.
    """
    address = parse_address(url)
    statements = Statements(address.schema)
    ownership = await _own(address, statements)
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        store = _PostgresqlStore(tasks, address, statements, ownership)
        tasks.start_soon(ownership.keep, store.refuse)
        try:
            yield store
        except Exception as error:  # noqa: BLE001 - raised again outside of the group
            failure = error
        finally:
            with anyio.CancelScope(shield=True):
                await store.close()
                await ownership.end()
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _own(address: Address, statements: Statements) -> Ownership:
    """Connect, create or check the tables, and take ownership of the database."""
    names = {"user": address.user, "database": address.database, "hosts": address.hosts}
    try:
        connection = await connect(address)
    except (*FAILURES, TimeoutError, ValueError) as error:
        raise cannot_open(error, **names) from error
    try:
        await open_schema(connection, address)
        ownership = await take_ownership(address, statements, connection)
        await raise_format(connection, address)
    except BaseException as error:
        await close_connection(connection)
        if isinstance(error, FAILURES):
            raise cannot_open(error, **names) from error
        raise
    return ownership


class _PostgresqlStore:
    """The store on PostgreSQL. Once ``_closed`` is set, nothing is read or written."""

    def __init__(
        self, tasks: TaskGroup, address: Address, statements: Statements, ownership: Ownership
    ) -> None:
        self._tasks = tasks
        self._statements = statements
        self._ownership = ownership
        self._closed: Closed | None = None
        self._refusal = ""
        self._full_disk_refusals = 0
        self._latency = LatencyHistogram()
        self._connections = Connections(address, _CONNECTIONS)
        self._for_snapshots = Connections(address, _SNAPSHOTS)
        self._commits = Commits(
            tasks,
            self._connections,
            statements,
            ownership.epoch,
            latency=self._latency,
            ended=self._note,
        )
        self._view = CommittedView(
            self._connections,
            statements,
            PointReads(tasks, self._connections, statements),
            self._raise_if_closed,
        )
        self._snapshots: set[SnapshotView] = set()

    @property
    def latest(self) -> View:
        return self._view

    def durable(self) -> View:
        return self._view

    async def in_snapshot(self, read: Callable[[View], Awaitable[T]], *, calls_once: bool) -> T:
        self._raise_if_closed()
        if calls_once:
            try:
                return await read(OneCallView(self._view))
            except SecondCall:
                # The transaction below may see another state, so ``read`` starts again.
                pass
        give_up_at = asyncio.get_running_loop().time() + RETRY_SECONDS
        while True:
            try:
                return await self._in_transaction(read)
            except SnapshotLost as error:
                if self._closed is not None or asyncio.get_running_loop().time() >= give_up_at:
                    raise Unavailable(str(error)) from error

    async def _in_transaction(self, read: Callable[[View], Awaitable[T]]) -> T:
        async def begin(connection: Any) -> Any:
            await connection.execute(BEGIN)
            return connection

        connection = await self._for_snapshots.run(begin, keeps=True)
        timer = asyncio.get_running_loop().call_later(STATEMENT_SECONDS, connection.terminate)
        view = SnapshotView(connection, self._statements, self._end_short)
        self._snapshots.add(view)
        try:
            return await read(view)
        finally:
            timer.cancel()
            view.close()

    async def snapshot(self, *, is_long: bool = False) -> Snapshot:
        self._raise_if_closed()
        connections = self._for_snapshots

        async def begin(connection: Any) -> Any:
            # BEGIN alone takes no snapshot; the next statement does.
            await connection.execute(f"{BEGIN}; SELECT 1")
            return connection

        if is_long:
            connection = await connections.open()
            await begin(connection)
        else:
            connection = await connections.run(begin, keeps=True)
        view = SnapshotView(
            connection, self._statements, self._end_long if is_long else self._end_short
        )
        self._snapshots.add(view)
        return Snapshot(view, view.close)

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        self._raise_if_closed()
        written = asyncio.get_running_loop().create_future()
        error = await self._commits.commit(CommitCall(groups)) if groups else None
        if error is None:
            written.set_result(None)
        elif isinstance(error, Unknown):
            # Don't raise the error of the call: such an error would mean that nothing was written.
            written.set_exception(error)
            # Read the exception, because asyncio logs exceptions that no caller reads.
            written.exception()
        else:
            raise error
        return written

    async def reclaim(self, start: bytes, end: bytes) -> None:  # noqa: ARG002 - of the port
        # Do nothing: autovacuum frees the space of deleted rows.
        self._raise_if_closed()

    async def checkpoint(self, directory: Path) -> None:  # noqa: ARG002 - of the port
        raise CannotOpen("The data are in PostgreSQL: use its own backups, such as pg_basebackup")

    def figures(self) -> StoreFigures:
        refusal = "Closed" if self._closed is not None else self._refusal
        return StoreFigures(self._ownership.sizes, self._latency, refusal, self._full_disk_refusals)

    async def close(self) -> None:
        if self._closed is None:
            self._closed = Closed("the store is closed")
        await self._commits.wait_idle()
        for view in list(self._snapshots):
            view.close()
        await self._connections.close()
        await self._for_snapshots.close()

    def refuse(self, closed: Closed) -> None:
        """Refuse all later calls, because another server owns the database."""
        if self._closed is None:
            self._closed = closed

    def _raise_if_closed(self) -> None:
        if self._closed is not None:
            raise Closed(str(self._closed))

    def _note(self, error: StoreError | None) -> None:
        """Record the outcome of a commit statement: an error, or None."""
        if isinstance(error, Closed):
            self.refuse(error)
        if isinstance(error, Full):
            self._full_disk_refusals += 1
        self._refusal = "" if error is None else type(error).__name__

    def _end_long(self, view: SnapshotView, connection: Any) -> None:
        self._snapshots.discard(view)
        connection.terminate()

    def _end_short(self, view: SnapshotView, connection: Any) -> None:
        self._snapshots.discard(view)
        if connection.is_closed():
            self._for_snapshots.give_back(connection, is_usable=False)
        else:
            self._tasks.start_soon(self._roll_back, connection)

    async def _roll_back(self, connection: Any) -> None:
        is_usable = False
        try:
            await connection.execute("ROLLBACK")
            is_usable = True
        except FAILURES as error:
            translate(error)
        finally:
            self._for_snapshots.give_back(connection, is_usable=is_usable)
