"""The units of a table or index: spread over partitions, lent, bounded, divided by a split."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynactor.model.throttling.on_demand import OnDemandRates, OnDemandUnits
from dynactor.model.throttling.provisioned import ProvisionedUnits
from dynactor.model.throttling.refusal import LimitType

PARTITIONS = 4
CEILING = 100
# Seconds since the previous request, its partition and units.
REQUESTS = st.lists(
    st.tuples(st.floats(0, 3), st.integers(0, PARTITIONS - 1), st.integers(1, 150)), max_size=80
)
RATES = st.floats(1, CEILING * PARTITIONS)


def run(units, requests):
    """The taken units, as (time, partition, units)."""
    now = 0.0
    taken = []
    for wait, partition, size in requests:
        now += wait
        if units.refused_by(partition, now) is None:
            units.take(partition, size, now)
            taken.append((now, partition, size))
    return taken


def provisioned(
    rate: float, partitions: int = PARTITIONS, ceiling: float = CEILING
) -> ProvisionedUnits:
    """Units with one second unused."""
    return ProvisionedUnits(rate, ceiling, range(partitions), 0, saved_seconds=1)


def on_demand(least: float = 400, maximum: float | None = None) -> OnDemandUnits:
    return OnDemandUnits(OnDemandRates(least, CEILING, 4_000, maximum), range(PARTITIONS), 0)


def largest(requests) -> int:
    return max((size for _, _, size in requests), default=0)


@given(RATES, REQUESTS)
def test_all_partitions_together_never_take_more_than_came_in(rate, requests):
    """Debts are an exception: each partition may owe the units of its last request."""
    taken = run(provisioned(rate), requests)

    seconds = sum(wait for wait, _, _ in requests)
    came_in = rate * (seconds + 1)
    assert sum(size for *_, size in taken) <= came_in + PARTITIONS * largest(requests) + 1e-6


@given(RATES, REQUESTS)
def test_lending_neither_creates_nor_loses_units(rate, requests):
    units = provisioned(rate)
    taken = run(units, requests)

    seconds = sum(wait for wait, _, _ in requests)
    has = sum(reading.balance_units for reading in units.readings(seconds).values())
    owned = has + units._pool_units
    came_in = rate * (seconds + 1)
    assert owned <= came_in - sum(size for *_, size in taken) + 1e-6
    if seconds < 290:
        assert owned == pytest.approx(came_in - sum(size for *_, size in taken), abs=1e-6)


@given(st.sampled_from([provisioned, on_demand]), RATES, REQUESTS)
def test_no_partition_passes_its_ceiling_but_by_one_request(made, rate, requests):
    taken = run(made(rate), requests)

    by_partition = defaultdict(int)
    for _, partition, size in taken:
        by_partition[partition] += size
    seconds = int(sum(wait for wait, _, _ in requests)) + 1
    assert all(units <= CEILING * seconds + largest(requests) for units in by_partition.values())


@given(RATES, RATES, st.lists(st.floats(0, 0.5), max_size=200))
def test_more_units_accept_no_less_in_one_partition(one, other, waits):
    requests = [(wait, 0, 1) for wait in waits]
    low, high = (len(run(provisioned(rate, 1), requests)) for rate in sorted((one, other)))

    assert high >= low


@given(st.integers(1, 20), REQUESTS)
def test_more_units_accept_no_less_over_partitions_apart_from_one_second(factor, requests):
    """Units lent at one moment may be missing later, and debts differ."""
    rate = 10
    low = sum(size for *_, size in run(provisioned(rate), requests))
    high = sum(size for *_, size in run(provisioned(rate * factor), requests))

    assert high >= low - rate - PARTITIONS * largest(requests)


@given(RATES, REQUESTS, st.integers(0, PARTITIONS - 1))
def test_a_split_creates_no_units(rate, requests, parent):
    units = provisioned(rate)
    run(units, requests)
    now = sum(wait for wait, _, _ in requests)
    before = sum(reading.balance_units for reading in units.readings(now).values())

    units.split(parent, (10, 11), now)

    readings = units.readings(now)
    after = sum(reading.balance_units for reading in readings.values())
    assert after <= before + 1e-6
    assert readings.keys() == {*range(PARTITIONS), 10, 11} - {parent}
    assert sum(reading.units_per_second for reading in readings.values()) == pytest.approx(rate)


def test_a_split_halves_savings_and_debts():
    units = provisioned(400)
    units.take(0, 1_000, 0)
    units.take(1, 20, 0)

    units.split(0, (4, 5), 0)
    units.split(1, (6, 7), 0)

    balances = {number: reading.balance_units for number, reading in units.readings(0).items()}
    assert balances == {2: 100, 3: 100, 4: -450, 5: -450, 6: 40, 7: 40}


@pytest.mark.parametrize("made", [provisioned, on_demand])
def test_the_children_of_a_split_take_twice_the_ceiling_from_the_next_second_on(made):
    units = made(400)
    for _ in range(CEILING):
        units.take(0, 1, 5.0)

    units.split(0, (4, 5), 5.5)

    assert units.refused_by(4, 5.5) is LimitType.KEY_RANGE
    assert units.refused_by(5, 5.9) is LimitType.KEY_RANGE
    assert units.refused_by(4, 6.0) is None
    for child in (4, 5):
        units.take(child, CEILING - 1, 6.0)
    assert units.refused_by(4, 6.0) is None


def test_a_change_of_provisioned_units_is_spread_over_the_partitions():
    units = provisioned(40)
    units.change(80, 10)

    assert {reading.units_per_second for reading in units.readings(10).values()} == {20}
    assert {reading.balance_units for reading in units.readings(11).values()} == {110 + 20}


def test_a_lender_keeps_one_seconds_units():
    units = provisioned(40)
    units.take(0, 10, 0)
    for tenth in range(1, 21):
        if units.refused_by(0, tenth / 10) is None:
            units.take(0, 40, tenth / 10)

    assert all(units.readings(2)[lender].balance_units >= 10 for lender in (1, 2, 3))


def test_a_lender_that_uses_its_share_keeps_its_savings():
    units = provisioned(40, ceiling=10_000)
    before = units.readings(100)[1].balance_units
    units.take(0, 2_000, 100)
    for tenth in range(1_001, 1_101):
        units.take(1, 1, tenth / 10)
        units.refused_by(0, tenth / 10)

    # Allow for the units that were added before the limits noticed the use.
    assert units.readings(110)[1].balance_units >= before - 10


def test_an_idle_table_lends_one_second_of_units():
    """Three others have saved 1,000 units each; one second of them is 30."""
    units = provisioned(40, ceiling=10_000)
    units.take(0, 1_020, 100)

    assert units.refused_by(0, 101) is None

    assert units.readings(101)[0].balance_units == 8
    assert units._pool_units == 30 - 8


def test_the_pool_holds_one_second_of_the_tables_units():
    units = provisioned(40, ceiling=10_000)
    for second in (101, 102, 103):
        # Use up the partition's savings, so that it borrows units, but few of them.
        units.take(0, units.readings(second)[0].balance_units, second)
        units.refused_by(0, second)

    assert units._pool_units == 40 - 8


def test_a_wait_ends_when_a_request_is_admitted():
    units = provisioned(40, 1)
    units.take(0, 100, 0)
    now = 0.0
    while wait := units.wait_seconds(0, now):
        assert units.refused_by(0, now) is not None
        now += wait

    assert now == pytest.approx(1.5, abs=0.11)


def test_a_wait_on_demand_is_until_the_next_second_with_something_left():
    units = on_demand(maximum=50)
    units.take(0, 250, 0)

    # The table's debt is 200, which takes four seconds at its maximum of 50 units a second.
    assert units.wait_seconds(0, 0) == 4
    assert units.wait_seconds(1, 4.5) == 0


def test_a_peak_is_previous_after_half_an_hour():
    units = on_demand(100)
    for second in range(60):
        for partition in range(PARTITIONS):
            units.take(partition, 25, second)
    units.refused_by(0, 60)
    rates = []
    for second in (60, 1_799, 1_800, 10_000_000):
        units.refused_by(0, second)
        rates.append(units.units_per_second)

    assert rates == [100, 100, 200, 200]


def test_the_use_of_a_past_minute_is_settled_on_access():
    units = on_demand(100)
    for second in range(60):
        units.take(0, 90, second)
    units.refused_by(0, 100_000)

    assert units.units_per_second == 180
    assert units.previous_peak == 90
    assert units.partitions_wanted == 2


def test_on_demand_counts_refusals_by_reason():
    units = on_demand()
    units.refused(0, LimitType.KEY_RANGE)
    units.refused(0, LimitType.MAX_ON_DEMAND)

    reading = units.readings(0)[0]

    assert (reading.refusals, reading.ceiling_refusals) == (2, 1)


def test_a_table_that_grows_too_fast_gives_its_partitions_no_reason_to_split():
    units = on_demand(50)
    units.take(0, 60, 0)

    limit = units.refused_by(1, 0)

    assert limit is LimitType.GROWTH
    units.refused(1, limit)
    assert units.readings(0)[1].ceiling_refusals == 0


def test_fewer_provisioned_units_leave_no_more_in_the_pool_than_a_seconds():
    units = provisioned(40)
    units.take(0, 30, 0)
    assert units.refused_by(0, 1) is None
    assert units._pool_units == 12

    units.change(4, 1)

    assert units._pool_units == 4


def test_growth_ends_at_the_quota():
    units = OnDemandUnits(OnDemandRates(100, CEILING, 150), range(PARTITIONS), 0)
    for second in range(60):
        units.take(0, 90, second)
    units.refused_by(0, 1_800)

    assert units.units_per_second == 150


def test_a_minute_after_a_long_rest_is_measured_as_any_other():
    units = on_demand(100)
    units.refused_by(0, 100_000.5)
    for second in range(100_020, 100_080):
        units.take(0, 90, second)
        units.refused_by(0, second)
    units.refused_by(0, 200_000)

    assert units.units_per_second == 180


@pytest.mark.parametrize("made", [lambda: provisioned(400), lambda: on_demand(maximum=200)])
@given(requests=REQUESTS)
def test_units_returned_at_once_were_never_taken(made, requests):
    units, others = made(), made()
    now = 0.0
    for number, (wait, partition, size) in enumerate(requests):
        now += wait
        assert units.refused_by(partition, now) is others.refused_by(partition, now)
        units.take(partition, size, now)
        if number % 2:
            units.give_back(partition, size, now)
        else:
            others.take(partition, size, now)

    readings, of_others = units.readings(now), others.readings(now)
    assert [round(each.taken_units, 6) for each in readings.values()] == [
        round(each.taken_units, 6) for each in of_others.values()
    ]
    assert [round(each.balance_units or 0, 6) for each in readings.values()] == [
        round(each.balance_units or 0, 6) for each in of_others.values()
    ]


@pytest.mark.parametrize("made", [lambda: provisioned(400), on_demand])
def test_no_units_are_returned_to_a_partition_that_was_split_meanwhile(made):
    units = made()
    units.take(0, 50, 0)
    units.split(0, (4, 5), 0)

    units.give_back(0, 50, 0)

    assert {number: each.taken_units for number, each in units.readings(0).items()} == {
        1: 0,
        2: 0,
        3: 0,
        4: 0,
        5: 0,
    }


@pytest.mark.parametrize(
    "made",
    [
        lambda: provisioned(400),
        lambda: provisioned(40),
        on_demand,
        lambda: on_demand(150),
        lambda: on_demand(maximum=200),
    ],
)
@given(requests=REQUESTS)
def test_admitting_and_taking_in_one_step_equals_both_in_sequence(made, requests):
    units, others = made(), made()
    now = 0.0
    for wait, partition, size in requests:
        now += wait
        limit = others.refused_by(partition, now)
        if limit is None:
            others.take(partition, size, now)
        assert units.serve(partition, size, now) is limit
        assert units.readings(now) == others.readings(now)
        assert units.units_per_second == others.units_per_second
