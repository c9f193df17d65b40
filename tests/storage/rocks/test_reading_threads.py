"""Few threads with large batches read from a fast disk, all threads from a slow one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from threading import Event
from typing import Any

from dynactor.storage.rocks.reads import DiskReads

THREADS = 16
SLOW_SECONDS = 0.02


class Disk:
    """A fake disk whose reads complete when the test says so."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.gives = Event()
        self.seconds = 0.0

    def get(self, keys: Sequence[bytes]) -> list[bytes]:
        self.asked.append(len(keys))
        self.gives.wait()
        if self.seconds:
            Event().wait(self.seconds)
        return [b"value"] * len(keys)


@asynccontextmanager
async def reading() -> AsyncIterator[tuple[Any, DiskReads]]:
    disk, reads = Disk(), DiskReads(lambda: 0)
    reads.make_threads()
    try:
        yield disk, reads
    finally:
        disk.gives.set()
        await reads.close()


async def in_progress(disk: Disk, reads: DiskReads, count: int) -> list[int]:
    """Start this many reads while the disk is blocked; return the size of each thread's batch."""
    disk.asked.clear()
    disk.gives.clear()
    loads = [asyncio.create_task(reads.load(disk, [b"key"])) for _ in range(count)]
    # The event loop distributes the reads within a few turns; the threads start them a little
    # later.
    for _ in range(5):
        await asyncio.sleep(0)
    dealt = reads.busy_threads
    while len(disk.asked) < dealt:
        await asyncio.sleep(0)
    asked = disk.asked.copy()
    disk.gives.set()
    assert await asyncio.gather(*loads) == [[b"value"]] * count
    return asked


async def test_few_threads_read_from_a_fast_disk_and_all_threads_from_a_slow_one() -> None:
    async with reading() as (disk, reads):
        assert await in_progress(disk, reads, 64) == [16] * 4
        assert await in_progress(disk, reads, 2) == [1, 1]
        disk.seconds = SLOW_SECONDS
        await in_progress(disk, reads, 4)
        assert await in_progress(disk, reads, 64) == [4] * THREADS
