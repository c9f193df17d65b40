"""A limit on units per second: each request delays the next one."""

from __future__ import annotations

import pytest

from dynactor.model.throttling.steady_rate import SteadyRate


def test_a_request_waits_until_earlier_units_are_within_the_rate() -> None:
    rate = SteadyRate(10)
    assert rate.take(5, 100.0) == 0.0
    assert rate.free_at_seconds == 100.5
    # A concurrent segment sends the second request at the same time, so it waits for both.
    assert rate.take(20, 100.0) == 0.5
    assert rate.free_at_seconds == 102.5


def test_unused_units_are_not_saved() -> None:
    rate = SteadyRate(10)
    rate.take(5, 100.0)
    assert rate.take(10, 200.0) == 0.0
    assert rate.free_at_seconds == 201.0


def test_a_caller_that_was_delayed_may_catch_up_for_a_limited_time() -> None:
    rate = SteadyRate(10, most_behind_seconds=0.5)
    rate.take(1, 100.0)
    waits = [rate.take(1, 200.0) for _ in range(8)]
    assert waits == pytest.approx([0, 0, 0, 0, 0, 0, 0.1, 0.2])
