"""Two databases that share the tables of one store: the leader's, and that of another share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any, Final

from dynactor.actors.catalog.homes import MoveTables, TakeTables
from dynactor.actors.catalog.share import Share
from dynactor.actors.database.database import Database
from dynactor.actors.runtime.clock import Clock
from dynactor.storage.store import Store
from dynactor.streams.kafka.broker import Broker
from tests.support.databases.databases import running_database

EPOCH: Final = (3 << 32) + 1


@asynccontextmanager
async def sharing(
    store: Store,
    other_store: Store | None = None,
    clocks: tuple[Clock | None, Clock | None] = (None, None),
    broker: Broker | None = None,
    **settings: Any,
) -> AsyncIterator[tuple[Database, Database]]:
    """The leader, and the database of a share, both without tables."""
    async with (
        running_database(store, clocks[0], broker, share=Share(), **settings) as leader,
        running_database(
            other_store or store, clocks[1], broker, share=Share(EPOCH), **settings
        ) as other,
    ):
        for database in (leader, other):
            database.guard_moves(OpenGuard())
        yield leader, other


class OpenGuard:
    """A node without requests; each of its shares can take tables."""

    def may_give(self, epoch: int) -> bool:
        del epoch
        return True

    @asynccontextmanager
    async def holding(self, names: Collection[str]) -> AsyncIterator[bool]:
        del names
        yield True

    def opened(self) -> None:
        """No request waits."""


async def give(leader: Database, other: Database, name: str = "Thread") -> None:
    """Give a table of the leader to the other share."""
    assert name in leader.movable_tables()
    await leader.ask(MoveTables((name,), EPOCH))
    await other.ask(TakeTables((name,)))
    assert other.runs(name)


async def give_back(other: Database, name: str = "Thread") -> None:
    """Give a table back to the leader, which has to take it."""
    await other.ask(MoveTables((name,)))


async def take_ended(leader: Database, name: str = "Thread") -> None:
    """Let the leader take a table of the other share, which has ended."""
    await leader.ask(TakeTables((name,), frozenset((EPOCH,))))
    assert leader.runs(name)
