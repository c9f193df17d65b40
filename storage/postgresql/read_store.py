"""Reads from a hot standby, and from the primary while the standby can't be used.

The standby is checked each second: it must have replayed the commit that made this server the
owner. A read that the standby refuses, or does not answer in time, is repeated on the primary.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import anyio
import structlog
from anyio.abc import TaskGroup

from dynactor.storage.postgresql.address import Address
from dynactor.storage.postgresql.connections import ConnectionPolicy, Connections
from dynactor.storage.postgresql.reader import Reader
from dynactor.storage.postgresql.sql import Statements
from dynactor.storage.postgresql.views import CommittedView, ForwardingView
from dynactor.storage.store import StoreError, Unavailable, View
from dynactor.storage.store_figures import ReadStoreFigures

_CONNECTIONS: Final = 8
_BEAT_SECONDS: Final = 1.0
# The primary answers reads that take longer on the standby.
_POLICY: Final = ConnectionPolicy(
    connect_seconds=1.0,
    statement_seconds=2.0,
    retry_seconds=0.0,
    needs_primary=False,
    is_logged=False,
)

T = TypeVar("T")

_log = structlog.get_logger("storage")


class ReadStore:
    """Reads from the standby if ``is_used``, and otherwise from the primary."""

    def __init__(  # noqa: PLR0917 - its parts, made in one place
        self,
        tasks: TaskGroup,
        address: Address,
        statements: Statements,
        epoch: int,
        primary: Reader,
        raise_if_closed: Callable[[], None],
    ) -> None:
        self._tasks = tasks
        self._address = address
        self._statements = statements
        self._raise_if_closed = raise_if_closed
        self._epoch = epoch
        self.primary = primary
        self._for_checks = Connections(address, 1, _POLICY)
        self._reader = self._new_reader()
        self.is_used = False
        self._fallbacks = 0
        self._is_checked = False
        self.view: View = _FallbackView(self)

    @property
    def figures(self) -> ReadStoreFigures:
        """The figures for the metrics."""
        return ReadStoreFigures(self.is_used, self._fallbacks)

    async def keep(self) -> None:
        """Check the standby each second until the task is canceled."""
        while True:
            await self.check()
            await anyio.sleep(_BEAT_SECONDS)

    async def check(self) -> None:
        """Use the standby only if it has replayed the commit that made this server the owner."""

        async def ask(connection: Any) -> int:
            epoch: int = await connection.fetchval(self._statements.epoch)
            return epoch

        try:
            epoch = await self._for_checks.run(ask)
        except StoreError as error:
            self._use(is_used=False, reason=str(error))
        else:
            reason = "" if epoch == self._epoch else "it has not replayed this server's start"
            self._use(is_used=not reason, reason=reason)

    async def in_snapshot(self, read: Callable[[View], Awaitable[T]], *, calls_once: bool) -> T:
        """See ``Store``."""
        return await self.run(lambda reader: reader.in_snapshot(read, calls_once=calls_once))

    async def run(self, read: Callable[[Reader], Awaitable[T]]) -> T:
        """Read from the standby, or from the primary."""
        if self.is_used:
            try:
                return await read(self._reader)
            except StoreError as error:
                if isinstance(error, Unavailable):
                    self._use(is_used=False, reason=str(error))
        self._fallbacks += 1
        return await read(self.primary)

    async def close(self) -> None:
        """Close the connections to the standby."""
        await self._for_checks.close()
        await self._reader.close()

    def _new_reader(self) -> Reader:
        return Reader(
            self._tasks,
            Connections(self._address, _CONNECTIONS, _POLICY),
            Connections(self._address, _CONNECTIONS, _POLICY),
            self._statements,
            self._raise_if_closed,
        )

    def _use(self, *, is_used: bool, reason: str) -> None:
        is_news = is_used != self.is_used or not self._is_checked
        self._is_checked = True
        if self.is_used and not is_used:
            # The reads that wait for a connection go to the primary, instead of waiting in turn for
            # a standby that does not answer.
            self._tasks.start_soon(self._reader.close)
            self._reader = self._new_reader()
        self.is_used = is_used
        if is_news and is_used:
            _log.info("read_store_used", hosts=self._address.hosts)
        elif is_news:
            _log.warning(
                "read_store_bypassed",
                hosts=self._address.hosts,
                reason=reason,
                consequence="the primary answers all reads",
            )


class _FallbackView(ForwardingView):
    """Reads from the standby, or from the primary if the standby can't be used."""

    def __init__(self, store: ReadStore) -> None:
        self.raise_if_closed = store.primary.view.raise_if_closed
        self._store = store

    async def _forward(self, read: Callable[[CommittedView], Awaitable[T]]) -> T:
        return await self._store.run(lambda reader: read(reader.view))
