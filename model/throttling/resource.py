"""The limits of the reads and writes of one resource: a table or a global secondary index.

The limits follow from the billing mode of the table, which its indexes share (S167), and from the
resource's own throughput (S98, S166).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec import Struct

from dynactor.model.definitions.table import BillingMode, GlobalIndex, TableDefinition
from dynactor.model.limits import (
    BURST_SECONDS,
    PARTITION_READ_UNITS,
    PARTITION_WRITE_UNITS,
    TABLE_READ_UNITS,
    TABLE_WRITE_UNITS,
)
from dynactor.model.tables.throughput_rules import NO_LIMIT, at_least_warm
from dynactor.model.throttling.burst_balance import Balance, StoredBalances
from dynactor.model.throttling.on_demand import OnDemandRates, OnDemandUnits
from dynactor.model.throttling.provisioned import ProvisionedUnits
from dynactor.model.throttling.refusal import LimitType, OperationType, Refusal, refusal

Units: TypeAlias = ProvisionedUnits | OnDemandUnits


class OperationThroughput(Struct, frozen=True):
    """The units per second of a resource's reads or of its writes.

    ``provisioned`` is 0 on demand. ``warm`` is the warm throughput, at least that of the billing
    mode. ``maximum`` is the configured bound of an on-demand resource; None without one.
    """

    provisioned: int
    warm: int
    maximum: int | None = None


class ResourceThroughput(Struct, frozen=True):
    """The settings that determine a resource's limits."""

    billing_mode: BillingMode
    read: OperationThroughput
    write: OperationThroughput

    def is_raised_to(self, other: ResourceThroughput) -> bool:
        """Whether both are provisioned, and ``other`` has more read units or write units."""
        return self.billing_mode == other.billing_mode == "PROVISIONED" and (
            other.read.provisioned > self.read.provisioned
            or other.write.provisioned > self.write.provisioned
        )


def resource_throughput(
    billing_mode: BillingMode, resource: TableDefinition | GlobalIndex
) -> ResourceThroughput:
    """The throughput of a table, or of an index of a table with this billing mode."""
    provisioned = resource.throughput
    warm = at_least_warm(billing_mode, provisioned, resource.warm_throughput)
    most = resource.on_demand_throughput or {}

    def maximum(member: str) -> int | None:
        units: int = most.get(member, NO_LIMIT)
        return None if units == NO_LIMIT else units

    return ResourceThroughput(
        billing_mode,
        OperationThroughput(
            provisioned.read_units, warm["ReadUnitsPerSecond"], maximum("MaxReadRequestUnits")
        ),
        OperationThroughput(
            provisioned.write_units, warm["WriteUnitsPerSecond"], maximum("MaxWriteRequestUnits")
        ),
    )


