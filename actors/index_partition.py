"""A partition of a global secondary index: the one owner of a range of index entries.

It is told of changes by the followers of the table's partitions. In the batch of the effect it
keeps the highest counter applied from each source log, and passes over anything at or below it:
repeated and late messages do no harm, deletes included.
"""

from __future__ import annotations

from actors.row_owner import Batch, RowOwner
from actors.runtime.mailbox import Envelope, Message
from model.index import IndexDefinition
from model.limits import INDEX_ENTRY_OVERHEAD_BYTES
from storage import codec
from storage.catalog import PartitionHead
from storage.store import Store
from streams.entry_change import EntryChange


class ApplyChanges(Message[None], frozen=True):
    """Carry changes of one source partition into this one, in the order of their counters.

    ``follows_all``: the index holds what all changes before these made of it. Not so while it
    is filled, and until what came meanwhile was carried into it.
    """

    source: int
    changes: tuple[EntryChange, ...]
    follows_all: bool = False


class Backfill(Message[None], frozen=True):
    """Put the entries of items that were there before the index was.

    They may be out of date: the changes since are applied behind them.
    """

    entries: tuple[tuple[bytes, bytes], ...]


class _EntryBatch(Batch):
    """Sizes of the entries that the batch touches, None for one that is not there."""

    def __init__(self, head: PartitionHead) -> None:
        super().__init__(head)
        self.sizes: dict[bytes, int | None] = {}


class IndexPartition(RowOwner[_EntryBatch]):
    """The actor."""

    def __init__(
        self,
        number: int,
        index: IndexDefinition,
        row_prefix: bytes,
        store: Store,
        *,
        copy_messages: bool,
    ) -> None:
        super().__init__(
            f"partition {number} of index {index.name}", number, store, copy_messages=copy_messages
        )
        self._row_prefix = row_prefix
        self._index_id = index.index_id

    async def load(self, envelopes: list[Envelope]) -> _EntryBatch:
        """Load the sizes of the entries that the messages will change and don't tell themselves."""
        batch = _EntryBatch(self.head)
        positions: dict[bytes, None] = {}
        for envelope in envelopes:
            match envelope.message:
                case ApplyChanges(changes=changes, follows_all=False):
                    positions.update(dict.fromkeys(change.position for change in changes))
                case Backfill(entries=entries):
                    positions.update(dict.fromkeys(position for position, _ in entries))
        if positions:
            values = await self._store.latest.load(
                [self._row_prefix + position for position in positions]
            )
            for position, value in zip(positions, values, strict=True):
                batch.sizes[position] = None if value is None else codec.size_bytes(value)
        return batch

    def decide(self, batch: _EntryBatch, envelope: Envelope) -> None:
        """What one message does to the batch."""
        match envelope.message:
            case ApplyChanges(source=source, changes=changes, follows_all=follows_all):
                applied = batch.applied.get(source, 0)
                for change in changes:
                    if change.counter > applied:
                        if follows_all:
                            batch.sizes[change.position] = change.replaced_bytes
                        self._put(batch, change.position, change.value)
                if changes:
                    batch.applied[source] = max(applied, changes[-1].counter)
            case Backfill(entries=entries):
                for position, value in entries:
                    self._put(batch, position, value)
            case message:
                raise AssertionError(message)

    def _put(self, batch: _EntryBatch, position: bytes, value: bytes | None) -> None:
        size_bytes = None if value is None else codec.size_bytes(value)
        batch.count_sizes(
            self._index_id, batch.sizes[position], size_bytes, INDEX_ENTRY_OVERHEAD_BYTES
        )
        batch.sizes[position] = size_bytes
        batch.rows[self._row_prefix + position] = value
