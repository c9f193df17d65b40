"""Histograms of durations."""

from __future__ import annotations

from itertools import pairwise

import pytest

from dynactor.model.latency_histogram import LatencyHistogram


def test_each_duration_is_below_its_bound_and_not_below_the_one_before() -> None:
    for nanoseconds in (1, 32_767, 32_768, 10**6, 10**9, 5 * 10**9):
        histogram = LatencyHistogram()
        histogram.observe(nanoseconds)
        assert histogram.count == 1
        for bound_seconds, count in histogram.cumulative():
            assert count == (nanoseconds < round(bound_seconds * 1e9))


def test_durations_beyond_the_first_and_last_bounds_are_counted() -> None:
    histogram = LatencyHistogram()
    histogram.observe(0)
    histogram.observe(10**15)
    counts = [count for _, count in histogram.cumulative()]
    assert set(counts) == {1}
    assert histogram.count == 2
    assert histogram.total_nanoseconds == 10**15


def test_equal_durations_are_counted_in_one_step() -> None:
    together, apart = LatencyHistogram(), LatencyHistogram()
    together.observe(50_000, 3)
    for _ in range(3):
        apart.observe(50_000)
    assert list(together.cumulative()) == list(apart.cumulative())
    assert together.total_nanoseconds == apart.total_nanoseconds


def test_bounds_double_from_33_microseconds_to_69_seconds() -> None:
    bounds = [bound for bound, _ in LatencyHistogram().cumulative()]
    assert bounds[0] == pytest.approx(33e-6, rel=0.01)
    assert bounds[-1] == pytest.approx(68.7, rel=0.01)
    assert all(after == 2 * before for before, after in pairwise(bounds))
