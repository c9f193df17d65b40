"""Splits partitions of a table, one after another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from dynactor.actors.database.database import Database
from dynactor.actors.splitting.messages import SplitPartition
from dynactor.actors.table.table import Table
from dynactor.model.errors import ResourceInUseException
from dynactor.storage.partition_map import PartitionMap

_HASH_BYTES = 8


async def halve(database: Database, table: Table, number: int) -> tuple[int, int]:
    """Split a partition in the middle of its hashes; returns its children."""
    owned = PartitionMap(table.record.partitions).partition_range(number)
    begin = _hash(owned.start)
    end = 1 << 8 * _HASH_BYTES if owned.end is None else _hash(owned.end)
    middle = ((begin + end) // 2).to_bytes(_HASH_BYTES, "big")
    return await database.ask(SplitPartition(table.definition.name, number, middle))


def _hash(position: bytes) -> int:
    return int.from_bytes(position[:_HASH_BYTES].ljust(_HASH_BYTES, b"\x00"), "big")


@asynccontextmanager
async def splitting(database: Database, table: Table, partitions: int) -> AsyncIterator[None]:
    """Split partitions within the context until there are this many."""
    draw = Random(7)

    async def split() -> None:
        while len(table.record.partitions) < partitions:
            try:
                await halve(database, table, draw.choice(table.record.partitions).number)
            except ResourceInUseException:
                # The table may not be split while one of its followers changes its phase.
                await asyncio.sleep(0)
            for _ in range(draw.randrange(60)):
                await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(split())
        yield
