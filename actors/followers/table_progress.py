"""All logs of a table, followed by one sink, parents before their children.

The log of a child is opened once the end of its parent's log is applied and stored. The changes of
an item are in the parent's log until the split, and in the child's log after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import structlog

from dynactor.actors.feeds.change_feed import ChangeFeed
from dynactor.actors.followers import log_progress
from dynactor.actors.followers.checkpoint import Checkpoint
from dynactor.actors.followers.log_progress import LogProgress
from dynactor.actors.followers.stored_checkpoint import try_store
from dynactor.storage.store import Store
from dynactor.streams import change_log

_RUN_RECORDS: Final = 1_024
_RUN_BYTES: Final = 2 * 1024 * 1024

_log = structlog.get_logger("actors")


class TableProgress:
    """The logs by the numbers of their partitions; also a collection of these numbers."""

    def __init__(
        self, feeds: Sequence[ChangeFeed], store: Store, *, subscriber_id: bytes, reader: str
    ) -> None:
        self._store = store
        self._subscriber_id = subscriber_id
        self._reader = reader
        self._logs: dict[int, LogProgress] = {}
        # Added logs whose checkpoints are not loaded yet.
        self._unloaded: list[LogProgress] = []
        self._joined = asyncio.get_running_loop().create_future()
        # Number of records applied since the checkpoints were stored.
        self.unstored_records = 0
        self.add(feeds)

    def __iter__(self) -> Iterator[LogProgress]:
        # Copy the logs, because more may be added while a caller awaits in its loop.
        return iter(list(self._logs.values()))

    def __contains__(self, partition_number: object, /) -> bool:
        return partition_number in self._logs

    def __getitem__(self, partition_number: int) -> LogProgress:
        return self._logs[partition_number]

    def add(self, feeds: Sequence[ChangeFeed]) -> None:
        """Follow more logs; children come after their parents."""
        for feed in feeds:
            log = LogProgress(feed, self._subscriber_id, self._reader, counts_bytes=True)
            self._logs[feed.partition_number] = log
            self._unloaded.append(log)
        self._forget_released()
        self._joined.set_result(None)
        self._joined = asyncio.get_running_loop().create_future()

    def _forget_released(self) -> None:
        """Forget the logs that are read to their end and are no parent of another followed log."""
        parents = {log.feed.parent for log in self}
        for log in self:
            if log.is_end_stored and log.number not in parents:
                del self._logs[log.number]

    @property
    def open(self) -> list[LogProgress]:
        """The logs to read now: not fully applied, while the ends of all ancestors are stored."""
        return [log for log in self if not log.is_finished and self._is_open(log)]

    def _is_open(self, log: LogProgress) -> bool:
        """Whether the ends of all ancestors' logs are applied and stored."""
        parent = None if log.feed.parent is None else self._logs.get(log.feed.parent)
        # A parent that is not followed was applied earlier.
        return parent is None or (parent.is_end_stored and self._is_open(parent))

    @property
    def lag_records(self) -> int:
        """Number of changes that are not applied, at most."""
        return log_progress.lag_records(self)

    @property
    def lag_bytes(self) -> int:
        """Number of bytes of records that are not applied."""
        return sum(log.lag_bytes for log in self)

    async def oldest_unapplied_us(self) -> int | None:
        """When the oldest change that is not applied was committed; None if all are applied."""
        return await log_progress.oldest_unapplied_us(self)

    # -- waiting ----------------------------------------------------------------------------

    def seen(self) -> Sequence[object]:
        """A value that changes whenever there is more to read."""
        return [(log.feed.additions, log.feed.last) for log in self]

    async def wait_more(self, seen: Sequence[object], stopped: asyncio.Future[None]) -> None:
        """Wait until there is more to read than at the time of ``seen``."""
        if seen == self.seen():
            waiting = [log.wait_addition() for log in self.open]
            await asyncio.wait(
                [*waiting, self._joined, stopped], return_when=asyncio.FIRST_COMPLETED
            )

    async def wait_joined(self) -> None:
        """Wait until more logs are followed."""
        await asyncio.wait([self._joined])

    # -- positions --------------------------------------------------------------------------

    async def load(self) -> None:
        """Load the checkpoints; a log with a later position keeps that position."""
        self._unloaded = list(self)
        await self.load_joined()
        self._forget_released()

    async def load_joined(self) -> None:
        """Load the checkpoints of added logs."""
        while self._unloaded:
            log = self._unloaded[-1]
            stored = await log.load()
            if log.position.counter == 0:
                log.position = stored
            self._unloaded.remove(log)

    def passed(self, positions: Mapping[int, Checkpoint], records: int) -> None:
        """Set the positions, up to which all changes are applied, and count the new ``records``."""
        for log in self:
            log.position = positions.get(log.number, log.position)
        self.unstored_records += records

    async def are_behind(self, counters: Mapping[int, int]) -> bool:
        """Whether a destination has more changes than a log, because a backup was restored.

        Raises ``StoreError``.
        """
        behind = [
            log.number for log in self if await self._is_behind(log, counters.get(log.number, 0))
        ]
        for number in behind:
            _log.error("older_log_detected", reader=self._reader, log=number)
        return bool(behind)

    async def _is_behind(self, log: LogProgress, counter: int) -> bool:
        if counter <= max(log.feed.tail, log.position.counter):
            return False
        # The feed may lack durable changes, because the store has not answered their commits.
        view = self._store.durable()
        return not await change_log.read(view, log.number, counter - 1, max_records=1, max_bytes=1)

    async def skip(self, counters: Mapping[int, int]) -> bool:
        """Skip changes that a destination has already; return whether there were any."""
        has_moved = False
        for log in self:
            counter = counters.get(log.number, 0)
            while log.position.counter < counter:
                run = await log.read(log.position, max_records=_RUN_RECORDS, max_bytes=_RUN_BYTES)
                known = [
                    record for record in run.records if record.sequence_number.counter <= counter
                ]
                if not known:
                    break
                log.position = log.position_after(log.position, run._replace(records=known))
                self.unstored_records += len(known)
                has_moved = True
        return has_moved

    # -- checkpoints ------------------------------------------------------------------------

    @property
    def has_unstored_end(self) -> bool:
        """Whether a log is fully applied and its end is not stored."""
        return any(log.is_finished and not log.is_end_stored for log in self)

    async def store_ends(self, stopped: asyncio.Future[None]) -> None:
        """Store the ends of fully applied logs, however long the store refuses writes."""
        for log in self:
            if log.is_finished:
                await log.store_end(stopped)

    async def try_store(self) -> None:
        """Store all positions in one commit; if the store refuses, the next call stores them."""
        moved = {log.checkpoint: log.value for log in self if not log.is_stored}
        if not moved or await try_store(self._store, moved):
            self.unstored_records = 0
