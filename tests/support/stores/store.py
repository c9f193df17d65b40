"""Real stores for tests of the floors above: on disk, or in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from dynactor.storage.rocks.store import open_rocks, open_rocks_in_memory
from dynactor.storage.store import Store


@asynccontextmanager
async def memory_store() -> AsyncIterator[Store]:
    """An empty store that keeps nothing; the same engine and code path as on disk."""
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
