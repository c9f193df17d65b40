"""On-demand units of one table or index, reads or writes.

Each partition takes what its ceiling allows; no units are saved. All partitions together take twice
the previous peak, and at least a new table's units and the warm throughput. A peak is a minute's
mean of taken units. It becomes a *previous* peak after 30 minutes, so load that doubles at most
once in 30 minutes is never refused. An allowed rate stays allowed, because DynamoDB does not merge
partitions. Growth beyond the partitions' ceilings needs splits, which the caller makes
(``partitions_wanted``).

A configured maximum is a token bucket, because DynamoDB documents the maximum as a target: with
saved units, a table may exceed it for a while.

Sources: Developer Guide, "On-demand capacity mode", "Initial throughput and scaling properties",
"Maximum throughput for on-demand tables".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from math import ceil
from typing import Final

from msgspec import Struct

from dynactor.model.limits import PEAK_SETTLES_SECONDS
from dynactor.model.throttling.ceiling import Ceiling
from dynactor.model.throttling.partition_reading import PartitionReading
from dynactor.model.throttling.refusal import LimitType
from dynactor.model.throttling.token_bucket import TokenBucket

_MINUTE_SECONDS: Final = 60
_MINUTES_TO_SETTLE: Final = PEAK_SETTLES_SECONDS // _MINUTE_SECONDS


class OnDemandRates(Struct, frozen=True):
    """Bounds of the reads or writes of an on-demand table or index, in units per second.

    ``least`` is allowed even after low peaks. ``quota`` is the account's quota for one table.
    ``maximum`` is the configured bound, if any.
    """

    least: float
    partition: float
    quota: float
    maximum: float | None = None


class _OnDemandPartition:
    """One partition's ceiling, with counts of taken units and refused requests."""

    __slots__ = ("ceiling", "ceiling_refusals", "refusals", "taken_units")

    def __init__(self, ceiling: Ceiling) -> None:
        self.ceiling = ceiling
        self.taken_units = 0.0
        self.refusals = 0
        self.ceiling_refusals = 0


