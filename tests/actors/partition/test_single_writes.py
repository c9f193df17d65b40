"""A single write to an idle partition is carried out in the turn of its sender."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from dynactor.actors.partition.table_core import TableCore
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.table import Table
from dynactor.model.errors import InternalServerError
from dynactor.storage.store import Full, Group, Store, View
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.stored_items import items
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.history_store import DelayedView, Delays
from tests.support.stores.store import rocks_in_memory

FIRST, SECOND = thread("EC2", "a"), thread("EC2", "b")


class NowaitStore(FaultyStore):
    """A store whose commits without an await become durable, or are refused, by the test."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.refusal: Full | None = None
        self.is_held = False
        self.are_rows_cached = True
        self.commits: list[Future[None]] = []

    @property
    def latest(self) -> View:
        view = super().latest
        return view if self.are_rows_cached else DelayedView(view, Delays(1, 0.0))

    def commit_nowait(self, groups: Sequence[Group]) -> Future[None] | None:
        if self.refusal is not None:
            raise self.refusal
        commit = self._inner.commit_nowait(groups)
        assert commit is not None
        return self._noted(commit)

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        commit = await super().commit(groups)
        return self._noted(commit) if self.is_held else commit

    def _noted(self, commit: Future[None]) -> Future[None]:
        if self.is_held:
            commit = asyncio.get_running_loop().create_future()
        self.commits.append(commit)
        return commit


@asynccontextmanager
async def idle_table() -> AsyncIterator[tuple[NowaitStore, Table]]:
    """A table whose only partition has written before, and waits for messages."""
    async with rocks_in_memory() as inner:
        store = NowaitStore(inner)
        async with running_database(store, partitions_per_table=1) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            await table.write(put(thread("EC2", "before")))
            yield store, table


async def test_a_durable_write_is_answered_in_the_turn_of_its_sender() -> None:
    async with idle_table() as (store, table):
        assert table.submit(put(FIRST)).done()
        assert len(store.commits) == 1
        assert await items(table, FIRST) == [FIRST]


async def test_a_write_is_not_answered_before_its_commit_is_durable() -> None:
    async with idle_table() as (store, table):
        store.is_held = True
        reply = table.submit(put(FIRST))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not reply.done()
        store.commits[0].set_result(None)
        await reply


async def test_a_write_during_a_commit_waits_for_the_loop_and_is_answered_later() -> None:
    async with idle_table() as (store, table):
        store.is_held = True
        answered: list[str] = []
        replies = [table.submit(put(each)) for each in (FIRST, SECOND)]
        assert len(store.commits) == 1
        for name, reply in zip(("first", "second"), replies, strict=True):
            reply.add_done_callback(lambda _, name=name: answered.append(name))
        for _ in range(10):
            await asyncio.sleep(0)
        for commit in store.commits:
            commit.set_result(None)
        await asyncio.gather(*replies)
        assert answered == ["first", "second"]


async def test_a_refused_commit_is_repeated_by_the_loop_and_paid_once() -> None:
    async with idle_table() as (store, table):
        store.refusal = Full("the disk is full")
        before = table.throttle.consumed_units
        await table.submit(put(FIRST))
        assert table.throttle.consumed_units == before + 1
        assert store.commits == []
        assert await items(table, FIRST) == [FIRST]


async def test_a_write_whose_item_is_not_in_memory_is_carried_out_by_the_loop() -> None:
    async with idle_table() as (store, table):
        store.are_rows_cached = False
        reply = table.submit(put(FIRST))
        assert not reply.done()
        await reply
        assert store.commits == []


async def test_a_crash_of_a_decision_restarts_the_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with idle_table() as (_, table):
        with monkeypatch.context() as broken:
            broken.setattr(TableCore, "decide", lambda *_: 1 // 0)
            with pytest.raises(InternalServerError):
                await table.submit(put(FIRST))
        assert (await table.write(put(FIRST))).attributes is None
