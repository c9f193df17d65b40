"""Executes requests on a database of this node, and holds back requests to tables that move."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final
from typing import Protocol as Port

import anyio

from dynactor.actors.catalog.homes import HomeChange, MoveGuard
from dynactor.api.execution.operation import Effect
from dynactor.api.http.protocol import Answer, Protocol, Request
from dynactor.api.nodes.request_rates import RequestRates
from dynactor.api.nodes.request_tables import RequestTables
from dynactor.api.registry import TARGETS
from dynactor.model.errors import InternalServerError
from dynactor.storage.store import StoreError

# Errors that follow a read of the store, or that clients retry. A node answers all others by what
# it has in memory, such as the definitions of tables and the backups.
_CONFIRMED: Final = tuple(
    f'#{name}"'.encode()
    for name in (
        "ConditionalCheckFailedException",
        "ProvisionedThroughputExceededException",
        "ThrottlingException",
        "TransactionCanceledException",
        "TransactionConflictException",
    )
)
# The error's name is the first member of the body.
_NAME_BYTES: Final = 120


class SharedTables(Port):
    """The database of a node that shares the tables with other nodes."""

    @property
    def tables_elsewhere(self) -> Mapping[str, int]:
        """The epochs of the shares that run the other tables, by table."""
        ...

    @property
    def table_groups(self) -> Mapping[str, str]:
        """The groups of tables that have one home, by table."""
        ...

    def runs(self, name: str) -> bool:
        """Whether this database runs a table with this name."""
        ...

    def table_names(self) -> Sequence[str]:
        """The names of all tables, also of tables that have another home."""
        ...

    def movable_tables(self) -> Sequence[str]:
        """The tables that may get another home now."""
        ...

    async def confirm_owner(self) -> None:
        """Read the store; raises ``StoreError`` if another node has taken over."""
        ...

    def guard_moves(self, guard: MoveGuard) -> None:
        """Let the node hold back the requests to tables that move."""
        ...

    async def ask(self, message: HomeChange) -> None:
        """Move, take, recall or group tables; raises ``InternalServerError``."""
        ...


class Runner:
    """The requests on one database; ``tables`` is None while the database is not open.

    Invariant: no request to a held table starts.
    """

    def __init__(self, protocol: Protocol, rates: RequestRates) -> None:
        self.protocol = protocol
        self._rates = rates
        self.tables: SharedTables | None = None
        self._running: Counter[str] = Counter()
        self._held: set[str] = set()
        self._ended: asyncio.Future[None] | None = None

    def holds(self, names: Collection[str]) -> bool:
        """Whether requests to any of these tables have to wait."""
        return bool(self._held) and not self._held.isdisjoint(names)

    def answer(self, request: Request, tables: RequestTables) -> Answer | Awaitable[Answer]:
        """Execute a request."""
        self._rates.count(tables.names)
        # The home may end before the answer, and has no tables then.
        database = self.tables
        answer = self.protocol.answer(request)
        if isinstance(answer, Answer):
            return self._confirmed(answer, database) if _is_by_memory(request, answer) else answer
        # Count before the first await, because the request may have sent messages already.
        for name in tables.names:
            self._running[name] += 1
        return self._counted(request, answer, tables.names, database)

    async def _counted(
        self,
        request: Request,
        answer: Awaitable[Answer],
        names: tuple[str, ...],
        database: SharedTables | None,
    ) -> Answer:
        try:
            done = await answer
            return await self._confirmed(done, database) if _is_by_memory(request, done) else done
        finally:
            for name in names:
                self._running[name] -= 1
                if not self._running[name]:
                    del self._running[name]
            if self._ended is not None:
                self._ended.set_result(None)
                self._ended = None

    async def _confirmed(self, answer: Answer, database: SharedTables | None) -> Answer:
        """The answer, unless another node has taken over and may have changed the tables."""
        if database is not None:
            try:
                await database.confirm_owner()
            except StoreError as error:
                return self.protocol.refuse(InternalServerError(f"Nothing was written: {error}"))
        return answer

    @asynccontextmanager
    async def holding(self, names: Collection[str], seconds: float) -> AsyncIterator[bool]:
        """Hold back new requests to these tables; False if earlier ones do not end in time."""
        held = set(names) - self._held
        self._held |= held
        try:
            yield await self.drained(names, seconds)
        finally:
            self._held -= held

    async def drained(self, names: Collection[str], seconds: float) -> bool:
        """Wait for the requests to held tables; return whether all have ended in time."""
        with anyio.move_on_after(seconds):
            while any(self._running[name] for name in names):
                self._ended = self._ended or asyncio.get_running_loop().create_future()
                await asyncio.shield(self._ended)
            return True
        return False


def _is_by_memory(request: Request, answer: Answer) -> bool:
    """Whether an answer is what the node has in memory, and no read of the store."""
    operation = TARGETS.get(request.target)
    if operation is not None and operation.effect is Effect.DESCRIBES:
        return True
    return answer.status == HTTPStatus.BAD_REQUEST and not any(
        name in answer.body[:_NAME_BYTES] for name in _CONFIRMED
    )
