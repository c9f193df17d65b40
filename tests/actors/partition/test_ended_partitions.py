"""A partition without a head has ended: a late writer of a deleted table writes nothing."""

from __future__ import annotations

import pytest

from dynactor.actors.table.messages import CreateTable, DeleteTable
from dynactor.model.errors import InternalServerError
from dynactor.storage import catalog, key_layout
from dynactor.storage.store import Store
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.stores.store import memory_store


async def end(store: Store, numbers: list[int]) -> None:
    """End partitions, like another node that deletes their table."""
    await (await store.commit(await catalog.ended_heads(store.latest, numbers)))


@pytest.mark.parametrize("has_written", [False, True])
async def test_nothing_is_written_without_a_head(*, has_written: bool) -> None:
    async with memory_store() as store, running_database(store) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        if has_written:
            await table.write(put(thread("EC2", "before")))
        await end(store, table.partitions.map.numbers)
        before = await store.latest.page(b"", b"\xff", max_rows=1_000, max_bytes=1 << 20)
        for _ in range(2):
            with pytest.raises(InternalServerError, match="Nothing was written"):
                await table.write(put(thread("EC2", "late")))
        after = await store.latest.page(b"", b"\xff", max_rows=1_000, max_bytes=1 << 20)
        assert after == before


async def test_heads_exist_before_the_first_write_and_not_after_the_deletion() -> None:
    async with memory_store() as store, running_database(store) as database:
        await database.ask(CreateTable(table_definition()))
        heads = [
            key_layout.partition_head(number)
            for number in database.table("Thread").partitions.map.numbers
        ]
        new = catalog.encode_partition_head(catalog.PartitionHead())
        assert await store.durable().load(heads) == [new] * len(heads)
        await database.ask(DeleteTable("Thread"))
        assert await store.durable().load(heads) == [None] * len(heads)
