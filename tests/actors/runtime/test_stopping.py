"""The database stops without waiting for background work."""

from __future__ import annotations

import anyio

from dynactor.actors.table.messages import CreateTable, DeleteTable
from dynactor.model.limits import KIB, MIB
from tests.support.databases.databases import (
    HeldStore,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.stores.store import memory_store


class SlowStore(HeldStore):
    """A store whose reclaims of disk space never end."""

    async def reclaim(self, start: bytes, end: bytes) -> None:
        self.reclaimed = (start, end)
        await anyio.sleep_forever()


async def test_stopping_does_not_wait_for_the_reclaim_of_disk_space() -> None:
    with anyio.fail_after(HANG_SECONDS):
        async with memory_store() as real:
            store = SlowStore(real)
            async with running_database(store) as database:
                await database.ask(CreateTable(table_definition()))
                table = database.table("Thread")
                text = "x" * 390 * KIB
                for at in range(17 * MIB // len(text)):
                    item = thread("EC2", str(at))
                    item["text"] = {"S": text}
                    await table.write(put(item))
                await database.ask(DeleteTable("Thread"))
            assert store.reclaimed
