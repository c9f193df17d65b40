"""The changes of one global secondary index that follow from changes of its table.

The changes were computed with the write, or are computed here from both images. An index partition
applies a change without reading the index, and may get the same change again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable
from typing import Protocol

from dynactor.actors.feeds.index_lag import NO_LAG, IndexLag
from dynactor.actors.followers.sink import ChangeOrder, Contract, Gap, MessageSink
from dynactor.actors.partition.index_partition import ApplyChanges, Backfill
from dynactor.model.definitions.index import IndexDefinition
from dynactor.model.keys import key as keys
from dynactor.model.keys.key import KeySchema
from dynactor.model.writes.change import global_change
from dynactor.streams.change_record import ChangeRecord
from dynactor.streams.entry_change import EntryChange, entry_changes


class IndexWriter(Protocol):
    """Finds the partitions of an index, and sends them messages."""

    @property
    def follows_all(self) -> bool:
        """Whether the index reflects all changes so far: see ``ApplyChanges``."""

    def number_at(self, position: bytes) -> int:
        """The number of the partition that owns a position."""

    def ask(self, number: int, message: ApplyChanges | Backfill) -> Awaitable[None]:
        """Send a message. The result completes when the effect of the message is durable."""


def index_entry_changes(
    record: ChangeRecord, index: IndexDefinition, table_key: KeySchema
) -> tuple[EntryChange, ...]:
    """The rows of an index that a change of an item deletes and puts."""
    known = record.entry_changes.get(index.index_id)
    if known is not None:
        return known
    change = global_change(index, table_key, record.old, record.new)
    if change is None:
        return ()
    encoded_key = keys.without_hash(keys.encode(table_key, record.key))
    return entry_changes(change, record.sequence_number.counter, encoded_key)


class IndexChanges(MessageSink):
    """Sends the changes of one of the table's partitions to the partitions of an index.

    An index partition skips a change that it has already applied.
    """

    contract = Contract(ChangeOrder.ITEM, Gap.REBUILD, trim_delay_bytes=None)

    def __init__(
        self,
        index: IndexDefinition,
        table_key: KeySchema,
        writer: IndexWriter,
        partition_number: int,
        lag: IndexLag = NO_LAG,
    ) -> None:
        """``partition_number`` is the partition of the table whose changes are sent."""
        self._index = index
        self._table_key = table_key
        self._writer = writer
        self._source = partition_number
        self._lag = lag
        self._delays = lag.waits()
        self._delayed_up_to = 0

    def delay_seconds(self, last: int, tail: int) -> float:
        """The delay for tests, which applies once to all changes up to the present tail."""
        if not self._lag.is_delayed or last <= self._delayed_up_to:
            return 0.0
        self._delayed_up_to = tail
        return self._lag.draw(self._delays)

    def send(self, records: list[ChangeRecord]) -> list[Awaitable[None]]:
        """Send each partition of the index its changes."""
        changes: defaultdict[int, list[EntryChange]] = defaultdict(list)
        for record in records:
            for change in index_entry_changes(record, self._index, self._table_key):
                changes[self._writer.number_at(change.position)].append(change)
        follows_all = self._writer.follows_all
        return [
            self._writer.ask(
                number, ApplyChanges(self._source, tuple(partition_changes), follows_all)
            )
            for number, partition_changes in changes.items()
        ]
