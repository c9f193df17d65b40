"""The sizes of item collections that a partition knows are those that are stored, whoever wrote."""

from __future__ import annotations

import pytest

from actors.table import Table
from model import item as items
from model import key as keys
from model.item import Item
from model.limits import INDEX_ENTRY_OVERHEAD_BYTES
from storage import keys_layout
from tests.support.databases import put, running_database, table_definition, thread
from tests.support.transacting import transact


async def stored_bytes(table: Table, forum: str) -> int:
    """The size of a forum's collection, as the store has it."""
    partition_key = keys.encode_partition(table.definition.key_schema, thread(forum, "a"))
    row = keys_layout.collection_row(table.definition.table_id, partition_key)
    (value,) = await table.durable().load([row])
    return int.from_bytes(value or b"", "big")


def post(kind: str, at: int) -> Item:
    return thread("one", f"{kind}{at}", posts=at)


# Each is an item and its entry in the local index, and all are of one size.
POST_BYTES = 2 * items.size_bytes(post("w", 1)) + INDEX_ENTRY_OVERHEAD_BYTES


@pytest.mark.parametrize("spreads", [False, True])
async def test_a_collection_is_as_large_as_writes_and_transactions_made_it(*, spreads: bool):
    async with running_database(partitions_per_table=4) as database:
        await database.create_table(table_definition(local_sort_keys=("posts",)))
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
