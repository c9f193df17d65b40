"""Expired items are listed and deleted, those that are not stay: in process, on a set clock."""

from __future__ import annotations

import random

from actors.table import Table
from actors.time_to_live import TimeToLiveSettings
from model.item import Item
from model.write import Delete
from storage import codec, keys_layout
from tests.support.databases import SetClock, put, running_database, table_definition, thread
from tests.support.expiry import (
    listed,
    rebuilt,
    rows_of,
    switch,
    until_items,
    until_listed,
    until_status,
)
from tests.support.store import memory_store

NOW = 1_571_827_560
SETTINGS = TimeToLiveSettings(delay_seconds=0.0, change_interval_seconds=0.0)


async def write_something(table: Table, source: random.Random, *, latest: int = 200) -> None:
    """Put or delete one of 400 items, with a time, with something else, or without."""
    key = thread(f"f{source.randrange(20)}", f"s{source.randrange(20)}")
    choice = source.randrange(6)
    if choice == 0:
        await table.write(Delete(key))
    elif choice == 1:
        await table.write(put(key | {"other": {"N": str(source.randrange(100))}}))
    elif choice == 2:
        await table.write(put(key | {"at": {"S": str(NOW - 50)}}))
    else:
        at = f"{NOW + source.randrange(1, latest)}{source.choice(['', '.5', '.0000001'])}"
        await table.write(put(key | {"at": {"N": at}}))


async def test_what_is_listed_equals_a_rebuild_after_any_writes():
    async with memory_store() as store, running_database(store, SetClock(NOW)) as database:
        await database.create_table(table_definition())
        table = database.table("Thread")
        source = random.Random(1)
        for _ in range(300):
            await write_something(table, source)
        await switch(database, "Thread", "at", enabled=True)
        for _ in range(500):
            await write_something(table, source)
        await until_status(table, "ENABLED")
        for _ in range(300):
            await write_something(table, source)
        await until_listed(table)
        rows = await listed(store, table.definition.table_id)
        assert rows == await rebuilt(store, table.definition, "at")
        assert len(rows) > 100


async def test_items_are_deleted_behind_their_time_and_no_others():
    clock = SetClock(NOW)
    async with (
        memory_store() as store,
        running_database(store, clock, time_to_live=SETTINGS) as database,
    ):
        await database.create_table(table_definition())
        table = database.table("Thread")
        await switch(database, "Thread", "at", enabled=True)
        source = random.Random(2)
        for _ in range(400):
            await write_something(table, source)
        await until_listed(table)
        before = await items_of(store, table)
        for at in (NOW + 40, NOW + 90, NOW + 300):
            clock.set(at)
            stay = [
                item
                for item in before
                if "N" not in item.get("at", {}) or float(item["at"]["N"]) >= at
            ]
            assert len(stay) < len(before)
            await until_items(database, "Thread", len(stay))
            assert await items_of(store, table) == stay
            before = stay
        await until_listed(table)
        assert await listed(store, table.definition.table_id) == set()
        assert table.expired_items > 100


async def items_of(store, table: Table) -> list[Item]:
    prefix = keys_layout.row_prefix(table.definition.table_id)
    rows = rows_of(store, prefix, keys_layout.end_of(prefix))
    return [codec.decode(row.value).item async for row in rows]
