"""What the requests of a table take of its limits: the one thing that its partitions share.

A request is refused before any work where nothing is left of its partition's units. A write takes
its units between its decision and its commit, of the table and of every index it touches or of
none (S102, S110); a read takes them when it is done and its size is known. All of it happens on the
event loop, between two awaits.

Balances are in memory alone. After a restart a provisioned table has the units of one second, and
nothing saved; an on-demand table may take again what its partitions can take: they are durable, and
DynamoDB does not merge them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from actors.partition_map import PartitionMap
from actors.runtime.clock import Clock
from model import capacity
from model.capacity import Receipt
from model.change import Change, entry_writes
from model.errors import Throttled, ThrottlingReason
from model.index import IndexDefinition
from model.key import without_hash
from model.stored_item import StoredItem
from model.table import TABLE_INDEX_ID, GlobalIndex, TableDefinition
from model.tag_rules import THROTTLING_TAG
from model.throttling.resource import ResourceLimits, throughput_of
from model.throttling.table_limits import IndexWrite, TableLimits, ThrottlingMode
from model.write import Put, Write
from storage.catalog import TableRecord

# "auto": enforce for provisioned tables, observe for those on demand.
ThrottlingSetting: TypeAlias = Literal["auto", "enforce", "observe", "off"]

_MODES: Final[dict[str, ThrottlingMode]] = {
    "enforce": "enforce",
    "observe": "observe",
    "off": "off",
}
_LONGEST_WAIT_SECONDS: Final = 1.0
_NO_INDEXES: Final[tuple[IndexWrite, ...]] = ()


class ThrottleSettings(Struct, frozen=True):
    """What may be set for the limits of all tables; ``arn_prefix`` is that of tables' ARNs."""

    setting: ThrottlingSetting = "auto"
    arn_prefix: str = "arn:aws:dynamodb:us-east-1:000000000000:table/"


class PartitionRead(NamedTuple):
    """What a read has cost in one partition of the table, or of an index."""

    partition_number: int
    units: float


class Consumed:
    """The units that a table or an index has served since the server started."""

    __slots__ = ("read_units", "write_units")

    def __init__(self) -> None:
        self.read_units = 0.0
        self.write_units = 0.0


def mode_of(definition: TableDefinition, setting: ThrottlingSetting) -> ThrottlingMode:
    """How a table's limits are kept: as its tag says, else as the server is set."""
    wanted = dict(definition.tags).get(THROTTLING_TAG, setting)
    by_billing_mode: ThrottlingMode = (
        "enforce" if definition.billing_mode == "PROVISIONED" else "observe"
    )
    return _MODES.get(wanted, by_billing_mode)


