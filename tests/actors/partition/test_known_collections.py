"""The cached sizes of item collections equal the stored ones."""

from __future__ import annotations

import asyncio

import pytest

from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.table import Table
from dynactor.model.errors import ItemCollectionSizeLimitExceededException
from dynactor.model.keys import key as keys
from dynactor.model.limits import INDEX_ENTRY_OVERHEAD_BYTES, ITEM_SIZE_BYTES
from dynactor.model.values import item as items
from dynactor.model.values.item import Item
from dynactor.model.writes.write import Delete, Write
from dynactor.storage import key_layout
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.transacting import transact


async def stored_bytes(table: Table, forum: str) -> int:
    """The stored size of the item collection of a forum."""
    partition_key = keys.encode_partition(table.definition.key_schema, thread(forum, "a"))
    row = key_layout.collection_row(table.definition.table_id, partition_key)
    (value,) = await table.durable().load([row])
    return int.from_bytes(value or b"", "big")


def post(kind: str, at: int) -> Item:
    return thread("one", f"{kind}{at}", posts=at)


# A post is an item and its entry in the local index; all posts have the same size.
POST_BYTES = 2 * items.size_bytes(post("w", 1)) + INDEX_ENTRY_OVERHEAD_BYTES


@pytest.mark.parametrize("spreads", [False, True])
async def test_a_collection_has_the_right_size_after_writes_and_transactions(*, spreads: bool):
    async with running_database(partitions_per_table=4) as database:
        await database.ask(CreateTable(table_definition(local_sort_keys=("posts",))))
        table = database.table("Thread")
        others = [(table, put(thread(f"other {at}", "a"))) for at in range(8 if spreads else 0)]
        posts = 0
        for at in range(1, 5):
            for kind in "wtv":
                posts += 1
                if kind == "t":
                    await transact(database, (table, put(post(kind, at))), *others)
                else:
                    written = await table.write(put(post(kind, at)))
                    assert written.collection_size_bytes == posts * POST_BYTES
                assert await stored_bytes(table, "one") == posts * POST_BYTES


def large(at: int, text_bytes: int) -> Item:
    return {**thread("one", f"{at}", posts=at), "text": {"S": "x" * text_bytes}}


async def test_a_collection_has_the_right_size_after_a_batch_of_writes():
    async with running_database(partitions_per_table=1) as database:
        await database.ask(CreateTable(table_definition(local_sort_keys=("posts",))))
        table = database.table("Thread")
        # Writes with the collection's size after each: a larger item, an equal one, a smaller one,
        # another item, and deletes.
        small, grown = (2 * items.size_bytes(large(1, each)) + 100 for each in (10, 50))
        writes: list[tuple[Write, int]] = [
            (put(large(1, 10)), small),
            (put(large(1, 50)), grown),
            (put({**large(1, 50), "text": {"S": "y" * 50}}), grown),
            (put(large(2, 50)), 2 * grown),
            (put(large(1, 10)), small + grown),
            (put({**large(1, 10), "text": {"S": "y" * 10}}), small + grown),
            (Delete(thread("one", "2")), small),
            (put(large(1, 10)), small),
            (Delete(thread("one", "1")), 0),
        ]
        for size in (1, 2, 3, len(writes)):
            for start in range(0, len(writes), size):
                batch = [table.submit(write) for write, _ in writes[start : start + size]]
                written = await asyncio.gather(*batch)
                sizes = [each for _, each in writes[start : start + size]]
                assert [each.collection_size_bytes for each in written] == sizes
                assert await stored_bytes(table, "one") == sizes[-1]


@pytest.mark.parametrize("local_sort_keys", [("posts",), ("posts", "views")])
async def test_a_write_beyond_the_limit_of_a_collection_is_refused(
    local_sort_keys: tuple[str, ...],
):
    limit_bytes = (1 + len(local_sort_keys)) * (ITEM_SIZE_BYTES + INDEX_ENTRY_OVERHEAD_BYTES) + 1
    async with running_database(
        partitions_per_table=1, item_collection_limit_bytes=limit_bytes
    ) as database:
        await database.ask(CreateTable(table_definition(local_sort_keys=local_sort_keys)))
        table = database.table("Thread")
        await table.write(put({**large(0, 1), "views": {"N": "1"}}))
        # The collection's limit has space for this largest item with its entries, but not for a
        # small item besides.
        largest = {**large(1, 0), "views": {"N": "1"}}
        largest["text"] = {"S": "x" * (ITEM_SIZE_BYTES - items.size_bytes(largest))}
        with pytest.raises(ItemCollectionSizeLimitExceededException):
            await table.write(put(largest))
        fitting = {**largest, "text": {"S": largest["text"]["S"][:-500]}}
        await table.write(put(fitting))
        assert await stored_bytes(table, "one") <= limit_bytes
