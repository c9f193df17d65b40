"""The number of item bytes that one BatchGetItem may still return.

An answer holds at most 16 MB (API reference, "BatchGetItem"), and at most 1,458,173 bytes from one
partition. Sizes are those of whole items, before projection.
"""

from __future__ import annotations

from dynactor.model.limits import BATCH_GET_PARTITION_BYTES, BATCH_GET_RESPONSE_BYTES


class BatchGetBudget:
    """Counts the item bytes that one answer may still hold, in total and from each partition.

    Partitions are identified by number; partitions of two tables never share a number. The first
    item that does not fit closes its partition, or the whole answer if the answer is full. Later
    keys of a closed partition stay unprocessed, even if their items are small. So a client that
    requests the unprocessed keys again receives their items in the order of its first request.
    """

    def __init__(self) -> None:
        self._left_bytes = BATCH_GET_RESPONSE_BYTES
        self._is_full = False
        self._taken_bytes: dict[int, int] = {}
        self._closed: set[int] = set()

    def is_closed(self, partition_number: int) -> bool:
        """Whether the answer takes no further item of a partition."""
        return self._is_full or partition_number in self._closed

    def fits(self, partition_number: int, size_bytes: int) -> bool:
        """Whether the next item of a partition fits; if not, close the partition or the answer."""
        if self._is_full or partition_number in self._closed:
            return False
        if size_bytes > self._left_bytes:
            self._is_full = True
            return False
        if self._taken_bytes.get(partition_number, 0) + size_bytes > BATCH_GET_PARTITION_BYTES:
            self._closed.add(partition_number)
            return False
        return True

    def take(self, partition_number: int, size_bytes: int) -> None:
        """Count an item that the answer returns."""
        self._left_bytes -= size_bytes
        self._taken_bytes[partition_number] = (
            self._taken_bytes.get(partition_number, 0) + size_bytes
        )
