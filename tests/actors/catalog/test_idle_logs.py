"""Logs without new changes cost few reads."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from msgspec import structs

from dynactor.actors.table.messages import CreateTable
from dynactor.model.definitions.table import StreamSettings
from dynactor.storage.store import Row, View
from tests.support.databases.databases import (
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.recovered import enable_recovery, record_times, trim
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

_DAY_SECONDS: Final = 24 * 60 * 60
_NAMES: Final = ("one", "two")


class _CountingView:
    """A view that counts its reads."""

    def __init__(self, view: View, reads: Counter[str]) -> None:
        self._view = view
        self._reads = reads

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)

    async def load(self, keys: Any) -> list[bytes | None]:
        self._reads["load"] += 1
        return await self._view.load(keys)

    async def page(self, start: bytes, end: bytes, **members: Any) -> list[Row]:
        self._reads["page"] += 1
        return await self._view.page(start, end, **members)


class CountingStore(FaultyStore):
    """A store that counts its reads."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.reads = Counter[str]()

    @property
    def latest(self) -> Any:
        return _CountingView(super().latest, self.reads)

    def durable(self) -> Any:
        return _CountingView(super().durable(), self.reads)

    def take_reads(self) -> dict[str, int]:
        """The reads since the last call."""
        reads, self.reads = self.reads, Counter[str]()
        return dict(reads)


async def test_a_log_is_read_again_only_after_a_change_or_when_its_oldest_change_is_due() -> None:
    clock = SetClock()
    async with memory_store() as inner:
        store = CountingStore(inner)
        async with running_database(store, clock) as database:
            for name in _NAMES:
                stream = StreamSettings("", "NEW_AND_OLD_IMAGES")
                await database.ask(
                    CreateTable(structs.replace(table_definition(name), stream=stream))
                )
                await enable_recovery(database, name)
                await database.table(name).write(put(thread("EC2", "a")))
            await trim(database)
            store.take_reads()
            clock.step(60)
            await trim(database)
            # The heads show that there are no changes.
            assert store.take_reads() == {"load": len(_NAMES)}
            await database.table("one").write(put(thread("EC2", "b")))
            store.take_reads()
            await trim(database)
            assert store.take_reads()["page"] > 0
            # The window of the recovery is longer than the retention of the stream.
            clock.step(_DAY_SECONDS)
            await trim(database)
            assert store.take_reads()["page"] > 0
            assert len(await record_times(inner, database.table("two"))) == 1
            clock.step(35 * _DAY_SECONDS)
            await trim(database)
            assert await record_times(inner, database.table("two")) == []
