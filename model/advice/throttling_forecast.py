"""Predicts the throttling of a recorded load with other units, using the code of the limits.

A load covers a minute, second by second. Shares of the load belong to known partition keys. The
rest of the load is assumed to be spread evenly over the partitions, and each second's requests
evenly over the second. So the predicted throttling is slightly lower than that of bursty requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from dynactor.model.limits import (
    ON_DEMAND_READ_UNITS,
    ON_DEMAND_WRITE_UNITS,
    PARTITION_READ_UNITS,
    PARTITION_WRITE_UNITS,
    TABLE_READ_UNITS,
    TABLE_WRITE_UNITS,
)
from dynactor.model.throttling.on_demand import OnDemandRates, OnDemandUnits
from dynactor.model.throttling.provisioned import ProvisionedUnits
from dynactor.model.throttling.refusal import LimitType
from dynactor.model.throttling.resource import Units

Operation: TypeAlias = Literal["read", "write"]

# Each second is simulated in this many parts. A partition's ceiling applies to whole seconds, and
# the last admitted part may exceed it.
_PARTS: Final = 8
_HASH_BYTES: Final = 8
_HASH_BITS: Final = 64


class KeyShare(Struct, frozen=True):
    """A partition key, encoded with its hash, and its share of a minute's units."""

    key: bytes
    share: float


class MinuteLoad(Struct, frozen=True):
    """The load of one minute: its start, the units of each second, and the shares of keys."""

    start_seconds: float
    seconds: Sequence[float]
    keys: Sequence[KeyShare] = ()


class Expected(Struct, frozen=True):
    """The requested units, and the refused units by reason (S140).

    ``over_rate``: demand exceeded the provisioned units. ``uneven``: demand was lower, but on too
    few partitions. ``ceiling``: one partition exceeded its ceiling (S139). ``growth``: an on-demand
    table grew too fast.
    """

    offered: float
    over_rate: float = 0.0
    uneven: float = 0.0
    ceiling: float = 0.0
    growth: float = 0.0

    @property
    def refused(self) -> float:
        """All refused units."""
        return self.over_rate + self.uneven + self.ceiling + self.growth


def expected(
    minutes: Iterable[MinuteLoad],
    operation: Operation,
    units_per_second: float | None,
    partitions: int,
) -> Expected:
    """The outcome of a load with provisioned units, or on demand if they are None."""
    offered = 0.0
    refused = dict.fromkeys(("over_rate", "uneven", "ceiling", "growth"), 0.0)
    units: Units | None = None
    for minute in minutes:
        if units is None:
            units = _units(operation, units_per_second, partitions, minute.start_seconds)
        shares = _shares(minute, partitions)
        for at, second_units in enumerate(minute.seconds):
            if not second_units:
                continue
            offered += second_units
            for part in range(_PARTS):
                now = minute.start_seconds + at + part / _PARTS
                for place, share in shares:
                    limit = units.refused_by(place, now)
                    if limit is None:
                        units.take(place, second_units * share / _PARTS, now)
                    else:
                        cause = _cause(limit, second_units, units_per_second)
                        refused[cause] += second_units * share / _PARTS
    return Expected(offered, **refused)


def key_place(key: bytes, partitions: int) -> int:
    """The partition of an encoded key, if this many partitions divide the hashes evenly."""
    return int.from_bytes(key[:_HASH_BYTES], "big") * partitions >> _HASH_BITS


def _shares(minute: MinuteLoad, partitions: int) -> list[tuple[int, float]]:
    """Each partition's share: the shares of its known keys, and an equal part of the rest."""
    others = max(0.0, 1 - sum(each.share for each in minute.keys)) / partitions
    shares = [others] * partitions
    for each in minute.keys:
        shares[key_place(each.key, partitions)] += each.share
    return [(place, share) for place, share in enumerate(shares) if share]


def _cause(limit: LimitType, second_units: float, units_per_second: float | None) -> str:
    if limit is LimitType.KEY_RANGE:
        return "ceiling"
    if units_per_second is None:
        return "growth"
    return "over_rate" if second_units > units_per_second else "uneven"


def _units(
    operation: Operation, units_per_second: float | None, partitions: int, now_seconds: float
) -> Units:
    is_read = operation == "read"
    ceiling = PARTITION_READ_UNITS if is_read else PARTITION_WRITE_UNITS
    if units_per_second is not None:
        # The unused units before the recorded load are unknown.
        return ProvisionedUnits(
            units_per_second, ceiling, range(partitions), now_seconds, saved_seconds=1
        )
    least = ON_DEMAND_READ_UNITS if is_read else ON_DEMAND_WRITE_UNITS
    quota = TABLE_READ_UNITS if is_read else TABLE_WRITE_UNITS
    rates = OnDemandRates(max(least, partitions * ceiling), ceiling, quota)
    return OnDemandUnits(rates, range(partitions), now_seconds)
