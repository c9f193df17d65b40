"""Group commit: one thread syncs the log, one sync serves every commit accepted before it.

The event loop never waits for the disk. A commit accepted while a sync is under way belongs to
the next one. It starts when the present one has ended and the event loop brings no more commits,
but not much later; so does one that begins while none is under way, unless the last one was of a
single commit: whoever writes alone never waits.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from time import perf_counter_ns
from typing import Final, Generic, TypeVar

from dynactor.model.latency_histogram import LatencyHistogram
from dynactor.storage.store import Unknown

# A sync takes processor time of its own, as much as several puts. While turns of the event loop
# bring more commits, these had better share it. Where the loop is not busy so many turns pass in a
# thirtieth of a millisecond.
_QUIET_TURNS: Final = 16
# From one start to the next: syncs that take as long follow each other at once.
_LONGEST_SECONDS: Final = 0.008

T = TypeVar("T")


class Synchroniser(Generic[T]):
    """Runs the syncs and completes the futures of the commits they cover.

    ``mark`` is called on the loop when a sync starts: its result stands for everything
    accepted so far. ``sync`` runs in the thread. ``publish`` is called on the loop with the
    mark when that sync has returned, before any future of its commits completes.

    After a failed sync (``has_failed``) there is no other: what the disk holds is unknown from
    then on.
    """

    def __init__(
        self,
        *,
        mark: Callable[[], T],
        sync: Callable[[T], None],
        publish: Callable[[T], None],
        failed: Callable[[Exception], object],
        latency: LatencyHistogram | None = None,
    ) -> None:
        """``latency`` counts how long syncs took that succeeded."""
        self._mark = mark
        self._sync = sync
        self._publish = publish
        self._failed = failed
        self._latency = latency or LatencyHistogram()
        self._loop: AbstractEventLoop = asyncio.get_running_loop()
        self._waiting: list[Future[None]] = []
        self._covered: list[Future[None]] = []
        self._scheduled = False
        self._running = False
        self._started_at = 0.0
        # Whether the last sync was of several commits.
        self._is_shared = False
        # When to start at the latest; how many waited a turn of the event loop ago; and for how
        # many turns none has come.
        self._start_at = 0.0
        self._seen = 0
        self._quiet_turns = 0
        self.has_failed = False
        self._marks: SimpleQueue[T | None] = SimpleQueue()
        self._idle: Future[None] | None = None
        self._thread = Thread(target=self._work, name="storage-sync", daemon=True)
        self._thread.start()

    def accepted(self) -> Future[None]:
        """The future of a commit that was written just now.

        Each commit has its own: a waiter that is cancelled takes no other waiter along.
        """
        assert not self.has_failed, "no commit is accepted after a failed sync"
        future = self._loop.create_future()
        self._waiting.append(future)
        if not (self._running or self._scheduled):
            self._scheduled = True
            if self._is_shared:
                self._await_quiet(self._loop.time() + _LONGEST_SECONDS)
            else:
                self._loop.call_soon(self._start)
        return future

    def behind_accepted(self) -> Future[None]:
        """A future that completes behind those of all commits so far; no sync is for its sake."""
        future = self._loop.create_future()
        if self._waiting:
            self._waiting.append(future)
        elif self._running:
            self._covered.append(future)
        else:
            future.set_result(None)
        return future

    @property
    def waiting_count(self) -> int:
        """How many commits wait for a sync, or for the end of one."""
        return len(self._waiting) + len(self._covered)

    @property
    def is_idle(self) -> bool:
        """Whether every accepted commit has had its sync."""
        return not (self._running or self._scheduled)

    async def wait_idle(self) -> None:
        """Wait until no accepted commit is without its sync."""
        if not self.is_idle:
            if self._idle is None:
                self._idle = self._loop.create_future()
            await asyncio.shield(self._idle)

    def stop(self) -> None:
        """End the thread. Only when idle."""
        assert self.is_idle
        self._marks.put(None)
        self._thread.join()

    def _start(self) -> None:
        self._scheduled = False
        self._running = True
        self._started_at = self._loop.time()
        self._covered, self._waiting = self._waiting, []
        self._is_shared = len(self._covered) > 1
        self._marks.put(self._mark())

    def _work(self) -> None:
        while self._sync_next():
            pass

    def _sync_next(self) -> bool:
        # Not a loop: a mark may hold resources, and the next one may be long in coming.
        mark = self._marks.get()
        if mark is None:
            return False
        began = perf_counter_ns()
        try:
            self._sync(mark)
        except Exception as error:  # noqa: BLE001 - carried to the loop, which ends writing
            # The frames of its traceback would keep the mark.
            self._loop.call_soon_threadsafe(self._fail, error.with_traceback(None))
        else:
            took = perf_counter_ns() - began
            self._loop.call_soon_threadsafe(self._finish, mark, took)
        return True

    def _finish(self, mark: T, took_nanoseconds: int) -> None:
        self._latency.observe(took_nanoseconds)
        covered, self._covered = self._covered, []
        self._running = False
        self._publish(mark)
        for future in covered:
            if not future.done():
                future.set_result(None)
        if not self._waiting:
            self._wake_idle()
        else:
            self._scheduled = True
            self._await_quiet(self._started_at + _LONGEST_SECONDS)

    def _await_quiet(self, start_at: float) -> None:
        """Start when turns of the loop have brought no more commits, or it is time."""
        self._start_at = start_at
        self._seen = len(self._waiting)
        self._quiet_turns = 0
        self._loop.call_soon(self._start_when_quiet)

    def _start_when_quiet(self) -> None:
        if len(self._waiting) > self._seen:
            self._seen = len(self._waiting)
            self._quiet_turns = 0
        else:
            self._quiet_turns += 1
        is_quiet = self._quiet_turns >= _QUIET_TURNS
        if is_quiet or self._loop.time() >= self._start_at:
            self._start()
        else:
            self._loop.call_soon(self._start_when_quiet)

    def _fail(self, failure: Exception) -> None:
        futures = self._covered + self._waiting
        self._covered, self._waiting = [], []
        self._running = False
        self.has_failed = True
        self._failed(failure)
        for future in futures:
            if not future.done():
                future.set_exception(Unknown(f"syncing the log failed: {failure}"))
        self._wake_idle()

    def _wake_idle(self) -> None:
        if self._idle is not None:
            self._idle.set_result(None)
            self._idle = None
