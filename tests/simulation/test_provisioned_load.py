"""Provisioned tables under load, in virtual time: the units accepted in each second."""

from __future__ import annotations

import pytest

from tests.support.environment.virtual_load import (
    Writes,
    limits,
    offer,
    offer_second,
    on_demand,
    provisioned,
    reasons_of,
    taken_units,
)

# The units that a partition saves in 300 seconds.
IDLE = 300
PROVISIONED = "TableWriteProvisionedThroughputExceeded"
KEY_RANGE = "TableWriteKeyRangeThroughputExceeded"


def test_an_idle_partition_takes_its_ceiling_until_its_savings_are_used():
    """30,000 units were saved, and 900 a second are used of them: 33.3 seconds."""
    table = limits(provisioned(100), 1)

    outcomes = offer(table, [Writes(0, 1_200)], range(IDLE, IDLE + 60))

    assert taken_units(outcomes[:33]) == [1_000] * 33
    assert outcomes[33].units == pytest.approx(400, abs=1)
    assert taken_units(outcomes[34:]) == pytest.approx([100] * 26, abs=1)
    assert reasons_of(outcomes[:33]) == {KEY_RANGE}
    assert reasons_of(outcomes[34:]) == {PROVISIONED}


def test_a_partition_saves_no_more_than_300_seconds_of_units():
    table = limits(provisioned(100), 1)

    outcomes = offer(table, [Writes(0, 1_200)], range(10 * IDLE, 10 * IDLE + 60))

    assert sum(taken_units(outcomes)) == pytest.approx(30_000 + 60 * 100, abs=2)


def test_a_new_table_has_300_seconds_of_units_and_then_takes_new_ones():
    """30,000 units: the first 33 seconds use 900 each in addition to new ones."""
    outcomes = offer(limits(provisioned(100), 1), [Writes(0, 1_200)], range(60))

    assert taken_units(outcomes[:33]) == [1_000] * 33
    assert sum(taken_units(outcomes)) == pytest.approx(30_000 + 60 * 100, abs=2)
    assert reasons_of(outcomes[34:]) == {PROVISIONED}


def test_a_new_table_of_5_units_accepts_its_initial_units_of_2000_writes():
    """1,500 are saved: they last while requests are faster than five a second."""
    outcomes = offer(limits(provisioned(5), 1), [Writes(0, 200)], range(20))

    assert taken_units(outcomes[:7]) == [200] * 7
    assert sum(taken_units(outcomes)) == pytest.approx(1_500 + 20 * 5, abs=2)
    assert taken_units(outcomes[8:]) == pytest.approx([5] * 12, abs=1)


def test_a_busy_partition_uses_its_savings_and_then_the_unused_units_of_others():
    table = limits(provisioned(400), 4)

    outcomes = offer(table, [Writes(0, 1_200)], range(IDLE, IDLE + 120))

    assert taken_units(outcomes[:33]) == [1_000] * 33
    assert taken_units(outcomes[35:]) == pytest.approx([400] * 85, abs=31)
    assert sum(taken_units(outcomes[35:])) == pytest.approx(85 * 400, abs=31)
    assert reasons_of(outcomes[35:]) == {PROVISIONED}


def test_lending_does_not_reduce_the_savings_of_the_lenders():
    table = limits(provisioned(400), 4)
    offer(table, [Writes(0, 1_200)], range(IDLE, IDLE + 120))

    outcomes = offer(table, [Writes(1, 1_200)], range(IDLE + 120, IDLE + 180))

    assert taken_units(outcomes[:33]) == [1_000] * 33


def test_a_partition_that_others_borrow_from_keeps_its_own_share():
    """Load on partition 0 exceeds all units; the load on the others equals their shares."""
    load = [Writes(0, 1_200), *(Writes(other, 100) for other in (1, 2, 3))]

    outcomes = offer(limits(provisioned(400), 4, saved_seconds=1), load, range(60))

    assert all(outcome.accepted[1:] == pytest.approx([100] * 3, abs=1) for outcome in outcomes[1:])
    assert sum(outcome.accepted[0] for outcome in outcomes[2:]) == pytest.approx(58 * 100, abs=2)


def test_two_busy_partitions_share_the_unused_units_of_others():
    load = [Writes(0, 1_000), Writes(1, 1_000)]

    outcomes = offer(limits(provisioned(400), 4, saved_seconds=1), load, range(60))

    first, second = (sum(outcome.accepted[client] for outcome in outcomes) for client in (0, 1))
    assert first + second == pytest.approx(60 * 400 + 400, rel=0.02)
    assert first == pytest.approx(second, rel=0.05)


