"""Databases in the test's process, over a real store in memory, for tests of the actors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from msgspec import structs

from dynactor.actors.catalog import definition_commit
from dynactor.actors.database.database import Database
from dynactor.actors.database.open_database import open_database
from dynactor.actors.parts.database_settings import DatabaseSettings
from dynactor.actors.runtime.clock import Clock, SystemClock, VirtualClock
from dynactor.actors.table.table import Table
from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.values import item as items
from dynactor.model.values.item import Item
from dynactor.model.writes.write import Put
from dynactor.storage.store import Group, Store, View
from dynactor.storage.store_figures import StoreFigures
from dynactor.streams.kafka.broker import Broker
from tests.support.stores.local_reads import LocalReads
from tests.support.stores.store import memory_store

T = TypeVar("T")


@asynccontextmanager
async def running_database(
    store: Store | None = None,
    clock: Clock | None = None,
    broker: Broker | None = None,
    **settings: Any,
) -> AsyncIterator[Database]:
    """A database with these settings; messages between actors are serialized."""
    chosen = DatabaseSettings(**{"copy_messages": True, **settings})
    clock = clock or SystemClock()
    if store is not None:
        async with open_database(store, chosen, clock, broker) as database:
            try:
                yield database
            finally:
                # A failed test must not leave the partitions waiting for their last commit.
                if isinstance(store, HeldStore):
                    await store.release()
        return
    async with memory_store() as own, open_database(own, chosen, clock, broker) as database:
        yield database


async def redefine(database: Database, table: Table, **members: Any) -> None:
    """Change members of a table's definition, for its partitions."""
    definition = structs.replace(table.definition, **members)
    await definition_commit.redefine(database.actor.parts.owner, table, definition)


def table_definition(
    name: str = "Thread", *, local_sort_keys: Sequence[str] = ()
) -> TableDefinition:
    """A table with the key forum (S), subject (S), and a local index for each sort key."""
    forum, subject = KeyAttribute("forum", "S"), KeyAttribute("subject", "S")
    sorts = tuple(KeyAttribute(sort, "N") for sort in local_sort_keys)
    return TableDefinition(
        name=name,
        table_id=0,
        uuid="",
        created_epoch_seconds=0.0,
        attribute_definitions=(forum, subject, *sorts),
        key_schema=KeySchema((forum,), (subject,)),
        billing_mode="PAY_PER_REQUEST",
        local_indexes=tuple(
            IndexDefinition(at, f"by_{sort.name}", KeySchema((forum,), (sort,)), Projection("ALL"))
            for at, sort in enumerate(sorts, 1)
        ),
    )


def thread(forum: str, subject: str, **numbers: int) -> Item:
    """An item of the table of ``table_definition``."""
    item: Item = {"forum": {"S": forum}, "subject": {"S": subject}}
    item.update({name: {"N": str(value)} for name, value in numbers.items()})
    return item


def put(item: Item) -> Put:
    """A put of an item without a condition."""
    return Put(item, items.size_bytes(item))


class SetClock(VirtualClock):
    """A virtual clock that starts at a fixed time; only the test advances it."""

    def __init__(self, epoch_seconds: float = 1_795_175_136.489) -> None:
        super().__init__(epoch_seconds)


class TickingClock(SetClock):
    """A clock that advances whenever it is read, so partitions read different times."""

    is_ticking = False

    def now_epoch_seconds(self) -> float:
        if self.is_ticking:
            self._since_epoch_seconds += 0.001
        return super().now_epoch_seconds()


class HeldStore(LocalReads):
    """A store whose commits become durable when the test says so, and may be refused.

    Everything else is as in the wrapped store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._durable_view = store.durable()
        # For each waiting commit: its end, the future of its caller, and the state with it.
        self._held: list[tuple[asyncio.Future[None], asyncio.Future[None], View]] = []
        self.holding = False
        self.refusal: Exception | None = None

    @property
    def latest(self) -> View:
        return self._store.latest

    def durable(self) -> View:
        return self._durable_view if self.holding else self._store.durable()

    async def commit(self, groups: Sequence[Group]) -> asyncio.Future[None]:
        if self.refusal is not None:
            raise self.refusal
        durable = await self._store.commit(groups)
        if not self.holding:
            return durable
        shown: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._held.append((durable, shown, self._store.durable()))
        return shown

    def hold(self) -> None:
        """Let no commit become durable from now on."""
        self._durable_view = self._store.durable()
        self.holding = True

    @property
    def held(self) -> int:
        """The number of waiting commits."""
        return len(self._held)

    async def release_first(self) -> None:
        """Make the oldest waiting commit durable."""
        durable, shown, self._durable_view = self._held.pop(0)
        await durable
        shown.set_result(None)

    async def release(self) -> None:
        """Make everything accepted so far durable."""
        held, self._held = self._held, []
        for durable, _, _ in held:
            await durable
        self.holding = False
        for _, shown, _ in held:
            shown.set_result(None)

    async def reclaim(self, start: bytes, end: bytes) -> None:
        await self._store.reclaim(start, end)

    async def checkpoint(self, directory: Path) -> None:
        await self._store.checkpoint(directory)

    def figures(self) -> StoreFigures:
        return self._store.figures()

    async def close(self) -> None:
        await self._store.close()
