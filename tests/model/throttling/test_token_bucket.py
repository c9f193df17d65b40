"""Token buckets and limits per second: admitted requests, saved units, debts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynactor.model.throttling.ceiling import Ceiling
from dynactor.model.throttling.token_bucket import TokenBucket

RATES = st.floats(0.1, 2_000)
# The time since the previous request, in seconds, and the units of the request.
ARRIVALS = st.lists(st.tuples(st.floats(0, 50), st.integers(1, 400)), max_size=60)


def accepted_units(bucket: TokenBucket, arrivals: list[tuple[float, int]]) -> list[int]:
    """The units that each request got, or 0."""
    now = 0.0
    accepted = []
    for wait, units in arrivals:
        now += wait
        if bucket.fill(now) > 0:
            bucket.take(units, now)
            accepted.append(units)
        else:
            accepted.append(0)
    return accepted


def empty_but_for_a_second(units_per_second: float) -> TokenBucket:
    return TokenBucket(units_per_second, 0, saved_seconds=1)


def test_a_new_bucket_holds_300_seconds():
    assert TokenBucket(100, 7).fill(7) == 30_000


def test_a_bucket_saves_300_seconds_and_no_more():
    bucket = empty_but_for_a_second(100)

    assert [bucket.fill(100), bucket.fill(299), bucket.fill(10_000)] == [10_100, 30_000, 30_000]


def test_a_request_larger_than_the_balance_is_admitted_and_owed():
    bucket = empty_but_for_a_second(1)
    bucket.take(400, 0)

    assert bucket.fill(0) == -399
    assert bucket.wait_seconds(100) == 299
    assert bucket.fill(400) > 0


def test_units_taken_from_a_full_bucket_are_not_restored_by_earlier_time():
    bucket = TokenBucket(100, 0)
    bucket.fill(300)
    bucket.take(500, 600)

    assert bucket.fill(600) == 29_500


def test_raising_the_rate_keeps_saved_units():
    bucket = TokenBucket(100, 0)
    bucket.change_rate(200, 300)

    assert bucket.fill(300) == 30_000
    assert bucket.fill(301) == 30_200


def test_lowering_the_rate_keeps_what_still_fits():
    bucket = TokenBucket(100, 0)
    bucket.change_rate(10, 300)

    assert bucket.fill(300) == 3_000


@given(RATES, ARRIVALS)
def test_a_bucket_never_gives_more_than_came_in_and_one_request(rate, arrivals):
    accepted = accepted_units(empty_but_for_a_second(rate), arrivals)

    seconds = sum(wait for wait, _ in arrivals)
    most = max((units for _, units in arrivals), default=0)
    assert sum(accepted) <= rate * (seconds + 1) + most + 1e-6


@given(RATES, ARRIVALS)
def test_the_units_taken_and_left_equal_those_that_came_in(rate, arrivals):
    bucket = empty_but_for_a_second(rate)
    accepted = accepted_units(bucket, arrivals)

    seconds = sum(wait for wait, _ in arrivals)
    came_in = rate * (seconds + 1)
    if came_in <= 300 * rate:
        assert bucket.fill(seconds) == pytest.approx(came_in - sum(accepted), abs=1e-6)
    else:
        assert bucket.fill(seconds) <= came_in - sum(accepted) + 1e-6


@given(RATES, RATES, ARRIVALS)
def test_a_higher_rate_accepts_no_less_apart_from_one_request(one, other, arrivals):
    low, high = (accepted_units(TokenBucket(rate, 0), arrivals) for rate in sorted((one, other)))

    assert sum(high) >= sum(low) - max((units for _, units in arrivals), default=0)


@given(RATES, RATES, st.lists(st.floats(0, 5), max_size=100))
def test_a_higher_rate_gives_no_less_of_single_units(one, other, waits):
    arrivals = [(wait, 1) for wait in waits]
    low, high = (
        sum(accepted_units(TokenBucket(rate, 0), arrivals)) for rate in sorted((one, other))
    )

    assert high >= low


def test_a_ceiling_allows_its_units_at_any_time_of_each_second():
    ceiling = Ceiling(1_000, 0)
    for _ in range(1_000):
        assert not ceiling.is_reached(0.5)
        ceiling.take(1, 0.5)

    assert ceiling.is_reached(0.5)
    assert ceiling.is_reached(0.999)
    assert not ceiling.is_reached(1.0)


def test_a_ceiling_saves_nothing():
    ceiling = Ceiling(1_000, 0)
    ceiling.take(1_000, 500)

    assert ceiling.is_reached(500.9)


@pytest.mark.parametrize(
    ("units", "wait_seconds"), [(0, 0), (999, 0), (1_000, 0.75), (1_999, 0.75), (2_000, 1.75)]
)
def test_units_above_a_ceiling_are_taken_from_the_next_seconds(units, wait_seconds):
    ceiling = Ceiling(1_000, 7)
    ceiling.take(units, 7.25)

    assert ceiling.wait_seconds(7.25) == wait_seconds
    assert wait_seconds == 0 or ceiling.is_reached(7.2 + wait_seconds)
    assert not ceiling.is_reached(7.25 + wait_seconds)


@given(ARRIVALS)
def test_a_ceiling_is_passed_by_one_request_at_most(arrivals):
    ceiling = Ceiling(100, 0)
    now, taken = 0.0, 0
    for wait, units in arrivals:
        now += wait
        if not ceiling.is_reached(now):
            ceiling.take(units, now)
            taken += units

    most = max((units for _, units in arrivals), default=0)
    assert taken <= 100 * (int(now) + 1) + most


def test_units_returned_to_a_bucket_are_available_up_to_its_maximum():
    bucket = empty_but_for_a_second(10)
    bucket.take(25, 0)
    bucket.give_back(25, 0)
    assert bucket.fill(0) == 10

    bucket.take(25, 1_000)
    bucket.give_back(25, 1_001)

    assert bucket.fill(1_001) == 3_000


def test_units_returned_to_a_ceiling_are_available_in_the_same_second():
    ceiling = Ceiling(100, 0)
    ceiling.take(100, 0.1)

    ceiling.give_back(30, 0.9)

    assert not ceiling.is_reached(0.9)
    ceiling.take(30, 0.9)
    assert ceiling.is_reached(0.9)


def test_units_of_an_earlier_second_are_not_returned_to_a_ceiling():
    ceiling = Ceiling(100, 0)
    ceiling.take(100, 0.1)

    ceiling.give_back(100, 1.1)

    ceiling.take(100, 1.2)
    assert ceiling.is_reached(1.2)
