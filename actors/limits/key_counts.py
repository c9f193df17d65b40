"""The counts of requests by key, of a table or of a global index."""

from __future__ import annotations

import sys
from array import array
from collections import deque
from random import Random
from typing import Final

from msgspec import Struct

from dynactor.actors.runtime.clock import Clock
from dynactor.model.advice.heavy_hitters import HeavyHitters, KeySummary
from dynactor.model.advice.key_traffic import (
    EVERY,
    KEPT_KEYS,
    MINUTE_SECONDS,
    MINUTES,
    WHOLE_REQUESTS,
    Kind,
    Recording,
)
from dynactor.model.definitions.table import ContributorInsights
from dynactor.model.keys.key import KeySchema
from dynactor.model.keys.key_decoding import partition_end

_NEVER: Final = sys.maxsize
_TEXT_END: Final = b"\x00\x00"
_HASH_BYTES: Final = 8
_NO_SECONDS: Final = (0.0,) * MINUTE_SECONDS


class Window(Struct, frozen=True):
    """The counts of a minute by kind: ``partitions`` by partition key, ``items`` by whole key.

    Keys include their hashes. ``items`` is empty if there is no sort key. ``seconds`` are the
    counts of each second.
    """

    start_epoch_seconds: float
    seconds: dict[Kind, array[float]]
    partitions: dict[Kind, KeySummary]
    items: dict[Kind, KeySummary]


class Sampler:
    """Chooses the requests of one kind that are counted.

    ``passed_units`` are the units of the requests that were skipped since the last counted one.
    """

    __slots__ = ("_draws", "_left", "_recording", "_weight", "kind", "passed_units", "skip")

    def __init__(self, draws: Random, recording: Recording, kind: Kind = "reads") -> None:
        self.kind: Kind = kind
        self._draws = draws
        self._recording: Recording = recording
        self._weight = 1
        self._left = WHOLE_REQUESTS
        # Number of requests to skip before the next counted one.
        self.skip = 0
        self.passed_units = 0.0
        self.set(recording)

    @property
    def recording(self) -> Recording:
        """Whether all, some or no requests are counted."""
        return self._recording

    def set(self, recording: Recording) -> None:
        """Count all, some or no requests from now on."""
        self._recording = recording
        self.skip = _NEVER if recording == "none" else 0
        self.passed_units = 0.0
        self._weight = 1
        self.begin_minute()

    def begin_minute(self) -> None:
        """Count all requests again, until there are many."""
        self._left = _NEVER if self._recording == "all" else WHOLE_REQUESTS

    def weigh(self, units: float = 1.0) -> int:
        """The weight of the next request, with these units; 0 if it is skipped."""
        if self.skip:
            self.skip -= 1
            self.passed_units += units
            return 0
        weight = self._weight
        self._left -= 1
        if self._left < 0:
            # A random interval, so that the sample follows no pattern of the requests.
            self._weight = EVERY
            self.skip = int(self._draws.random() * (2 * EVERY - 1))
        else:
            self._weight = 1
        return weight


class _MinuteCounts:
    """The counts of a kind in the present minute; no items if there is no sort key."""

    __slots__ = ("items", "partitions", "seconds")

    def __init__(self, *, with_items: bool) -> None:
        self.seconds = array("f", _NO_SECONDS)
        self.partitions = HeavyHitters()
        self.items = HeavyHitters() if with_items else None


