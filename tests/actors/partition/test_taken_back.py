"""Partitions continue from the stored state after a full disk lost writes that were not durable."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.table import Table
from dynactor.model.errors import InternalServerError
from dynactor.model.values.item import Item
from dynactor.model.writes.write import Delete
from dynactor.storage.store import Closed
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.stored_items import read_item
from tests.support.databases.transacting import transact
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.full_engine import FullEngine, store_on
from tests.support.stores.store import memory_store


def large(subject: str) -> Item:
    return {**thread("EC2", subject, posts=1), "text": {"S": "x" * 10_000}}


async def until_written(table: Table, item: Item) -> None:
    while True:
        try:
            await table.write(put(item))
        except InternalServerError:
            await asyncio.sleep(0)
        else:
            return


async def shown(table: Table, subject: str) -> Item | None:
    stored = (await read_item(table, thread("EC2", subject))).stored
    return None if stored is None else stored.item


@pytest.mark.parametrize("transacts", [False, True])
async def test_a_partition_forgets_the_sizes_of_lost_writes(
    tmp_path: Path, *, transacts: bool
) -> None:
    engine = FullEngine(tmp_path / "data")
    with capture_logs() as logs:
        async with (
            store_on(engine) as store,
            running_database(store, partitions_per_table=1) as database,
        ):
            await database.ask(CreateTable(table_definition(local_sort_keys=["posts"])))
            table = database.table("Thread")
            await table.write(put(large("kept")))
            engine.is_full = True
            # The delete is accepted, so the partition caches that the item collection is empty.
            with pytest.raises(InternalServerError, match="unknown"):
                await table.write(Delete(thread("EC2", "kept")))
            while engine.refused_openings < 3:
                with pytest.raises(InternalServerError, match="full"):
                    await table.write(Delete(thread("EC2", "kept")))
            assert await shown(table, "kept") == large("kept")
            engine.is_full = False
            if transacts:
                await until_written(table, large("first"))
                await transact(database, (table, Delete(thread("EC2", "kept"))))
            else:
                await until_written(table, large("kept"))
                await table.write(Delete(thread("EC2", "kept")))
            await table.write(put(large("last")))
            assert await shown(table, "kept") is None
            assert await shown(table, "last") == large("last")
    assert not [each for each in logs if each["event"] == "actor_crashed"]


async def test_a_partition_that_starts_while_the_store_is_unreadable_is_not_abandoned() -> None:
    async with memory_store() as inner:
        store = FaultyStore(inner)
        with capture_logs() as logs:
            async with running_database(store, partitions_per_table=1) as database:
                await database.ask(CreateTable(table_definition()))
                table = database.table("Thread")
                store.refuse_reads(Closed("the store is closed: played by a test"))
                for _ in range(20):
                    with pytest.raises(InternalServerError, match="Nothing was written: the store"):
                        await table.write(put(thread("EC2", "a", posts=1)))
                store.allow_reads()
                await table.write(put(thread("EC2", "a", posts=1)))
                store.refuse_reads(Closed("the store is closed: played by a test"))
                with pytest.raises(InternalServerError, match="Nothing was written: the store"):
                    await table.write(put(thread("EC2", "b", posts=1)))
                store.allow_reads()
                await table.write(put(thread("EC2", "b", posts=1)))
        assert not [each for each in logs if each["event"] == "actor_crashed"]


async def test_a_table_whose_catalog_entry_may_be_lost_is_reported_as_unknown() -> None:
    async with memory_store() as inner:
        store = FaultyStore(inner)
        async with running_database(store) as database:
            store.hold_syncs()
            creating = asyncio.ensure_future(database.ask(CreateTable(table_definition())))
            while not store.held_count:
                await asyncio.sleep(0)
            store.fail_syncs()
            with pytest.raises(InternalServerError, match="Whether this was changed is unknown: "):
                await creating
            with pytest.raises(InternalServerError, match="Nothing was changed: "):
                await database.ask(CreateTable(table_definition("Other")))
