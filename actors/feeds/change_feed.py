"""A partition's change feed: the tail and the recent records of its log, for its readers.

The partition moves the tail when a batch is durable. A reader that keeps up reads recent changes
from memory; a reader that is behind reads the log from the disk. No reader delays a write.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from typing import Final

from dynactor.actors.feeds.coalesced_wakeups import CoalescedWakeups
from dynactor.storage.store import Store
from dynactor.streams import change_log
from dynactor.streams.change_record import ChangeRecord

# Memory limit of the recent changes of all feeds together.
_RECENT_BYTES: Final = 64 * 1024 * 1024


class RecentChanges:
    """The cache of recent changes, which all feeds share; the oldest changes are evicted first."""

    def __init__(self, limit_bytes: int = _RECENT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._size_bytes = 0
        # Wakes the readers of the cache.
        self.wakeups = CoalescedWakeups()
        # The cached batches of all feeds, the oldest first: the feed, the number of records, their
        # bytes.
        self._order: deque[tuple[ChangeFeed, int, int]] = deque()

    def added(self, feed: ChangeFeed, records: int, size_bytes: int) -> None:
        """Count records that a feed has cached; this may evict the oldest records of any feed."""
        self._order.append((feed, records, size_bytes))
        self._size_bytes += size_bytes
        self.wakeups.changed()
        while self._size_bytes > self._limit_bytes:
            oldest, freed_records, freed_bytes = self._order.popleft()
            oldest.forget_oldest(freed_records)
            self._size_bytes -= freed_bytes


class ChangeFeed:
    """The feed of one partition.

    Invariants: every record with a counter up to ``tail`` is durable. ``_recent`` holds all records
    with counters above ``_recent_after`` and up to ``tail``, and perhaps older ones, without
    decoded items.

    ``parent`` is the number of the partition whose split created this one, as long as that log is
    kept; a reader of both logs reads the parent's first. ``last`` is the last counter of an ended
    log, None while the log grows.
    """

    def __init__(
        self,
        partition_number: int,
        store: Store,
        recent: RecentChanges,
        parent: int | None = None,
    ) -> None:
        self.partition_number = partition_number
        self.parent = parent
        self.last: int | None = None
        self.tail = 0
        # Total bytes of records that were ever written to the log, up to the tail.
        self.logged_bytes = 0
        # Number of additions, so that a reader notices additions during its read.
        self.additions = 0
        self._has_begun = False
        self.store = store
        self._recent: deque[ChangeRecord] = deque()
        self._sizes_bytes: deque[int] = deque()
        self._memory = recent
        self._recent_after = 0
        self._waiting: list[asyncio.Future[None]] = []

    def begin(self, tail: int, logged_bytes: int = 0) -> None:
        """Start with the durable state, or catch up with durable changes that were not added.

        A partition that does not learn when its changes become durable adds them with the next
        ones. Without next ones, only this call adds them.
        """
        self.begin_once(tail, logged_bytes)
        if tail > self.tail:
            self.advance(tail, [], logged_bytes)

    def begin_once(self, tail: int, logged_bytes: int) -> None:
        """Start with the durable state of the opened store; later calls have no effect."""
        if not self._has_begun:
            self._has_begun = True
            self.tail = self._recent_after = tail
            self.logged_bytes = logged_bytes

    def advance(self, tail: int, records: list[ChangeRecord], logged_bytes: int) -> None:
        """Move the tail: the changes up to ``tail``, with these records, are durable.

        ``logged_bytes`` is the total of the log up to there. The call may repeat an earlier one.
        """
        # Records between the old tail and ``before`` were not added; readers read them from disk.
        before = records[0].sequence_number.counter - 1 if records else tail
        has_all_records = before <= self.tail
        if not has_all_records:
            self._recent_after = before
        # A log's tail never goes back.
        self.tail = max(self.tail, tail)
        self.logged_bytes = max(self.logged_bytes, logged_bytes)
        if records:
            sizes_bytes = list(map(_size_bytes, records))
            self._recent += records
            self._sizes_bytes += sizes_bytes
            self._memory.added(self, len(records), sum(sizes_bytes))
        if records or not has_all_records:
            self._wake()

    def end(self) -> None:
        """End the log, because the partition was split."""
        assert self._has_begun
        self.last = self.tail
        self._wake()

    def forget_oldest(self, records: int) -> None:
        """Evict the oldest records from memory; they are read from the disk from now on."""
        for _ in range(records):
            oldest = self._recent.popleft().sequence_number.counter
            self._recent_after = max(self._recent_after, oldest)
            self._sizes_bytes.popleft()

    def _wake(self) -> None:
        self.additions += 1
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def wait_wakeup(self) -> asyncio.Future[None]:
        """A future that completes with the next coalesced wakeup of all readers."""
        return self._memory.wakeups.wait()

    def wait_addition(self) -> asyncio.Future[None]:
        """A future that completes when records are added, or the log ends."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return future

    async def read(self, after: int, *, max_records: int, max_bytes: int) -> list[ChangeRecord]:
        """The first durable records with counters above ``after``."""
        recent = self.read_recent(after, max_records=max_records, max_bytes=max_bytes)
        if recent is not None:
            return recent
        return await change_log.read(
            self.store.durable(),
            self.partition_number,
            after,
            max_records=max_records,
            max_bytes=max_bytes,
        )

    def read_recent(
        self, after: int, *, max_records: int, max_bytes: int
    ) -> list[ChangeRecord] | None:
        """The records that ``read`` returns; None if they are not in memory."""
        if after < self._recent_after:
            return None
        # Indexed by position, because a reader may be at the tail or many pages behind.
        recent = self._recent
        start = bisect_right(recent, after, key=_counter)
        size_bytes = 0
        found: list[ChangeRecord] = []
        for place in range(start, min(len(recent), start + max_records)):
            found.append(recent[place])
            size_bytes += self._sizes_bytes[place]
            if size_bytes >= max_bytes:
                break
        return found


def _counter(record: ChangeRecord) -> int:
    return record.sequence_number.counter


def _size_bytes(record: ChangeRecord) -> int:
    """The approximate memory of a record: its keys and images, and index entries."""
    size_bytes = (
        len(record.keys)
        + (len(record.old.data) if record.old else 0)
        + (len(record.new.data) if record.new else 0)
    )
    shared: bytes | None = None
    for index_changes in record.entry_changes.values():
        for change in index_changes:
            size_bytes += len(change.position)
            # Indexes that project whole items share the value.
            if change.value is not None and change.value is not shared:
                shared = change.value
                size_bytes += len(shared)
    return size_bytes
