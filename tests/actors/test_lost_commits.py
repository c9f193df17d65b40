"""The store is opened again without its latest commits: who built on them begins anew."""

from __future__ import annotations

from actors.holds import Join, Prepare, Resolve, TransactionPart
from model.write import Put
from tests.support.databases import put, running_database, table_definition, thread
from tests.support.losing_store import LosingStore
from tests.support.store import memory_store
from tests.support.stored_items import items
from tests.support.transacting import actions, condition


async def test_counts_of_items_go_on_from_what_the_store_has_kept() -> None:
    async with memory_store() as inner:
        store = LosingStore(inner)
        async with running_database(store, partitions_per_table=1) as database:
            await database.create_table(table_definition())
            table = database.table("Thread")
            await table.write(put(thread("EC2", "kept")))
            store.remember()
            for number in range(5):
                await table.write(put(thread("EC2", f"lost {number}")))
            await store.lose()

            await table.write(put(thread("EC2", "again")))
            assert (await database.describe("Thread")).item_count == 2


async def test_a_transaction_prepared_on_a_lost_item_is_not_joined() -> None:
    async with memory_store() as inner:
        store = LosingStore(inner)
        async with running_database(store, partitions_per_table=1) as database:
            await database.create_table(table_definition())
            table = database.table("Thread")
            await table.write(put(thread("EC2", "a")))
            store.remember()
            await table.write(put(thread("EC2", "lost")))
            there = Put(thread("EC2", "lost", posts=2), 1, condition("attribute_exists(forum)"))
            [action] = [action for _, action in actions((table, there))]
            await table.send(action.position, Prepare(TransactionPart(b"held", 1, (action,))))
            await store.lose()
            # With this the partition learns of it.
            await table.write(put(thread("EC2", "a", posts=1)))

            number = table.number_of(action.position)
            joined = await table.join(number, Join(b"round", (b"held",)))
            if joined is not None:
                # The partition takes nothing else before it knows the outcome.
                table.resolve(number, Resolve(b"round", committed=False))
            assert joined is None
            assert await items(table, thread("EC2", "lost")) == [None]
