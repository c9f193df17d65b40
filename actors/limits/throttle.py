"""The capacity units of a table: the only state that its partitions share.

A request is refused before any work if its partition has no units left. For a read of an item, this
is checked only after an earlier read found no units. A write takes its units between its decision
and its commit, from the table and every affected index or from none (S102, S110). A write gets its
units back if the store refuses the write. A read takes its units when its size is known. All of
this happens on the event loop, between two awaits.

A new provisioned table starts with 300 seconds of unused units, and a stored table with its stored
balances (``actors/limits/burst_balances.py``). After a restart an on-demand table may consume the
full units of its partitions, because partitions are durable, and DynamoDB does not merge them.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Final

from msgspec import Struct

from dynactor.actors.limits.burst_balances import BalanceWriter
from dynactor.actors.limits.consumed_units import Consumed, counters_by_index
from dynactor.actors.limits.position_sample import PositionSample
from dynactor.actors.limits.throttle_settings import ThrottleSettings, throttling_mode
from dynactor.actors.limits.traffic import TableTraffic
from dynactor.actors.runtime.clock import Clock
from dynactor.model.capacity import Receipt
from dynactor.model.definitions.index import IndexDefinition
from dynactor.model.definitions.table import TABLE_INDEX_ID, GlobalIndex, TableDefinition
from dynactor.model.errors import Throttled, ThrottlingReason
from dynactor.model.keys.key import encode, without_hash
from dynactor.model.limits import BURST_SECONDS
from dynactor.model.throttling.burst_balance import Balance
from dynactor.model.throttling.refusal import Refusal
from dynactor.model.throttling.resource import (
    ResourceLimits,
    ResourceThroughput,
    resource_throughput,
)
from dynactor.model.throttling.table_limits import IndexWrite, TableLimits
from dynactor.model.writes.change import Change, entry_writes
from dynactor.storage import burst_balances
from dynactor.storage.burst_balances import Resource
from dynactor.storage.catalog import TableRecord
from dynactor.storage.partition_map import PartitionMap
from dynactor.storage.store import Row

_NO_INDEXES: Final[tuple[IndexWrite, ...]] = ()


class PaidWrite(Struct, frozen=True):
    """The cost of a write, and the units that it took from each index partition.

    ``index_writes`` is None if the write took no units: limits are off, or are only observed and
    would have refused it.
    """

    receipt: Receipt
    index_writes: tuple[IndexWrite, ...] | None


class TableThrottle:
    """The limits of one table and its indexes, on one clock.

    Invariant: limits that are not created yet equal those of a table unused since ``_since``, with
    full balances. The first request creates the limits, so an idle table costs nothing.
    """

    def __init__(
        self,
        record: TableRecord,
        clock: Clock,
        settings: ThrottleSettings,
        balances: BalanceWriter,
        *,
        is_stored: bool,
    ) -> None:
        """``is_stored``: the table existed before the server started."""
        self._record = record
        self._clock = clock
        self._settings = settings
        self._balances = balances
        self._is_stored = is_stored
        self._since = clock.now_epoch_seconds()
        self._made: TableLimits | None = None
        self._maps: dict[int, PartitionMap] = {}
        # By split partition: the child that pays for reads that started before the split.
        self._heirs: dict[int, int] = {}
        # Partitions whose last read of an item found no units: only their reads are checked first.
        self._exhausted: set[int] = set()
        self.mode = throttling_mode(record.definition, settings.setting)
        # Sampled positions of requests, of the table and its indexes.
        self.read_positions = PositionSample()
        self.write_positions = PositionSample()
        # The table's consumed units, with those of local indexes.
        self.consumed = Consumed()
        # The consumed units of global indexes, by name.
        self.consumed_by_index = counters_by_index(record.definition, {})
        # Number of requests for an item that met a transaction's lock.
        self.transaction_conflicts = 0
        # The counts of keys; None if they are off.
        self.traffic: TableTraffic | None = None
        self._follow_traffic()
        if not self._begins_full():
            self._limits  # noqa: B018 - created at once, because time fills them

    # -- for reads and writes ---------------------------------------------------------------

    def check_write(self, partition_number: int, position: bytes) -> None:
        """Refuse a write at a position whose partition has no units left; raises ``Throttled``."""
        if self.mode != "enforce":
            return
        refusal = self._limits.refuse_write(partition_number, self._clock.now_epoch_seconds())
        if refusal is not None:
            if self.traffic is not None:
                self.traffic.refuse_write(position, None, refusal.reasons)
            raise refusal.error()

    def take_write(
        self, partition_number: int, position: bytes, change: Change
    ) -> PaidWrite | Throttled:
        """Take the units of a decided write of the item at a position, or say why it is refused.

        The units are counted, or given back, when the outcome of the write is known.
        """
        receipt = change.receipt
        taken: tuple[IndexWrite, ...] | None = None
        if self.mode != "off":
            is_sampled = self.write_positions.is_due(receipt.write_units)
            if is_sampled:
                self.write_positions.note(partition_number, position)
            taken = _NO_INDEXES
            if receipt.indexes and change.global_changes:
                taken = self._index_writes(position, change, is_sampled=is_sampled)
            refusal = self._limits.take_write(
                partition_number, receipt, taken, self._clock.now_epoch_seconds()
            )
            if refusal is not None:
                taken = None
                if self.traffic is not None:
                    self.traffic.refuse_write(position, change, refusal.reasons)
                if self.mode == "enforce":
                    return refusal.error()
        if self.traffic is not None:
            self.traffic.write(position, change)
        return PaidWrite(receipt, taken)

    def count_write(self, paid: PaidWrite) -> None:
        """Count a write that the store accepted, or whose condition was false."""
        receipt = paid.receipt
        self.consumed.write_units += receipt.write_units
        for index in receipt.indexes:
            consumed: Consumed | None = self.consumed
            if index.kind == "GlobalSecondaryIndexes":
                consumed = self.consumed_by_index.get(index.name)
            if consumed is not None:
                consumed.write_units += index.write_units

    @property
    def consumed_units(self) -> float:
        """Units that requests to the table consumed, since the server started."""
        return self.consumed.read_units + self.consumed.write_units

    def give_back(self, partition_number: int, paid: PaidWrite) -> None:
        """Give back the units of a write that the store has refused."""
        if paid.index_writes is not None:
            self._limits.give_back_write(
                partition_number, paid.receipt, paid.index_writes, self._clock.now_epoch_seconds()
            )

    def refused_page(
        self, partition_number: int, index_id: int = TABLE_INDEX_ID, start: bytes = b""
    ) -> Refusal | None:
        """The reason why a page can't read a partition of the table or a global index, or None.

        ``start`` is the position at which a Query starts, empty for a Scan.
        """
        if self.mode != "enforce" or not self._is_there(index_id):
            return None
        partition_number = self._heirs.get(partition_number, partition_number)
        refusal = self._limits.refuse_read(
            partition_number, self._clock.now_epoch_seconds(), index_id
        )
        if refusal is not None and self.traffic is not None:
            self.traffic.refuse_page(index_id, start)
        return refusal

    def count_conflict(self, position: bytes) -> None:
        """Count a request for an item that met a transaction's lock."""
        self.transaction_conflicts += 1
        if self.traffic is not None:
            self.traffic.conflict(position)

    def refused_read(self, partition_number: int, position: bytes) -> Refusal | None:
        """The reason why the item at a position can't be read now, or None."""
        if partition_number not in self._exhausted or self.mode != "enforce":
            return None
        refusal = self._limits.refuse_read(partition_number, self._clock.now_epoch_seconds())
        if refusal is None:
            self._exhausted.discard(partition_number)
            return None
        if self.traffic is not None:
            self.traffic.refuse_read(position)
        return refusal

    def take_read(self, partition_number: int, position: bytes, units: float) -> Refusal | None:
        """Take the units of a read of the item at a position, or say why it is refused."""
        traffic = self.traffic
        if self.mode != "off":
            limits = self._made or self._limits
            if self._heirs:
                partition_number = self._heirs.get(partition_number, partition_number)
            refusal = limits.serve_read(partition_number, units, self._clock.now_epoch_seconds())
            if refusal is not None:
                if traffic is not None:
                    traffic.refuse_read(position)
                if self.mode == "enforce":
                    self._exhausted.add(partition_number)
                    return refusal
        if traffic is not None:
            traffic.read(position, units)
        self.consumed.read_units += units
        return None

    def take_page(
        self,
        partition_number: int,
        units: float,
        index: IndexDefinition | None = None,
        start: bytes = b"",
    ) -> None:
        """Take the units of a page in one partition of the table, or of a global index.

        ``start``: see ``refused_page``.
        """
        consumed = self.consumed if index is None else self.consumed_by_index.get(index.name)
        index_id = TABLE_INDEX_ID if index is None else index.index_id
        if consumed is None or not self._is_there(index_id):
            # The index was deleted during the read.
            return
        if self.mode != "off":
            if self._heirs:
                partition_number = self._heirs.get(partition_number, partition_number)
            refusal = self._limits.take_read(
                partition_number, units, self._clock.now_epoch_seconds(), index_id
            )
            if refusal is not None and self.traffic is not None:
                self.traffic.refuse_page(index_id, start)
        consumed.read_units += units

    def take_backfill(self, index_id: int, partition_number: int, units: int) -> float | None:
        """Take the units of an entry that a backfill puts into a partition of an index.

        None if the entry may be put; otherwise the seconds of domain time until the next attempt.
        """
        if self.mode == "off" or not self._is_there(index_id):
            return None
        limits = self._limits
        number = self._heirs.get(partition_number, partition_number)
        write = IndexWrite(index_id, number, units)
        return limits.take_backfill(write, self._clock.now_epoch_seconds())

    # -- for the table ----------------------------------------------------------------------

    def follow(self, record: TableRecord) -> None:
        """Continue with a changed record of the table."""
        old, new = self._record.definition, record.definition
        changes_limits = _throughputs(old) != _throughputs(new)
        # Create the limits before the change, because unused units were saved at the old rate.
        limits = self._limits if changes_limits else self._made
        self._record = record
        self.mode = throttling_mode(new, self._settings.setting)
        if limits is not None:
            limits.mode = self.mode
        if changes_limits:
            self._change()
            self.consumed_by_index = counters_by_index(new, self.consumed_by_index)
        self._follow_traffic()

    def limits(self, index_id: int = TABLE_INDEX_ID) -> ResourceLimits | None:
        """The limits of the table or of an index; None while it is unused."""
        if self._made is None or not self._is_there(index_id):
            return None
        return self._made.resource(index_id)

    def split(self, parent: int, children: tuple[int, int], index_id: int = TABLE_INDEX_ID) -> None:
        """Divide the limits of a partition after a split; the record is up to date."""
        for number, heir in self._heirs.items():
            if heir == parent:
                self._heirs[number] = children[0]
        self._heirs[parent] = children[0]
        self._exhausted.discard(parent)
        self.read_positions.forget(parent)
        self.write_positions.forget(parent)
        if self._made is None:
            return
        self._made.resource(index_id).split(parent, children, self._clock.now_epoch_seconds())
        if index_id:
            self._maps[index_id] = PartitionMap(self._record.index_partitions[index_id])

    # -- stored balances --------------------------------------------------------------------

    @property
    def resources(self) -> dict[Resource, ResourceLimits]:
        """The limits of the table and its global indexes that exist so far."""
        if self._made is None:
            return {}
        return {
            self._resource_id(index_id): self._made.resource(index_id)
            for index_id in (TABLE_INDEX_ID, *self._made.indexes)
        }

    def rows_before(self, new: TableDefinition) -> list[Row]:
        """The rows of balances to commit together with a new definition.

        A partition with a full balance has no row. If its units are raised, the balance is no
        longer full, so it needs a row.
        """
        old = self._record.definition
        wanted = _throughputs(new)
        rows: list[Row] = []
        for index_id, throughput in _throughputs(old).items():
            if index_id in wanted and throughput.is_raised_to(wanted[index_id]):
                now = self._clock.now_epoch_seconds()
                rows += self._rows(index_id, self._limits.resource(index_id).balances(now))
        return rows

    def rows_of_children(
        self, parent: int, children: tuple[int, int], index_id: int = TABLE_INDEX_ID
    ) -> list[Row]:
        """The rows of balances to commit with a split: each child gets half of its parent's."""
        if self._made is None:
            return []
        limits = self._made.resource(index_id)
        now = self._clock.now_epoch_seconds()
        return self._rows(index_id, limits.balances_of_children(parent, children, now))

    @property
    def throttle_events(self) -> Counter[ThrottlingReason]:
        """Number of refusals by each limit."""
        return Counter() if self._made is None else self._made.throttle_events

    @property
    def observed_events(self) -> Counter[ThrottlingReason]:
        """Number of requests that each limit would have refused."""
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

    def _follow_traffic(self) -> None:
        """Count keys as the settings of the table and its indexes require."""
        definition = self._record.definition
        samples = self._settings.key_traffic
        settings = [
            definition.contributor_insights,
            *(index.contributor_insights for index in definition.global_indexes),
        ]
        if not samples and not any(each.enabled for each in settings if each is not None):
            self.traffic = None
        elif self.traffic is None:
            self.traffic = TableTraffic(definition, self._clock, samples=samples)
        else:
            self.traffic.follow(definition)

    def _change(self) -> None:
        """Adapt the limits to the present throughput of the table and its indexes."""
        definition = self._record.definition
        limits = self._limits
        now = self._clock.now_epoch_seconds()
        limits.table.change(resource_throughput(definition.billing_mode, definition), now)
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
                known.change(resource_throughput(definition.billing_mode, index), now)

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
        index_name, index_id = None, TABLE_INDEX_ID
        ranges = self._record.partitions
        if isinstance(resource, GlobalIndex):
            index_name = resource.definition.name
            arn += f"/index/{index_name}"
            index_id = resource.definition.index_id
            ranges = self._record.index_partitions[index_id]
        resource_id = self._resource_id(index_id)
        limits = ResourceLimits(
            arn,
            resource_throughput(definition.billing_mode, resource),
            [each.number for each in ranges],
            now_seconds,
            index_name,
            has_grown=self._is_stored,
            saved_seconds=self._settings.initial_burst_seconds,
            stored=self._balances.stored(resource_id),
        )
        limits.set_on_due(partial(self._balances.note_due, resource_id, limits))
        return limits

    def _begins_full(self) -> bool:
        """Whether all partitions of the table and its indexes start with full balances."""
        resources = map(self._resource_id, (TABLE_INDEX_ID, *self._record.index_partitions))
        if any(map(self._balances.stored, resources)):
            return False
        return self._is_stored or self._settings.initial_burst_seconds == BURST_SECONDS

    def _resource_id(self, index_id: int) -> Resource:
        return Resource(self._record.definition.table_id, index_id)

    def _rows(self, index_id: int, partition_balances: dict[int, Balance]) -> list[Row]:
        resource = self._resource_id(index_id)
        return [
            burst_balances.row(resource, number, balance)
            for number, balance in partition_balances.items()
        ]

    def _index_writes(
        self, position: bytes, change: Change, *, is_sampled: bool
    ) -> tuple[IndexWrite, ...]:
        assert change.global_changes is not None
        # Create the limits first: this also sets ``_maps``.
        indexes = self._limits.indexes
        units: dict[tuple[int, int], int] = {}
        for one in change.global_changes:
            index_id = one.definition.index_id
            if index_id not in indexes:
                continue
            index_map = self._maps[index_id]
            for entry, entry_units in entry_writes(one):
                number = index_map.ranges[0].number
                if len(index_map.ranges) > 1:
                    number = index_map.number_at(one.encode_position(entry, without_hash(position)))
                if is_sampled:
                    # Without the table's key: entries of one index key are not split for heat.
                    self.write_positions.note(number, encode(one.definition.key_schema, entry.item))
                key = index_id, number
                units[key] = units.get(key, 0) + entry_units
        return tuple(IndexWrite(*key, partition_units) for key, partition_units in units.items())

    def _is_there(self, index_id: int) -> bool:
        """Whether the table has this index, or the id is the table's own."""
        return index_id == TABLE_INDEX_ID or index_id in self._record.index_partitions


def _throughputs(definition: TableDefinition) -> dict[int, ResourceThroughput]:
    """All values that limits depend on, by index id, because an index name may be reused."""
    mode = definition.billing_mode
    index_throughputs = {
        index.definition.index_id: resource_throughput(mode, index)
        for index in definition.global_indexes
    }
    return {TABLE_INDEX_ID: resource_throughput(mode, definition)} | index_throughputs