class TableThrottle:
    """The limits of one table and its indexes, on a clock.

    Invariant: limits that are not made yet are those of a table that nobody has used since
    ``_since``; they are made with the first request, so that an idle table costs nothing.
    """

    def __init__(
        self, record: TableRecord, clock: Clock, settings: ThrottleSettings, *, is_stored: bool
    ) -> None:
        """``is_stored``: the table was there before the server started."""
        self._record = record
        self._clock = clock
        self._settings = settings
        self._is_stored = is_stored
        self._since = clock.now_epoch_seconds()
        self._made: TableLimits | None = None
        self._maps: dict[int, PartitionMap] = {}
        self.mode = mode_of(record.definition, settings.setting)
        # Local indexes included.
        self.consumed = Consumed()
        # By the names of global indexes.
        self.consumed_by_index = _counters(record.definition, {})

    # -- for reads and writes ---------------------------------------------------------------

    def check_write(self, partition_number: int) -> None:
        """Refuse a write to a partition for which nothing is left.

        Raises:
            Throttled: so it is.
        """
        if self.mode != "enforce":
            return
        refusal = self._limits.refuse_write(partition_number, self._clock.now_epoch_seconds())
        if refusal is not None:
            raise refusal.error()

    def take_write(
        self, partition_number: int, position: bytes, change: Change
    ) -> Throttled | None:
        """Take the units of a decided write of the item at a position, or say why it is refused."""
        receipt = change.receipt
        if self.mode != "off":
            touched = _NO_INDEXES
            if receipt.indexes and change.global_changes:
                touched = self._index_writes(position, change)
            refusal = self._limits.take_write(
                partition_number, receipt, touched, self._clock.now_epoch_seconds()
            )
            if refusal is not None:
                return refusal.error()
        self._count_write(receipt)
        return None

    def take_failed_write(
        self, partition_number: int, old: StoredItem | None, write: Write
    ) -> Throttled | None:
        """Take what a write whose condition is false costs all the same.

        It pays for the item that is there, or that would have come if that is larger; nothing in
        indexes. Source: Developer Guide, "Working with items", "Conditional writes".
        """
        size_bytes = old.size_bytes if old else 0
        if isinstance(write, Put):
            size_bytes = max(size_bytes, write.size_bytes)
        receipt = Receipt(write_units=capacity.write_units(size_bytes))
        return self.take_write(partition_number, b"", Change(old, old, (), None, receipt, ()))

    def check_read(self, partition_number: int, index_id: int = TABLE_INDEX_ID) -> None:
        """Refuse a read of a partition of the table or of a global index if nothing is left.

        Raises:
            Throttled: so it is.
        """
        if self.mode != "enforce":
            return
        refusal = (self._made or self._limits).refuse_read(
            partition_number, self._clock.now_epoch_seconds(), index_id
        )
        if refusal is not None:
            raise refusal.error()

    def refused_read(
        self, partition_number: int, index_id: int = TABLE_INDEX_ID
    ) -> Throttled | None:
        """As ``check_read``; returns the error."""
        if self.mode != "enforce":
            return None
        refusal = self._limits.refuse_read(
            partition_number, self._clock.now_epoch_seconds(), index_id
        )
        return None if refusal is None else refusal.error()

    def take_read(self, partition_number: int, units: float) -> None:
        """Take what a read of one of the table's items has cost."""
        if self.mode != "off":
            limits = self._made or self._limits
            limits.take_read(partition_number, units, self._clock.now_epoch_seconds())
        self.consumed.read_units += units

    def take_page(
        self, reads: Sequence[PartitionRead], index: IndexDefinition | None = None
    ) -> None:
        """Take what a page has cost in the partitions of the table, or of a global index."""
        consumed = self.consumed if index is None else self.consumed_by_index.get(index.name)
        index_id = TABLE_INDEX_ID if index is None else index.index_id
        if consumed is None or not self._is_there(index_id):
            # The index went while it was read.
            return
        if self.mode != "off":
            self._limits.take_page(reads, self._clock.now_epoch_seconds(), index_id)
        consumed.read_units += sum(read.units for read in reads)

    def take_backfill(self, index_id: int, place: int, units: int) -> float | None:
        """Take the units of an entry that a backfill puts into a partition of an index.

        Returns:
            None if it may be put; else the seconds of domain time after which to ask again.
        """
        if self.mode == "off" or not self._is_there(index_id):
            return None
        limits = self._limits
        write = IndexWrite(index_id, self._maps[index_id].ranges[place].number, units)
        return limits.take_backfill(write, self._clock.now_epoch_seconds())

    # -- for the table ----------------------------------------------------------------------

    def follow(self, record: TableRecord) -> None:
        """Go on with what the table is now."""
        old, new = self._record.definition, record.definition
        changes_limits = _throughputs(old) != _throughputs(new)
        # What was saved was saved at the old rate.
        limits = self._limits if changes_limits else self._made
        self._record = record
        self.mode = mode_of(new, self._settings.setting)
        if limits is not None:
            limits.mode = self.mode
        if changes_limits:
            self._change()
            self.consumed_by_index = _counters(new, self.consumed_by_index)

    @property
    def throttle_events(self) -> Counter[ThrottlingReason]:
        """How often each limit refused something."""
        return Counter() if self._made is None else self._made.throttle_events

    @property
    def observed_events(self) -> Counter[ThrottlingReason]:
        """How often each limit would have refused something."""
        return Counter() if self._made is None else self._made.observed_events

    # -- parts ------------------------------------------------------------------------------

    @property
    def _limits(self) -> TableLimits:
        if self._made is None:
            definition = self._record.definition
            table = self._resource(definition, self._since)
            self._made = TableLimits(table, self.mode)
            for index in definition.global_indexes:
                self._add(self._made, index, self._since)
        return self._made

    def _change(self) -> None:
        """Have the limits follow the throughput that the table and its indexes have now."""
        definition = self._record.definition
        limits = self._limits
        now = self._clock.now_epoch_seconds()
        limits.table.change(throughput_of(definition.billing_mode, definition), now)
        gone = limits.indexes.keys() - {
            index.definition.index_id for index in definition.global_indexes
        }
        for index_id in gone:
            del limits.indexes[index_id], self._maps[index_id]
        for index in definition.global_indexes:
            known = limits.indexes.get(index.definition.index_id)
            if known is None:
                self._add(limits, index, now)
            else:
                known.change(throughput_of(definition.billing_mode, index), now)

    def _add(self, limits: TableLimits, index: GlobalIndex, now_seconds: float) -> None:
        index_id = index.definition.index_id
        ranges = self._record.index_partitions[index_id]
        self._maps[index_id] = PartitionMap(ranges)
        limits.indexes[index_id] = self._resource(index, now_seconds)

    def _resource(
        self, resource: TableDefinition | GlobalIndex, now_seconds: float
    ) -> ResourceLimits:
        definition = self._record.definition
        arn = self._settings.arn_prefix + definition.name
        index_name = None
        ranges = self._record.partitions
        if isinstance(resource, GlobalIndex):
            index_name = resource.definition.name
            arn += f"/index/{index_name}"
            ranges = self._record.index_partitions[resource.definition.index_id]
        return ResourceLimits(
            arn,
            throughput_of(definition.billing_mode, resource),
            [each.number for each in ranges],
            now_seconds,
            index_name,
            has_grown=self._is_stored,
        )

    def _index_writes(self, position: bytes, change: Change) -> tuple[IndexWrite, ...]:
        """What a change takes of the partitions of global indexes."""
        assert change.global_changes is not None
        # Made before it is asked for what belongs to it.
        indexes = self._limits.indexes
        units: dict[tuple[int, int], int] = {}
        for one in change.global_changes:
            index_id = one.definition.index_id
            if index_id not in indexes:
                continue
            index_map = self._maps[index_id]
            for entry, entry_units in entry_writes(one):
                place = 0
                if len(index_map.ranges) > 1:
                    place = index_map.owner_of(one.position_of(entry, without_hash(position)))
                key = index_id, index_map.ranges[place].number
                units[key] = units.get(key, 0) + entry_units
        return tuple(IndexWrite(*key, of_partition) for key, of_partition in units.items())

    def _count_write(self, receipt: Receipt) -> None:
        self.consumed.write_units += receipt.write_units
        for index in receipt.indexes:
            consumed: Consumed | None = self.consumed
            if index.kind == "GlobalSecondaryIndexes":
                consumed = self.consumed_by_index.get(index.name)
            if consumed is not None:
                consumed.write_units += index.write_units

    def _is_there(self, index_id: int) -> bool:
        """Whether the table has this index, or is meant itself."""
        return index_id == TABLE_INDEX_ID or index_id in self._record.index_partitions


