"""The number of item bytes that one BatchGetItem may still return.

An answer holds at most 16 MB, and at most 1 MB from one partition (API reference, "BatchGetItem").
Sizes are those of whole items, before projection.
"""

from __future__ import annotations

from typing import NamedTuple

from model.limits import BATCH_GET_PARTITION_BYTES, BATCH_GET_RESPONSE_BYTES


class TablePartition(NamedTuple):
    """A partition, unique over all tables."""

    table_id: int
    number: int


class BatchRoom:
    """The bytes left in one answer, over all its tables.

    The first item that does not fit closes its partition, or the whole answer if that is full.
    Later keys of a closed partition stay unprocessed, even if their items are small, so a client
    that sends them again receives them in its own order.
    """

    def __init__(self) -> None:
        self._left_bytes = BATCH_GET_RESPONSE_BYTES
        self._is_full = False
        self._taken_bytes: dict[TablePartition, int] = {}
        self._closed: set[TablePartition] = set()

    def is_closed(self, partition: TablePartition) -> bool:
        """Whether the answer takes no further item of a partition."""
        return self._is_full or partition in self._closed

    def fits(self, partition: TablePartition, size_bytes: int) -> bool:
        """Whether the next item of a partition fits; if not, close the partition or the answer."""
        if size_bytes > self._left_bytes:
            self._is_full = True
        elif self._taken_bytes.get(partition, 0) + size_bytes > BATCH_GET_PARTITION_BYTES:
            self._closed.add(partition)
        else:
            return True
        return False

    def take(self, partition: TablePartition, size_bytes: int) -> None:
        """Count an item that the answer returns."""
        self._left_bytes -= size_bytes
        self._taken_bytes[partition] = self._taken_bytes.get(partition, 0) + size_bytes
