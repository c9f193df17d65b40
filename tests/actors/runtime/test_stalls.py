"""Writes wait without an error while the store stalls because it is overloaded."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from dynactor.actors.database.virtual_clock import MoveClock
from dynactor.actors.runtime.clock import VirtualClock
from dynactor.actors.table.messages import CreateTable
from dynactor.model.limits import CLIENT_TOKEN_SECONDS
from dynactor.storage import key_layout
from dynactor.storage.store import Group, Retry, Store
from tests.support.databases.databases import (
    HeldStore,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.splitting import halve
from tests.support.databases.stored_items import read_item
from tests.support.databases.transacting import transact
from tests.support.stores.store import memory_store

START = 1_800_000_000.0
STALLS = 2


class StallingStore(HeldStore):
    """A store that refuses each commit twice; ``stalls`` counts the refusals by the heads."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.stalls: Counter[bytes] = Counter()
        self._refusals = 0

    async def commit(self, groups: Sequence[Group]) -> asyncio.Future[None]:
        if self._refusals < STALLS:
            self._refusals += 1
            self.stalls.update(group.head_key for group in groups)
            raise Retry("stalled")
        self._refusals = 0
        return await super().commit(groups)


async def test_a_write_to_a_stalled_store_waits_and_is_executed():
    async with memory_store() as inner:
        store = StallingStore(inner)
        async with running_database(store, VirtualClock(START), partitions_per_table=1) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            await table.write(put(thread("EC2", "a")))
            children = await halve(database, table, 1)
            items = [thread(f"{number}", "a") for number in range(20)]
            await transact(database, *((table, put(item)) for item in items))
            assert database.clock_control is not None
            await database.clock_control.move(MoveClock(by_seconds=CLIENT_TOKEN_SECONDS))
            for item in (thread("EC2", "a"), *items):
                assert (await read_item(table, item)).stored is not None
            owners = {key_layout.partition_head(number) for number in (1, *children)}
            owners |= {key_layout.CATALOG_WRITER, key_layout.VIRTUAL_CLOCK}
            assert owners <= store.stalls.keys()
