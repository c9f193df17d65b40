"""Opens the store that a server uses alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dynactor.api.hosting.open_postgresql import open_postgresql
from dynactor.api.hosting.store_settings import StoreSettings
from dynactor.storage.backup_mark import drop_backup_mark, refuse_backup
from dynactor.storage.copies import refuse_unfinished_copy
from dynactor.storage.rocks.memory_store import open_rocks_in_memory
from dynactor.storage.rocks.options import RocksOptions
from dynactor.storage.rocks.store import open_rocks
from dynactor.storage.store import Store


@asynccontextmanager
async def open_store(settings: StoreSettings) -> AsyncIterator[Store]:
    """The settings' store, open in the context; raises ``CannotOpen``, ``Damaged`` or ``Full``."""
    async with _store(settings) as store:
        await refuse_unfinished_copy(store)
        yield store


@asynccontextmanager
async def _store(settings: StoreSettings) -> AsyncIterator[Store]:
    if settings.url is not None:
        async with open_postgresql(settings.url, settings.read_url) as store:
            yield store
        return
    directory = settings.directory
    if directory is not None and not settings.serve_backup:
        refuse_backup(directory)
    tuning = RocksOptions(block_cache_bytes=settings.cache_bytes)
    store = await (
        open_rocks_in_memory(tuning) if directory is None else open_rocks(directory, tuning)
    )
    try:
        if directory is not None:
            drop_backup_mark(directory)
        yield store
    finally:
        await store.close()
