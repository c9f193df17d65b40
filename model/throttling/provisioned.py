"""Provisioned read or write units of one table or index, which its partitions share and lend.

Every partition has an even share of the units (S138), keeps unused ones for up to 300 seconds, and
takes no more than its ceiling (S139). A partition with no units left uses those that other
partitions leave unused (S161), so nothing is refused while the table as a whole has units to spare.
DynamoDB documents that this is instant, and bounded by the table's units and the partition's
ceiling, but not how it works. Here, units move from balance to balance, so none is counted twice.

A new partition has 300 seconds of unused units. Balances survive a restart: ``stored_units`` is the
balance that a partition has after a crash. A partition whose balance falls below its stored balance
is *due*, and the caller stores a lower one. The stored balance excludes a reserve for the requests
that arrive until a lower balance is durable, so a crash loop gains no units. A crash costs a
partition in use at most its reserve: the units of five seconds, or the most that it can use during
a sync of the log.

A partition lends at most its unused units of the last second. It keeps older units, and always the
units of one second. Lent units go to a pool of at most one second of the table's units. The first
partition that needs units takes them.

Sources: Developer Guide, "Burst and adaptive capacity"; Elhemali et al., "Amazon DynamoDB: A
Scalable, Predictably Performant, and Fully Managed NoSQL Database Service", USENIX ATC 2022.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from dynactor.model.limits import BURST_SECONDS
from dynactor.model.throttling.ceiling import Ceiling
from dynactor.model.throttling.partition_reading import PartitionReading
from dynactor.model.throttling.refusal import LimitType
from dynactor.model.throttling.token_bucket import TokenBucket

# The least time between two collections of unused units. Collecting visits all partitions, which is
# too expensive for each request of a busy partition.
_COLLECTING_SECONDS: Final = 0.1
# Only recent units are lent; older units are saved by the partition itself.
_LENT_SECONDS: Final = 1.0
# Units that a partition takes from the pool beyond its debt. A small number is fair to other
# partitions that need units.
_LENT_UNITS: Final = 8.0

# The reserve (see above). With a larger one, a crash costs more units; with a smaller one, balances
# are stored more often during a burst.
_RESERVE_SECONDS: Final = 5.0
_MOST_RESERVE_SECONDS: Final = 30.0
# The assumed duration of a sync. Reads do not wait for syncs, so they can take units meanwhile.
_SYNC_SECONDS: Final = 0.02
_BEING_STORED: Final = float("-inf")


class _ProvisionedPartition:
    """One partition's units, ceiling and counts."""

    __slots__ = (
        "bucket",
        "ceiling",
        "ceiling_refusals",
        "refusals",
        "seen_at",
        "seen_units",
        "stored_taken_units",
        "stored_units",
        "taken_units",
        "wants_reserve",
    )

    def __init__(
        self, bucket: TokenBucket, ceiling: Ceiling, now_seconds: float, stored_units: float
    ) -> None:
        self.bucket = bucket
        self.ceiling = ceiling
        # The balance after a crash; ``_BEING_STORED`` while the partition is due.
        self.stored_units = stored_units
        # ``taken_units`` when the balance was last stored.
        self.stored_taken_units = 0.0
        # Set if the partition has lent units, or if its stored balance has just been loaded.
        self.wants_reserve = False
        self.taken_units = 0.0
        self.refusals = 0
        self.ceiling_refusals = 0
        # The time of the last call of ``unused_units``, and the units taken by then.
        self.seen_at = now_seconds
        self.seen_units = 0.0

    def reserve_units(self) -> float:
        """The units that the stored balance of a partition in use excludes."""
        rate = self.bucket.units_per_second
        sync_units = _SYNC_SECONDS * self.ceiling.units_per_second
        return min(max(_RESERVE_SECONDS * rate, sync_units), _MOST_RESERVE_SECONDS * rate)

    def unused_units(self, now_seconds: float) -> float:
        """The units that the partition can lend now: the unused units since the last call."""
        bucket = self.bucket
        rate = bucket.units_per_second
        came_in = min(now_seconds - self.seen_at, _LENT_SECONDS) * rate
        unused = came_in - (self.taken_units - self.seen_units)
        self.seen_at, self.seen_units = now_seconds, self.taken_units
        return max(0.0, min(unused, bucket.fill(now_seconds) - rate))


