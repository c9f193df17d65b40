"""The traffic of a table's or index's keys as the admin listener tells it, put together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct

from actors.insights import Kind
from api.admin_insights import Counted, InsightsAnswer, Minute
from model.heavy_hitters import Summary, heaviest
from model.item import Item

ACCESSES: Final[tuple[Kind, ...]] = ("reads", "writes")
THROTTLES: Final[tuple[Kind, ...]] = ("throttled_reads", "throttled_writes")

_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder(dict).decode


class KeyLoad(Struct, frozen=True):
    """A key: what was counted of it, how much more it may be, and what it had in a busy second."""

    key: Item
    weight: float
    error: float
    busiest_second: float


class Traffic:
    """What was counted in the last hour, in units, or in requests that were throttled."""

    def __init__(self, answer: InsightsAnswer) -> None:
        self.answer = answer

    @property
    def minutes(self) -> list[Minute]:
        """The minutes in which anything was counted."""
        return self.answer.minutes

    @property
    def start_epoch_seconds(self) -> float:
        """When the first of them began, or the counting."""
        if not self.minutes:
            return self.answer.now
        return max(self.minutes[0].start, self.answer.since)

    def total(self, *kinds: Kind) -> float:
        """All together, those that no key was counted for too."""
        return sum(
            sum(minute.seconds[kind])
            for minute in self.minutes
            for kind in kinds
            if kind in minute.seconds
        )

    def counted(self, *kinds: Kind) -> float:
        """What keys were counted for, of which theirs are shares: in a sample about the total."""
        return sum(
            minute.partitions[kind].total
            for minute in self.minutes
            for kind in kinds
            if kind in minute.partitions
        )

    def busiest_second(self, *kinds: Kind) -> float:
        """The most in a second."""
        return max((_busiest_second(minute, kinds) for minute in self.minutes), default=0.0)

    def top(self, kinds: Iterable[Kind], count: int, *, items: bool = False) -> list[KeyLoad]:
        """So many of the partition keys, or of the items, with the most; the first has most."""
        kinds = tuple(kinds)
        summaries: list[Summary] = []
        seconds: dict[bytes, float] = {}
        for minute in self.minutes:
            counted = minute.items if items else minute.partitions
            in_minute: dict[bytes, float] = {}
            for kind in kinds:
                if kind not in counted:
                    continue
                summary = _summary(counted[kind])
                summaries.append(summary)
                # The key's part of what came in the minute's busiest second, on average.
                factor = max(minute.seconds[kind]) / minute.partitions[kind].total
                for key, weight in summary.keys:
                    in_minute[key] = in_minute.get(key, 0.0) + weight * factor
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


def _busiest_second(minute: Minute, kinds: Iterable[Kind]) -> float:
    told = [minute.seconds[kind] for kind in kinds if kind in minute.seconds]
    return max((sum(second) for second in zip(*told, strict=True)), default=0.0)


def _summary(counted: Counted) -> Summary:
    keys = tuple((_encode(each.key), each.weight) for each in counted.keys)
    return Summary(counted.total, keys, counted.error, counted.unlisted)
