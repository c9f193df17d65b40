"""Takes a request's units from the limits of a table and its indexes: all or nothing.

A write needs units of its table and of every global index whose entry changes. If one of them has
no units left, no units are taken and the write is refused (S102, S110). Local indexes use their
table's units (S49).

Three modes. *Enforce* refuses requests. *Observe* refuses none, and counts those that *enforce*
would have refused. Such a request takes no units, so balances are the same as if DynamoDB had
refused the request, and both modes count the same for the same requests. *Off* neither refuses nor
counts, and takes no units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from dynactor.model.capacity import Receipt
from dynactor.model.definitions.table import TABLE_INDEX_ID
from dynactor.model.errors import ThrottlingReason
from dynactor.model.throttling.refusal import Refusal, both
from dynactor.model.throttling.resource import ResourceLimits

# A wait that is rounded to zero would make callers spin.
_LEAST_WAIT_SECONDS: Final = 0.001

ThrottlingMode: TypeAlias = Literal["enforce", "observe", "off"]


class IndexWrite(NamedTuple):
    """The units of a write in one partition of a global index.

    A changed index key may need two writes: one in the partition of the old entry and one in the
    partition of the new entry.
    """

    index_id: int
    partition_number: int
    units: float


class TableLimits:
    """The limits of a table and its global indexes, by index id.

    ``throttle_events`` counts refused requests by reason and resource; ``observed_events`` counts
    requests that would have been refused.
    """

    def __init__(self, table: ResourceLimits, mode: ThrottlingMode) -> None:
        self.table = table
        self.indexes: dict[int, ResourceLimits] = {}
        self.mode: ThrottlingMode = mode
        self.throttle_events: Counter[ThrottlingReason] = Counter()
        self.observed_events: Counter[ThrottlingReason] = Counter()

    def take_write(
        self,
        partition_number: int,
        receipt: Receipt,
        index_writes: Sequence[IndexWrite],
        now_seconds: float,
    ) -> Refusal | None:
        """Take a write's units, or return the refusal, also in the mode *observe*.

        ``index_writes`` are the writes in the receipt's global indexes, by partition.
        """
        mode = self.mode
        if mode == "off":
            return None
        writes = self.table.writes
        if not index_writes:
            limit = writes.serve(partition_number, _table_units(receipt), now_seconds)
            if limit is None:
                return None
            writes.refused(partition_number, limit)
            return self._counted(self.table.refusal("Write", limit))
        if writes.refused_by(partition_number, now_seconds) is not None:
            return self._refuse_write(partition_number, index_writes, now_seconds)
        for index_id, index_partition, _ in index_writes:
            if self.indexes[index_id].writes.refused_by(index_partition, now_seconds) is not None:
                return self._refuse_write(partition_number, index_writes, now_seconds)
        writes.take(partition_number, _table_units(receipt), now_seconds)
        for index_id, index_partition, index_units in index_writes:
            self.indexes[index_id].writes.take(index_partition, index_units, now_seconds)
        return None

    def give_back_write(
        self,
        partition_number: int,
        receipt: Receipt,
        index_writes: Sequence[IndexWrite],
        now_seconds: float,
    ) -> None:
        """Return the units of a failed write."""
        self.table.writes.give_back(partition_number, _table_units(receipt), now_seconds)
        for index_id, index_partition, index_units in index_writes:
            index = self.indexes.get(index_id)
            # The index may have been deleted meanwhile.
            if index is not None:
                index.writes.give_back(index_partition, index_units, now_seconds)

    def refuse_write(self, partition_number: int, now_seconds: float) -> Refusal | None:
        """The refusal of a write before it is decided; None if the partition has units left.

        The call takes no units. The affected indexes are not known yet, so ``take_write`` may still
        refuse the write.
        """
        if self.mode != "enforce":
            return None
        limit = self.table.writes.refused_by(partition_number, now_seconds)
        if limit is None:
            return None
        self.table.writes.refused(partition_number, limit)
        return self._counted(self.table.refusal("Write", limit))

    def refuse_read(
        self, partition_number: int, now_seconds: float, index_id: int = TABLE_INDEX_ID
    ) -> Refusal | None:
        """The refusal of a read of a partition before it starts; None if units are left.

        ``take_read`` takes the read's units afterwards, because they are known only then.
        """
        if self.mode != "enforce":
            return None
        resource = self.indexes[index_id] if index_id else self.table
        limit = resource.reads.refused_by(partition_number, now_seconds)
        if limit is None:
            return None
        resource.reads.refused(partition_number, limit)
        return self._counted(resource.refusal("Read", limit))

    def take_read(
        self,
        partition_number: int,
        units: float,
        now_seconds: float,
        index_id: int = TABLE_INDEX_ID,
    ) -> Refusal | None:
        """Take the units of a finished read in a partition of the table or of a global index.

        A read of a local index takes units of the table. In the mode *enforce*, ``refuse_read`` has
        admitted the read already. In the mode *observe*, the limits are checked here. Returns the
        refusal that *enforce* would have caused, if any; then no units are taken.
        """
        if self.mode == "off":
            return None
        resource = self.indexes[index_id] if index_id else self.table
        if self.mode == "observe":
            return self._serve(resource, partition_number, units, now_seconds)
        resource.reads.take(partition_number, units, now_seconds)
        return None

    def serve_read(self, partition_number: int, units: float, now_seconds: float) -> Refusal | None:
        """Take the units of a read of one item, or return the refusal.

        In the mode *observe*, the refusal is returned, too. One call admits the read and takes its
        units, because most requests are such reads and need little work before admission.
        """
        if self.mode == "off":
            return None
        table = self.table
        limit = table.reads.serve(partition_number, units, now_seconds)
        if limit is None:
            return None
        table.reads.refused(partition_number, limit)
        return self._counted(table.refusal("Read", limit))

    def take_backfill(self, index_write: IndexWrite, now_seconds: float) -> float | None:
        """Take the units of entries that a backfill puts into an index.

        The backfill and writes to the table share the index's units (S168, S197). In the mode
        *observe*, the backfill takes units if there are any, and never waits. Returns None if the
        entries may be put; else the seconds until the next attempt.
        """
        if self.mode == "off":
            return None
        index_id, partition_number, units = index_write
        writes = self.indexes[index_id].writes
        if writes.refused_by(partition_number, now_seconds) is None:
            writes.take(partition_number, units, now_seconds)
            return None
        if self.mode == "observe":
            return None
        return max(_LEAST_WAIT_SECONDS, writes.wait_seconds(partition_number, now_seconds))

    def _serve(
        self, resource: ResourceLimits, partition_number: int, units: float, now_seconds: float
    ) -> Refusal | None:
        reads = resource.reads
        limit = reads.serve(partition_number, units, now_seconds)
        if limit is None:
            return None
        reads.refused(partition_number, limit)
        return self._counted(resource.refusal("Read", limit))

    def _refuse_write(
        self, partition_number: int, index_writes: Sequence[IndexWrite], now_seconds: float
    ) -> Refusal:
        """Collect the limits that refuse a write: at most one per table or index."""
        refusal = None
        touched = [(self.table, partition_number)]
        touched += [(self.indexes[index_id], place) for index_id, place, _ in index_writes]
        for resource, place in touched:
            limit = resource.writes.refused_by(place, now_seconds)
            if limit is None:
                continue
            resource.writes.refused(place, limit)
            one = resource.refusal("Write", limit)
            refusal = one if refusal is None else both(refusal, one)
        assert refusal is not None
        return self._counted(refusal)

    def resource(self, index_id: int) -> ResourceLimits:
        """The limits of the table itself (id 0), or of a global index."""
        return self.table if index_id == TABLE_INDEX_ID else self.indexes[index_id]

    def _counted(self, refusal: Refusal) -> Refusal:
        events = self.throttle_events if self.mode == "enforce" else self.observed_events
        for reason in refusal.reasons:
            events[reason] += 1
        return refusal


def _table_units(receipt: Receipt) -> float:
    """The units of the table that a write consumes, including those of local indexes (S49)."""
    units = receipt.write_units
    for index in receipt.indexes:
        if index.kind == "LocalSecondaryIndexes":
            units += index.write_units
    return units