def test_lending_ends_at_the_ceiling_of_a_partition():
    table = limits(provisioned(4_000), 8, saved_seconds=1)

    outcomes = offer(table, [Writes(0, 2_000)], range(30))

    assert taken_units(outcomes) == [1_000] * 30
    assert reasons_of(outcomes) == {KEY_RANGE}


def test_constant_load_at_the_provisioned_rate_is_always_accepted():
    load = [Writes(partition, 100) for partition in range(4)]

    outcomes = offer(limits(provisioned(400), 4, saved_seconds=1), load, range(400))

    assert taken_units(outcomes) == [400] * 400


def test_bursts_are_accepted_where_their_mean_is_provisioned():
    """600 a second for 10 seconds of each minute: a mean of 100."""
    table = limits(provisioned(100), 1)
    outcomes = []
    for minute in range(5, 15):
        outcomes += offer(table, [Writes(0, 600)], range(minute * 60, minute * 60 + 10))

    assert taken_units(outcomes) == [600] * 100


def test_bursts_above_the_mean_use_exactly_the_savings():
    """900 a second for 10 seconds of each minute: a mean of 150 for 100 units."""
    table = limits(provisioned(100), 1)
    taken = []
    for minute in range(5, 35):
        outcomes = offer(table, [Writes(0, 900)], range(minute * 60, minute * 60 + 10))
        taken.append(sum(taken_units(outcomes)))

    assert taken[:7] == [9_000] * 7
    assert taken[-10:] == pytest.approx([6_000] * 10, abs=2)


def test_skewed_load_within_the_tables_units_is_accepted_with_nothing_saved():
    """70 % on one of four partitions: 280 of 400, with a share of 100."""
    load = [Writes(0, 280), *(Writes(other, 40) for other in (1, 2, 3))]

    outcomes = offer(limits(provisioned(400), 4, saved_seconds=1), load, range(60))

    assert taken_units(outcomes[3:]) == [400] * 57


def test_growing_load_is_accepted_up_to_the_provisioned_and_saved_units():
    """From 40 to 1,200 units a second over four partitions, in five minutes."""
    table = limits(provisioned(400), 4, saved_seconds=1)
    offered, accepted = [], []
    for second in range(300):
        each = 10 + second
        load = [Writes(partition, each) for partition in range(4)]
        offered.append(4 * each)
        accepted.append(offer_second(table, load, second).units)

    # 90 seconds below 100 leave 4,195 units in each partition, including the initial 100.
    used_up = next(at for at, units in enumerate(accepted) if units < offered[at])
    assert accepted[:used_up] == offered[:used_up]
    assert used_up == 182
    assert accepted[used_up + 1 :] == pytest.approx([400] * (300 - used_up - 1), abs=4)


def test_a_new_index_has_300_seconds_of_units_of_its_own():
    table = limits(provisioned(1_000), 2, index=(provisioned(2), 1))

    outcomes = offer(table, [Writes(0, 100, index_partition=0)], range(20))

    assert taken_units(outcomes[:6]) == [100] * 6
    assert sum(taken_units(outcomes)) == pytest.approx(600 + 20 * 2, abs=2)
    assert reasons_of(outcomes) == {"IndexWriteProvisionedThroughputExceeded"}


def test_a_table_that_becomes_provisioned_has_300_seconds_of_units():
    table = limits(on_demand(), 1)
    table.table.change(provisioned(5), 50)

    outcomes = offer(table, [Writes(0, 200)], range(50, 70))

    assert sum(taken_units(outcomes)) == pytest.approx(1_500 + 20 * 5, abs=2)


def test_an_index_with_fewer_units_slows_the_table_down():
    """S102: the table's writes are refused because of the index."""
    table = limits(provisioned(1_000), 2, index=(provisioned(200), 1), saved_seconds=1)
    load = [Writes(partition, 400, index_partition=0) for partition in (0, 1)]

    outcomes = offer(table, load, range(60))

    assert sum(taken_units(outcomes)) == pytest.approx(60 * 200 + 200, abs=2)
    assert reasons_of(outcomes) == {"IndexWriteProvisionedThroughputExceeded"}


def test_writes_that_an_index_refuses_take_nothing_of_the_table():
    table = limits(provisioned(1_000), 1, index=(provisioned(200), 1), saved_seconds=1)
    offer(table, [Writes(0, 900, index_partition=0)], range(30))

    (reading,) = table.table.writes.readings(30.0).values()

    assert reading.taken_units == pytest.approx(30 * 200 + 200, abs=2)
