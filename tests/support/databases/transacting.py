"""Transactions in the test's own process, with actions of the test between their steps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import SystemRandom

from dynactor.actors.database.database import Database
from dynactor.actors.partition.item_locks import ActionDone
from dynactor.actors.table.table import ItemRead, Table
from dynactor.actors.transactions.coordinator import (
    TableAction,
    Transactions,
    table_action,
    table_key,
)
from dynactor.model.expressions.condition import Condition
from dynactor.model.expressions.condition_binding import parse_condition
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.values.item import Item
from dynactor.model.writes.transaction import ActionWrite, Check


def condition(expression: str) -> Condition:
    """A condition without values."""
    return parse_condition(expression, Placeholders(None, None), kind="ConditionExpression")


def check(key: Item, expression: str = "attribute_exists(forum)") -> Check:
    """A condition check."""
    return Check(key, condition(expression))


def actions(*writes: tuple[Table, ActionWrite]) -> list[TableAction]:
    """The actions of a transaction."""
    return [table_action(ordinal, *write) for ordinal, write in enumerate(writes)]


async def transact(database: Database, *writes: tuple[Table, ActionWrite]) -> Sequence[ActionDone]:
    """Write these items in one transaction."""
    return await database.transactions.write(actions(*writes), None)


async def read(database: Database, *items: tuple[Table, Item]) -> list[Item | None]:
    """Read these items in one transaction."""
    found: list[ItemRead] = await database.transactions.read(
        [table_key(table, key) for table, key in items]
    )
    return [None if each.stored is None else each.stored.item for each in found]


class SteppedTransactions(Transactions):
    """Transactions that call ``between`` between their steps.

    The steps: 0, all partitions have prepared; 1, all have joined the round; 2, the round is
    committed.
    """

    between: Callable[[int], Awaitable[None]]

    def step(self, between: Callable[[int], Awaitable[None]]) -> None:
        """Call ``between`` between the steps from now on."""
        self.between = between
        self._steps = 0

    async def _wait(self) -> None:
        step, self._steps = self._steps, self._steps + 1
        await self.between(step)


def stepped(database: Database, between: Callable[[int], Awaitable[None]]) -> SteppedTransactions:
    """Let the database call ``between`` between the steps of its transactions."""
    transactions = SteppedTransactions(
        database._store, database.clock, database.settings.account_id, SystemRandom()
    )
    transactions.step(between)
    database.transactions = transactions
    return transactions


async def until(done: Callable[[], bool]) -> None:
    """Let other tasks run until a condition holds, for at most 60 s of real time."""
    async with asyncio.timeout(60):
        while not done():
            await asyncio.sleep(0)