class KeyTraffic:
    """The key counts of a table or of a global index.

    Invariant: the present minute ends at ``_ends_at``; earlier minutes are in ``_windows``.
    """

    __slots__ = (
        "_clock",
        "_counts",
        "_ends_at",
        "_is_text",
        "_schema",
        "_windows",
        "conflicts",
        "reads",
        "throttled_reads",
        "throttled_writes",
        "writes",
    )

    def __init__(self, schema: KeySchema, clock: Clock, draws: Random) -> None:
        self._schema = schema
        self._is_text = len(schema.partition) == 1 and schema.partition[0].type != "N"
        self._clock = clock
        self.reads = Sampler(draws, "none", "reads")
        self.writes = Sampler(draws, "none", "writes")
        self.throttled_reads = Sampler(draws, "none", "throttled_reads")
        self.throttled_writes = Sampler(draws, "none", "throttled_writes")
        self.conflicts = Sampler(draws, "none", "conflicts")
        self._windows: deque[Window] = deque(maxlen=MINUTES - 1)
        self._ends_at = 0.0
        self._counts: dict[Kind, _MinuteCounts] = {}

    def count(self, sampler: Sampler, key: bytes, units: float) -> None:
        """Count a request for an encoded key; a key without its sort key counts for no item.

        The counts of each second include skipped requests.
        """
        weight = sampler.weigh(units)
        if weight:
            self.count_weighed(sampler, key, units, weight)

    def count_page(self, sampler: Sampler, start: bytes, units: float) -> None:
        """Count a request for the partition key at the start of a position."""
        weight = sampler.weigh(units)
        if weight:
            key = start[: partition_end(self._schema, start)]
            self.count_weighed(sampler, key, units, weight)

    def count_weighed(self, sampler: Sampler, key: bytes, units: float, weight: int) -> None:
        """See ``count``; for a request with a weight."""
        kind = sampler.kind
        now = self._clock.now_epoch_seconds()
        if now >= self._ends_at:
            self._begin_minute(now)
        counts = self._counts.get(kind)
        if counts is None:
            counts = self._counts[kind] = _MinuteCounts(with_items=bool(self._schema.sort))
        counts.seconds[int(now) % MINUTE_SECONDS] += units + sampler.passed_units
        sampler.passed_units = 0.0
        # Find the end of a usual key inline, without another call.
        end = (
            key.index(_TEXT_END, _HASH_BYTES) + len(_TEXT_END)
            if self._is_text
            else partition_end(self._schema, key)
        )
        counts.partitions.add(key[:end], units * weight)
        if counts.items is not None and end < len(key):
            counts.items.add(key, units * weight)

    def windows(self) -> list[Window]:
        """The minutes of the last hour with counts, the present one last."""
        now = self._clock.now_epoch_seconds()
        if now >= self._ends_at:
            self._begin_minute(now)
        oldest = self._ends_at - MINUTES * MINUTE_SECONDS
        windows = [window for window in self._windows if window.start_epoch_seconds >= oldest]
        return [*windows, self._window()] if self._counts else windows

    def set(self, insights: ContributorInsights | None, otherwise: Recording) -> None:
        """Count what Contributor Insights requests, or ``otherwise`` if it requests nothing."""
        mode = insights.mode if insights is not None and insights.enabled else None
        accesses: Recording = "all" if mode == "ACCESSED_AND_THROTTLED_KEYS" else otherwise
        throttles: Recording = "all" if mode is not None else otherwise
        for sampler in self._samplers:
            recording = accesses if sampler in (self.reads, self.writes) else throttles
            if sampler.recording != recording:
                sampler.set(recording)

    @property
    def _samplers(self) -> tuple[Sampler, ...]:
        return (
            *(self.reads, self.writes, self.throttled_reads, self.throttled_writes),
            self.conflicts,
        )

    def _begin_minute(self, now: float) -> None:
        if self._counts:
            self._windows.append(self._window())
            self._counts = {}
        self._ends_at = (now // MINUTE_SECONDS + 1) * MINUTE_SECONDS
        for sampler in self._samplers:
            sampler.begin_minute()

    def _window(self) -> Window:
        return Window(
            self._ends_at - MINUTE_SECONDS,
            {kind: counts.seconds for kind, counts in self._counts.items()},
            {kind: counts.partitions.summary(KEPT_KEYS) for kind, counts in self._counts.items()},
            {
                kind: counts.items.summary(KEPT_KEYS)
                for kind, counts in self._counts.items()
                if counts.items is not None and counts.items.total
            },
        )
