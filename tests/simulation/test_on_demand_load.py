"""On-demand tables under load, in virtual time: the units accepted in each second."""

from __future__ import annotations

import pytest

from dynactor.model.throttling.on_demand import OnDemandUnits
from tests.support.environment.virtual_load import (
    INDEX_ID,
    Outcome,
    Writes,
    limits,
    offer,
    offer_second,
    on_demand,
    provisioned,
    reasons_of,
    taken_units,
)

# The largest items: 400 units each.
ITEM_UNITS = 400
HALF_HOUR = 30 * 60
KEY_RANGE = "TableWriteKeyRangeThroughputExceeded"
MAXIMUM = "TableWriteMaxOnDemandThroughputExceeded"


def test_a_new_table_takes_4000_units_and_doubles_its_previous_peak_in_half_an_hour():
    """The offered load is always 20,000 units a second, evenly over the partitions."""
    table = limits(on_demand(), 4)
    writes = table.table.writes
    assert isinstance(writes, OnDemandUnits)
    numbers = [0, 1, 2, 3]
    outcomes: list[Outcome] = []
    for second in range(4 * HALF_HOUR):
        outcomes.append(offer_second(table, evenly(numbers), second))
        while len(numbers) < writes.partitions_wanted:
            parent, children = numbers[0], (max(numbers) + 1, max(numbers) + 2)
            table.table.split(parent, children, second)
            numbers = [*numbers[1:], *children]

    halves = [outcomes[at : at + HALF_HOUR] for at in range(0, len(outcomes), HALF_HOUR)]
    means = [sum(taken_units(half)) / HALF_HOUR for half in halves]
    assert means == pytest.approx([4_000, 8_000, 16_000, 20_000], rel=0.005)
    assert reasons_of(outcomes) == {KEY_RANGE}
    assert not reasons_of(halves[3][10:])


def evenly(numbers: list[int]) -> list[Writes]:
    """20,000 units a second over these partitions."""
    return [Writes(number, 50 // len(numbers), ITEM_UNITS) for number in numbers] + [
        Writes(number, 1, ITEM_UNITS) for number in numbers[: 50 % len(numbers)]
    ]


def test_one_partition_of_a_new_table_takes_1000_units_and_saves_nothing():
    table = limits(on_demand(), 4)

    outcomes = offer(table, [Writes(0, 1_200)], range(300, 310))

    assert taken_units(outcomes) == [1_000] * 10
    assert reasons_of(outcomes) == {KEY_RANGE}


def test_a_maximum_bounds_a_table_after_it_has_used_its_savings():
    table = limits(on_demand(max_writes=500), 4)
    load = [Writes(partition, 500) for partition in range(4)]

    outcomes = offer(table, load, range(300, 420))

    assert taken_units(outcomes[:99]) == [2_000] * 99
    assert taken_units(outcomes[101:]) == pytest.approx([500] * 19, abs=1)
    assert reasons_of(outcomes) == {MAXIMUM}


def test_a_new_maximum_takes_effect_at_once():
    outcomes = offer(limits(on_demand(max_writes=500), 4), [Writes(0, 900)], range(10))

    assert sum(taken_units(outcomes)) == pytest.approx(500 + 10 * 500, abs=1)
    assert reasons_of(outcomes) == {MAXIMUM}


def test_a_maximum_of_an_index_refuses_the_tables_writes():
    table = limits(on_demand(), 4, index=(on_demand(max_writes=200), 4))

    outcomes = offer(table, [Writes(0, 900, index_partition=1)], range(10))

    assert sum(taken_units(outcomes)) == pytest.approx(200 + 10 * 200, abs=1)
    assert reasons_of(outcomes) == {"IndexWriteMaxOnDemandThroughputExceeded"}


def test_a_warmed_table_takes_its_warm_throughput_at_once():
    load = [Writes(partition, 10, 100) for partition in range(20)]

    outcomes = offer(limits(on_demand(warm_writes=20_000), 20), load, range(5))

    assert taken_units(outcomes) == [20_000] * 5


def test_the_error_at_the_accounts_quota_names_the_quota():
    load = [Writes(partition, 10, 100) for partition in range(50)]

    outcomes = offer(limits(on_demand(warm_writes=40_000), 50), load, range(5))

    assert taken_units(outcomes) == [40_000] * 5
    assert reasons_of(outcomes) == {"TableWriteAccountLimitExceeded"}


def test_a_table_that_becomes_on_demand_keeps_its_throughput():
    table = limits(provisioned(9_000), 9)
    table.table.change(on_demand(), 100)
    load = [Writes(partition, 10, 100) for partition in range(9)]

    assert taken_units(offer(table, load, range(100, 103))) == [9_000] * 3


def test_a_short_peak_counts_as_the_mean_of_its_minute():
    """6,000 units a second for half a minute: a peak of 3,000, which raises nothing."""
    table = limits(on_demand(warm_writes=6_000), 20)
    load = [Writes(partition, 3, 100) for partition in range(20)]
    offer(table, load, range(30))

    offer(table, load, range(HALF_HOUR, HALF_HOUR + 60))

    assert table.table.writes.units_per_second == 6_000


def test_an_index_of_an_on_demand_table_has_its_own_partitions():
    table = limits(on_demand(), 4, index=(on_demand(), 4))
    load = [Writes(partition, 10, 90, index_partition=2) for partition in range(4)]

    outcomes = offer(table, load, range(5))

    assert taken_units(outcomes) == pytest.approx([1_000] * 5, abs=90)
    assert reasons_of(outcomes) == {"IndexWriteKeyRangeThroughputExceeded"}
    assert table.indexes[INDEX_ID].writes.readings(5)[2].taken_units == pytest.approx(5_000, abs=90)
