"""Comparisons of results: medians of rounds, their spread, ratios round by round."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynactor.load.results.comparison import by_case, rows, spread
from dynactor.load.results.histogram import Histogram
from dynactor.load.results.plots import CannotPlot, plot
from dynactor.load.results.result import (
    Cost,
    Generator,
    NotAResult,
    Operation,
    Result,
    latency,
    load,
    save,
)
from dynactor.load.work.plan import Plan
from tests.load.peers.rounds import _row


def result(
    label: str,
    rate: float,
    *,
    workload: str = "get",
    connections: int = 16,
    errors: int = 0,
    latency_us: int = 1_000,
    cpu_us: float | None = 50.0,
) -> Result:
    requests = int(rate * 10)
    histogram = Histogram()
    histogram.record(latency_us, requests)
    operation = Operation(requests, rate, errors, 0, {}, latency(histogram))
    return Result(
        label=label,
        workload=workload,
        started_at="2026-11-20T12:00:00+00:00",
        machine="one",
        plan=Plan(endpoint="http://h", table="t", mix={workload: 1.0}, connections=connections),
        seconds=10.0,
        total=operation,
        operations={workload: operation},
        timeline=[],
        generator=Generator(Cost(1.0, 1.0), 0.1, latency(Histogram()), 0),
        server=None if cpu_us is None else Cost(1.0, cpu_us),
    )


def alternated(ours: list[float], theirs: list[float]) -> list[Result]:
    """The results of two servers in alternating rounds, as in a comparison."""
    return [
        each
        for mine, other in zip(ours, theirs, strict=True)
        for each in (result("ours", mine), result("theirs", other))
    ]


def test_a_spread_is_the_median_the_least_and_the_most():
    assert spread([3.0, 100.0, 1.0]) == (3.0, 1.0, 100.0)
    assert spread([]) is None


def test_a_ratio_is_computed_from_consecutive_rounds():
    # In the second round the machine is half as fast, which does not change the ratio.
    ((_, (ours, theirs)),) = by_case(alternated([400, 200, 500], [100, 50, 100])).items()
    assert ours.ratios(theirs) == (4.0, 4.0, 5.0)


def test_failed_requests_do_not_count_as_throughput():
    ((_, (ours,)),) = by_case([result("ours", 100, errors=250)]).items()
    assert ours.rates == [75.0]


def test_results_with_different_parameters_are_not_compared():
    results = [
        *(result("ours", 1), result("theirs", 1)),
        *(result("ours", 1, connections=64), result("theirs", 1, connections=64)),
    ]
    cases = by_case(results)
    assert [case.text for case in cases] == ["get, 16 connections", "get, 64 connections"]


def test_results_without_common_parameters_form_one_case():
    ((case, rounds),) = by_case([result("a", 1), result("b", 2, workload="put")]).items()
    assert case.text == "different workloads"
    assert [each.label for each in rounds] == ["a: get, 16 connections", "b: put, 16 connections"]


def test_a_row_shows_the_median_and_its_spread():
    ((_, rounds),) = by_case(alternated([100, 300, 200], [100, 100, 100])).items()
    ours, theirs = rows(rounds)
    assert ours[:3] == ("ours", "200 (100 to 300)", "1")
    assert theirs[-1] == "0.50 (0.33 to 1.00)"


def test_an_unsupported_operation_is_shown_as_a_dash():
    results = [result("ours", 100), result("theirs", 1_000, errors=10_000, cpu_us=None)]
    ((_, rounds),) = by_case(results).items()
    assert _row(rounds) == ["100\n50 µs", "-"]


def test_a_result_round_trips_through_its_file(tmp_path: Path):
    made = result("ours", 100)
    save(made, tmp_path / "deeper" / "r.json")
    assert load(tmp_path / "deeper" / "r.json") == made


def test_a_result_of_another_form_is_refused(tmp_path: Path):
    file = tmp_path / "r.json"
    save(result("ours", 100), file)
    file.write_text(file.read_text().replace("dynactor-load/1", "dynactor-load/9"))
    with pytest.raises(NotAResult, match="dynactor-load/9"):
        load(file)
    save(result("ours", 100), file)
    file.write_text(file.read_text().replace("HISTF", "HISTX"))
    with pytest.raises(NotAResult, match="HdrHistogram"):
        load(file)


def test_a_plot_of_an_unknown_kind_is_refused(tmp_path: Path):
    with pytest.raises(CannotPlot, match=r"\.png, \.svg or \.html"):
        plot([result("ours", 100)], tmp_path / "plot.gif")
