"""Splits of partitions during transactions: no transaction fails or is applied in part."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest
from msgspec import json

from dynactor.actors.catalog.database import Database
from dynactor.actors.splitting.split_gate import SplitGate
from dynactor.actors.table.pages import ReadRange, read_page
from dynactor.actors.table.table import Table
from dynactor.actors.transactions.coordinator import table_action, table_key
from dynactor.model.keys import key as keys
from dynactor.model.keys import key_range
from dynactor.model.page import PageRules
from dynactor.model.values.item import Item
from tests.support.databases.databases import put, running_database, table_definition, thread


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
        await database.split_partition("Thread", owner.number, position)


@pytest.mark.parametrize("seed", range(3))
async def test_transactions_continue_through_splits(seed: int):
    draw = random.Random(seed)
    async with running_database(None, partitions_per_table=1) as database:
        await database.create_table(table_definition())
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


async def test_a_transaction_also_waits_for_an_immediately_following_split():
    gate = SplitGate()
    told: list[str] = []

    async def transact() -> None:
        await gate.enter()
        told.append("transaction")
        gate.leave()

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        async with gate.closed():
            tasks.create_task(transact())
            await asyncio.sleep(0)
        # The gate is open for the transaction, but the transaction's task has not run yet.
        async with gate.closed():
            for _ in range(5):
                await asyncio.sleep(0)
            assert told == []
    assert told == ["transaction"]


async def test_a_split_and_transactions_wait_for_each_other():
    gate = SplitGate()
    await gate.enter()
    told: list[str] = []

    async def split() -> None:
        async with gate.closed():
            told.append("split")
            await asyncio.sleep(0)
            told.append("split done")

    async def transact() -> None:
        await gate.enter()
        told.append("second transaction")
        gate.leave()

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        tasks.create_task(split())
        await asyncio.sleep(0)
        tasks.create_task(transact())
        await asyncio.sleep(0)
        assert told == []
        gate.leave()
    assert told == ["split", "split done", "second transaction"]
