"""The sizes of item collections that a partition knows are those that are stored, whoever wrote."""

from __future__ import annotations

import pytest

from actors.table import Table
from model import key as keys
from model.write import Delete
from storage import keys_layout
from tests.support.databases import put, running_database, table_definition, thread
from tests.support.transacting import transact


async def stored_bytes(table: Table, forum: str) -> int:
    """The size of a forum's collection, as the store has it."""
    partition_key = keys.encode_partition(table.definition.key_schema, thread(forum, "a"))
    row = keys_layout.collection_row(table.definition.table_id, partition_key)
    (value,) = await table.durable().load([row])
    return int.from_bytes(value or b"", "big")


@pytest.mark.parametrize("spreads", [False, True])
async def test_a_collection_is_as_large_as_writes_and_transactions_made_it(*, spreads: bool):
    async with running_database(partitions_per_table=4) as database:
        await database.create_table(table_definition(local_sort_keys=("posts",)))
        table = database.table("Thread")
        others = [(table, put(thread(f"other {at}", "a"))) for at in range(8 if spreads else 0)]
        for at in range(4):
            written = await table.write(put(thread("one", f"w{at}", posts=at)))
            assert written.collection_size_bytes == await stored_bytes(table, "one")
            await transact(database, (table, put(thread("one", f"t{at}", posts=at))), *others)
            written = await table.write(put(thread("one", f"v{at}", posts=at)))
            assert written.collection_size_bytes == await stored_bytes(table, "one")
        for at in range(4):
            await transact(database, (table, Delete(thread("one", f"t{at}"))), *others[:4])
            for kind in "wv":
                written = await table.write(Delete(thread("one", f"{kind}{at}")))
                assert written.collection_size_bytes == await stored_bytes(table, "one")
        assert await stored_bytes(table, "one") == 0
