"""Global indexes apply the table's changes, and finally match the table's items."""

import asyncio
import random

from msgspec import structs

from dynactor.actors.feeds.index_lag import IndexLag
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.pages import ReadRange, read_page
from dynactor.actors.table.table import Table
from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import GlobalIndex, TableDefinition
from dynactor.model.key_conditions import key_range
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.reads.page import PageRules
from dynactor.model.values.item import decode
from dynactor.model.writes.write import Delete
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.stores.store import memory_store
from tests.support.tables.index_lag import index_lag_records


def with_global_index(*, projection: Projection) -> TableDefinition:
    index = IndexDefinition(1, "by_posts", KeySchema((KeyAttribute("posts", "N"),), ()), projection)
    return structs.replace(table_definition(), global_indexes=(GlobalIndex(index),))


async def caught_up(table: Table) -> None:
    while any(index_lag_records(table, index) for index in table.definition.indexes):
        await asyncio.sleep(0)  # a turn of the loop, not a wait


async def entries(table: Table) -> list[dict]:
    await caught_up(table)
    index = table.definition.indexes[0]
    page = await read_page(table, ReadRange(key_range.WHOLE, PageRules(), index=index))
    return sorted((decode(item) for item in page.items), key=str)


async def items(table: Table) -> list[dict]:
    page = await read_page(table, ReadRange(key_range.WHOLE, PageRules()))
    return [decode(item) for item in page.items]


async def test_an_index_matches_the_table_after_puts_key_changes_and_deletes():
    async with running_database() as database:
        await database.ask(CreateTable(with_global_index(projection=Projection("ALL"))))
        table = database.table("Thread")
        source = random.Random(1)
        for _ in range(400):
            key = thread(f"f{source.randrange(7)}", f"s{source.randrange(9)}")
            match source.randrange(4):
                case 0:
                    await table.write(Delete(key))
                case 1:
                    await table.write(put(key))
                case _:
                    await table.write(put({**key, "posts": {"N": str(source.randrange(5))}}))
        expected = sorted((item for item in await items(table) if "posts" in item), key=str)
        assert await entries(table) == expected
        state = await database.describe("Thread")
        assert state.indexes["by_posts"].item_count == len(expected)


async def test_an_index_continues_from_its_checkpoint_after_a_restart():
    async with memory_store() as store:
        async with running_database(store) as database:
            await database.ask(CreateTable(with_global_index(projection=Projection("KEYS_ONLY"))))
            table = database.table("Thread")
            await table.write(put(thread("EC2", "a", posts=1, likes=3)))
        async with running_database(store) as database:
            table = database.table("Thread")
            await table.write(put(thread("EC2", "b", posts=2)))
            assert await entries(table) == [
                thread("EC2", "a", posts=1),
                thread("EC2", "b", posts=2),
            ]


async def test_a_write_that_changes_nothing_leaves_no_record():
    async with running_database() as database:
        await database.ask(CreateTable(with_global_index(projection=Projection("ALL"))))
        table = database.table("Thread")
        await table.write(put(thread("EC2", "a", posts=1)))
        tails = [feed.tail for feed in await table.followers.feeds()]
        await table.write(put(thread("EC2", "a", posts=1)))
        assert [feed.tail for feed in await table.followers.feeds()] == tails


async def entries_now(table: Table) -> int:
    index = table.definition.indexes[0]
    page = await read_page(table, ReadRange(key_range.WHOLE, PageRules(), index=index))
    return page.count


async def test_a_read_that_waits_for_the_index_sees_all_earlier_acknowledged_writes():
    lag = IndexLag(0.02, 0.02, reads_wait_seconds=60)
    async with running_database(index_lag=lag) as database:
        await database.ask(CreateTable(with_global_index(projection=Projection("ALL"))))
        table = database.table("Thread")
        for count in range(1, 6):
            await table.write(put(thread("EC2", f"{count}", posts=1)))
            assert await entries_now(table) == count
        await table.write(Delete(thread("EC2", "1")))
        assert await entries_now(table) == 4


async def test_a_read_does_not_wait_for_an_index_that_cannot_catch_up():
    lag = IndexLag(3_600, 3_600, reads_wait_seconds=0.01)
    async with running_database(index_lag=lag) as database:
        await database.ask(CreateTable(with_global_index(projection=Projection("ALL"))))
        table = database.table("Thread")
        await table.write(put(thread("EC2", "a", posts=1)))
        assert await entries_now(table) == 0


class CountedLag(IndexLag, frozen=True):
    """Records the waits."""

    draws: list[float] = []  # noqa: RUF012 - of a Struct, each has its own

    def draw(self, waits: random.Random) -> float:
        self.draws.append(super().draw(waits))
        return self.draws[-1]


async def test_an_injected_lag_is_not_longer_for_many_changes():
    lag = CountedLag(0.5, 0.5)
    async with running_database(index_lag=lag, partitions_per_table=1) as database:
        await database.ask(CreateTable(with_global_index(projection=Projection("ALL"))))
        table = database.table("Thread")
        large = {"posts": {"N": "1"}, "text": {"S": "x" * 150_000}}
        subjects = (thread("EC2", f"{count}") for count in range(99))
        await asyncio.gather(*(table.write(put({**key, **large})) for key in subjects))
        await caught_up(table)
    # The follower waits before the first change, and before the changes that came meanwhile: on a
    # busy machine none did. It may wait again, because it never reads 15 MB at once, and some
    # changes may come later.
    assert 1 <= len(lag.draws) <= 4
