"""An engine on a disk that is full when the test says so: a fake at the engine's port.

Use it as follows::

    engine = FullEngine(directory)
    async with store_on(engine) as store:
        engine.is_full = True     # syncs fail, and the engine can't be opened again for writing
        engine.is_full = False    # space is freed
        engine.flush()            # as RocksDB does by itself when a disk that was full has space
"""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from dynactor.storage.data_directory import open_data_directory
from dynactor.storage.rocks.engine import DiskEngine
from dynactor.storage.rocks.options import RocksOptions
from dynactor.storage.rocks.store import RocksStore
from dynactor.storage.store import Full, Store, StoreError


class FullEngine(DiskEngine):
    """The engine. It always reports free space, because other processes take and free it."""

    def __init__(self, directory: Path, options: RocksOptions | None = None) -> None:
        super().__init__(open_data_directory(directory), options or RocksOptions())
        self.is_full = False
        # The error of opening for writing while the disk is full.
        self.refusal: StoreError = Full("The disk is full: played by a test")
        self.refused_openings = 0
        self.flushes_before_sync = False

    def flush(self) -> bool:
        """Flush the memtable into a table file; False if the engine is shutting down."""
        try:
            self.rows.flush(wait=True)
        except Exception as error:
            if "Shutdown in progress" not in str(error):
                raise
            return False
        return True

    def sync(self, sequence: int) -> None:
        if self.is_full:
            if self.flushes_before_sync:
                assert self.flush()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().sync(sequence)

    def open_for_writing(self) -> None:
        if self.is_full:
            self.refused_openings += 1
            raise self.refusal
        super().open_for_writing()


@asynccontextmanager
async def store_on(engine: FullEngine, options: RocksOptions | None = None) -> AsyncIterator[Store]:
    """The store over an engine."""
    store = RocksStore(engine, options or RocksOptions())
    try:
        yield store
    finally:
        engine.is_full = False
        await store.close()
