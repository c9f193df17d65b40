"""A snapshot has the items of a table and the positions of its logs at one moment."""

from __future__ import annotations

import asyncio

from msgspec import structs

from dynactor.actors.derived.checkpoint import Checkpoint
from dynactor.actors.derived.table_snapshot import TableSnapshot
from dynactor.storage import catalog, key_layout
from dynactor.storage.catalog import EndedLog, PartitionHead, PartitionRange, TableRecord
from dynactor.storage.store import Group
from tests.support.databases.databases import table_definition
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
        assert taken.positions == {
            1: Checkpoint(70, 7_000),
            2: Checkpoint(5, 500),
            3: Checkpoint(0, 0),
        }