class ProvisionedUnits:
    """A resource's read or write units. Lending keeps the sum of all balances and the pool."""

    def __init__(
        self,
        units_per_second: float,
        partition_units_per_second: float,
        partitions: Iterable[int],
        now_seconds: float,
        *,
        saved_seconds: float = BURST_SECONDS,
    ) -> None:
        """Spread units over partitions; ``partition_units_per_second`` is each one's ceiling.

        Each partition starts with ``saved_seconds`` of its units.
        """
        numbers = list(partitions)
        share = units_per_second / len(numbers)
        self.units_per_second = units_per_second
        self._partitions: dict[int, _ProvisionedPartition] = {}
        for number in numbers:
            bucket = TokenBucket(share, now_seconds, saved_seconds=saved_seconds)
            ceiling = Ceiling(partition_units_per_second, now_seconds)
            self._partitions[number] = _ProvisionedPartition(
                bucket, ceiling, now_seconds, bucket.most_units
            )
        self._pool_units = 0.0
        self._collected_at = now_seconds
        # Partitions whose balance is below the stored one.
        self._due: set[int] = set()
        self._on_due: Callable[[], None] | None = None

    def refused_by(self, partition_number: int, now_seconds: float) -> LimitType | None:
        """The limit that refuses a request to a partition now; None if it is admitted."""
        partition = self._partitions[partition_number]
        # Runs for every request, so it avoids function calls.
        ceiling = partition.ceiling
        if now_seconds >= ceiling.ends_at_seconds:
            ceiling.begin_second(now_seconds)
        if ceiling.used_units >= ceiling.units_per_second:
            return LimitType.KEY_RANGE
        bucket = partition.bucket
        if (
            bucket.balance_units > 0
            or bucket.fill(now_seconds) > 0
            or self._lend(bucket, now_seconds)
        ):
            return None
        return LimitType.PROVISIONED

    def take(self, partition_number: int, units: float, now_seconds: float) -> None:
        """Take the units of a request that was admitted."""
        partition = self._partitions[partition_number]
        ceiling = partition.ceiling
        if now_seconds >= ceiling.ends_at_seconds:
            ceiling.begin_second(now_seconds)
        ceiling.used_units += units
        partition.taken_units += units
        if partition.bucket.take(units, now_seconds) < partition.stored_units:
            self._fall_due(partition_number, partition)

    def serve(self, partition_number: int, units: float, now_seconds: float) -> LimitType | None:
        """Admit a request and take its units in one step, or return the limit that refuses it.

        Combines ``refused_by`` and ``take``.
        """
        partition = self._partitions[partition_number]
        ceiling = partition.ceiling
        if now_seconds >= ceiling.ends_at_seconds:
            ceiling.begin_second(now_seconds)
        if ceiling.used_units < ceiling.units_per_second and partition.bucket.balance_units > 0:
            ceiling.used_units += units
            partition.taken_units += units
            if partition.bucket.take(units, now_seconds) < partition.stored_units:
                self._fall_due(partition_number, partition)
            return None
        limit = self.refused_by(partition_number, now_seconds)
        if limit is None:
            self.take(partition_number, units, now_seconds)
        return limit

    def give_back(self, partition_number: int, units: float, now_seconds: float) -> None:
        """Return the units of a failed request.

        No effect if the partition was split since then.
        """
        partition = self._partitions.get(partition_number)
        if partition is None:
            return
        partition.ceiling.give_back(units, now_seconds)
        partition.bucket.give_back(units, now_seconds)
        partition.taken_units -= units

    def refused(self, partition_number: int, limit: LimitType) -> None:
        """Count a request to this partition that a limit refused."""
        partition = self._partitions[partition_number]
        partition.refusals += 1
        partition.ceiling_refusals += limit is LimitType.KEY_RANGE

    def wait_seconds(self, partition_number: int, now_seconds: float) -> float:
        """The time until a request to a partition is admitted, if no others come first."""
        if self.refused_by(partition_number, now_seconds) is None:
            return 0.0
        partition = self._partitions[partition_number]
        own_units = partition.bucket.wait_seconds(now_seconds)
        lent_units = max(0.0, self._collected_at + _COLLECTING_SECONDS - now_seconds)
        return max(min(own_units, lent_units), partition.ceiling.wait_seconds(now_seconds))

    def change(self, units_per_second: float, now_seconds: float) -> None:
        """Spread a new number of units; balances stay, up to the new maximum."""
        self.units_per_second = units_per_second
        self._pool_units = min(self._pool_units, units_per_second)
        share = units_per_second / len(self._partitions)
        for number, partition in self._partitions.items():
            bucket = partition.bucket
            was_full = partition.stored_units >= bucket.most_units
            bucket.change_rate(share, now_seconds)
            # A full partition has no stored balance, so after a crash it is full at the new rate.
            if was_full or partition.stored_units > bucket.most_units:
                partition.stored_units = bucket.most_units
            self._check_due(number, partition)

    def split(self, parent: int, children: tuple[int, int], now_seconds: float) -> None:
        """Replace one partition by two.

        The units are spread evenly again, over one more partition. Each child gets half of its
        parent's balance or debt, and may take as much in this second as its parent still could.
        From the next second on, each has a whole ceiling.
        """
        divided = self._partitions.pop(parent)
        self._due.discard(parent)
        half = divided.bucket.fill(now_seconds) / 2
        share = self.units_per_second / (len(self._partitions) + 2)
        for number in children:
            bucket = TokenBucket(share, now_seconds)
            bucket.balance_units = half
            ceiling = divided.ceiling.copy(now_seconds)
            self._partitions[number] = _ProvisionedPartition(
                bucket, ceiling, now_seconds, bucket.most_units
            )
        self.change(self.units_per_second, now_seconds)

    def readings(self, now_seconds: float) -> dict[int, PartitionReading]:
        """The units that each partition has taken and has left."""
        return {
            number: PartitionReading(
                partition.taken_units,
                partition.refusals,
                partition.ceiling_refusals,
                partition.bucket.units_per_second,
                partition.bucket.fill(now_seconds),
            )
            for number, partition in self._partitions.items()
        }

    # -- stored balances --------------------------------------------------------------------

    def continue_from(self, stored: Mapping[int, float], as_of_seconds: float) -> None:
        """Start with stored balances and the units of the time since; full without a balance."""
        for number, units in stored.items():
            partition = self._partitions.get(number)
            if partition is not None:
                bucket = TokenBucket(partition.bucket.units_per_second, as_of_seconds)
                bucket.balance_units = partition.stored_units = min(units, bucket.most_units)
                partition.bucket = bucket
                partition.wants_reserve = True

    def set_on_due(self, on_due: Callable[[], None]) -> None:
        """Register a callback for partitions that become due; called now if one is due."""
        self._on_due = on_due
        for number, partition in self._partitions.items():
            self._check_due(number, partition)

    def take_due(self) -> set[int]:
        """The partitions that became due since the last call."""
        due, self._due = self._due, set()
        return due

    def most_units(self, partition_number: int) -> float:
        """The balance of a full partition."""
        return self._partitions[partition_number].bucket.most_units

    def units_to_store(
        self, partition_number: int, now_seconds: float, *, is_last: bool = False
    ) -> float:
        """The balance to store for a partition, less the reserve if the partition is in use.

        ``is_last``: no more requests follow, so the partition needs no reserve.
        """
        partition = self._partitions[partition_number]
        is_used = partition.wants_reserve or partition.taken_units != partition.stored_taken_units
        partition.wants_reserve = False
        partition.stored_taken_units = partition.taken_units
        reserve_units = partition.reserve_units() if is_used and not is_last else 0.0
        return partition.bucket.fill(now_seconds) - reserve_units

    def note_stored(self, partition_number: int, units: float) -> None:
        """Record that a partition's balance is durable; ignored if the partition was split."""
        partition = self._partitions.get(partition_number)
        if partition is not None:
            partition.stored_units = units
            self._check_due(partition_number, partition)

    def _check_due(self, partition_number: int, partition: _ProvisionedPartition) -> None:
        if partition.bucket.balance_units < partition.stored_units:
            self._fall_due(partition_number, partition)

    def _fall_due(self, partition_number: int, partition: _ProvisionedPartition) -> None:
        partition.stored_units = _BEING_STORED
        self._due.add(partition_number)
        if self._on_due is not None:
            self._on_due()

    # -- lending ----------------------------------------------------------------------------

    def _lend(self, bucket: TokenBucket, now_seconds: float) -> bool:
        """Fill an empty bucket from the pool; return whether it now admits a request."""
        if now_seconds - self._collected_at >= _COLLECTING_SECONDS:
            self._collect(now_seconds)
        lent = min(self._pool_units, _LENT_UNITS - bucket.balance_units)
        self._pool_units -= lent
        bucket.balance_units += lent
        return bucket.balance_units > 0

    def _collect(self, now_seconds: float) -> None:
        """Move unused units of the partitions into the pool, up to the pool's maximum."""
        self._collected_at = now_seconds
        offers = []
        offered = 0.0
        for number, partition in self._partitions.items():
            unused = partition.unused_units(now_seconds)
            if unused > 0:
                offers.append((number, partition, unused))
                offered += unused
        missing = self.units_per_second - self._pool_units
        if offered == 0 or missing <= 0:
            return
        wanted = min(1.0, missing / offered)
        for number, partition, unused in offers:
            partition.bucket.balance_units -= unused * wanted
            partition.wants_reserve = True
            self._check_due(number, partition)
        self._pool_units += offered * wanted
