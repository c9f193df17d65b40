"""A partition's log without its partition, for tests of the followers of the log."""

from __future__ import annotations

from dynactor.actors.feeds.change_feed import ChangeFeed, RecentChanges
from dynactor.storage.store import Group, Store
from dynactor.streams import change_log
from dynactor.streams.change_record import ChangeRecord
from dynactor.streams.sequence_number import SequenceNumber
from tests.support.databases.databases import thread
from tests.support.streams.changes import change


class PartitionLog:
    """The log. It has no change records with counters up to ``begins_at``."""

    def __init__(
        self, store: Store, number: int, parent: int | None = None, begins_at: int = 0
    ) -> None:
        self.feed = ChangeFeed(number, store, RecentChanges(), parent)
        self.feed.begin(begins_at)

    async def write(self, counter: int) -> None:
        """Commit a change record and notify the feed, as a partition does."""
        record = await self.commit(counter)
        self.feed.advance(counter, [record], 0)

    async def commit(self, counter: int) -> ChangeRecord:
        """Commit a change record, without the feed."""
        number = self.feed.partition_number
        record = change(thread("EC2", "a"), None, {}, SequenceNumber(number, counter))
        head = b"head %d" % number
        (before,) = await self.feed.store.latest.load([head])
        group = Group(head, before, b"%d" % counter, puts=[change_log.row(record)])
        await (await self.feed.store.commit([group]))
        return record
