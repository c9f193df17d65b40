"""The saved result of a run: JSON, with whole histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct, field

from dynactor.load.check.findings import Findings
from dynactor.load.results.histogram import Histogram, NotAHistogram
from dynactor.load.work.plan import Plan

FORMAT: Final = "dynactor-load/1"
PERCENTILES: Final = (50.0, 90.0, 95.0, 99.0, 99.9, 99.99)

Phase = Literal["ramp", "warm-up", "measured", "end"]


class NotAResult(ValueError):
    """The file holds no result; the message names the file and the reason."""


class Second(Struct, frozen=True):
    """The answers of one second; latencies in microseconds, None without answers."""

    second: int
    phase: Phase
    requests: int
    errors: int
    throttles: int
    p50_us: float | None
    p99_us: float | None
    max_us: float | None


class Latency(Struct, frozen=True):
    """Latencies in microseconds. ``histogram`` is HdrHistogram's text, with all values."""

    mean_us: float | None
    percentiles_us: dict[str, float | None]
    max_us: float | None
    histogram: str

    def decoded(self) -> Histogram:
        """The whole histogram.

        Raises:
            NotAHistogram: the text is invalid.
        """
        return Histogram.decode(self.histogram)


class Operation(Struct, frozen=True):
    """The result of one operation or of all. ``outcomes`` counts all but plain success."""

    requests: int
    requests_per_second: float
    errors: int
    throttles: int
    outcomes: dict[str, int]
    latency: Latency


class Cost(Struct, frozen=True):
    """The processor time of a process during the measured time."""

    cpu_seconds: float
    us_per_request: float | None


class Generator(Struct, frozen=True):
    """The performance of the generator itself.

    ``busiest_share`` is the share of a processor that its busiest worker used: near 1, the
    generator limited the rate. ``lateness`` is the delay of open-loop requests that had a free
    connection. ``unsent`` is the number of requests that never had one.
    """

    cost: Cost
    busiest_share: float
    lateness: Latency
    unsent: int


class Result(Struct, frozen=True, kw_only=True):
    """A run. The latency of ``total`` includes the waiting time of unsent requests."""

    format: str = FORMAT
    label: str
    workload: str
    started_at: str
    machine: str
    plan: Plan
    seconds: float
    total: Operation
    operations: dict[str, Operation]
    timeline: list[Second]
    generator: Generator
    server: Cost | None = None
    error_examples: dict[str, str] = field(default_factory=dict)
    findings: Findings | None = None


def latency(histogram: Histogram) -> Latency:
    """A histogram with the most important figures."""
    return Latency(
        _number(histogram.mean),
        {f"{percent:g}": _number(histogram.percentile(percent)) for percent in PERCENTILES},
        _number(histogram.maximum),
        histogram.encode(),
    )


def _number(value: float) -> float | None:
    """A rounded number for JSON; None for NaN, which JSON does not have."""
    return None if math.isnan(value) else round(value, 1)


def save(result: Result, path: Path) -> None:
    """Write it to a file.

    Raises:
        OSError: the file can't be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")


def load(path: Path) -> Result:
    """Read a file.

    Raises:
        NotAResult: the file has no result of this form.
    """
    try:
        result = msgspec.json.decode(path.read_bytes(), type=Result)
        for each in (result.total, *result.operations.values()):
            each.latency.decoded()
    except OSError as error:
        raise NotAResult(f"{path}: {error.strerror}") from error
    except (msgspec.DecodeError, NotAHistogram) as error:
        raise NotAResult(f"{path} is not a result of a load run: {error}") from error
    if result.format != FORMAT:
        raise NotAResult(f"{path} is of the form {result.format!r}, not {FORMAT!r}")
    return result


def load_all(paths: Sequence[Path]) -> list[Result]:
    """Read files, at least one.

    Raises:
        NotAResult: a file has no result, or there is no file.
    """
    if not paths:
        raise NotAResult("Name the results to compare, such as a.json b.json")
    return list(map(load, paths))