class ResourceLimits:
    """The limits of one resource. ThrottlingReasons show ``arn``. A table has no ``index_name``."""

    def __init__(
        self,
        arn: str,
        throughput: ResourceThroughput,
        partitions: Iterable[int],
        now_seconds: float,
        index_name: str | None = None,
        *,
        has_grown: bool = False,
        saved_seconds: float = BURST_SECONDS,
        stored: StoredBalances | None = None,
    ) -> None:
        """Create the limits.

        ``has_grown``: compute the previous peak of an on-demand resource from its number of
        partitions, because the peak is not stored. A provisioned resource starts with the
        ``stored`` balances if there are any, else with ``saved_seconds`` of unused units. An
        on-demand resource that becomes provisioned also starts with ``saved_seconds``.
        """
        self.arn = arn
        self.index_name = index_name
        self.throughput = throughput
        self._partitions = set(partitions)
        self._saved_seconds = saved_seconds
        self._on_due: Callable[[], None] | None = None
        self._refusals: dict[tuple[OperationType, LimitType], Refusal] = {}
        grown = len(self._partitions) if has_grown else 0
        self._make(
            now_seconds,
            previous_read_peak=grown * PARTITION_READ_UNITS / 2,
            previous_write_peak=grown * PARTITION_WRITE_UNITS / 2,
        )
        if stored is not None:
            self._continue_from(stored)

    def refusal(self, operation: OperationType, limit: LimitType) -> Refusal:
        """The refusal by one of the limits; created once."""
        known = self._refusals.get((operation, limit))
        if known is None:
            is_index = self.index_name is not None
            mode = self.throughput.billing_mode
            known = refusal(operation, limit, mode, self.arn, is_index=is_index)
            self._refusals[operation, limit] = known
        return known

    def change(self, throughput: ResourceThroughput, now_seconds: float) -> None:
        """Apply another throughput; a change of billing mode starts like a new resource.

        A resource that becomes on-demand may take its provisioned units immediately: half of them
        count as the previous peak (Developer Guide, "Considerations when switching capacity
        modes").
        """
        before, self.throughput = self.throughput, throughput
        if before.billing_mode != throughput.billing_mode:
            self._refusals.clear()
            self._make(
                now_seconds,
                previous_read_peak=before.read.provisioned / 2,
                previous_write_peak=before.write.provisioned / 2,
            )
            return
        _change(self.reads, throughput.read, _READ_RATES, now_seconds)
        _change(self.writes, throughput.write, _WRITE_RATES, now_seconds)

    def split(self, parent: int, children: tuple[int, int], now_seconds: float) -> None:
        """Replace one partition by two; each gets half of its unused units or of its debt."""
        self._partitions.remove(parent)
        self._partitions.update(children)
        self.reads.split(parent, children, now_seconds)
        self.writes.split(parent, children, now_seconds)

    # -- stored balances of a provisioned resource ------------------------------------------

    @property
    def partitions(self) -> frozenset[int]:
        """The numbers of the resource's partitions."""
        return frozenset(self._partitions)

    def set_on_due(self, on_due: Callable[[], None]) -> None:
        """Register a callback for balances that have to be stored; called now if one is due."""
        self._on_due = on_due
        for units in self._provisioned() or ():
            units.set_on_due(on_due)

    def take_due(self) -> set[int]:
        """The partitions that became due since the last call: their balances must be stored."""
        units = self._provisioned()
        return units[0].take_due() | units[1].take_due() if units else set()

    def balance_to_store(
        self, partition_number: int, now_seconds: float, *, is_last: bool = False
    ) -> Balance | None:
        """The balance to store; None for a full one. ``is_last``: see ``units_to_store``."""
        units = self._provisioned()
        if units is None or partition_number not in self._partitions:
            return None
        balance = Balance(
            *(each.units_to_store(partition_number, now_seconds, is_last=is_last) for each in units)
        )
        return None if balance == self._full(partition_number) else balance

    def note_stored(self, partition_number: int, balance: Balance | None) -> None:
        """Record that a partition's stored balance is durable, or if None, that it is deleted.

        A partition that was split meanwhile is ignored.
        """
        units = self._provisioned()
        if units is None or partition_number not in self._partitions:
            return
        stored = balance or self._full(partition_number)
        units[0].note_stored(partition_number, stored.read_units)
        units[1].note_stored(partition_number, stored.write_units)

    def balances(self, now_seconds: float) -> dict[int, Balance]:
        """The balances to store, by partition, including full ones."""
        return {number: self._balance(number, now_seconds) for number in self._partitions}

    def balances_of_children(
        self, parent: int, children: tuple[int, int], now_seconds: float
    ) -> dict[int, Balance]:
        """The balances to store together with a split, by child."""
        if self._provisioned() is None:
            return {}
        balance = self._balance(parent, now_seconds)
        half = Balance(balance.read_units / 2, balance.write_units / 2)
        return dict.fromkeys(children, half)

    def _balance(self, partition_number: int, now_seconds: float) -> Balance:
        balance = self.balance_to_store(partition_number, now_seconds)
        return balance or self._full(partition_number)

    def _full(self, partition_number: int) -> Balance:
        units = self._provisioned()
        assert units is not None
        return Balance(*(each.most_units(partition_number) for each in units))

    def _provisioned(self) -> tuple[ProvisionedUnits, ProvisionedUnits] | None:
        """The units of reads and of writes; None on demand, where no units are saved."""
        if isinstance(self.reads, ProvisionedUnits) and isinstance(self.writes, ProvisionedUnits):
            return self.reads, self.writes
        return None

    def _continue_from(self, stored: StoredBalances) -> None:
        units = self._provisioned()
        if units is None:
            return
        balances = stored.by_partition.items()
        since = stored.as_of_seconds
        units[0].continue_from({number: each.read_units for number, each in balances}, since)
        units[1].continue_from({number: each.write_units for number, each in balances}, since)

    # -- helpers ----------------------------------------------------------------------------

    def _make(
        self, now_seconds: float, *, previous_read_peak: float, previous_write_peak: float
    ) -> None:
        read, write = self.throughput.read, self.throughput.write
        partitions = self._partitions
        self.reads: Units
        self.writes: Units
        if self.throughput.billing_mode == "PROVISIONED":
            saved = self._saved_seconds
            self.reads = ProvisionedUnits(
                read.provisioned, PARTITION_READ_UNITS, partitions, now_seconds, saved_seconds=saved
            )
            self.writes = ProvisionedUnits(
                write.provisioned,
                PARTITION_WRITE_UNITS,
                partitions,
                now_seconds,
                saved_seconds=saved,
            )
            if self._on_due is not None:
                self.set_on_due(self._on_due)
        else:
            self.reads = OnDemandUnits(
                _READ_RATES.of(read), partitions, now_seconds, previous_read_peak
            )
            self.writes = OnDemandUnits(
                _WRITE_RATES.of(write), partitions, now_seconds, previous_write_peak
            )


class _FixedRates(Struct, frozen=True):
    """DynamoDB's own bounds: of a partition, and the account's quota for a table."""

    partition: int
    quota: int

    def of(self, throughput: OperationThroughput) -> OnDemandRates:
        """All bounds of an on-demand resource."""
        return OnDemandRates(throughput.warm, self.partition, self.quota, throughput.maximum)


_READ_RATES = _FixedRates(PARTITION_READ_UNITS, TABLE_READ_UNITS)
_WRITE_RATES = _FixedRates(PARTITION_WRITE_UNITS, TABLE_WRITE_UNITS)


def _change(
    units: Units, throughput: OperationThroughput, rates: _FixedRates, now_seconds: float
) -> None:
    if isinstance(units, ProvisionedUnits):
        units.change(throughput.provisioned, now_seconds)
    else:
        units.change(rates.of(throughput), now_seconds)
