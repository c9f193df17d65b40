"""A partition of a global secondary index: its messages, and their effect on its entries.

The followers of the table's partitions send changes. The partition stores the highest counter
applied from each source log, in the batch of the effect, and skips changes at or below it. So
repeated and late messages have no effect, deletes included.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynactor.actors.partition.batch import Batch
from dynactor.actors.partition.partition import Partition
from dynactor.actors.partition.roles import NoEffects
from dynactor.actors.runtime.mailbox import Message
from dynactor.model.definitions.index import IndexDefinition
from dynactor.model.limits import INDEX_ENTRY_OVERHEAD_BYTES
from dynactor.storage import codec
from dynactor.storage.catalog import PartitionHead
from dynactor.storage.store import Store
from dynactor.streams.entry_change import EntryChange


class ApplyChanges(Message[None], frozen=True):
    """Apply changes of one source partition, in the order of their counters.

    ``follows_all``: the index reflects all earlier changes. This is false during the backfill, and
    until the changes since its start are applied.
    """

    source: int
    changes: tuple[EntryChange, ...]
    follows_all: bool = False


class Backfill(Message[None], frozen=True):
    """Put the entries of items that are older than the index.

    The entries may be out of date, because later changes are applied after the backfill. ``items``
    are the positions in the table of the first and the last item. A backfill sends rising
    positions, unless it starts over or repeats a message.
    """

    entries: tuple[tuple[bytes, bytes], ...]
    items: tuple[bytes, bytes] | None = None


class EntryBatch(Batch):
    """The effect of one batch on entries: rows, and the sizes of the affected entries.

    None, or a missing key, stands for an entry that does not exist.
    """

    __slots__ = ("positions", "sizes")

    def __init__(self, head: PartitionHead) -> None:
        super().__init__(head)
        self.sizes: dict[bytes, int | None] = {}
        # The entries whose sizes are not in the messages.
        self.positions: dict[bytes, None] = {}


class IndexCore:
    """The core of an index's partition.

    Invariant: no entry belongs to an item above ``_filled_up_to``. None means unknown.
    """

    def __init__(self, index_id: int, row_prefix: bytes) -> None:
        self._index_id = index_id
        self._row_prefix = row_prefix
        self._filled_up_to: bytes | None = None

    def begin(self, head: PartitionHead) -> None:
        """Start with the stored head; if there are entries, ``_filled_up_to`` is unknown."""
        self._filled_up_to = None if head.item_counts.get(self._index_id) else b""

    def forget(self) -> None:
        """Do nothing: messages are decided on stored rows alone."""

    def open(self, head: PartitionHead, messages: Sequence[Message[Any]]) -> EntryBatch:
        """Return a batch that lists the entries whose sizes are not in the messages."""
        batch = EntryBatch(head)
        positions = batch.positions
        for message in messages:
            match message:
                case ApplyChanges(changes=changes, follows_all=False):
                    positions.update(dict.fromkeys(change.position for change in changes))
                case Backfill(entries=entries, items=items):
                    if not self._is_first_to_fill(items):
                        positions.update(dict.fromkeys(position for position, _ in entries))
        return batch

    def _is_first_to_fill(self, items: tuple[bytes, bytes] | None) -> bool:
        """Whether the index has no entries of these items yet; record that it may have some now."""
        filled_up_to = self._filled_up_to
        if filled_up_to is None or items is None:
            return False
        first, last = items
        self._filled_up_to = max(filled_up_to, last)
        return first > filled_up_to

    def row_keys(self, batch: EntryBatch) -> list[bytes]:
        """Return the keys of the entries whose sizes a batch needs."""
        prefix = self._row_prefix
        return [prefix + position for position in batch.positions]

    def fill(self, batch: EntryBatch, values: Sequence[bytes | None]) -> None:
        """Add the loaded sizes of entries to a batch."""
        for position, value in zip(batch.positions, values, strict=True):
            batch.sizes[position] = None if value is None else codec.size_bytes(value)

    def decide(self, batch: EntryBatch, message: Message[Any]) -> Any:
        """Decide which changes of a message are new, or which entries it puts."""
        match message:
            case ApplyChanges(source=source, changes=changes):
                applied = batch.applied.get(source, 0)
                if changes and changes[0].counter > applied:
                    return changes
                return tuple(change for change in changes if change.counter > applied)
            case Backfill(entries=entries):
                return entries
        raise AssertionError(message)

    def apply(self, batch: EntryBatch, message: Message[Any], decision: Any) -> None:
        """Write entries into the batch, with the applied counter of their source log."""
        if isinstance(message, ApplyChanges):
            for change in decision:
                if message.follows_all:
                    batch.sizes[change.position] = change.replaced_bytes
                self._put(batch, change.position, change.value)
            if decision:
                batch.applied[message.source] = decision[-1].counter
        else:
            for position, value in decision:
                self._put(batch, position, value)

    def accepted(self, batch: EntryBatch, head: PartitionHead) -> None:
        """Do nothing: messages are decided on stored rows alone."""

    def rejected(self, batch: EntryBatch) -> None:
        """Do nothing: a batch has no effect besides its rows."""

    def _put(self, batch: EntryBatch, position: bytes, value: bytes | None) -> None:
        size_bytes = None if value is None else codec.size_bytes(value)
        batch.count_sizes(
            self._index_id, batch.sizes.get(position), size_bytes, INDEX_ENTRY_OVERHEAD_BYTES
        )
        batch.sizes[position] = size_bytes
        batch.rows[self._row_prefix + position] = value


def index_partition(
    number: int,
    index: IndexDefinition,
    row_prefix: bytes,
    store: Store,
    *,
    copy_messages: bool,
) -> Partition[EntryBatch]:
    """Return the actor of an index's partition."""
    return Partition(
        f"partition {number} of index {index.name}",
        number,
        store,
        IndexCore(index.index_id, row_prefix),
        NoEffects(),
        copy_messages=copy_messages,
    )
