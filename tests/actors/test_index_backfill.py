"""An index added to a table with data ends equal to a rebuild, while writes go on."""

import asyncio
import random

from msgspec import structs

from actors.database import Database
from actors.table import ReadRange, Table
from actors.table_messages import AdvanceIndex
from model import key_range
from model.index import IndexDefinition, Projection
from model.item import decode
from model.key import KeyAttribute, KeySchema
from model.page import PageRules
from model.table import GlobalIndex
from model.write import Delete
from tests.support.databases import put, running_database, table_definition, thread
from tests.support.store import memory_store

INDEX = IndexDefinition(
    1, "by_posts", KeySchema((KeyAttribute("posts", "N"),), ()), Projection("ALL")
)


async def add_index(database: Database) -> None:
    """As UpdateTable does, once its request is checked."""
    table = database.table("Thread")
    adding = structs.replace(
        table.definition,
        global_indexes=(GlobalIndex(INDEX, status="CREATING", backfilling=False),),
        next_index_id=2,
    )
    record, head = database._with_index_partitions(structs.replace(table.record, definition=adding))
    await table.redefine(adding)
    await database._owner.put(record, head=head)
    table.record = record
    database._tell(AdvanceIndex(adding.table_id, adding.name, 1))


async def until_active(table: Table) -> None:
    while table.definition.global_indexes[0].status != "ACTIVE":
        await asyncio.sleep(0.001)
    while table.index_lag_records(INDEX):
        await asyncio.sleep(0)


async def whole(table: Table, index: IndexDefinition | None = None) -> list[dict]:
    page = await table.read(ReadRange(key_range.WHOLE, PageRules(), index=index))
    return sorted((decode(item) for item in page.items), key=str)


async def write_something(table: Table, source: random.Random) -> None:
    key = thread(f"f{source.randrange(30)}", f"s{source.randrange(30)}")
    if source.randrange(4) == 0:
        await table.write(Delete(key))
    else:
        await table.write(put({**key, "posts": {"N": str(source.randrange(50))}}))


async def test_writes_during_the_backfill_end_in_the_index():
    async with running_database() as database:
        await database.create_table(table_definition())
        table = database.table("Thread")
        source = random.Random(2)
        for _ in range(600):
            await write_something(table, source)
        await add_index(database)
        for _ in range(400):
            await write_something(table, source)
        await until_active(table)
        assert await whole(table, INDEX) == await whole(table)
        state = await database.describe("Thread")
        assert state.indexes["by_posts"].item_count == len(await whole(table))


async def test_violations_are_left_out():
    async with running_database() as database:
        await database.create_table(table_definition())
        table = database.table("Thread")
        await table.write(put({**thread("EC2", "a"), "posts": {"S": "many"}}))
        await table.write(put(thread("EC2", "b", posts=1)))
        await add_index(database)
        await until_active(table)
        assert await whole(table, INDEX) == [thread("EC2", "b", posts=1)]


async def test_a_backfill_goes_on_after_a_restart():
    async with memory_store() as store:
        async with running_database(store) as database:
            await database.create_table(table_definition())
            table = database.table("Thread")
            source = random.Random(3)
            for _ in range(600):
                await write_something(table, source)
            await add_index(database)
            while table.definition.global_indexes[0].backfilling is not True:
                await asyncio.sleep(0)
        async with running_database(store) as database:
            table = database.table("Thread")
            for _ in range(100):
                await write_something(table, source)
            await until_active(table)
            assert await whole(table, INDEX) == await whole(table)