class BackfillUnits:
    """The write units of one index, as its backfill takes them: what writes leave (S168)."""

    def __init__(self, throttle: TableThrottle, index_id: int, clock: Clock) -> None:
        self._throttle = throttle
        self._index_id = index_id
        self._clock = clock

    def take(self, place: int, units: int) -> asyncio.Future[None] | None:
        """Take the units of an entry for the partition of the index at this place.

        Returns:
            None if the entry may be put; else a future that completes when to ask again.
        """
        wait_seconds = self._throttle.take_backfill(self._index_id, place, units)
        if wait_seconds is None:
            return None
        # The units may be raised meanwhile (S194).
        wait_seconds = min(wait_seconds, _LONGEST_WAIT_SECONDS)
        return self._clock.wait_until(self._clock.now_epoch_seconds() + wait_seconds)


def _counters(definition: TableDefinition, known: dict[str, Consumed]) -> dict[str, Consumed]:
    """A counter for each global index, those that are known before others."""
    names = [index.definition.name for index in definition.global_indexes]
    return {name: known.get(name) or Consumed() for name in names}


def _throughputs(definition: TableDefinition) -> tuple[object, ...]:
    """All that limits follow from; ids of indexes, as one may be made again under its name."""
    mode = definition.billing_mode
    return (
        throughput_of(mode, definition),
        *(
            (index.definition.index_id, throughput_of(mode, index))
            for index in definition.global_indexes
        ),
    )
