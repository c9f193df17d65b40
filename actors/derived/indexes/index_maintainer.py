"""The follower that carries one partition's changes into one global secondary index.

What a change changes in the index was worked out with the write, or is now from both images:
a change is carried out without looking at the index, and may be carried out again.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable
from typing import Protocol

from dynactor.actors.derived.indexes.index_lag import NO_LAG, IndexLag
from dynactor.actors.derived.subscriber import Subscriber
from dynactor.actors.partition.change_feed import ChangeFeed
from dynactor.actors.partition.index_partition import ApplyChanges, Backfill
from dynactor.model.errors import InternalServerError
from dynactor.model.indexes.index import IndexDefinition
from dynactor.model.keys import key as keys
from dynactor.model.keys.key import KeySchema
from dynactor.model.writes.change import global_change
from dynactor.streams.change_record import ChangeRecord
from dynactor.streams.entry_change import EntryChange, entry_changes


class IndexWriter(Protocol):
    """Who finds the partitions of an index, and sends them messages."""

    @property
    def follows_all(self) -> bool:
        """Whether the index holds what all changes so far made of it: see ``ApplyChanges``."""
        ...

    def number_of(self, position: bytes) -> int:
        """The number of the partition that owns a position."""
        ...

    def ask(self, number: int, message: ApplyChanges | Backfill) -> Awaitable[None]:
        """Send a message; what is returned waits until it is carried out, durably."""
        ...


def changes_of(
    record: ChangeRecord, index: IndexDefinition, table_key: KeySchema
) -> tuple[EntryChange, ...]:
    """The rows of an index that a change of an item takes away and puts in."""
    known = record.entry_changes.get(index.index_id)
    if known is not None:
        return known
    change = global_change(index, table_key, record.old, record.new)
    if change is None:
        return ()
    encoded_key = keys.without_hash(keys.encode(table_key, record.key))
    return entry_changes(change, record.sequence_number.counter, encoded_key)


class IndexMaintainer(Subscriber):
    """The actor."""

    def __init__(
        self,
        index: IndexDefinition,
        table_key: KeySchema,
        writer: IndexWriter,
        subscriber_id: bytes,
        feed: ChangeFeed,
        *,
        lag: IndexLag = NO_LAG,
        after: asyncio.Future[None] | None = None,
    ) -> None:
        super().__init__(f"maintainer of index {index.name}", subscriber_id, feed, after=after)
        self._lag = lag
        self._waits = lag.waits()
        self._waited = 0
        self._index = index
        self._table_key = table_key
        self._writer = writer

    async def run(self) -> None:
        """As a subscriber; ends quietly where the store takes no writes and it is to stop."""
        try:
            await super().run()
        except InternalServerError:
            if not self.mailbox.closed:
                raise

    def wait_seconds(self, last: int) -> float:
        """The lag that a tester has set: what is in the log waits together, whatever the runs."""
        if self._lag is NO_LAG or last <= self._waited:
            return 0.0
        self._waited = self.feed.tail
        return self._lag.draw(self._waits)

    async def carry_out(self, records: list[ChangeRecord]) -> None:
        """Tell each partition of the index what changes in it, and wait until it is durable."""
        changes: defaultdict[int, list[EntryChange]] = defaultdict(list)
        for record in records:
            for change in changes_of(record, self._index, self._table_key):
                changes[self._writer.number_of(change.position)].append(change)
        source, follows_all = self.feed.partition_number, self._writer.follows_all
        asked = [
            self._writer.ask(number, ApplyChanges(source, tuple(of_partition), follows_all))
            for number, of_partition in changes.items()
        ]
        for at, carried_out in enumerate(asked, 1):
            try:
                await carried_out
            except InternalServerError:
                # It is to stop: the others are refused, too, and nobody else looks at that.
                await asyncio.gather(*asked[at:], return_exceptions=True)
                raise
