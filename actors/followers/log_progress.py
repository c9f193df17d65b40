"""A log as a sink follows it: the position, the stored checkpoint, and the end of the log.

``PartitionFollower`` feeds a sink from one such log, ``TableProgress`` from all logs of a table
together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from dynactor.actors.feeds.change_feed import ChangeFeed
from dynactor.actors.followers import checkpoint
from dynactor.actors.followers.checkpoint import Checkpoint
from dynactor.actors.followers.stored_checkpoint import StoredCheckpoint, encode_position
from dynactor.storage import key_layout
from dynactor.streams import change_record
from dynactor.streams.change_record import ChangeRecord


class Run(NamedTuple):
    """Records that follow a position.

    ``tail`` is the log's tail before the read, ``end`` the log's end if the log had ended by then.
    An empty run means that there are no records up to the tail: they were trimmed, or the changes
    were made while the table had no followers.
    """

    records: list[ChangeRecord]
    tail: Checkpoint
    end: Checkpoint | None


class LogProgress:
    """A log and its reader's position in it.

    Invariant: the effect of every record up to ``position`` is durable, and the stored checkpoint
    is at or below ``position``.
    """

    def __init__(
        self, feed: ChangeFeed, subscriber_id: bytes, reader: str, *, counts_bytes: bool = False
    ) -> None:
        """``counts_bytes``: whether the checkpoint says how many bytes of the log were applied."""
        self.feed = feed
        self.position = Checkpoint(0, 0)
        self.checkpoint = StoredCheckpoint(
            feed.store, key_layout.checkpoint(subscriber_id, feed.partition_number), reader
        )
        self._counts_bytes = counts_bytes
        # The future of ``wait_addition``. It is reused until it completes, because the feed keeps
        # every future until then.
        self._addition: asyncio.Future[None] | None = None

    @property
    def number(self) -> int:
        """The number of the log's partition."""
        return self.feed.partition_number

    @property
    def stored(self) -> Checkpoint:
        """The stored checkpoint; a restart continues after it."""
        return checkpoint.decode(self.checkpoint.value)

    @property
    def end(self) -> Checkpoint | None:
        """The position after the log's last change; None while the log grows."""
        if self.feed.last is None:
            return None
        return Checkpoint(self.feed.last, self.feed.logged_bytes)

    @property
    def is_finished(self) -> bool:
        """Whether the log has ended and all of it is applied."""
        return self.feed.last is not None and self.position.counter >= self.feed.last

    @property
    def is_end_stored(self) -> bool:
        """Whether the log's end is applied and stored, so that its children's logs may be read."""
        return self.is_finished and self.stored.counter >= self.position.counter

    @property
    def is_stored(self) -> bool:
        """Whether the stored checkpoint is the reader's position."""
        return self.stored == self.position

    @property
    def lag_records(self) -> int:
        """Number of changes that are not applied, at most."""
        return max(0, self.feed.tail - self.position.counter)

    @property
    def lag_bytes(self) -> int:
        """Number of bytes of records that are not applied, if the reader counts bytes."""
        if not self.lag_records:
            return 0
        return max(0, self.feed.logged_bytes - self.position.logged_bytes)

    @property
    def value(self) -> bytes:
        """The checkpoint's value for the present position."""
        return self.encode(self.position)

    def encode(self, position: Checkpoint) -> bytes:
        """The checkpoint's value for a position."""
        return position.encode() if self._counts_bytes else encode_position(position.counter)

    async def load(self) -> Checkpoint:
        """Read the stored checkpoint."""
        await self.checkpoint.load()
        return self.stored

    async def read(self, after: Checkpoint, *, max_records: int, max_bytes: int) -> Run:
        """The first records after a position."""
        # Taken before the read, because records and then the end may be added during it.
        tail, end = Checkpoint(self.feed.tail, self.feed.logged_bytes), self.end
        records = await self.feed.read(after.counter, max_records=max_records, max_bytes=max_bytes)
        return Run(records, tail, end)

    def position_after(self, position: Checkpoint, run: Run) -> Checkpoint:
        """The position after the records of a run that follows a position."""
        counter = run.records[-1].sequence_number.counter
        if counter == run.tail.counter:
            # At the tail, use the feed's number of bytes, which includes trimmed records.
            return run.tail
        if not self._counts_bytes:
            return Checkpoint(counter, 0)
        size_bytes = sum(map(change_record.stored_bytes, run.records))
        return Checkpoint(counter, position.logged_bytes + size_bytes)

    async def first(self) -> ChangeRecord | None:
        """The first record that is not applied."""
        records = await self.feed.read(self.position.counter, max_records=1, max_bytes=1)
        return records[0] if records else None

    async def oldest_unapplied_us(self) -> int | None:
        """When the oldest change that is not applied was committed; None if all are applied."""
        first = await self.first() if self.lag_records else None
        return None if first is None else first.commit_time_us

    async def try_store(self) -> bool:
        """Store the position if the store accepts it at once; the row becomes durable later."""
        return await self.checkpoint.try_store(self.value)

    async def store_end(self, stopped: asyncio.Future[None]) -> bool:
        """Store that the whole log is applied, despite refusals; False if the reader is stopped."""
        assert self.is_finished
        return self.is_end_stored or await self.checkpoint.store(self.value, stopped)

    def wait_addition(self) -> asyncio.Future[None]:
        """A future that completes when records are added, or the log ends."""
        if self._addition is None or self._addition.done():
            self._addition = self.feed.wait_addition()
        return self._addition


def lag_records(logs: Iterable[LogProgress]) -> int:
    """Number of changes in some logs that are not applied, at most."""
    return sum(log.lag_records for log in logs)


async def oldest_unapplied_us(logs: Iterable[LogProgress]) -> int | None:
    """When the oldest change that is not applied was committed; None if all are applied."""
    # Copy the logs, because more may be added during a read.
    oldest = [await log.oldest_unapplied_us() for log in list(logs)]
    return min((at_us for at_us in oldest if at_us is not None), default=None)
