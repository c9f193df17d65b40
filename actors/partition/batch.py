"""The results of one batch of messages in a partition: rows, change records and counts."""

from __future__ import annotations

from dynactor.model.values.stored_item import StoredItem
from dynactor.storage.catalog import PartitionHead
from dynactor.streams.change_record import ChangeRecord
from dynactor.streams.changes_by_key import Listing


class Batch:
    """The rows that a batch writes, None for a deleted one, and the partition's counts."""

    __slots__ = (
        "applied",
        "counter",
        "definition_version",
        "item_counts",
        "logged_bytes",
        "rows",
        "sizes_bytes",
    )

    def __init__(self, head: PartitionHead) -> None:
        self.rows: dict[bytes, bytes | None] = {}
        self.counter = head.counter
        self.item_counts = dict(head.item_counts)
        self.sizes_bytes = dict(head.sizes_bytes)
        self.applied = dict(head.applied)
        self.logged_bytes = head.logged_bytes
        self.definition_version = head.definition_version

    def head(self) -> PartitionHead:
        """The partition's head after this batch."""
        return PartitionHead(
            self.counter,
            self.item_counts,
            self.sizes_bytes,
            self.applied,
            self.logged_bytes,
            self.definition_version,
        )

    def count(
        self, index_id: int, old: StoredItem | None, new: StoredItem | None, overhead_bytes: int = 0
    ) -> int:
        """Count a replaced, added or deleted item or entry; returns the growth in bytes."""
        # Most writes replace an item.
        if new is not None and old is not None:
            grown_bytes = new.size_bytes - old.size_bytes
            if grown_bytes:
                self._grow(index_id, 0, grown_bytes)
            return grown_bytes
        grown_items = grown_bytes = 0
        if new is not None:
            grown_items, grown_bytes = 1, new.size_bytes + overhead_bytes
        elif old is not None:
            grown_items, grown_bytes = -1, -(old.size_bytes + overhead_bytes)
        self._grow(index_id, grown_items, grown_bytes)
        return grown_bytes

    def count_sizes(
        self, index_id: int, old_bytes: int | None, new_bytes: int | None, overhead_bytes: int = 0
    ) -> int:
        """Count a change as ``count`` does, from the two sizes; None stands for no item."""
        grown_items = (new_bytes is not None) - (old_bytes is not None)
        grown_bytes = (new_bytes or 0) - (old_bytes or 0) + grown_items * overhead_bytes
        self._grow(index_id, grown_items, grown_bytes)
        return grown_bytes

    def _grow(self, index_id: int, items: int, size_bytes: int) -> None:
        if index_id in self.item_counts:
            self.item_counts[index_id] += items
            self.sizes_bytes[index_id] += size_bytes
        else:
            self.item_counts[index_id] = items
            self.sizes_bytes[index_id] = size_bytes


class TableBatch(Batch):
    """The items and collection sizes that a batch reads and writes.

    ``items`` are by position, ``collections`` are sizes by encoded partition key. All changes of a
    batch have one time, which is read after its rows were loaded.
    """

    __slots__ = (
        "began_after",
        "collections",
        "grown",
        "items",
        "listing",
        "now_epoch_seconds",
        "positions",
        "prepared",
        "records",
        "unknown_collections",
    )

    def __init__(self, head: PartitionHead) -> None:
        super().__init__(head)
        # The counter of the last change before this batch.
        self.began_after = head.counter
        # Lists the changes of this batch by key; None before the first one.
        self.listing: Listing | None = None
        self.items: dict[bytes, StoredItem | None] = {}
        self.collections: dict[bytes, int] = {}
        self.records: list[ChangeRecord] = []
        self.now_epoch_seconds = 0.0
        # The items and then the collections whose rows are to be loaded.
        self.positions: list[bytes] = []
        self.unknown_collections: list[bytes] = []
        # The item collection of each write, and its size after the write; only with local indexes.
        self.grown: list[tuple[bytes, int]] = []
        # The ids of the transactions whose items this batch has locked.
        self.prepared: list[bytes] = []
