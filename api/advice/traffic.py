"""The requests to a table's or index's keys, added up from the admin listener's minutes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from dynactor.api.admin_api.insights_messages import Counted, InsightsAnswer, Minute
from dynactor.model.advice.heavy_hitters import KeySummary, heaviest, most_of_any
from dynactor.model.advice.key_traffic import MINUTE_SECONDS, Kind
from dynactor.model.values.value_types import Item

Access: TypeAlias = Literal["reads", "writes"]

ACCESSES: Final[tuple[Kind, ...]] = ("reads", "writes")
CONFLICTS: Final[tuple[Kind, ...]] = ("conflicts",)
THROTTLES: Final[tuple[Kind, ...]] = ("throttled_reads", "throttled_writes")

# The kinds of counts to add up, each with the units per count.
Factors: TypeAlias = Mapping[Kind, float]

_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder(dict).decode


class KeyLoad(Struct, frozen=True):
    """A key, with its count, the count's possible error, and the count in its busiest second."""

    key: Item
    weight: float
    error: float
    busiest_second: float


class Traffic:
    """The counts of the last hour, in units or throttled requests."""

    def __init__(self, answer: InsightsAnswer) -> None:
        self.answer = answer

    @property
    def minutes(self) -> list[Minute]:
        """The minutes with counts."""
        return self.answer.minutes

    @property
    def start_epoch_seconds(self) -> float:
        """The start of the first minute, or of counting."""
        if not self.minutes:
            return self.answer.now
        return max(self.minutes[0].start, self.answer.since)

    def total(self, *kinds: Kind) -> float:
        """The sum of all requests, including those without a counted key."""
        return self.weighted_total(dict.fromkeys(kinds, 1.0))

    def weighted_total(self, factors: Factors) -> float:
        """The sum of all requests, in units."""
        return sum(sum(_seconds(minute, factors)) for minute in self.minutes)

    def counted(self, factors: Factors) -> float:
        """The sum over all counted requests; a key's share is relative to it."""
        return sum(
            minute.partitions[kind].total * factor
            for minute in self.minutes
            for kind, factor in factors.items()
            if kind in minute.partitions
        )

    def busiest_second(self, factors: Factors) -> float:
        """The largest sum over all requests in one second."""
        return max((max(_seconds(minute, factors)) for minute in self.minutes), default=0.0)

    def most_of_any(self, kinds: Iterable[Kind], *, items: bool = False) -> float:
        """The count that no partition key or item exceeds; 0 without counted keys."""
        kinds = tuple(kinds)
        return most_of_any(
            _summary(counted[kind], 1.0)
            for minute in self.minutes
            for counted in (minute.items if items else minute.partitions,)
            for kind in kinds
            if kind in counted
        )

    def top(
        self, kinds: Iterable[Kind] | Factors, count: int, *, items: bool = False
    ) -> list[KeyLoad]:
        """The busiest partition keys or items, most first."""
        factors = kinds if isinstance(kinds, Mapping) else dict.fromkeys(kinds, 1.0)
        summaries: list[KeySummary] = []
        seconds: dict[bytes, float] = {}
        for minute in self.minutes:
            counted = minute.items if items else minute.partitions
            in_minute: dict[bytes, float] = {}
            second_units = _seconds(minute, factors)
            minute_units = sum(second_units)
            for kind, factor in factors.items():
                if kind not in counted or not minute_units:
                    continue
                summary = _summary(counted[kind], factor)
                summaries.append(summary)
                # A key's load in the busiest second is estimated from its share of the minute. In
                # a sample, the counted keys represent only a part of all requests.
                scale = sum(minute.seconds[kind]) / minute.partitions[kind].total
                busiest_share = max(second_units) / minute_units
                for key, weight in summary.keys:
                    in_minute[key] = in_minute.get(key, 0.0) + weight * scale * busiest_share
            for key, weight in in_minute.items():
                seconds[key] = max(seconds.get(key, 0.0), weight)
        return [
            KeyLoad(
                _decode(heavy.key),
                heavy.least,
                max(0.0, heavy.most - heavy.least),
                seconds[heavy.key],
            )
            for heavy in heaviest(summaries, count)
        ]


def _seconds(minute: Minute, factors: Factors) -> list[float]:
    """The units in each second of a minute."""
    seconds = [0.0] * MINUTE_SECONDS
    for kind, factor in factors.items():
        for at, counted in enumerate(minute.seconds.get(kind, ())):
            seconds[at] += counted * factor
    return seconds


def _summary(counted: Counted, factor: float) -> KeySummary:
    keys = tuple((_encode(each.key), each.weight * factor) for each in counted.keys)
    return KeySummary(
        counted.total * factor, keys, counted.error * factor, counted.unlisted * factor
    )
