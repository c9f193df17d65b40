"""Tables that get a home, or are loaded again, are opened at the same time."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from dynactor.actors.catalog.catalog_owner import CatalogOwner
from dynactor.actors.catalog.homes import MoveTables, TakeTables
from dynactor.actors.catalog.share import Share
from dynactor.actors.database.database import Database
from dynactor.actors.parts.part import load_catalog
from dynactor.actors.table.messages import CreateTable, UpdateTable
from dynactor.model.errors import InternalServerError
from dynactor.model.tables.table_edits import TableEdit
from dynactor.model.tables.table_rules import StreamChange
from dynactor.storage import key_layout
from dynactor.storage.store import Unavailable
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.homes import EPOCH, OpenGuard, sharing
from tests.support.stores.stepped_store import Gate, SteppedStore, loads_of, soon
from tests.support.stores.store import memory_store

NAMES: Final = ("one", "two", "three")
STREAMED: Final = TableEdit(stream=StreamChange(enabled=True, view_type="KEYS_ONLY"))


async def make_tables(database: Database) -> list[int]:
    """Create tables with streams; return the number of a partition of each."""
    for name in NAMES:
        await database.ask(CreateTable(table_definition(name)))
        await database.ask(UpdateTable(name, STREAMED))
    return [database.table(name).record.partition_numbers[0] for name in NAMES]


def gates(store: SteppedStore, numbers: list[int]) -> list[Gate]:
    """The gates at which the opening of each table waits."""
    return [store.gate_before(loads_of(key_layout.partition_head(number))) for number in numbers]


async def all_reached(waiting: list[Gate]) -> None:
    try:
        await soon(lambda: all(gate.is_reached for gate in waiting))
    finally:
        for gate in waiting:
            gate.open()


async def test_a_home_opens_its_tables_at_the_same_time():
    async with memory_store() as inner:
        store = SteppedStore(inner)
        async with sharing(inner, store) as (leader, other):
            numbers = await make_tables(leader)
            await leader.ask(MoveTables(NAMES, EPOCH))
            waiting = gates(store, numbers)
            taking = asyncio.ensure_future(other.ask(TakeTables(NAMES)))
            await all_reached(waiting)
            await taking
            assert all(map(other.runs, NAMES))
            for name in NAMES:
                await other.table(name).write(put(thread("EC2", "a")))


async def test_a_leader_that_starts_opens_its_tables_at_the_same_time():
    async with memory_store() as inner:
        async with running_database(inner, share=Share()) as leader:
            numbers = await make_tables(leader)
        store = SteppedStore(inner)
        waiting = gates(store, numbers)
        reaching = asyncio.ensure_future(all_reached(waiting))
        async with running_database(store, share=Share()) as leader:
            await reaching
            assert all(map(leader.runs, NAMES))


async def test_a_table_that_can_not_be_opened_does_not_keep_the_others_closed():
    async with memory_store() as inner:
        store = SteppedStore(inner)
        async with sharing(inner, store) as (leader, other):
            numbers = await make_tables(leader)
            await leader.ask(MoveTables(NAMES, EPOCH))
            first, *_ = gates(store, numbers[:1])
            taking = asyncio.ensure_future(other.ask(TakeTables(NAMES)))
            try:
                await first.reached()
                await soon(lambda: all(map(other.runs, NAMES[1:])))
            finally:
                first.fail(Unavailable("the connection was lost"))
            with pytest.raises(InternalServerError):
                await taking
            first.open()
            await other.ask(TakeTables(NAMES))
            assert all(map(other.runs, NAMES))


class CountingGuard(OpenGuard):
    """A node that counts the tables that were opened."""

    count = 0

    def opened(self) -> None:
        self.count += 1


async def test_the_node_learns_of_each_table_when_it_is_open():
    async with memory_store() as inner:
        store = SteppedStore(inner)
        async with sharing(inner, store) as (leader, other):
            numbers = await make_tables(leader)
            await leader.ask(MoveTables(NAMES, EPOCH))
            other.guard_moves(guard := CountingGuard())
            first, *_ = gates(store, numbers[:1])
            taking = asyncio.ensure_future(other.ask(TakeTables(NAMES)))
            try:
                await soon(lambda: guard.count == len(NAMES) - 1)
                assert not taking.done()
                assert not other.runs(NAMES[0])
            finally:
                first.open()
            await taking
            assert guard.count == len(NAMES)


async def test_commits_of_the_catalog_at_the_same_time_follow_one_another():
    async with memory_store() as store:
        owner = CatalogOwner(store)
        owner.adopt(await load_catalog(store, None))
        rows = [(key_layout.stream(1, str(number)), b"row") for number in range(3)]
        await asyncio.gather(*(owner.change(puts=[row]) for row in rows))
        assert await store.latest.load([key for key, _ in rows]) == [b"row"] * 3
