"""Group commit: a thread syncs the log; one sync covers every commit accepted before it.

The event loop never waits for the disk. A commit that is accepted during a sync is covered by the
next sync. The next sync starts after the current one, as soon as several turns of the event loop
bring no further commit, or after at most 8 ms. If no sync is running, a commit starts one by the
same rule. If the last sync covered a single commit, the next one starts at once, so a single writer
never waits.
"""

from __future__ import annotations

import asyncio
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from time import perf_counter_ns
from typing import Final, Generic, Protocol, TypeVar

from dynactor.model.latency_histogram import LatencyHistogram
from dynactor.storage.store import Unknown

# A sync costs as much processor time as several puts, so commits that arrive in consecutive turns
# of the event loop should share one. On an idle loop, this many turns take 30 microseconds.
_QUIET_TURNS: Final = 16
# Maximum time from the start of a sync to the start of the next one while commits wait. After a
# sync that takes longer, the next one starts at once.
_LONGEST_SECONDS: Final = 0.008

T = TypeVar("T")


class Commits(Protocol):
    """The accepted commits, and when they are durable."""

    # Whether the outcome of a commit is unknown. Then no more commits are accepted.
    has_failed: bool

    def accepted(self) -> Future[None]:
        """Return the future of a commit that the store has just accepted.

        Each commit has its own, so canceling one waiter does not affect the others.
        """

    def behind_accepted(self) -> Future[None]:
        """A future that completes once all commits so far are durable; this starts no sync."""

    @property
    def waiting_count(self) -> int:
        """The number of commits that wait for the start or the end of a sync."""

    @property
    def is_idle(self) -> bool:
        """Whether every accepted commit is durable."""

    async def wait_idle(self) -> None:
        """Wait until every accepted commit is durable."""

    def stop(self) -> None:
        """End the thread. Only valid while idle."""


class Synchronizer(Generic[T]):
    """Runs the syncs and completes the futures of the commits they cover.

    ``mark`` is called on the loop when a sync starts; its result, the mark, identifies everything
    accepted so far. ``sync`` runs in the thread. ``publish`` is called on the loop with the mark
    after the sync, before any future of the covered commits completes.

    A failed sync (``has_failed``) is the last one: the disk's content is unknown from then on.
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
        """``latency`` counts the durations of successful syncs."""
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
        # Whether the last sync covered several commits.
        self._is_shared = False
        # The latest time to start; the number of waiting commits one turn ago; the number of turns
        # since then without a new commit.
        self._start_at = 0.0
        self._seen = 0
        self._quiet_turns = 0
        self.has_failed = False
        self._marks: SimpleQueue[T | None] = SimpleQueue()
        self._idle: Future[None] | None = None
        self._thread = Thread(target=self._work, name="storage-sync", daemon=True)
        self._thread.start()

    def accepted(self) -> Future[None]:
        """See Commits."""
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
        """See Commits."""
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
        """See Commits."""
        return len(self._waiting) + len(self._covered)

    @property
    def is_idle(self) -> bool:
        """See Commits."""
        return not (self._running or self._scheduled)

    async def wait_idle(self) -> None:
        """See Commits."""
        if not self.is_idle:
            if self._idle is None:
                self._idle = self._loop.create_future()
            await asyncio.shield(self._idle)

    def stop(self) -> None:
        """See Commits."""
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
        # A loop variable would keep the last mark until the next one comes, which may take long,
        # and a mark holds resources.
        mark = self._marks.get()
        if mark is None:
            return False
        began = perf_counter_ns()
        try:
            self._sync(mark)
        except Exception as error:  # noqa: BLE001 - carried to the loop, which ends writing
            # The frames of the traceback would keep the mark alive.
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
        """Start a sync once turns of the loop bring no more commits, or at the given time."""
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
