"""Actors restart if the store was reopened without commits that their state is based on."""

from __future__ import annotations

import asyncio

from dynactor.actors.derived.expiry.expiry_times import ExpiryTimes
from dynactor.actors.partition.item_locks import Join, Prepare, Resolve, TransactionPart
from dynactor.actors.table.messages import CreateTable
from dynactor.model.writes.write import Put
from dynactor.storage import key_layout
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.expiry import expiry_scan, listed, rebuilt
from tests.support.databases.stored_items import items
from tests.support.databases.transacting import actions, condition
from tests.support.stores.losing_store import LosingStore
from tests.support.stores.stepped_store import Commit, Which, commits_of, soon
from tests.support.stores.store import memory_store


async def test_item_counts_continue_from_the_stored_state() -> None:
    async with memory_store() as inner:
        store = LosingStore(inner)
        async with running_database(store, partitions_per_table=1) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            await table.write(put(thread("EC2", "kept")))
            store.remember()
            for number in range(5):
                await table.write(put(thread("EC2", f"lost {number}")))
            await store.lose()

            await table.write(put(thread("EC2", "again")))
            assert (await database.describe("Thread")).item_count == 2


async def test_expiry_times_of_a_lost_page_are_listed_again() -> None:
    async with memory_store() as inner:
        store = LosingStore(inner)
        async with running_database(store) as database:
            await database.ask(CreateTable(table_definition()))
            definition = database.table("Thread").definition
            writes = [put(thread("EC2", f"{number}", at=number)) for number in range(300)]
            await asyncio.gather(*map(database.table("Thread").submit, writes))
            ended = asyncio.Event()
            rows = ExpiryTimes(definition.table_id, definition.key_schema, "at")
            backfill = expiry_scan(rows, store, ended.set)
            second = store.gate_before(is_second_page(key_layout.expiry_cursor(rows.table_id)))
            store.remember()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(backfill.run())
                await second.reached()
                await store.lose()
                second.open()
                await soon(ended.is_set)
            assert await listed(store, rows.table_id) == await rebuilt(store, definition, "at")


def is_second_page(cursor: bytes) -> Which:
    """Select commits that continue from a cursor."""
    return lambda call: (
        commits_of(cursor)(call)
        and isinstance(call, Commit)
        and call.groups[0].expected_head is not None
    )


async def test_a_transaction_prepared_on_a_lost_item_is_not_joined() -> None:
    async with memory_store() as inner:
        store = LosingStore(inner)
        async with running_database(store, partitions_per_table=1) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            await table.write(put(thread("EC2", "a")))
            store.remember()
            await table.write(put(thread("EC2", "lost")))
            there = Put(thread("EC2", "lost", posts=2), 1, condition("attribute_exists(forum)"))
            [action] = [action for _, action in actions((table, there))]
            await table.send(action.position, Prepare(TransactionPart(b"held", 1, (action,))))
            await store.lose()
            # The partition detects the lost commit when it commits this write.
            await table.write(put(thread("EC2", "a", posts=1)))

            number = table.number_at(action.position)
            joined = await table.join(number, Join(b"round", (b"held",)))
            if joined is not None:
                # If the transaction was joined, notify the partition of an outcome, because it
                # waits for one.
                table.resolve(number, Resolve(b"round", committed=False))
            assert joined is None
            assert await items(table, thread("EC2", "lost")) == [None]
