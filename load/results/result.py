"""The result of a run, as it is kept: JSON, with whole histograms."""

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
    """A file that holds no result; the message says which and why."""


class Second(Struct, frozen=True):
    """What was answered within one second; latencies in microseconds, None where nothing was."""

    second: int
    phase: Phase
    requests: int
    errors: int
    throttles: int
    p50_us: float | None
    p99_us: float | None
    max_us: float | None


class Latency(Struct, frozen=True):
    """Microseconds. ``histogram`` is HdrHistogram's text, which holds all of the others."""

    mean_us: float | None
    percentiles_us: dict[str, float | None]
    max_us: float | None
    histogram: str

    def decoded(self) -> Histogram:
        """The whole histogram.

        Raises:
            NotAHistogram: the text is none.
        """
        return Histogram.decode(self.histogram)


class Operation(Struct, frozen=True):
    """What came of one operation, or of all. ``outcomes`` counts all but plain success."""

    requests: int
    requests_per_second: float
    errors: int
    throttles: int
    outcomes: dict[str, int]
    latency: Latency


class Cost(Struct, frozen=True):
    """Processor time of a process while requests counted."""

    cpu_seconds: float
    us_per_request: float | None


class Generator(Struct, frozen=True):
    """How the generator itself fared.

    ``busiest_share`` is the part of a processor that its busiest worker took: near 1, the
    generator was what limited the rate. ``lateness`` is how late requests of an open loop went
    out although a connection was free; ``unsent`` is how many never did for want of one.
    """

    cost: Cost
    busiest_share: float
    lateness: Latency
    unsent: int


class Result(Struct, frozen=True, kw_only=True):
    """A run. ``total`` also counts in its latency the time that unsent requests have waited."""

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
    """A histogram with what is read off it most."""
    return Latency(
        _number(histogram.mean),
        {f"{percent:g}": _number(histogram.percentile(percent)) for percent in PERCENTILES},
        _number(histogram.maximum),
        histogram.encode(),
    )


def _number(value: float) -> float | None:
    """JSON has no NaN."""
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
        NotAResult: there is no result in it, or none of this form.
    """
    try:
        result = msgspec.json.decode(path.read_bytes(), type=Result)
        for each in (result.total, *result.operations.values()):
            each.latency.decoded()
    except OSError as error:
        raise NotAResult(f"{path}: {error.strerror}") from error
    except (msgspec.DecodeError, NotAHistogram) as error:
        raise NotAResult(f"{path} is no result of a load run: {error}") from error
    if result.format != FORMAT:
        raise NotAResult(f"{path} is of the form {result.format!r}, not {FORMAT!r}")
    return result


def load_all(paths: Sequence[Path]) -> list[Result]:
    """Read files, one at least.

    Raises:
        NotAResult: as ``load``, or there is no file.
    """
    if not paths:
        raise NotAResult("Name the results to compare, such as a.json b.json")
    return list(map(load, paths))
