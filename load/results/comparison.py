"""Compares results: medians of rounds, their spread, and ratios to the first label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from dynactor.load.results.result import Result
from dynactor.load.results.units import milliseconds

_PERCENTILES = ("50", "99", "99.9")


class Case(NamedTuple):
    """The common parameters of compared results."""

    workload: str
    connections: int
    rate: float

    @property
    def text(self) -> str:
        """The text of a heading."""
        if not self.connections:
            return self.workload
        connections = f"{self.connections} connection{'s' * (self.connections != 1)}"
        rate = f", {self.rate:,g} requests/s" if self.rate else ""
        return f"{self.workload}, {connections}{rate}"


UNLIKE = Case("different workloads", 0, 0)


class Spread(NamedTuple):
    """The median, the lowest and the highest value of some rounds."""

    median: float
    least: float
    most: float

    def show(self, form: str = ",.0f") -> str:
        """The text; one round has no spread."""
        if self.least == self.most:
            return f"{self.median:{form}}"
        return f"{self.median:{form}} ({self.least:{form}} to {self.most:{form}})"


def spread(values: Sequence[float]) -> Spread | None:
    """The spread of rounds; None if there are none."""
    return Spread(median(values), min(values), max(values)) if values else None


class Rounds(NamedTuple):
    """All results of one label in one case, in the order of their rounds."""

    label: str
    results: tuple[Result, ...]

    @property
    def rates(self) -> list[float]:
        """Answered requests per second, without errors."""
        return [good_rate(result) for result in self.results]

    def latency(self, percent: str) -> float | None:
        """The median of the rounds' percentiles, in microseconds."""
        values = [result.total.latency.percentiles_us[percent] for result in self.results]
        known = [value for value in values if value is not None]
        return median(known) if known else None

    @property
    def cpu_us(self) -> list[float]:
        """The server's processor time per request."""
        costs = [result.server.us_per_request for result in self.results if result.server]
        return [cost for cost in costs if cost is not None]

    @property
    def errors(self) -> int:
        """The errors of all rounds."""
        return sum(result.total.errors for result in self.results)

    @property
    def throttles(self) -> int:
        """The throttled requests of all rounds."""
        return sum(result.total.throttles for result in self.results)

    def ratios(self, other: Rounds) -> Spread | None:
        """The speed relative to other rounds, round by round."""
        pairs = zip(self.rates, other.rates, strict=False)
        return spread([mine / theirs for mine, theirs in pairs if theirs])


def good_rate(result: Result) -> float:
    """Successful requests per second."""
    total = result.total
    return total.requests_per_second * (
        1 - (total.errors + total.throttles) / max(1, total.requests)
    )


def by_case(results: Sequence[Result]) -> dict[Case, list[Rounds]]:
    """Results by their parameters, then by label, in order of appearance."""
    sorted_results: dict[Case, dict[str, list[Result]]] = {}
    for result in results:
        case = Case(result.workload, result.plan.connections, result.plan.rate)
        sorted_results.setdefault(case, {}).setdefault(result.label, []).append(result)
    if all(len(of_case) == 1 for of_case in sorted_results.values()):
        return _unlike(sorted_results)
    return {
        case: [Rounds(label, tuple(rounds)) for label, rounds in of_case.items()]
        for case, of_case in sorted_results.items()
    }


def _unlike(sorted_results: dict[Case, dict[str, list[Result]]]) -> dict[Case, list[Rounds]]:
    """All results as one case, for labels without common parameters; rows show the parameters."""
    rounds_of_all = [
        Rounds(label if len(sorted_results) == 1 else f"{label}: {case.text}", tuple(rounds))
        for case, of_case in sorted_results.items()
        for label, rounds in of_case.items()
    ]
    first = next(iter(sorted_results))
    return {first if len(sorted_results) == 1 else UNLIKE: rounds_of_all}


HEADINGS = (
    "requests/s",
    *(f"p{percent} ms" for percent in _PERCENTILES),
    "CPU µs/request",
    "errors",
    "throttles",
    "ratio",
)


def rows(rounds_of_case: Sequence[Rounds]) -> Iterator[tuple[str, ...]]:
    """A row of texts for each label under ``HEADINGS``, beginning with the label."""
    first = rounds_of_case[0]
    for rounds in rounds_of_case:
        ratio = rounds.ratios(first) if rounds is not first else None
        rate, cpu = spread(rounds.rates), spread(rounds.cpu_us)
        yield (
            rounds.label,
            rate.show() if rate else "-",
            *(milliseconds(rounds.latency(percent)) for percent in _PERCENTILES),
            cpu.show(",.1f") if cpu else "-",
            f"{rounds.errors:,}",
            f"{rounds.throttles:,}",
            ratio.show(",.2f") if ratio else "",
        )


def print_comparison(results: Sequence[Result], console: Console) -> None:
    """A table for each case."""
    for case, rounds_of_case in by_case(results).items():
        table = Table(title=case.text, title_justify="left")
        table.add_column("")
        for heading in HEADINGS:
            table.add_column(heading, justify="right")
        for row in rows(rounds_of_case):
            table.add_row(*row)
        console.print(table)
