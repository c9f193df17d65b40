"""The store in PostgreSQL, behind the port of ``storage/store.py``.

A commit is accepted only when it is durable. So ``latest`` and ``durable()`` are the same view,
which shows the rows that are committed at the time of a call.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import anyio
from anyio.abc import TaskGroup

from dynactor.model.kept_failure import KeptFailure
from dynactor.model.latency_histogram import LatencyHistogram
from dynactor.storage.postgresql.address import Address, parse_address
from dynactor.storage.postgresql.commit_call import CommitCall
from dynactor.storage.postgresql.commits import CommitRunner, completed
from dynactor.storage.postgresql.connections import (
    Connections,
    close_connection,
    connect,
)
from dynactor.storage.postgresql.discards import Discards
from dynactor.storage.postgresql.doubts import Doubts
from dynactor.storage.postgresql.errors import FAILURES, cannot_open
from dynactor.storage.postgresql.locked import LockingSessions
from dynactor.storage.postgresql.ownership import (
    Ownership,
    after_commits,
    take_ownership,
    take_share,
)
from dynactor.storage.postgresql.read_store import ReadStore
from dynactor.storage.postgresql.reader import Reader
from dynactor.storage.postgresql.schema import check_format, open_schema, raise_format
from dynactor.storage.postgresql.sql import SLOT_SHIFT, Statements
from dynactor.storage.store import (
    CannotOpen,
    Closed,
    Full,
    Group,
    Locked,
    Store,
    StoreError,
    TakenOver,
    Unavailable,
    View,
)
from dynactor.storage.store_figures import StoreFigures

T = TypeVar("T")

# Connections for reads and commits, and for short snapshots.
_CONNECTIONS: Final = 8
_SNAPSHOTS: Final = 8

# Beats after which a refusal, such as that of a full disk, is no longer reported.
_REFUSAL_BEATS: Final = 3


@asynccontextmanager
async def open_postgresql(
    url: str,
    read_url: str | None = None,
    *,
    lock_seconds: float | None = None,
    taken_over: Callable[[], None] = lambda: None,
    is_shared: bool = False,
) -> AsyncIterator[OwnedStore]:
    """Open the store in this database; its tables are created unless they exist.

    Eventually consistent reads go to the hot standby with the address ``read_url``, if it is given.
    ``taken_over`` is called when another server has become the owner of the database. Unless
    ``is_shared``, the commits of all shares are refused from now on. Raises ``InUse`` if another
    server owns the database, and has not ended within ``lock_seconds``. ``CannotOpen`` says what to
    do.
    """
    address = parse_address(url)
    read_address = None if read_url is None else parse_address(read_url, "--read-store")
    statements = Statements(address.schema)
    ownership = await _own(address, statements, lock_seconds, is_shared=is_shared)
    statements = Statements(address.schema, ownership.epoch)
    async with _open(
        address, read_address, statements, ownership, taken_over, is_node=is_shared
    ) as store:
        yield store


@asynccontextmanager
async def open_share(
    url: str, read_url: str | None = None, *, taken_over: Callable[[], None]
) -> AsyncIterator[OwnedStore]:
    """Open the store of a node that is the home of the tables whose claims name its epoch.

    The database must have a leader. ``taken_over`` is called when the leader has taken the tables.

    Raises:
        CannotOpen: the store can't be opened, or the leader has another version.
    """
    address = parse_address(url)
    read_address = None if read_url is None else parse_address(read_url, "--read-store")
    names = {"user": address.user, "database": address.database, "hosts": address.hosts}
    try:
        connection = await connect(address)
    except (*FAILURES, TimeoutError, ValueError) as error:
        raise cannot_open(error, **names) from error
    try:
        await check_format(connection, address)
        ownership, slot = await take_share(address, connection)
    except BaseException as error:
        await close_connection(connection)
        if isinstance(error, FAILURES):
            raise cannot_open(error, **names) from error
        raise
    statements = Statements(address.schema, ownership.epoch, slot)
    async with _open(
        address, read_address, statements, ownership, taken_over, is_node=True
    ) as store:
        yield store


@asynccontextmanager
async def _open(
    address: Address,
    read_address: Address | None,
    statements: Statements,
    ownership: Ownership,
    taken_over: Callable[[], None],
    *,
    is_node: bool,
) -> AsyncIterator[OwnedStore]:
    kept = KeptFailure()
    async with anyio.create_task_group() as tasks:
        store = _PostgresqlStore(tasks, address, statements, ownership, taken_over, is_node=is_node)
        # The renewals of a node's membership show a new owner sooner.
        is_quiet = (lambda: store.answers) if is_node else (lambda: False)
        tasks.start_soon(ownership.keep, store.refuse, store.note_beat, is_quiet)
        tasks.start_soon(store.discards.run)
        tasks.start_soon(store.doubts.run)
        if read_address is not None:
            await store.read_from(read_address)
        with kept:
            try:
                yield store
            finally:
                with anyio.CancelScope(shield=True):
                    await store.close()
                tasks.cancel_scope.cancel()
    kept.raise_again()


async def _own(
    address: Address, statements: Statements, lock_seconds: float | None, *, is_shared: bool
) -> Ownership:
    """Connect, create or check the tables, and take ownership of the database."""
    names = {"user": address.user, "database": address.database, "hosts": address.hosts}
    try:
        connection = await connect(address)
    except (*FAILURES, TimeoutError, ValueError) as error:
        raise cannot_open(error, **names) from error
    try:
        await open_schema(connection, address)
        ownership = await take_ownership(address, statements, connection, lock_seconds)
        if not is_shared:
            await connection.execute(statements.fence_shares)
        await raise_format(connection, address)
    except BaseException as error:
        await close_connection(connection)
        if isinstance(error, FAILURES):
            raise cannot_open(error, **names) from error
        raise
    return ownership


class OwnedStore(Store, Protocol):
    """The store of the server that owns the database."""

    @property
    def epoch(self) -> int:
        """The number of the ownership, which each owner of the database or of a share raises."""

    @property
    def is_in_doubt(self) -> bool:
        """Whether a commit of unknown outcome may still be written, so no table may move."""

    async def share_epochs(self) -> set[int]:
        """The epochs of all shares; claims that name other epochs have no effect."""

    async def fence(self, share: int, *, only_ended: bool) -> bool:
        """Refuse all later commits and reads of a share; return whether they are refused.

        ``only_ended``: only if no session holds the share's lock. Commits in flight end before.
        """


class _PostgresqlStore:
    """The store on PostgreSQL. Once ``_closed`` is set, nothing is read or written."""

    def __init__(
        self,
        tasks: TaskGroup,
        address: Address,
        statements: Statements,
        ownership: Ownership,
        taken_over: Callable[[], None],
        *,
        is_node: bool,
    ) -> None:
        self._taken_over = taken_over
        # The node takes part again by itself, as another store.
        self._is_node = is_node
        self._tasks = tasks
        self._statements = statements
        self._ownership = ownership
        self._closed: Closed | None = None
        self._refusal = ""
        # The number of beats that PostgreSQL has answered since the last commit statement.
        self._idle_beats = 0
        self._full_disk_refusals = 0
        self._latency = LatencyHistogram()
        connections = self._connections = Connections(address, _CONNECTIONS)
        self.doubts = Doubts(connections, statements)
        self._commits = CommitRunner(
            tasks,
            connections,
            statements,
            ownership.epoch,
            latency=self._latency,
            doubts=self.doubts,
            ended=self._note,
        )
        self.discards = Discards(connections, statements, ownership.epoch)
        for_transactions = Connections(address, _SNAPSHOTS)
        self._locking = LockingSessions(for_transactions, statements, self._commits)
        self._reader = Reader(
            tasks, connections, for_transactions, statements, self._raise_if_closed
        )
        self._read_store: ReadStore | None = None

    @property
    def epoch(self) -> int:
        return self._ownership.epoch

    @property
    def is_in_doubt(self) -> bool:
        return len(self.doubts) > 0

    async def share_epochs(self) -> set[int]:
        self._raise_if_closed()

        async def ask(connection: Any) -> set[int]:
            return {row[0] for row in await connection.fetch(self._statements.share_epochs)}

        return await self._connections.run(ask)

    async def fence(self, share: int, *, only_ended: bool) -> bool:
        self._raise_if_closed()
        slot = share >> SLOT_SHIFT
        statements = self._statements

        async def fence(connection: Any) -> None:
            async def is_open() -> bool:
                """Whether a node owns the share."""
                is_locked = only_ended and await connection.fetchval(
                    statements.try_lock_share, slot
                )
                return only_ended and not is_locked

            async def raise_epoch() -> None:
                if not await is_open():
                    await connection.execute(statements.fence_share, slot, share)

            # No commit has to wait if nothing will change.
            if not await is_open():
                await after_commits(connection, statements, raise_epoch)

        await self._connections.run(fence)
        return share not in await self.share_epochs()

    @property
    def latest(self) -> View:
        return self._reader.view

    def durable(self) -> View:
        return self._reader.view

    def eventual(self) -> View:
        return self._reader.view if self._read_store is None else self._read_store.view

    async def in_snapshot(
        self, read: Callable[[View], Awaitable[T]], *, calls_once: bool, eventual: bool = False
    ) -> T:
        self._raise_if_closed()
        if eventual and self._read_store is not None:
            return await self._read_store.in_snapshot(read, calls_once=calls_once)
        return await self._reader.in_snapshot(read, calls_once=calls_once)

    def locked(self, heads: Sequence[bytes]) -> AbstractAsyncContextManager[Locked]:
        self._raise_if_closed()
        return self._locking.locked(heads)

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        self._raise_if_closed()
        call = CommitCall(groups)
        error = await self._commits.commit(call) if groups else None
        if call.discards:
            self.discards.begin()
        return completed(error)

    def commit_nowait(self, groups: Sequence[Group]) -> None:
        """Return None: each commit asks the server."""

    async def reclaim(self, start: bytes, end: bytes) -> None:  # noqa: ARG002 - of the port
        # Autovacuum frees the space of deleted rows.
        self._raise_if_closed()
        await self.discards.wait_idle()

    async def checkpoint(self, directory: Path) -> None:  # noqa: ARG002 - of the port
        raise CannotOpen("The data are in PostgreSQL: use its own backups, such as pg_basebackup")

    def figures(self) -> StoreFigures:
        refusal = "Closed" if self._closed is not None else self._refusal
        read_store = None if self._read_store is None else self._read_store.figures
        return StoreFigures(
            self._ownership.sizes,
            self._latency,
            refusal,
            self._full_disk_refusals,
            waiting_commits=None,
            commits_in_doubt=len(self.doubts),
            read_store=read_store,
        )

    async def close(self) -> None:
        if self._closed is None:
            self._closed = Closed("the store is closed")
        await self._commits.wait_idle()
        self.discards.close()
        await self._reader.close()
        if self._read_store is not None:
            await self._read_store.close()

    async def read_from(self, address: Address) -> None:
        """Read from this standby too, as soon as it can be used."""
        self._read_store = ReadStore(
            self._tasks,
            address,
            self._statements,
            self._ownership.epoch,
            self._reader,
            self._raise_if_closed,
        )
        await self._read_store.check()
        self._tasks.start_soon(self._read_store.keep)

    def refuse(self, closed: Closed) -> None:
        """Refuse all later calls, because another server owns the database."""
        if self._closed is None:
            self._closed = closed
            if isinstance(closed, TakenOver):
                advice = "send the request again" if self._is_node else "restart this one"
                self._closed = TakenOver(f"{closed}: {advice}")
            self._taken_over()

    def _raise_if_closed(self) -> None:
        if self._closed is not None:
            raise type(self._closed)(str(self._closed))

    @property
    def answers(self) -> bool:
        """Whether PostgreSQL has refused nothing lately, as far as this store knows."""
        return not self._refusal

    def note_beat(self, is_answered: bool) -> None:
        """Record whether PostgreSQL answers, even if nobody writes.

        A load balancer sends no request to a server that reports a refusal. So a refusal must end
        without a commit.
        """
        self._idle_beats = self._idle_beats + 1 if is_answered else 0
        if not is_answered:
            self._refusal = Unavailable.__name__
        elif self._refusal == Unavailable.__name__ or self._idle_beats >= _REFUSAL_BEATS:
            self._refusal = ""

    def _note(self, error: StoreError | None) -> None:
        """Record the outcome of a commit statement: an error, or None."""
        if isinstance(error, Closed):
            self.refuse(error)
        if isinstance(error, Full):
            self._full_disk_refusals += 1
        self._refusal = "" if error is None else type(error).__name__
        self._idle_beats = 0