class OnDemandUnits:
    """The read units or the write units of a resource; ``previous_peak`` is per second."""

    def __init__(
        self,
        rates: OnDemandRates,
        partitions: Iterable[int],
        now_seconds: float,
        previous_peak: float = 0.0,
    ) -> None:
        self._rates = rates
        self._partitions = {
            number: _OnDemandPartition(Ceiling(rates.partition, now_seconds))
            for number in partitions
        }
        self._maximum: TokenBucket | None = None
        self._all = Ceiling(0.0, now_seconds)
        self.previous_peak = previous_peak
        # Means of the latest minutes, which are not previous peaks yet.
        self._minutes = deque([0.0] * (_MINUTES_TO_SETTLE - 1))
        self._minute_units = 0.0
        self._minute_ends_at = now_seconds + _MINUTE_SECONDS
        self.change(rates, now_seconds)

    @property
    def units_per_second(self) -> float:
        """The limit for all partitions together, if there are enough partitions."""
        return self._all.units_per_second

    @property
    def partitions_wanted(self) -> int:
        """The number of partitions that can serve this rate if used evenly."""
        return ceil(self.units_per_second / self._rates.partition)

    def refused_by(self, partition_number: int, now_seconds: float) -> LimitType | None:
        """The limit that refuses a request to a partition now; None if it is admitted."""
        if now_seconds >= self._minute_ends_at:
            self._end_minutes(now_seconds)
        if self._maximum is not None and self._maximum.fill(now_seconds) <= 0:
            return LimitType.MAX_ON_DEMAND
        # Runs for every request, so it avoids function calls.
        together = self._all
        if now_seconds >= together.ends_at_seconds:
            together.begin_second(now_seconds)
        if together.used_units >= together.units_per_second:
            at_quota = together.units_per_second >= self._rates.quota
            return LimitType.ACCOUNT if at_quota else LimitType.GROWTH
        ceiling = self._partitions[partition_number].ceiling
        if now_seconds >= ceiling.ends_at_seconds:
            ceiling.begin_second(now_seconds)
        if ceiling.used_units >= ceiling.units_per_second:
            return LimitType.KEY_RANGE
        return None

    def take(self, partition_number: int, units: float, now_seconds: float) -> None:
        """Take the units of a request that was admitted."""
        if now_seconds >= self._minute_ends_at:
            self._end_minutes(now_seconds)
        partition = self._partitions[partition_number]
        ceiling, together = partition.ceiling, self._all
        if now_seconds >= ceiling.ends_at_seconds:
            ceiling.begin_second(now_seconds)
        if now_seconds >= together.ends_at_seconds:
            together.begin_second(now_seconds)
        ceiling.used_units += units
        together.used_units += units
        partition.taken_units += units
        self._minute_units += units
        if self._maximum is not None:
            self._maximum.take(units, now_seconds)

    def serve(self, partition_number: int, units: float, now_seconds: float) -> LimitType | None:
        """Admit a request and take its units in one step, or return the limit that refuses it.

        Combines ``refused_by`` and ``take``. Nearly every read takes this path.
        """
        if self._maximum is None and now_seconds < self._minute_ends_at:
            partition = self._partitions[partition_number]
            ceiling, together = partition.ceiling, self._all
            if now_seconds >= ceiling.ends_at_seconds:
                ceiling.begin_second(now_seconds)
            if now_seconds >= together.ends_at_seconds:
                together.begin_second(now_seconds)
            if together.used_units >= together.units_per_second:
                at_quota = together.units_per_second >= self._rates.quota
                return LimitType.ACCOUNT if at_quota else LimitType.GROWTH
            if ceiling.used_units >= ceiling.units_per_second:
                return LimitType.KEY_RANGE
            ceiling.used_units += units
            together.used_units += units
            partition.taken_units += units
            self._minute_units += units
            return None
        limit = self.refused_by(partition_number, now_seconds)
        if limit is None:
            self.take(partition_number, units, now_seconds)
        return limit

    def give_back(self, partition_number: int, units: float, now_seconds: float) -> None:
        """Return the units of a failed request. A partition that was split ignores them."""
        partition = self._partitions.get(partition_number)
        if partition is not None:
            partition.ceiling.give_back(units, now_seconds)
            partition.taken_units -= units
        self._all.give_back(units, now_seconds)
        # Units of an earlier minute are already in its mean.
        self._minute_units = max(0.0, self._minute_units - units)
        if self._maximum is not None:
            self._maximum.give_back(units, now_seconds)

    def refused(self, partition_number: int, limit: LimitType) -> None:
        """Count a request to this partition that a limit refused."""
        partition = self._partitions[partition_number]
        partition.refusals += 1
        partition.ceiling_refusals += limit is LimitType.KEY_RANGE

    def wait_seconds(self, partition_number: int, now_seconds: float) -> float:
        """The time until a request to a partition is admitted, if no others come first."""
        return max(
            self._maximum.wait_seconds(now_seconds) if self._maximum else 0.0,
            self._all.wait_seconds(now_seconds),
            self._partitions[partition_number].ceiling.wait_seconds(now_seconds),
        )

    def change(self, rates: OnDemandRates, now_seconds: float) -> None:
        """Apply other bounds; previous peaks are kept."""
        self._rates = rates
        if rates.maximum is None:
            self._maximum = None
        elif self._maximum is None:
            # This limit protects against cost. It starts without saved units, because DynamoDB
            # documents no burst for a new limit.
            self._maximum = TokenBucket(rates.maximum, now_seconds, saved_seconds=1)
        else:
            self._maximum.change_rate(rates.maximum, now_seconds)
        self._allow()

    def split(self, parent: int, children: tuple[int, int], now_seconds: float) -> None:
        """Replace one partition by two.

        Each child may take as much in this second as its parent still could. From the next second
        on, each has a whole ceiling.
        """
        divided = self._partitions.pop(parent)
        for number in children:
            self._partitions[number] = _OnDemandPartition(divided.ceiling.copy(now_seconds))

    def readings(self, _now_seconds: float) -> dict[int, PartitionReading]:
        """The units that each partition has taken."""
        return {
            number: PartitionReading(
                partition.taken_units,
                partition.refusals,
                partition.ceiling_refusals,
                partition.ceiling.units_per_second,
            )
            for number, partition in self._partitions.items()
        }

    def _end_minutes(self, now_seconds: float) -> None:
        """End the current minute, and later minutes without any use."""
        passed = int((now_seconds - self._minute_ends_at) // _MINUTE_SECONDS) + 1
        for _ in range(min(passed, _MINUTES_TO_SETTLE + 1)):
            self._minutes.append(self._minute_units / _MINUTE_SECONDS)
            self._minute_units = 0.0
            self.previous_peak = max(self.previous_peak, self._minutes.popleft())
        self._minute_ends_at += passed * _MINUTE_SECONDS
        self._allow()

    def _allow(self) -> None:
        allowed = max(self._rates.least, 2 * self.previous_peak)
        self._all.units_per_second = min(allowed, self._rates.quota)
