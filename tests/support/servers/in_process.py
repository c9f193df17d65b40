"""A whole server in the test's own process, with actors that a test may disturb or break."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from random import Random
from typing import Any, TypeAlias

from dynactor.actors.catalog.database import Database
from dynactor.actors.derived.indexes.global_index import GlobalIndexActors
from dynactor.actors.partition.index_partition import ApplyChanges, Backfill
from dynactor.actors.partition.partition_map import PartitionMoved
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


class Asked:
    """A database in the test's own process, called as over the wire."""

    def __init__(self, database: Database, service: str = "DynamoDB") -> None:
        """``service`` may also be DynamoDBStreams."""
        self.database = database
        self._service = service
        self._protocol = Protocol(database, OPERATIONS.values(), NOT_IMPLEMENTED)

    async def __call__(self, operation: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The status and the body of an answer."""
        target = f"{self._service}_20120810.{operation}"
        answer = self._protocol.answer(
            Request(target, JSON_1_0, "AWS4-HMAC-SHA256", "", "localhost", "", "", encode(request))
        )
        if not isinstance(answer, Answer):
            answer = await answer
        return answer.status, decode(answer.body)


class Crash(Exception):
    """A follower or a backfill crashes with its messages still in the queue."""


class Trouble:
    """Faults of the messages for the partitions of an index.

    They are delayed, duplicated, and sent again long after they were processed. A follower or
    backfill crashes after a message that it put in a queue, and sends all of it again.
    """

    def __init__(self, ask: Ask, draw: Random, backfill_seconds: float = _MOST_SECONDS) -> None:
        self.doubled = self.late = self.crashes = 0
        self._ask = ask
        self._draw = draw
        self._backfill_seconds = backfill_seconds
        self._sent: dict[tuple[GlobalIndexActors, int], list[ApplyChanges]] = {}
        # A supervisor gives up after more crashes; counted by follower, and for backfills.
        self._crashes_of: dict[tuple[GlobalIndexActors, int], int] = {}

    def ask(self, actors: GlobalIndexActors, place: int, message: _Message) -> Asking:
        """Replaces ``GlobalIndexActors.ask``."""
        return asyncio.get_running_loop().create_task(self._disturb(actors, place, message))

    async def _disturb(self, actors: GlobalIndexActors, place: int, message: _Message) -> None:
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
