"""The follower that carries one partition's changes into one global secondary index.

What an index holds of an item is computed from both images of the change, so that a change is
carried out without looking at the index, and may be carried out again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable
from typing import Protocol

from actors.change_feed import ChangeFeed
from actors.index_partition import ApplyChanges, Backfill, EntryChange
from actors.subscribers.lag import NO_LAG, IndexLag
from actors.subscribers.subscriber import Subscriber
from model import key as keys
from model.index import IndexDefinition, global_entry
from model.key import KeySchema
from model.stored_item import StoredItem
from storage import codec
from streams.change_record import ChangeRecord


class IndexWriter(Protocol):
    """Who finds the partitions of an index, and sends them messages."""

    def owner_of(self, position: bytes) -> int:
        """The place of the partition that owns a position."""
        ...

    def ask(self, place: int, message: ApplyChanges | Backfill) -> Awaitable[None]:
        """Send a message; what is returned waits until it is carried out, durably."""
        ...


def entry_position(index: IndexDefinition, table_key: KeySchema, entry: StoredItem) -> bytes:
    """The key of an entry's row behind the index's prefix: index key, then table key."""
    item = entry.item
    return b"".join(
        (
            keys.encode(index.key_schema, item),
            *(keys.encode_value(item[attribute.name]) for attribute in table_key.attributes),
        )
    )


def entry_of(
    index: IndexDefinition, table_key: KeySchema, stored: StoredItem | None
) -> StoredItem | None:
    """What the index stores of an item; None for nothing."""
    if stored is None:
        return None
    entry = global_entry(index, table_key, stored.item)
    if entry is None:
        return None
    return stored if entry is stored.item else StoredItem.of(entry, stored.version)


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
    ) -> None:
        super().__init__(f"maintainer of index {index.name}", subscriber_id, feed)
        self._lag = lag
        self._waits = lag.waits()
        self._index = index
        self._table_key = table_key
        self._writer = writer

    def wait_seconds(self) -> float:
        """The lag that a tester has set."""
        return 0.0 if self._lag is NO_LAG else self._lag.draw(self._waits)

    async def carry_out(self, records: list[ChangeRecord]) -> None:
        """Tell each partition of the index what changes in it, and wait until it is durable."""
        changes: defaultdict[int, list[EntryChange]] = defaultdict(list)
        for record in records:
            for change in self._entry_changes(record):
                changes[self._writer.owner_of(change.position)].append(change)
        source = self.feed.partition_number
        asked = [
            self._writer.ask(place, ApplyChanges(source, tuple(of_place)))
            for place, of_place in changes.items()
        ]
        for carried_out in asked:
            await carried_out

    def _entry_changes(self, record: ChangeRecord) -> list[EntryChange]:
        """The rows of the index that a change of an item takes away and puts in."""
        old = entry_of(self._index, self._table_key, record.old)
        new = entry_of(self._index, self._table_key, record.new)
        if old is not None and new is not None and old.item == new.item:
            return []
        changes = []
        counter = record.sequence_number.counter
        new_position = None
        if new is not None:
            new_position = entry_position(self._index, self._table_key, new)
            changes.append(EntryChange(counter, new_position, codec.encode(new)))
        if old is not None:
            old_position = entry_position(self._index, self._table_key, old)
            if old_position != new_position:
                changes.append(EntryChange(counter, old_position, None))
        return changes
