"""Where rows are read that are not in the engine's memory: on the event loop, or in threads.

As long as the system's cache has them, a read takes some microseconds, and a thread would cost ten
times that: the loop reads. Once a read of the loop had to wait for the disk, it reads what is in
memory alone, and threads the rest, so that neither the loop nor another read waits for it. When
many reads of threads in a row did not go to the disk, the loop reads again.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from rocksdict import Rdict

from storage.rocks_errors import translate
from storage.store import Closed

# What the system's cache has is there sooner, the fastest disk's answer later.
WAIT_SECONDS: Final = 0.00005
# A page goes on in its next slice where a slice has taken so long.
_SLICE_SECONDS: Final = 0.002
_MOST_SLICE_ROWS: Final = 128

_THREADS: Final = 32
_QUICK_READS: Final = 64
# Elsewhere than on Linux what the engine reads in the background counts too.
_THIS_THREAD: Final = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)


class DiskReads:
    """Knows whether the loop has to wait for the disk, and reads in threads."""

    def __init__(self, disk_blocks: Callable[[], int] | None = None) -> None:
        """``disk_blocks`` tells how much a thread that calls it has ever read from disks."""
        self.waits = False
        self.slice_rows = _MOST_SLICE_ROWS
        # Reads in threads, those that nobody waits for any more too.
        self.count = 0
        self._quick_reads = 0
        self._disk_blocks = disk_blocks or _disk_blocks
        self._read_blocks = self._disk_blocks()
        self._is_closed = False
        # Its threads are made when there is something to read.
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="storage-read")

    def note_wait(self) -> None:
        """A read on the loop took longer than ``WAIT_SECONDS``: for the disk, or for its turn."""
        blocks = self._disk_blocks()
        if blocks != self._read_blocks:
            self._read_blocks = blocks
            self.waits = True
            self._quick_reads = 0

    def note_slice(self, rows: int, seconds: float) -> None:
        """A slice of so many rows took so long: the next one has fewer, or more."""
        if seconds > _SLICE_SECONDS:
            self.slice_rows = max(1, rows // 2)
        elif self.slice_rows < _MOST_SLICE_ROWS:
            self.slice_rows = min(2 * self.slice_rows, _MOST_SLICE_ROWS)

    async def load(self, rows: Rdict, keys: Sequence[bytes]) -> list[bytes | None]:
        """The latest values under these keys, read in a thread."""
        self._raise_if_closed()
        self.count += 1
        in_thread = asyncio.get_running_loop().run_in_executor(
            self._threads, self._load, rows, keys
        )
        in_thread.add_done_callback(self._count_out)
        # A thread can't be cancelled: whoever waits no longer leaves it at work, and counted.
        values, from_disk = await asyncio.shield(in_thread)
        self._quick_reads = 0 if from_disk else self._quick_reads + 1
        if self._quick_reads >= _QUICK_READS:
            self.waits = False
        return values

    def close(self) -> None:
        """End the reads: those that have not begun raise ``Closed``. Runs in a thread."""
        self._is_closed = True
        self._threads.shutdown()

    def _count_out(self, ended: asyncio.Future[Any]) -> None:
        self.count -= 1
        # Whoever has waited was told; if nobody does, nobody has to be.
        if not ended.cancelled():
            ended.exception()

    def _load(self, rows: Rdict, keys: Sequence[bytes]) -> tuple[list[bytes | None], bool]:
        self._raise_if_closed()
        before = self._disk_blocks()
        try:
            # Of a list, the engine reads without the GIL.
            values: Any = rows.get(list(keys))
        except Exception as error:
            raise translate(error) from error
        return list(values), self._disk_blocks() != before

    def _raise_if_closed(self) -> None:
        if self._is_closed:
            raise Closed("the store is closed")


def _disk_blocks() -> int:
    return resource.getrusage(_THIS_THREAD).ru_inblock
