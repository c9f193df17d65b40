"""A partition of a global secondary index: the one owner of a range of index entries.

It is told of changes by the followers of the table's partitions. In the batch of the effect it
keeps the highest counter applied from each source log, and passes over anything at or below it:
repeated and late messages do no harm, deletes included.
"""

from __future__ import annotations

from dynactor.actors.partition.row_owner import Batch, RowOwner
from dynactor.actors.runtime.mailbox import Envelope, Message
from dynactor.model.indexes.index import IndexDefinition
from dynactor.model.limits import INDEX_ENTRY_OVERHEAD_BYTES
from dynactor.storage import codec
from dynactor.storage.catalog import PartitionHead
from dynactor.storage.store import Store
from dynactor.streams.entry_change import EntryChange


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

    They may be out of date: the changes since are applied behind them. ``items`` are the
    positions in the table of the first and the last item: a backfill goes upwards from one message
    to the next, unless it begins anew or sends one again.
    """

    entries: tuple[tuple[bytes, bytes], ...]
    items: tuple[bytes, bytes] | None = None


class _EntryBatch(Batch):
    """Sizes of the entries that the batch touches; None, or nothing, for one that is not there."""

    def __init__(self, head: PartitionHead) -> None:
        super().__init__(head)
        self.sizes: dict[bytes, int | None] = {}


class IndexPartition(RowOwner[_EntryBatch]):
    """The actor.

    Invariant: none of its entries is of an item above ``_filled_up_to``, where that is known.
    """

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
        self._filled_up_to: bytes | None = None

    def started(self) -> None:
        """Only of an empty partition is it known what the backfill finds in it."""
        self._filled_up_to = None if self.head.item_counts.get(self._index_id) else b""

    async def load(self, envelopes: list[Envelope]) -> _EntryBatch:
        """Load the sizes of the entries that the messages will change and don't tell themselves."""
        batch = _EntryBatch(self.head)
        positions: dict[bytes, None] = {}
        for envelope in envelopes:
            match envelope.message:
                case ApplyChanges(changes=changes, follows_all=False):
                    positions.update(dict.fromkeys(change.position for change in changes))
                case Backfill(entries=entries, items=items):
                    if not self._is_first_to_fill(items):
                        positions.update(dict.fromkeys(position for position, _ in entries))
        if positions:
            values = await self._store.latest.load(
                [self._row_prefix + position for position in positions]
            )
            for position, value in zip(positions, values, strict=True):
                batch.sizes[position] = None if value is None else codec.size_bytes(value)
        return batch

    def _is_first_to_fill(self, items: tuple[bytes, bytes] | None) -> bool:
        """Whether no entry of the items between these two can be there yet; from now on it may."""
        filled_up_to = self._filled_up_to
        if filled_up_to is None or items is None:
            return False
        first, last = items
        self._filled_up_to = max(filled_up_to, last)
        return first > filled_up_to

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
            self._index_id, batch.sizes.get(position), size_bytes, INDEX_ENTRY_OVERHEAD_BYTES
        )
        batch.sizes[position] = size_bytes
        batch.rows[self._row_prefix + position] = value
