"""Batches are answered in the order of their commits, in whatever order the loop runs."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from dynactor.actors.table.messages import CreateTable
from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import GlobalIndex
from dynactor.model.errors import ConditionalCheckFailedException
from dynactor.model.expressions.condition_binding import parse_condition
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.writes.write import Delete
from tests.support.databases.databases import (
    HeldStore,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.stores.store import memory_store


async def test_a_batch_without_writes_is_not_answered_before_earlier_batches():
    index = IndexDefinition(
        1, "by_posts", KeySchema((KeyAttribute("posts", "N"),), ()), Projection("ALL")
    )
    definition = structs.replace(table_definition(), global_indexes=(GlobalIndex(index),))
    exists = parse_condition("attribute_exists(pk)", Placeholders(None, None), kind="Condition")
    async with memory_store() as real:
        store = HeldStore(real)
        async with running_database(store) as database:
            await database.ask(CreateTable(definition))
            table = database.table("Thread")
            await table.write(put(thread("EC2", "a", posts=1)))
            store.hold()
            writes = []
            for posts in (2, 3):
                writes.append(table.submit(put(thread("EC2", "a", posts=posts))))
                for _ in range(20):
                    await asyncio.sleep(0)
            await asyncio.gather(*(durable for durable, _, _ in store._held))
            refused = table.submit(Delete(thread("EC2", "b"), exists))
            # Both commits become durable in one turn of the loop. The batch of the refused delete
            # is decided before the partition is notified of them.
            await store.release()
            with pytest.raises(ConditionalCheckFailedException):
                await refused
            await asyncio.wait_for(asyncio.gather(*writes), 60)
            feeds = await table.followers.feeds()
            (feed,) = [feed for feed in feeds if feed.tail]
            records = await feed.read(0, max_records=9, max_bytes=1 << 20)
            assert [record.sequence_number.counter for record in records] == [1, 2, 3]
