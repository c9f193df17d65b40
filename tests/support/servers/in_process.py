"""A whole server in the test's own process, so that a test can inject faults into its actors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from random import Random
from typing import Any, TypeAlias

from dynactor.actors.database.database import Database
from dynactor.actors.indexes.global_index import GlobalIndexActors
from dynactor.actors.partition.index_partition import ApplyChanges, Backfill
from dynactor.actors.runtime.replies import PartitionMoved
from dynactor.actors.runtime.supervisor import RESTARTS
from dynactor.api.http.browser_access import Access
from dynactor.api.http.protocol import Answer, Protocol, Request
from dynactor.api.http.server import listen, serving
from dynactor.api.http.settings import HttpSettings
from dynactor.api.registry import NOT_IMPLEMENTED, OPERATIONS
from tests.support.clients.clients import JSON_1_0
from tests.support.clients.wire import decode, encode
from tests.support.databases.databases import running_database

_Message: TypeAlias = ApplyChanges | Backfill
Ask: TypeAlias = Callable[[GlobalIndexActors, int, _Message], Awaitable[None]]
Asking: TypeAlias = asyncio.Task[None]

_MOST_SECONDS = 0.01


@asynccontextmanager
async def running_in_process(**settings: Any) -> AsyncIterator[tuple[str, int]]:
    """A server over a store in memory; yields host and port."""
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(running_database(**settings))
        protocol = Protocol(database, OPERATIONS.values(), NOT_IMPLEMENTED)
        listener = stack.enter_context(listen("127.0.0.1", 0))
        access = Access(host_names=frozenset())
        await stack.enter_async_context(
            serving(protocol, HttpSettings(region="us-east-1", access=access), listener)
        )
        yield listener.getsockname()[:2]


class InProcessClient:
    """Calls the operations of a database in the test's own process, without HTTP."""

    def __init__(self, database: Database, service: str = "DynamoDB") -> None:
        """``service`` may also be DynamoDBStreams."""
        self.database = database
        self._service = service
        self._protocol = Protocol(database, OPERATIONS.values(), NOT_IMPLEMENTED)

    async def __call__(
        self, operation: str, request: dict[str, Any], headers: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Run an operation; return the status and the body of its answer."""
        answer = self._protocol.answer(
            Request(
                f"{self._service}_20120810.{operation}",
                JSON_1_0,
                "AWS4-HMAC-SHA256",
                "",
                "localhost",
                "",
                "",
                encode(request),
                headers=headers or {},
            )
        )
        if not isinstance(answer, Answer):
            answer = await answer
        return answer.status, decode(answer.body or b"{}")


class Crash(Exception):
    """Makes a follower or a backfill crash after it has put a message in a mailbox."""


class MessageFaults:
    """Injects faults into the messages to the partitions of an index.

    It delays messages, duplicates them, and sends them again long after they were processed. It
    also makes a follower or backfill crash after it has sent a message, so that the restarted actor
    sends all pending messages again.
    """

    def __init__(self, ask: Ask, draw: Random, backfill_seconds: float = _MOST_SECONDS) -> None:
        self.doubled = self.late = self.crashes = 0
        self._ask = ask
        self._draw = draw
        self._backfill_seconds = backfill_seconds
        self._sent: dict[tuple[GlobalIndexActors, int], list[ApplyChanges]] = {}
        # The number of crashes of each follower and of the backfills, because a supervisor gives up
        # after too many.
        self._crashes_of: dict[tuple[GlobalIndexActors, int], int] = {}

    def ask(self, actors: GlobalIndexActors, place: int, message: _Message) -> Asking:
        """Ask a partition with faults; a test replaces ``GlobalIndexActors.ask`` by this method."""
        return asyncio.get_running_loop().create_task(self._ask_with_faults(actors, place, message))

    async def _ask_with_faults(
        self, actors: GlobalIndexActors, place: int, message: _Message
    ) -> None:
        is_change = isinstance(message, ApplyChanges)
        longest = _MOST_SECONDS if is_change else self._backfill_seconds
        await asyncio.sleep(self._draw.uniform(0, longest))
        source = message.source if isinstance(message, ApplyChanges) else 0
        if self._draw.random() < 0.02 and self._may_crash(actors, source):
            self.crashes += 1
            with suppress(PartitionMoved):
                actors.partitions[place].ask(message)
            raise Crash
        asked = [message]
        if self._draw.random() < 0.3:
            self.doubled += 1
            asked.append(message)
        if isinstance(message, ApplyChanges):
            sent = self._sent.setdefault((actors, place), [])
            if sent and self._draw.random() < 0.5:
                self.late += 1
                asked.insert(self._draw.randrange(len(asked) + 1), self._draw.choice(sent))
            sent.append(message)
        await asyncio.gather(*(self._ask(actors, place, each) for each in asked))

    def _may_crash(self, actors: GlobalIndexActors, source: int) -> bool:
        crashes = self._crashes_of.get((actors, source), 0)
        self._crashes_of[actors, source] = crashes + 1
        return crashes < RESTARTS - 1
