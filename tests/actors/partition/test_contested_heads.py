"""A partition whose head other writers move again and again locks the head."""

from __future__ import annotations

from asyncio import Future
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from msgspec import structs

from dynactor.actors.partition.partition import CONFLICTS_BEFORE_LOCK
from dynactor.actors.table.messages import CreateTable
from dynactor.storage import catalog, key_layout
from dynactor.storage.store import Group, Locked
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

HEAD = key_layout.partition_head(1)


class ContestedStore(FaultyStore):
    """A store in which a rival moves the partition's head before each commit without a lock."""

    is_contested = False
    moves = 0
    locks = 0

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        if self.is_contested and any(group.head_key == HEAD for group in groups):
            (value,) = await self._inner.latest.load([HEAD])
            head = catalog.decode_partition_head(value)
            moved = structs.replace(head, counter=head.counter + 1)
            group = Group(HEAD, value, catalog.encode_partition_head(moved))
            await (await self._inner.commit([group]))
            self.moves += 1
        return await super().commit(groups)

    @asynccontextmanager
    async def locked(self, heads: Sequence[bytes]) -> AsyncIterator[Locked]:
        self.locks += 1
        async with self._inner.locked(heads) as locked:
            yield locked


async def test_a_partition_locks_its_head_after_three_conflicts_in_a_row() -> None:
    async with memory_store() as inner:
        store = ContestedStore(inner)
        async with running_database(store, partitions_per_table=1) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            await table.write(put(thread("EC2", "a")))
            store.is_contested = True
            for subject in "bc":
                await table.write(put(thread("EC2", subject)))
            assert (store.moves, store.locks) == (2 * CONFLICTS_BEFORE_LOCK, 2)
            store.is_contested = False
            await table.write(put(thread("EC2", "d")))
            (head,) = await table.heads()
            # Every change of the rival and of the partition has a counter of its own.
            assert head.counter == 4 + 2 * CONFLICTS_BEFORE_LOCK
            assert head.item_counts == {0: 4}
            assert store.locks == 2
