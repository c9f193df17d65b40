"""Decides whether rows outside the engine's memory are read on the event loop or in threads.

If the operating system caches them, a read takes a few microseconds, and a thread would cost ten
times that, so the loop reads. After a read on the loop had to wait for the disk, the loop reads
only rows in memory, and threads read the rest. So neither the loop nor another read waits for the
disk. After many consecutive reads in threads without disk access, the loop reads again.

The main cost of a thread is taking and releasing the GIL. So the reads of one turn of the loop, or
those that arrive while all threads are busy, are distributed to the threads in batches. On a fast
disk, few threads with full batches are faster than many, because the loop gets more time. On a slow
disk all threads read, because the disk serves many reads at once.
"""

from __future__ import annotations

import asyncio
import resource
from asyncio import Future
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread
from time import perf_counter
from typing import Any, Final, NamedTuple, TypeAlias

from rocksdict import Rdict

from dynactor.storage.rocks.errors import translate
from dynactor.storage.store import Closed, StoreError

# A longer read has waited for the disk. A read from the system's cache is faster than this, and
# even the fastest disk is slower.
WAIT_SECONDS: Final = 0.00005
# If reading a slice of a page took this long, the next slice has fewer rows.
_SLICE_SECONDS: Final = 0.002
_MOST_SLICE_ROWS: Final = 128

_THREADS: Final = 16
_FAST_DISK_THREADS: Final = 4
# Maximum average time of a read from a fast disk.
_QUICK_SECONDS: Final = 0.001
# The weight of each batch in the moving average of the read time.
_WEIGHT: Final = 1 / 16
_MOST_AT_ONCE: Final = 16
_QUICK_READS: Final = 64
# Other systems than Linux count the reads of the whole process, including the engine's background
# reads.
_THIS_THREAD: Final = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)

Values: TypeAlias = list[bytes | None]


class _KeysRead(NamedTuple):
    """The keys of a read, and the future of their values."""

    rows: Rdict
    keys: Sequence[bytes]
    values: Future[Values]


class DiskReads:
    """Detects whether the loop has to wait for the disk, and reads in threads."""

    def __init__(self, disk_blocks: Callable[[], int] | None = None) -> None:
        """``disk_blocks`` returns how many blocks the calling thread has read from disks so far."""
        self.waits = False
        self.slice_rows = _MOST_SLICE_ROWS
        self._quick_reads = 0
        self._disk_blocks = disk_blocks or _disk_blocks
        self._read_blocks = self._disk_blocks()
        self._waiting: list[_KeysRead] = []
        self._is_scheduled = False
        self._batches: SimpleQueue[list[_KeysRead] | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._idle = 0
        self._read_seconds = 0.0
        self._made: Future[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._is_closed = False

    @property
    def is_idle(self) -> bool:
        """Whether no thread is reading or about to read. Reads of canceled callers count."""
        return not self.busy_threads and not self._waiting

    @property
    def waiting_count(self) -> int:
        """The number of reads that wait for a thread."""
        return len(self._waiting)

    @property
    def busy_threads(self) -> int:
        """The number of threads that are reading or about to read."""
        return len(self._threads) - self._idle

    def note_wait(self) -> None:
        """Record that a read on the loop took longer than ``WAIT_SECONDS``."""
        blocks = self._disk_blocks()
        if blocks == self._read_blocks:
            return
        self._read_blocks = blocks
        if self._made is None:
            self._made = self._loop.run_in_executor(None, self.make_threads)
        elif self._made.done():
            self.waits = True
            self._quick_reads = 0

    def note_slice(self, rows: int, seconds: float) -> None:
        """Record the duration of a slice of rows, which determines the size of the next one."""
        if seconds > _SLICE_SECONDS:
            self.slice_rows = max(1, rows // 2)
        elif self.slice_rows < _MOST_SLICE_ROWS:
            self.slice_rows = min(2 * self.slice_rows, _MOST_SLICE_ROWS)

    async def load(self, rows: Rdict, keys: Sequence[bytes]) -> Values:
        """The latest values of these keys, at least one, read in a thread.

        Raises:
            Closed: the store is closed.
            Damaged: a row can't be read.
        """
        if self._is_closed:
            raise Closed("the store is closed")
        read = _KeysRead(rows, keys, self._loop.create_future())
        self._waiting.append(read)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._deal)
        return await read.values

    async def close(self) -> None:
        """Stop reading: reads that have not started raise ``Closed``."""
        self._is_closed = True
        waiting, self._waiting = self._waiting, []
        for read in waiting:
            if not read.values.done():
                read.values.set_exception(Closed("the store is closed"))
        if self._made is not None:
            await self._made
        for _ in self._threads:
            self._batches.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def make_threads(self) -> None:
        """Start the readers. Called in a thread, because starting a thread waits until it runs."""
        threads = [
            Thread(target=self._work, name=f"storage-read-{number}", daemon=True)
            for number in range(_THREADS)
        ]
        for thread in threads:
            thread.start()
        self._threads = threads
        self._idle = len(threads)

    def _deal(self) -> None:
        """Distribute pending reads to idle threads, in even batches."""
        self._is_scheduled = False
        is_quick = self._read_seconds < _QUICK_SECONDS
        resting = max(0, len(self._threads) - _FAST_DISK_THREADS) if is_quick else 0
        while self._waiting and self._idle > resting:
            count = min(-(-len(self._waiting) // (self._idle - resting)), _MOST_AT_ONCE)
            batch, self._waiting = self._waiting[:count], self._waiting[count:]
            self._idle -= 1
            self._batches.put(batch)

    def _finish(
        self,
        batch: list[_KeysRead],
        values: list[Values | StoreError],
        from_disk: bool,
        took_seconds: float,
    ) -> None:
        each_seconds = took_seconds / sum(len(read.keys) for read in batch)
        self._read_seconds += (each_seconds - self._read_seconds) * _WEIGHT
        for read, result in zip(batch, values, strict=True):
            if read.values.done():
                continue  # canceled meanwhile
            if isinstance(result, StoreError):
                read.values.set_exception(result)
            else:
                read.values.set_result(result)
        self._quick_reads = 0 if from_disk else self._quick_reads + len(batch)
        if self._quick_reads >= _QUICK_READS:
            self.waits = False
        self._idle += 1
        self._deal()

    def _work(self) -> None:
        while self._work_once():
            pass

    def _work_once(self) -> bool:
        # A loop variable would keep the last batch, and with it the engine, until the next batch
        # comes, which may take long.
        batch = self._batches.get()
        if batch is None:
            return False
        before, began = self._disk_blocks(), perf_counter()
        values = _read(batch)
        from_disk, took_seconds = self._disk_blocks() != before, perf_counter() - began
        self._loop.call_soon_threadsafe(self._finish, batch, values, from_disk, took_seconds)
        return True


def _read(batch: list[_KeysRead]) -> list[Values | StoreError]:
    try:
        found = iter(_get(batch[0].rows, [key for read in batch for key in read.keys]))
    except StoreError as error:
        if len(batch) == 1:
            return [error]
        # If one read fails, the others are read separately and succeed.
        return [result for read in batch for result in _read([read])]
    return [[next(found) for _ in read.keys] for read in batch]


def _get(rows: Rdict, keys: Sequence[bytes]) -> Values:
    try:
        # The engine reads a list of keys without the GIL.
        values: Any = rows.get(list(keys))
    except Exception as error:
        raise translate(error) from error
    return list(values)


def _disk_blocks() -> int:
    return resource.getrusage(_THIS_THREAD).ru_inblock
