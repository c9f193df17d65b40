"""A partition that crashes after it joined a round continues with the outcome of the round."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dynactor.actors.database.database import Database
from dynactor.actors.partition.item_locks import Join, Prepare, Resolve, TransactionPart
from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.table.messages import CreateTable
from tests.support.databases.databases import put, table_definition, thread
from tests.support.databases.stored_items import items
from tests.support.databases.transacting import actions
from tests.support.stores.stepped_store import Commit, SteppedStore, soon, stepped_database

ITEM = thread("EC2", "a", posts=1)


class Poison(Message[None], frozen=True):
    """A message that no partition knows."""


class Coordinator:
    """Runs transactions that put the item, step by step."""

    def __init__(self, store: SteppedStore, database: Database) -> None:
        self.table = database.table("Thread")
        [self.number] = self.table.partitions.map.numbers
        self._store = store

    async def commit(self, name: bytes) -> None:
        """Prepare and commit a transaction, without notifying the partition of the outcome."""
        [action] = [action for _, action in actions((self.table, put(ITEM)))]
        part = TransactionPart(name, 1, (action,))
        await self.table.send(action.position, Prepare(part))
        joined = await self.table.join(self.number, Join(name, (name,)))
        assert joined is not None
        await self._store.commit([joined.group])

    def resolve(self, name: bytes) -> None:
        """Notify the partition of the outcome."""
        self.table.resolve(self.number, Resolve(name, committed=True))


@asynccontextmanager
async def coordinating() -> AsyncIterator[tuple[SteppedStore, Database, Coordinator]]:
    async with stepped_database(partitions_per_table=1) as (store, database):
        await database.ask(CreateTable(table_definition()))
        # The first write of a partition makes an additional commit, so write before the test.
        await database.table("Thread").write(put(thread("EC2", "first")))
        coordinator = Coordinator(store, database)
        try:
            yield store, database, coordinator
        finally:
            # If the test failed, the partition may still wait for the outcome.
            store.open_all()
            coordinator.resolve(b"first")


async def test_a_partition_that_crashes_before_the_outcome_is_known_applies_it() -> None:
    async with coordinating() as (_, database, coordinator):
        table = coordinator.table
        await coordinator.commit(b"first")
        decisions = table.partitions.decisions(coordinator.number)
        decisions.ask(Poison())
        await soon(lambda: not len(decisions._mailbox))

        written = table.submit(put(thread("EC2", "second")))
        coordinator.resolve(b"first")
        await written
        assert not len(decisions._mailbox)
        assert await items(table, ITEM) == [ITEM]
        assert (await database.describe("Thread")).item_count == 3


async def test_a_partition_that_crashes_after_the_outcome_is_known_applies_it() -> None:
    async with coordinating() as (store, _, coordinator):
        await coordinator.commit(b"first")
        gate = store.gate_before(lambda call: call == Commit([]))
        coordinator.resolve(b"first")
        await gate.reached()
        gate.fail(RuntimeError("played by a test"))

        written = coordinator.table.submit(put(thread("EC2", "second")))
        await soon(written.done)
        assert await items(coordinator.table, ITEM) == [ITEM]
