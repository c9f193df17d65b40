"""Owns a server's databases, and reopens them: empty, restored, or with other settings.

Tests reset a server in milliseconds, because the listeners and the store stay open.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Final

import anyio
import structlog
from anyio.abc import TaskGroup
from msgspec import Struct, structs

from dynactor.actors.catalog.share import Share
from dynactor.actors.database.database import Database
from dynactor.actors.database.databases import Databases, open_databases
from dynactor.actors.database.virtual_clock import clock_row
from dynactor.actors.parts.database_settings import DatabaseSettings
from dynactor.actors.runtime.clock import Clock, VirtualClock
from dynactor.api.http.protocol import Protocol
from dynactor.model.kept_failure import KeptFailure
from dynactor.storage.contents import Contents, StoreTooLarge, read_contents, replace_contents
from dynactor.storage.machine.memory import memory_bytes
from dynactor.storage.namespaces import Separation, separation_row
from dynactor.storage.store import Row, Store, StoreError
from dynactor.streams.kafka.broker import Broker

MOST_SNAPSHOTS: Final = 20
# A closed database has reference cycles and keeps memory of the engine until a garbage collection.
# Without an explicit one, the interpreter would collect only after hundreds of closed databases.
_COLLECT_AFTER_CLOSED: Final = 20
_COLLECT_LATER_SECONDS: Final = 0.005
# All snapshots together use at most this part of the memory.
_SNAPSHOTS_SHARE: Final = 4

_log = structlog.get_logger(__name__)


class HostError(Exception):
    """The host refuses a request and has changed nothing; the message gives the reason."""


class SnapshotExists(HostError):
    """A snapshot with this name exists."""


class NoSuchSnapshot(HostError):
    """No snapshot has this name."""


class TooManySnapshots(HostError):
    """The limit of snapshots is reached."""


class _HostJob:
    """Work on the store while the database is closed."""

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self.work = work
        self.failure: Exception | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def finish(self) -> None:
        """Notify the caller that the database is open again."""
        if self.done.done():
            return
        if self.failure is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(self.failure)


class Opening(Struct, frozen=True):
    """The parameters of opening databases, at the start and after each reset."""

    settings: DatabaseSettings
    new_clock: Callable[[], Clock]
    broker: Broker | None = None
    separation: Separation = "shared"

    def with_share(self, share: Share) -> Opening:
        """These parameters for one of several nodes that share the tables."""
        return structs.replace(self, settings=structs.replace(self.settings, share=share))

    def in_region(self, region: str) -> Opening:
        """These parameters for the region of the data."""
        return structs.replace(self, settings=structs.replace(self.settings, region=region))


class DatabaseHost:
    """Owns the open databases: one, or one for each namespace.

    One task opens and closes the databases. Meanwhile all requests wait in ``protocol``.
    """

    databases: Databases

    def __init__(self, store: Store, opening: Opening) -> None:
        self._store = store
        self._opening = opening
        self._settings = opening.settings
        self._clock = opening.new_clock()
        self._jobs: asyncio.Queue[_HostJob | None] = asyncio.Queue()
        self._protocol: Protocol | None = None
        self._on_reset: list[Callable[[], None]] = []
        self._snapshots: dict[str, Contents] = {}

    @property
    def database(self) -> Database:
        """The database of the configured region."""
        return self.databases.main

    @property
    def settings(self) -> DatabaseSettings:
        """The current settings of the databases."""
        return self._settings

    @property
    def snapshots(self) -> dict[str, int]:
        """The sizes of the snapshots in bytes, in the order in which they were made."""
        return {name: contents.size_bytes for name, contents in self._snapshots.items()}

    def attach(self, protocol: Protocol) -> None:
        """Attach the protocol, whose requests wait while the database is closed."""
        self._protocol = protocol

    def on_reset(self, forget: Callable[[], None]) -> None:
        """Have each reset call ``forget``."""
        self._on_reset.append(forget)

    async def reset(self) -> None:
        """Open an empty database with the settings and the clock of the server's start.

        Raises ``StoreError`` if the store can't be read or written.
        """
        await self._reopen(self._empty)
        for forget in self._on_reset:
            forget()

    async def change_settings(self, settings: DatabaseSettings) -> None:
        """Open the database with other settings."""

        async def change() -> None:
            self._settings = settings
            self._continue_clock()

        await self._reopen(change)

    async def make_snapshot(self, name: str) -> None:
        """Keep a copy of all data in the server's memory.

        Raises ``SnapshotExists``, ``TooManySnapshots`` or ``StoreError``.
        """
        if name in self._snapshots:
            raise SnapshotExists(f"There is already a snapshot {name}")
        if len(self._snapshots) >= MOST_SNAPSHOTS:
            raise TooManySnapshots(f"There are {MOST_SNAPSHOTS} snapshots already: delete one")
        free_bytes = memory_bytes() // _SNAPSHOTS_SHARE - sum(self.snapshots.values())

        async def copy() -> None:
            self._continue_clock()
            try:
                self._snapshots[name] = await read_contents(self._store, free_bytes)
            except StoreTooLarge:
                raise TooManySnapshots(
                    f"Snapshots use at most a quarter of the memory, and {free_bytes:,} bytes of "
                    "that quarter are free"
                ) from None

        await self._reopen(copy)

    async def restore_snapshot(self, name: str) -> None:
        """Restore the data of a snapshot; the settings don't change.

        Raises ``NoSuchSnapshot`` or ``StoreError``.
        """
        contents = self._snapshots.get(name)
        if contents is None:
            raise NoSuchSnapshot(f"There is no snapshot of that name: {name}")

        async def restore() -> None:
            await replace_contents(self._store, contents.rows)
            self._continue_clock()

        await self._reopen(restore)

    def delete_snapshot(self, name: str) -> None:
        """Delete a snapshot; raises ``NoSuchSnapshot``."""
        if self._snapshots.pop(name, None) is None:
            raise NoSuchSnapshot(f"There is no snapshot of that name: {name}")

    async def _empty(self) -> None:
        self._clock = self._opening.new_clock()
        self._settings = self._opening.settings
        rows = []
        if isinstance(self._clock, VirtualClock):
            # Without this row, the data would count as written in real time, so the virtual clock
            # could not start at an earlier time.
            rows.append(clock_row(self._clock.now_epoch_seconds(), self._clock.speed))
        if self._opening.separation != "shared":
            rows.append(separation_row(self._opening.separation, self._opening.settings.region))
        await replace_contents(self._store, [Row(*row) for row in rows])

    def _continue_clock(self) -> None:
        """Continue a virtual clock from the stored time."""
        if isinstance(self._clock, VirtualClock):
            self._clock = VirtualClock(0.0)

    async def _reopen(self, work: Callable[[], Awaitable[None]]) -> None:
        job = _HostJob(work)
        self._jobs.put_nowait(job)
        await job.done

    async def run(self, group: TaskGroup, opened: asyncio.Future[None]) -> None:
        """Keep the database open until ``end``. ``opened`` completes when the database first opens.

        If the database ends by itself, this method cancels ``group``, because the server needs the
        database.
        """
        job: _HostJob | None = None
        loop = asyncio.get_running_loop()
        try:
            for closed in count(1):
                is_ended = True
                async with open_databases(
                    self._store,
                    self._settings,
                    self._clock,
                    self._opening.broker,
                    separation=self._opening.separation,
                ) as self.databases:
                    self._report_opened(job, opened)
                    job = await self._jobs.get()
                    if job is not None and self._protocol is not None:
                        await self._protocol.hold()
                    is_ended = False
                if is_ended:
                    group.cancel_scope.cancel()
                    return
                if job is None:
                    return
                await self._execute(job)
                if closed % _COLLECT_AFTER_CLOSED == 0:
                    loop.call_later(_COLLECT_LATER_SECONDS, gc.collect)
        except Exception as error:
            if opened.done():
                raise
            opened.set_exception(error)
        finally:
            self._refuse_rest()

    def end(self) -> None:
        """Close the database permanently."""
        self._jobs.put_nowait(None)

    def _refuse_rest(self) -> None:
        while not self._jobs.empty():
            job = self._jobs.get_nowait()
            if job is not None:
                job.failure = HostError("The server is stopping")
                job.finish()

    def _report_opened(self, job: _HostJob | None, opened: asyncio.Future[None]) -> None:
        if self._protocol is not None:
            self._protocol.resume(self.databases)
        if job is not None:
            job.finish()
        if not opened.done():
            opened.set_result(None)

    @staticmethod
    async def _execute(job: _HostJob) -> None:
        try:
            await job.work()
        except (HostError, StoreError) as error:
            _log.warning("reopening_failed", error=str(error))
            job.failure = error


@asynccontextmanager
async def hosting_database(store: Store, opening: Opening) -> AsyncIterator[DatabaseHost]:
    """A host of a database over an open store, which stays open; raises as ``open_database``."""
    host = DatabaseHost(store, opening)
    opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    closed = anyio.Event()

    async def run() -> None:
        try:
            await host.run(group, opened)
        finally:
            closed.set()

    kept = KeptFailure()
    async with anyio.create_task_group() as group:
        group.start_soon(run)
        with kept:
            await opened
            try:
                yield host
            finally:
                host.end()
                with anyio.CancelScope(shield=True):
                    await closed.wait()
    kept.raise_again()
