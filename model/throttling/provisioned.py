"""Provisioned units of one table or index, reads or writes: spread over partitions, and lent.

Every partition has an even share of the units (S138), keeps what it does not use for up to 300
seconds, and takes no more than its ceiling (S139). A partition whose share is used up takes what
the others leave unused (S161): nothing is refused while the table as a whole has units to spare.
DynamoDB documents that this is instant and goes up to the table's units and the partition's
ceiling, not how; here the units move from balance to balance, so that none is there twice.

A new partition has 300 seconds of unused units. Balances outlive the server: ``stored_units`` is
the balance that a partition has after a crash. A partition whose balance falls below it is *due*:
the caller stores a new one. The stored balance leaves out a reserve for the requests until a
lower balance is durable. So a crash loop earns nothing, and a crash costs a partition in use its
reserve at most: the units of five seconds, or what it may use in a sync of the log.

What a partition lends is what came in for it since the last time and was not taken, one second's
at most. What it has saved before stays its own, and a second's units always. What is lent waits
in a pool, no more than a second's units of the table, for whoever comes first.

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

# A busy partition asks with every request, and asking the others looks at all of them.
_COLLECTING_SECONDS: Final = 0.1
# Of units that came in; what is older was saved.
_LENT_SECONDS: Final = 1.0
# What a partition takes of the pool beyond its debt: the less, the more even between two.
_LENT_UNITS: Final = 8.0
# The reserve. A larger one makes a crash dearer; a smaller one makes a burst store more often.
_RESERVE_SECONDS: Final = 5.0
_MOST_RESERVE_SECONDS: Final = 30.0
# For so long a sync may take, while reads wait for none.
_SYNC_SECONDS: Final = 0.02
_BEING_STORED: Final = float("-inf")


class _Partition:
    """One partition's share."""

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
        # It has lent units, or a server has just begun to use it.
        self.wants_reserve = False
        self.taken_units = 0.0
        self.refusals = 0
        self.ceiling_refusals = 0
        # When its use was last looked at, and what it had taken by then.
        self.seen_at = now_seconds
        self.seen_units = 0.0

    def reserve_units(self) -> float:
        """What to leave out of the stored balance of a partition in use."""
        rate = self.bucket.units_per_second
        of_sync = _SYNC_SECONDS * self.ceiling.units_per_second
        return min(max(_RESERVE_SECONDS * rate, of_sync), _MOST_RESERVE_SECONDS * rate)

    def unused_units(self, now_seconds: float) -> float:
        """What it can lend now; looking at it begins the count anew."""
        bucket = self.bucket
        rate = bucket.units_per_second
        came_in = min(now_seconds - self.seen_at, _LENT_SECONDS) * rate
        unused = came_in - (self.taken_units - self.seen_units)
        self.seen_at, self.seen_units = now_seconds, self.taken_units
        return max(0.0, min(unused, bucket.fill(now_seconds) - rate))


