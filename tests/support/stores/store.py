"""Real stores for tests of the upper layers: on disk, in memory, or in PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from dynactor.storage.rocks.memory_store import open_rocks_in_memory
from dynactor.storage.rocks.store import open_rocks
from dynactor.storage.store import Store
from tests.support.servers import server


def memory_store() -> AbstractAsyncContextManager[Store]:
    """An empty store: in memory, or with ``--store postgresql`` in a new schema."""
    option, *place = server.place_options(None)
    return postgresql_store(place[0]) if option == "--store" else rocks_in_memory()


@asynccontextmanager
async def rocks_in_memory() -> AsyncIterator[Store]:
    """An empty embedded store in memory, whose commits are durable at once."""
    store = await open_rocks_in_memory()
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def disk_store(directory: Path) -> AsyncIterator[Store]:
    """The store in this directory."""
    store = await open_rocks(directory)
    try:
        yield store
    finally:
        await store.close()


def kept_store(directory: Path) -> AbstractAsyncContextManager[Store]:
    """The store of servers that were started with this data directory."""
    option, place = server.place_options(directory)
    return postgresql_store(place) if option == "--store" else disk_store(directory)


@asynccontextmanager
async def postgresql_store(url: str, read_url: str | None = None) -> AsyncIterator[Store]:
    """The store in this database.

    A separate task opens and closes it, because a fixture may end in another task than the one in
    which it started.
    """
    # The client library is installed only where such tests run.
    from dynactor.storage.postgresql.store import open_postgresql  # noqa: PLC0415

    opened: asyncio.Future[Store] = asyncio.get_running_loop().create_future()
    ended = asyncio.Event()

    async def hold() -> None:
        async with open_postgresql(url, read_url) as store:
            opened.set_result(store)
            await ended.wait()

    holding = asyncio.create_task(hold())
    waited: list[asyncio.Future[Any]] = [opened, holding]
    await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    try:
        if opened.done():
            yield opened.result()
    finally:
        ended.set()
        await holding
