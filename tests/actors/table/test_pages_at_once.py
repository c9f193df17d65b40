"""A Query that is answered at once equals one that is awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest
from msgspec import structs

from dynactor.actors.database.database import Database
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.pages import ReadRange, begin_page, read_page
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import Throughput
from dynactor.model.errors import InternalServerError, ProvisionedThroughputExceededException
from dynactor.model.key_conditions import key_range
from dynactor.model.key_conditions.key_condition import KeyCondition
from dynactor.model.reads.page import Page, PageRules
from dynactor.storage.store import Damaged
from tests.support.databases.databases import (
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

# The number of items in each collection.
SIZES = (0, 1, 2, 127, 128, 129, 300)


async def filled(database: Database, *sizes: int) -> Table:
    await database.ask(CreateTable(table_definition(local_sort_keys=["posts"])))
    table = database.table("Thread")
    items = [
        thread(f"{size}", f"{number:03}", posts=number) for size in sizes for number in range(size)
    ]
    await asyncio.gather(*(table.write(put(item)) for item in items))
    return table


def of_forum(size: int, limit: int | None = None, *, reverse: bool = False) -> ReadRange:
    wanted = key_range.selected_range(KeyCondition(({"S": f"{size}"},), ()))
    return ReadRange(wanted, PageRules(limit=limit), reverse=reverse)


def may_be_at_once(size: int, limit: int | None) -> bool:
    return size < 128 or (limit is not None and limit <= 128)


async def settled(page: Page | Awaitable[Page]) -> Page:
    return page if isinstance(page, Page) else await page


async def read_often(table: Table) -> None:
    for _ in range(1_000):
        await settled(begin_page(table, of_forum(1)))


@pytest.mark.embedded_store("a page of PostgreSQL is never in memory")
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("of_index", [False, True])
async def test_both_ways_give_the_same_page_and_take_the_same_units(reverse: bool, of_index: bool):
    async with running_database() as database:
        table = await filled(database, *SIZES)
        index = table.definition.local_indexes[0] if of_index else None
        at_once = allowed = 0
        for size in SIZES:
            for limit in (None, 1, 2, 127, 128, 129, 400):
                request = structs.replace(of_forum(size, limit, reverse=reverse), index=index)
                before = table.throttle.consumed.read_units
                page = begin_page(table, request)
                allowed += may_be_at_once(size, limit)
                at_once += isinstance(page, Page)
                assert may_be_at_once(size, limit) or not isinstance(page, Page)
                begun = await settled(page)
                between = table.throttle.consumed.read_units
                assert begun == await read_page(table, request)
                assert between - before == table.throttle.consumed.read_units - between > 0
        # A read that took long, on a busy machine, makes the next page wait.
        assert at_once > allowed / 2


async def test_a_page_goes_on_behind_its_start_key():
    async with running_database() as database:
        table = await filled(database, 5)
        whole = await settled(begin_page(table, of_forum(5)))
        found = []
        request = of_forum(5, 2)
        while True:
            page = await settled(begin_page(table, request))
            found += page.items
            if page.last is None:
                break
            position = table.encode_position(page.last)
            request = structs.replace(request, after=position)
        assert found == whole.items


@pytest.mark.embedded_store("a page of PostgreSQL begins when it is awaited")
async def test_a_long_page_shows_the_moment_when_it_began():
    async with running_database() as database:
        table = await filled(database, 300)
        page = begin_page(table, of_forum(300))
        assert not isinstance(page, Page)
        await table.write(put(thread("300", "250.5", posts=1)))
        assert (await page).count == 300


async def test_a_page_without_units_is_refused_before_it_is_read():
    async with running_database(clock=SetClock(), initial_burst_seconds=1) as database:
        definition = structs.replace(
            table_definition(), billing_mode="PROVISIONED", throughput=Throughput(1, 1000)
        )
        await database.ask(CreateTable(definition))
        table = database.table("Thread")
        await table.write(put(thread("1", "1")))
        with pytest.raises(ProvisionedThroughputExceededException):
            await read_often(table)
        assert table.throttle.consumed.read_units > 0


async def test_rows_that_cannot_be_read_are_an_error_of_the_server():
    async with memory_store() as inner:
        store = FaultyStore(inner)
        async with running_database(store) as database:
            table = await filled(database, 1)
            store.refuse_reads(Damaged("a block is damaged"))
            with pytest.raises(InternalServerError):
                begin_page(table, of_forum(1))
            store.allow_reads()
