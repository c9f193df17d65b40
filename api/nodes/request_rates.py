"""The requests per second that a node executes, by table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from math import exp
from typing import Final

# Rates are averages over about this time.
_MEAN_SECONDS: Final = 10.0
# Rates are not computed more often.
_LEAST_SECONDS: Final = 1.0
# Lower rates count as none.
_LEAST_RATE: Final = 0.01


class RequestRates:
    """Counts requests. ``now`` is a clock in seconds.

    A table's rates at its former home and at its present one add up to its rate, because both are
    the same kind of average.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._since: float | None = None
        self._counts: Counter[str] = Counter()
        self._rates: dict[str, float] = {}

    def count(self, names: Iterable[str]) -> None:
        """Count a request to these tables."""
        for name in names:
            self._counts[name] += 1

    def read(self) -> dict[str, float]:
        """The present rates of the tables with requests."""
        now = self._now()
        if self._since is None:
            self._since = now
        seconds = now - self._since
        if seconds >= _LEAST_SECONDS:
            share = 1 - exp(-seconds / _MEAN_SECONDS)
            counts, self._counts = self._counts, Counter()
            self._since = now
            rates = faded(self._rates, seconds)
            for name, count in counts.items():
                rates[name] = rates.get(name, 0.0) + share * count / seconds
            self._rates = rates
        return dict(self._rates)


def faded(rates: Mapping[str, float], seconds: float) -> dict[str, float]:
    """These rates after some seconds without requests."""
    kept = exp(-seconds / _MEAN_SECONDS)
    return {name: kept * rate for name, rate in rates.items() if kept * rate >= _LEAST_RATE}
