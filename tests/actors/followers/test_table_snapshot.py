"""A snapshot has the items of a table and the positions of its logs at one moment."""

from __future__ import annotations

import asyncio

from msgspec import structs

from dynactor.actors.followers.checkpoint import Checkpoint
from dynactor.actors.followers.table_snapshot import TableSnapshot
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.table import Table
from dynactor.model.keys import key as keys
from dynactor.model.writes.write import Delete
from dynactor.storage import catalog, key_layout
from dynactor.storage.catalog import EndedLog, PartitionHead, PartitionRange, TableRecord
from dynactor.storage.store import Group
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.splitting import halve
from tests.support.stores.store import memory_store


class Known:
    """A fake of the logs that a reader of snapshots follows."""

    def __init__(self, numbers: set[int]) -> None:
        self.numbers = numbers
        self.joined = asyncio.Event()

    def __contains__(self, number: object, /) -> bool:
        return number in self.numbers

    async def wait_joined(self) -> None:
        await self.joined.wait()


async def test_a_snapshot_waits_until_the_children_of_a_durable_split_are_followed():
    record = TableRecord(
        structs.replace(table_definition(), table_id=1),
        (PartitionRange(2, b""), PartitionRange(3, b"\x80")),
        ended_logs=(EndedLog(1, 70, 7_000, (2, 3), ()),),
    )
    puts = [
        (key_layout.table_record("Thread"), catalog.encode_record(record)),
        (
            key_layout.partition_head(2),
            catalog.encode_partition_head(PartitionHead(counter=5, logged_bytes=500)),
        ),
        (key_layout.partition_head(3), catalog.encode_partition_head(PartitionHead())),
    ]
    known = Known({1})
    async with memory_store() as store:
        await (await store.commit([Group(b"\x00", None, b"head", puts)]))
        taking = asyncio.create_task(TableSnapshot.take(store, "Thread", known))
        await asyncio.wait([taking], timeout=0.05)
        assert not taking.done()
        known.numbers |= {2, 3}
        known.joined.set()
        taken = await taking
        assert taken.positions.by_number == {
            1: Checkpoint(70, 7_000),
            2: Checkpoint(5, 500),
            3: Checkpoint(0, 0),
        }


async def test_its_pages_leave_out_what_changed_since_its_positions() -> None:
    async with memory_store() as store, running_database(store, partitions_per_table=1) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        for subject in "abcd":
            await table.write(put(thread("EC2", subject)))
        # The log of this partition is not kept, so the snapshot has no position of it.
        await halve(database, table, 1)
        numbers = set(table.partitions.map.numbers)
        await table.write(put(thread("EC2", "b", posts=1)))
        snapshot = await TableSnapshot.take(store, "Thread", Known(numbers))
        assert set(snapshot.positions.by_number) == numbers
        await table.write(put(thread("EC2", "c", posts=1)))
        await table.write(put(thread("EC2", "e")))
        await table.write(Delete(thread("EC2", "d")))
        # A later split gives its children numbers that the snapshot does not know.
        await halve(database, table, table.number_at(encode_position(table, "f")))
        await table.write(put(thread("EC2", "f")))
        found = [item.item["subject"]["S"] async for page in snapshot.pages() for item in page]
        assert found == ["a", "b"]


def encode_position(table: Table, subject: str) -> bytes:
    return keys.encode(table.definition.key_schema, thread("EC2", subject))