class ProvisionedUnits:
    """The units. Invariant: lending leaves the sum of all balances and the pool as it was."""

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

        Each partition begins with ``saved_seconds`` of its units.
        """
        numbers = list(partitions)
        share = units_per_second / len(numbers)
        self.units_per_second = units_per_second
        self._partitions: dict[int, _Partition] = {}
        for number in numbers:
            bucket = TokenBucket(share, now_seconds, saved_seconds=saved_seconds)
            ceiling = Ceiling(partition_units_per_second, now_seconds)
            self._partitions[number] = _Partition(bucket, ceiling, now_seconds, bucket.most_units)
        self._pool_units = 0.0
        self._collected_at = now_seconds
        # Partitions whose balance is below the stored one.
        self._due: set[int] = set()
        self._on_due: Callable[[], None] | None = None

    def refused_by(self, partition_number: int, now_seconds: float) -> LimitType | None:
        """The limit that refuses a request to a partition now; None if it is admitted."""
        partition = self._partitions[partition_number]
        # For every request: without calls that are not needed.
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
        """Admit a request and take its units in one step, or say which limit refuses it.

        As ``refused_by`` and ``take`` together.
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
        """Give back the units of a request that came to nothing.

        A partition that was split since has none to give them to.
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
        """How long until a request to a partition is admitted, if no others come before."""
        if self.refused_by(partition_number, now_seconds) is None:
            return 0.0
        partition = self._partitions[partition_number]
        own_units = partition.bucket.wait_seconds(now_seconds)
        lent_units = max(0.0, self._collected_at + _COLLECTING_SECONDS - now_seconds)
        return max(min(own_units, lent_units), partition.ceiling.wait_seconds(now_seconds))

    def change(self, units_per_second: float, now_seconds: float) -> None:
        """Spread another number of units; balances stay, as far as they still fit."""
        self.units_per_second = units_per_second
        self._pool_units = min(self._pool_units, units_per_second)
        share = units_per_second / len(self._partitions)
        for number, partition in self._partitions.items():
            bucket = partition.bucket
            was_full = partition.stored_units >= bucket.most_units
            bucket.change_rate(share, now_seconds)
            # A full partition has no stored balance: after a crash it is full at the new rate.
            if was_full or partition.stored_units > bucket.most_units:
                partition.stored_units = bucket.most_units
            self._check_due(number, partition)

    def split(self, parent: int, children: tuple[int, int], now_seconds: float) -> None:
        """Put two partitions in the place of one.

        The units are spread evenly again, over one partition more. Each child gets half of its
        parent's balance, or debt, and may take as much of this second as its parent still could:
        from the next on, both together take twice what one could.
        """
        divided = self._partitions.pop(parent)
        self._due.discard(parent)
        half = divided.bucket.fill(now_seconds) / 2
        share = self.units_per_second / (len(self._partitions) + 2)
        for number in children:
            bucket = TokenBucket(share, now_seconds)
            bucket.balance_units = half
            ceiling = divided.ceiling.copy(now_seconds)
            self._partitions[number] = _Partition(bucket, ceiling, now_seconds, bucket.most_units)
        self.change(self.units_per_second, now_seconds)

    def readings(self, now_seconds: float) -> dict[int, PartitionReading]:
        """What each partition has taken and has left."""
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

    # -- what is stored ---------------------------------------------------------------------

    def continue_from(self, stored: Mapping[int, float], as_of_seconds: float) -> None:
        """Begin with stored balances, and the units that time has added to them since then.

        A partition without a stored balance is full.
        """
        for number, units in stored.items():
            partition = self._partitions.get(number)
            if partition is not None:
                bucket = TokenBucket(partition.bucket.units_per_second, as_of_seconds)
                bucket.balance_units = partition.stored_units = min(units, bucket.most_units)
                partition.bucket = bucket
                partition.wants_reserve = True

    def tell_due(self, on_due: Callable[[], None]) -> None:
        """Call this when a partition becomes due, and now if one is."""
        self._on_due = on_due
        for number, partition in self._partitions.items():
            self._check_due(number, partition)

    def take_due(self) -> set[int]:
        """The partitions that became due since the last call."""
        due, self._due = self._due, set()
        return due

    def most_units(self, partition_number: int) -> float:
        """The balance of a partition that is full."""
        return self._partitions[partition_number].bucket.most_units

    def units_to_store(
        self, partition_number: int, now_seconds: float, *, is_last: bool = False
    ) -> float:
        """The balance to store for a partition, less the reserve if the partition is in use.

        ``is_last``: there are no more requests, and the partition needs no reserve.
        """
        partition = self._partitions[partition_number]
        is_used = partition.wants_reserve or partition.taken_units != partition.stored_taken_units
        partition.wants_reserve = False
        partition.stored_taken_units = partition.taken_units
        reserve_units = partition.reserve_units() if is_used and not is_last else 0.0
        return partition.bucket.fill(now_seconds) - reserve_units

    def note_stored(self, partition_number: int, units: float) -> None:
        """This balance is durable now. A partition that was split meanwhile is ignored."""
        partition = self._partitions.get(partition_number)
        if partition is not None:
            partition.stored_units = units
            self._check_due(partition_number, partition)

    def _check_due(self, partition_number: int, partition: _Partition) -> None:
        if partition.bucket.balance_units < partition.stored_units:
            self._fall_due(partition_number, partition)

    def _fall_due(self, partition_number: int, partition: _Partition) -> None:
        partition.stored_units = _BEING_STORED
        self._due.add(partition_number)
        if self._on_due is not None:
            self._on_due()

    # -- lending ----------------------------------------------------------------------------

    def _lend(self, bucket: TokenBucket, now_seconds: float) -> bool:
        """Fill an empty bucket from the pool; whether there was enough for it to go on."""
        if now_seconds - self._collected_at >= _COLLECTING_SECONDS:
            self._collect(now_seconds)
        lent = min(self._pool_units, _LENT_UNITS - bucket.balance_units)
        self._pool_units -= lent
        bucket.balance_units += lent
        return bucket.balance_units > 0

    def _collect(self, now_seconds: float) -> None:
        """Move into the pool what the partitions leave unused, as much of it as has room."""
        self._collected_at = now_seconds
        offers = []
        offered = 0.0
        for number, partition in self._partitions.items():
            unused = partition.unused_units(now_seconds)
            if unused > 0:
                offers.append((number, partition, unused))
                offered += unused
        room = self.units_per_second - self._pool_units
        if offered == 0 or room <= 0:
            return
        wanted = min(1.0, room / offered)
        for number, partition, unused in offers:
            partition.bucket.balance_units -= unused * wanted
            partition.wants_reserve = True
            self._check_due(number, partition)
        self._pool_units += offered * wanted
