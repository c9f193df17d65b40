"""Followers after the commit of a round or write had an unknown outcome."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec import structs

from dynactor.actors.database.database import Database
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import StreamSettings
from dynactor.model.errors import InternalServerError
from dynactor.model.values.item import Item
from dynactor.storage import key_layout
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.stored_items import items
from tests.support.databases.transacting import transact
from tests.support.stores.doubtful_store import DoubtfulStore, Fate
from tests.support.stores.store import memory_store

STREAM = StreamSettings("2026", "NEW_AND_OLD_IMAGES")
KEY = thread("EC2", "a")
OLD, NEW, LAST = (thread("EC2", "a", posts=posts) for posts in range(3))

either_way = pytest.mark.parametrize("fate", [Fate.WRITTEN, Fate.DROPPED])


@asynccontextmanager
async def two_tables() -> AsyncIterator[tuple[DoubtfulStore, Database, list[Table]]]:
    async with memory_store() as inner:
        store = DoubtfulStore(inner)
        async with running_database(store, partitions_per_table=1) as database:
            tables = []
            for name in ("Thread", "Reply"):
                await database.ask(
                    CreateTable(structs.replace(table_definition(name), stream=STREAM))
                )
                tables.append(database.table(name))
            yield store, database, tables


def head_key(table: Table) -> bytes:
    (number,) = table.partitions.map.numbers
    return key_layout.partition_head(number)


async def recorded(table: Table) -> list[Item]:
    """The new images that followers of a table can read."""
    images = []
    for feed in table.followers._feeds.values():
        for record in await feed.read(0, max_records=9, max_bytes=1 << 20):
            assert record.new is not None
            images.append(record.new.item)
    return images


@either_way
async def test_followers_never_see_a_transaction_that_was_not_written(fate: Fate) -> None:
    async with two_tables() as (store, database, tables):
        await transact(database, *((table, put(OLD)) for table in tables))
        store.lose_next(head_key(tables[0]), fate)
        with pytest.raises(InternalServerError, match="is unknown"):
            await transact(database, *((table, put(NEW)) for table in tables))
        written = [OLD, NEW] if fate is Fate.WRITTEN else [OLD]
        for table in tables:
            assert await recorded(table) in ([OLD], written)
            assert await items(table, KEY) == written[-1:]
        await transact(database, *((table, put(LAST)) for table in tables))
        for table in tables:
            # The end of the log moves a moment after the answer.
            while len(await recorded(table)) == len(written):
                await asyncio.sleep(0)
            assert await recorded(table) == [*written, LAST]
            assert await items(table, KEY) == [LAST]
    assert store.lost == 1


@either_way
async def test_followers_never_see_a_write_that_was_not_written(fate: Fate) -> None:
    async with two_tables() as (store, _, (table, _other)):
        await table.write(put(OLD))
        store.lose_next(head_key(table), fate)
        with pytest.raises(InternalServerError, match="is unknown"):
            await table.write(put(NEW))
        written = [OLD, NEW] if fate is Fate.WRITTEN else [OLD]
        assert await recorded(table) in ([OLD], written)
        await table.write(put(LAST))
        assert await recorded(table) == [*written, LAST]
        assert await items(table, KEY) == [LAST]
