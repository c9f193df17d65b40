"""Splits of partitions during transactions: no transaction fails or is applied in part."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from msgspec import json

from dynactor.actors.database.database import Database
from dynactor.actors.splitting.messages import SplitPartition
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.pages import ReadRange, read_page
from dynactor.actors.table.table import Table
from dynactor.actors.transactions.coordinator import table_action, table_key
from dynactor.api.execution.transaction_requests import CheckedActions, execute
from dynactor.api.requests.call import Call
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.expressions.update import parse_update
from dynactor.model.key_conditions import key_range
from dynactor.model.keys import key as keys
from dynactor.model.reads.page import PageRules
from dynactor.model.values.item import Item
from dynactor.model.writes.write import Update
from dynactor.storage import key_layout
from dynactor.storage.store import Store
from tests.support.databases.databases import (
    HeldStore,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.splitting import halve
from tests.support.databases.stored_items import items
from tests.support.databases.transacting import actions, stepped, transact, until
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.stores.store import memory_store


class Pairs:
    """Tasks that write the same number to two items of different collections."""

    def __init__(self, database: Database) -> None:
        self.written: dict[str, str] = {}
        self.transactions = 0
        self.stopping = False
        self._database = database

    async def write(self, task: int, draw: random.Random) -> None:
        table = self._database.table("Thread")
        while not self.stopping:
            pair = f"{task}.{draw.randrange(20)}"
            number = str(self.transactions)
            self.transactions += 1
            actions = [
                table_action(place, table, put({**item, "n": {"N": number}}))
                for place, item in enumerate(pair_items(pair))
            ]
            await self._database.transactions.write(actions, None)
            self.written[pair] = number
            wanted = [table_key(table, item) for item in pair_items(pair)]
            read = await self._database.transactions.read(wanted)
            assert [numbered(one.stored.item) for one in read if one.stored] == [number] * 2


def pair_items(pair: str) -> Sequence[Item]:
    return [thread(f"{pair}/left", pair), thread(f"{pair}/right", pair)]


def numbered(item: Item) -> str:
    number: str = item["n"]["N"]
    return number


async def split_somewhere(database: Database, draw: random.Random) -> None:
    table: Table = database.table("Thread")
    position = keys.encode(
        table.definition.key_schema, draw.choice(pair_items(f"0.{draw.randrange(20)}"))
    )[:8]
    ranges = table.record.partitions
    owner = max((part for part in ranges if part.start <= position), key=lambda part: part.start)
    if owner.start != position:
        await database.ask(SplitPartition("Thread", owner.number, position))


@pytest.mark.parametrize("seed", range(3))
async def test_transactions_continue_through_splits(seed: int):
    draw = random.Random(seed)
    async with running_database(None, partitions_per_table=1) as database:
        await database.ask(CreateTable(table_definition()))
        pairs = Pairs(database)
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            for task in range(8):
                tasks.create_task(pairs.write(task, random.Random(f"{seed} {task}")))
            for _ in range(12):
                goal = pairs.transactions + 30
                while pairs.transactions < goal:
                    await asyncio.sleep(0)
                await split_somewhere(database, draw)
            pairs.stopping = True
        table = database.table("Thread")
        assert len(table.record.partitions) > 6
        page = await read_page(table, ReadRange(key_range.WHOLE, PageRules()))
        found: dict[str, list[str]] = {}
        for row in page.items:
            item = json.decode(row)
            found.setdefault(item["subject"]["S"], []).append(numbered(item))
        assert found == {pair: [number] * 2 for pair, number in pairs.written.items()}


@asynccontextmanager
async def one_partition(store: Store | None = None) -> AsyncIterator[tuple[Database, Table, Table]]:
    """Two tables; the first has one partition and an item with a counter."""
    async with running_database(store, partitions_per_table=1) as database:
        for name in ("Thread", "Reply"):
            await database.ask(CreateTable(table_definition(name)))
        table, other = database.table("Thread"), database.table("Reply")
        await table.write(put(thread("EC2", "a", posts=10)))
        yield database, table, other


def add_one(forum: str = "EC2") -> Update:
    placeholders = Placeholders(None, {":one": {"N": "1"}})
    return Update(thread(forum, "a"), parse_update("ADD posts :one", placeholders))


async def counters(*places: tuple[Table, str]) -> list[str | None]:
    found = [await items(table, thread(forum, "a")) for table, forum in places]
    return [item["posts"]["N"] if item else None for (item,) in found]


async def test_a_prepared_transaction_is_decided_again_after_a_split():
    async with one_partition() as (database, table, other):
        before_units = table.throttle.consumed.write_units
        steps: list[int] = []

        async def split_once(step: int) -> None:
            steps.append(step)
            if step == 0:
                await halve(database, table, 1)
                # The children have no locks yet.
                await table.write(put(thread("EC2", "a", posts=20)))

        stepped(database, split_once)
        await transact(database, (table, add_one()), (other, add_one()))
        # It was prepared twice, joined once and committed once.
        assert len(steps) == 4
        assert await counters((table, "EC2"), (other, "EC2")) == ["21", "1"]
        # The units of the first attempt were given back.
        assert table.throttle.consumed.write_units == before_units + 1 + 2
        for each in (table, other):
            await each.write(put(thread("EC2", "a")))


async def test_a_joined_transaction_whose_partition_is_split_is_written_once():
    async with memory_store() as store, one_partition(store) as (database, table, other):
        splitting: list[asyncio.Future[object]] = []

        async def split_once(step: int) -> None:
            # All partitions have joined the round.
            if step == 1:
                splitting.append(asyncio.ensure_future(halve(database, table, 1)))
                head_key = key_layout.partition_head(1)
                async with asyncio.timeout(HANG_SECONDS):
                    while await store.durable().load([head_key]) != [None]:
                        await asyncio.sleep(0)

        stepped(database, split_once)
        async with asyncio.timeout(HANG_SECONDS):
            await transact(database, (table, add_one()), (other, add_one()))
            await splitting[0]
        assert await counters((table, "EC2"), (other, "EC2")) == ["11", "1"]
        for each in (table, other):
            await each.write(put(thread("EC2", "a")))


@pytest.mark.embedded_store("PostgreSQL accepts a commit when it is durable")
async def test_a_transaction_in_one_partition_is_divided_between_the_children():
    async with memory_store() as inner:
        store = HeldStore(inner)
        async with one_partition(store) as (database, table, _):
            store.hold()
            splitting = asyncio.ensure_future(halve(database, table, 1))
            await until(lambda: bool(store.held))
            forums = [f"forum {number}" for number in range(12)]
            found = actions(*((table, add_one(forum)) for forum in forums))
            call: Call[None] = Call(database, None, "localhost")

            async def add() -> None:
                await execute(call, CheckedActions(found, [], None), "token", b"content")

            adding = asyncio.ensure_future(add())
            await until(lambda: table.partitions._actors[1].is_stale)
            assert not adding.done()
            await store.release()
            await splitting
            await adding
            assert len({table.number_at(action.position) for _, action in found}) == 2
            # The client token was written with the second attempt.
            await add()
            assert await counters(*((table, forum) for forum in forums)) == ["1"] * len(forums)
