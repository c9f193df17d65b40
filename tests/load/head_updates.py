"""Updates of heads on PostgreSQL, before, during and after a snapshot that stays open.

``python -m tests.load.head_updates --help``. Each head has one commit in flight, like a partition.
An open snapshot keeps every old version of a row, so each update of a head visits more of them.
"""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser
from collections.abc import Sequence
from itertools import count
from time import monotonic
from typing import Final

import asyncpg

from dynactor.storage import key_layout
from dynactor.storage.postgresql.store import open_postgresql
from dynactor.storage.store import Group, Store
from tests.support.servers.postgresql import Postgresql, running_postgresql

_SETTINGS: Final = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "512MB"}
_WINDOW_SECONDS: Final = 10.0
_SCHEMA: Final = "heads"


class _Updates:
    """The updates so far; they end when ``is_over`` is set."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.done = 0
        self.is_over = False

    async def update(self, number: int) -> None:
        """Update one head again and again."""
        key = key_layout.partition_head(number)
        before = None
        for version in count(1):
            if self.is_over:
                return
            after = version.to_bytes(8, "big") * 8
            await (await self._store.commit([Group(key, before, after)]))
            before = after
            self.done += 1


async def _watch(updates: _Updates, server: Postgresql, name: str, seconds: float) -> None:
    """Print the rate of each window."""
    ends_at = monotonic() + seconds
    while (began := monotonic()) < ends_at:
        before = updates.done
        await asyncio.sleep(_WINDOW_SECONDS)
        took_seconds = monotonic() - began
        done = updates.done - before
        query = f"SELECT pg_table_size('{_SCHEMA}.heads'), n_dead_tup FROM pg_stat_user_tables "
        size, dead = (await asyncio.to_thread(server.sql, query + "WHERE relname = 'heads'")).split(
            "|"
        )
        print(
            f"{name:8} {done / took_seconds:8,.0f} updates/s, {updates.done:10,} so far, "
            f"{int(size) / 1e6:7.1f} MB, {int(dead):9,} dead rows",
            flush=True,
        )


async def _run(server: Postgresql, heads: int, phases: Sequence[float]) -> None:
    before, during, after = phases
    async with open_postgresql(server.url(_SCHEMA)) as store, asyncio.TaskGroup() as tasks:
        updates = _Updates(store)
        for number in range(heads):
            tasks.create_task(updates.update(number))
        await _watch(updates, server, "before", before)
        snapshot = await asyncpg.connect(server.url(_SCHEMA).partition("?")[0], ssl=False)
        async with snapshot.transaction(isolation="repeatable_read", readonly=True):
            await snapshot.fetchval("SELECT 1")
            await _watch(updates, server, "snapshot", during)
        await snapshot.close()
        await _watch(updates, server, "after", after)
        updates.is_over = True


def main() -> None:
    """Print the rates of updates."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--heads", type=int, default=64)
    parser.add_argument(
        "--seconds",
        nargs=3,
        type=float,
        default=[60.0, 30.0, 60.0],
        help="before the snapshot, with the snapshot, and after it",
    )
    told = parser.parse_args()
    with running_postgresql(_SETTINGS) as server:
        asyncio.run(_run(server, told.heads, told.seconds))


if __name__ == "__main__":
    main()
