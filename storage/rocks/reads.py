"""Where rows are read that are not in the engine's memory: on the event loop, or in threads.

As long as the system's cache has them, a read takes some microseconds, and a thread would cost ten
times that: the loop reads. Once a read of the loop had to wait for the disk, it reads what is in
memory alone, and threads the rest, so that neither the loop nor another read waits for it. When
many reads of threads in a row did not go to the disk, the loop reads again.

A thread costs the loop most by taking the GIL and giving it back. So the reads of one turn of the
loop, or those that come while all threads are busy, are dealt to the threads by the handful. Where
the disk is quick, few threads with full hands do more than many, since the loop has more time. Of
a slow disk all read that there are: what it takes long for, it does for many at once.
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

# What the system's cache has is there sooner, the fastest disk's answer later.
WAIT_SECONDS: Final = 0.00005
# A page has fewer rows in its next slice where a slice has taken so long.
_SLICE_SECONDS: Final = 0.002
_MOST_SLICE_ROWS: Final = 128

_THREADS: Final = 16
_THREADS_OF_A_QUICK_DISK: Final = 4
# The time of one read, up to which a disk is a quick one.
_QUICK_SECONDS: Final = 0.001
# By how much each handful moves what is known of that.
_WEIGHT: Final = 1 / 16
_MOST_AT_ONCE: Final = 16
_QUICK_READS: Final = 64
# Elsewhere than on Linux what the engine reads in the background counts too.
_THIS_THREAD: Final = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)

Values: TypeAlias = list[bytes | None]


class _Read(NamedTuple):
    """What is asked for, and who waits for it."""

    rows: Rdict
    keys: Sequence[bytes]
    values: Future[Values]


class DiskReads:
    """Knows whether the loop has to wait for the disk, and reads in threads."""

    def __init__(self, disk_blocks: Callable[[], int] | None = None) -> None:
        """``disk_blocks`` tells how much a thread that calls it has ever read from disks."""
        self.waits = False
        self.slice_rows = _MOST_SLICE_ROWS
        self._quick_reads = 0
        self._disk_blocks = disk_blocks or _disk_blocks
        self._read_blocks = self._disk_blocks()
        self._waiting: list[_Read] = []
        self._is_scheduled = False
        self._handfuls: SimpleQueue[list[_Read] | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._idle = 0
        self._read_seconds = 0.0
        self._made: Future[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._is_closed = False

    @property
    def is_idle(self) -> bool:
        """Whether no thread reads, nor is about to, whoever waits for it or does no more."""
        return not self.busy_threads and not self._waiting

    @property
    def waiting_count(self) -> int:
        """How many reads wait for a thread."""
        return len(self._waiting)

    @property
    def busy_threads(self) -> int:
        """How many threads read, or are about to."""
        return len(self._threads) - self._idle

    def note_wait(self) -> None:
        """A read on the loop took longer than ``WAIT_SECONDS``: for the disk, or for its turn."""
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
        """A slice of so many rows took so long: the next one has fewer, or more."""
        if seconds > _SLICE_SECONDS:
            self.slice_rows = max(1, rows // 2)
        elif self.slice_rows < _MOST_SLICE_ROWS:
            self.slice_rows = min(2 * self.slice_rows, _MOST_SLICE_ROWS)

    async def load(self, rows: Rdict, keys: Sequence[bytes]) -> Values:
        """The latest values under these keys, one at least, read in a thread.

        Raises:
            Closed: the store is.
            Damaged: they can't be read.
        """
        if self._is_closed:
            raise Closed("the store is closed")
        read = _Read(rows, keys, self._loop.create_future())
        self._waiting.append(read)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._deal)
        return await read.values

    async def close(self) -> None:
        """End the reads: those that have not begun raise ``Closed``."""
        self._is_closed = True
        waiting, self._waiting = self._waiting, []
        for read in waiting:
            if not read.values.done():
                read.values.set_exception(Closed("the store is closed"))
        if self._made is not None:
            await self._made
        for _ in self._threads:
            self._handfuls.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def make_threads(self) -> None:
        """Make them all, in another thread: who starts one waits until it runs."""
        threads = [
            Thread(target=self._work, name=f"storage-read-{number}", daemon=True)
            for number in range(_THREADS)
        ]
        for thread in threads:
            thread.start()
        self._threads = threads
        self._idle = len(threads)

    def _deal(self) -> None:
        """Give what waits to the threads that have nothing to do, in even handfuls."""
        self._is_scheduled = False
        is_quick = self._read_seconds < _QUICK_SECONDS
        resting = max(0, len(self._threads) - _THREADS_OF_A_QUICK_DISK) if is_quick else 0
        while self._waiting and self._idle > resting:
            count = min(-(-len(self._waiting) // (self._idle - resting)), _MOST_AT_ONCE)
            handful, self._waiting = self._waiting[:count], self._waiting[count:]
            self._idle -= 1
            self._handfuls.put(handful)

    def _finish(
        self,
        handful: list[_Read],
        values: list[Values | StoreError],
        from_disk: bool,
        took_seconds: float,
    ) -> None:
        each_seconds = took_seconds / sum(len(read.keys) for read in handful)
        self._read_seconds += (each_seconds - self._read_seconds) * _WEIGHT
        for read, result in zip(handful, values, strict=True):
            if read.values.done():
                continue  # nobody waits any more
            if isinstance(result, StoreError):
                read.values.set_exception(result)
            else:
                read.values.set_result(result)
        self._quick_reads = 0 if from_disk else self._quick_reads + len(handful)
        if self._quick_reads >= _QUICK_READS:
            self.waits = False
        self._idle += 1
        self._deal()

    def _work(self) -> None:
        while self._work_once():
            pass

    def _work_once(self) -> bool:
        # Not a loop: a handful holds the engine, and the next one may be long in coming.
        handful = self._handfuls.get()
        if handful is None:
            return False
        before, began = self._disk_blocks(), perf_counter()
        values = _read(handful)
        from_disk, took_seconds = self._disk_blocks() != before, perf_counter() - began
        self._loop.call_soon_threadsafe(self._finish, handful, values, from_disk, took_seconds)
        return True


def _read(handful: list[_Read]) -> list[Values | StoreError]:
    try:
        found = iter(_get(handful[0].rows, [key for read in handful for key in read.keys]))
    except StoreError as error:
        if len(handful) == 1:
            return [error]
        # What one can't read is no other's trouble.
        return [result for read in handful for result in _read([read])]
    return [[next(found) for _ in read.keys] for read in handful]


def _get(rows: Rdict, keys: Sequence[bytes]) -> Values:
    try:
        # Of a list, the engine reads without the GIL.
        values: Any = rows.get(list(keys))
    except Exception as error:
        raise translate(error) from error
    return list(values)


def _disk_blocks() -> int:
    return resource.getrusage(_THIS_THREAD).ru_inblock
