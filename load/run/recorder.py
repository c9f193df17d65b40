"""Counts the outcomes of a worker's operations, by second and over the measured time."""

from __future__ import annotations

from collections import Counter, defaultdict

from dynactor.load.results.histogram import of_values
from dynactor.load.run.messages import Measured, Tick
from dynactor.load.run.outcomes import EXPECTED, THROTTLES, counts_in_latency


class Recorder:
    """Times are the performance counter's, in seconds.

    A request of an open loop counts at its due time, one of a closed loop at the time of its
    answer. ``window`` is the measured time.
    """

    def __init__(self, *, by_due_time: bool) -> None:
        self.by_due_time = by_due_time
        self.window = (0.0, 0.0)
        self.unsent: Counter[int] = Counter()
        self.lateness: Counter[int] = Counter()
        self._latencies: defaultdict[str, defaultdict[int, int]] = defaultdict(
            lambda: defaultdict(int)
        )
        self._outcomes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._requests: Counter[str] = Counter()
        self._start_tick()

    def _start_tick(self) -> None:
        self._tick_requests = 0
        self._tick_outcomes: Counter[str] = Counter()
        self._tick_latencies: defaultdict[int, int] = defaultdict(int)

    def note(self, operation: str, due_at: float, ended_at: float, outcome: str) -> None:
        """Record the end of an operation; ``outcome`` is empty for plain success."""
        microseconds = int((ended_at - due_at) * 1e6)
        self._tick_requests += 1
        if outcome:
            self._tick_outcomes[outcome] += 1
        counts = not outcome or counts_in_latency(outcome)
        if counts:
            self._tick_latencies[microseconds] += 1
        start, end = self.window
        if start <= (due_at if self.by_due_time else ended_at) < end:
            self._requests[operation] += 1
            if outcome:
                self._outcomes[operation][outcome] += 1
            if counts:
                self._latencies[operation][microseconds] += 1

    def note_sent(self, due_at: float, sent_at: float) -> None:
        """Record the sending of a request that had a free connection at its due time."""
        self.lateness[int((sent_at - due_at) * 1e6)] += 1

    def note_unsent(self, due_at: float, given_up_at: float) -> None:
        """Record a due request that never had a free connection."""
        start, end = self.window
        if start <= due_at < end:
            self.unsent[int((given_up_at - due_at) * 1e6)] += 1

    def tick(self, second: int) -> Tick:
        """The answers since the last tick."""
        throttles = sum(self._tick_outcomes[name] for name in THROTTLES)
        expected = sum(self._tick_outcomes[name] for name in EXPECTED)
        made = Tick(
            second,
            self._tick_requests,
            self._tick_outcomes.total() - throttles - expected,
            throttles,
            of_values(self._tick_latencies).counts,
        )
        self._start_tick()
        return made

    def measured(self) -> dict[str, Measured]:
        """The measured outcomes by operation."""
        return {
            name: Measured(
                count, dict(self._outcomes[name]), of_values(self._latencies[name]).counts
            )
            for name, count in self._requests.items()
        }
