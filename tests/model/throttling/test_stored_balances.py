"""The stored balances, and a partition's balance after a stop and after a crash."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynactor.model.throttling.burst_balance import Balance, StoredBalances
from dynactor.model.throttling.resource import ResourceLimits, ResourceThroughput
from tests.support.environment.virtual_load import TABLE_ARN, on_demand, provisioned

RATE = 5
FULL = 300 * RATE
# The maximum cost of a crash for a partition in use: the units of five seconds.
RESERVE = 5 * RATE


class Disk:
    """A fake store of balances; ``start`` makes limits from them, as a starting server does."""

    def __init__(self, throughput: ResourceThroughput, partitions: int = 1) -> None:
        self.stored: dict[int, Balance] = {}
        self.stores = 0
        self._throughput = throughput
        self._partitions = range(partitions)
        self.limits = self.start(0)

    def start(self, now: float, stopped_at: float | None = None) -> ResourceLimits:
        """Start after an orderly stop, or after a crash."""
        as_of = now if stopped_at is None else stopped_at
        self.limits = ResourceLimits(
            TABLE_ARN,
            self._throughput,
            self._partitions,
            now,
            stored=StoredBalances(as_of, dict(self.stored)) if self.stored else None,
        )
        self.limits.set_on_due(lambda: None)
        for number in list(self.stored):
            self.store(number, now)
        return self.limits

    def store_due(self, now: float) -> None:
        """Store the partitions that are due."""
        while due := self.limits.take_due():
            for number in due:
                self.store(number, now)

    def store(self, number: int, now: float, *, is_last: bool = False) -> None:
        balance = self.limits.balance_to_store(number, now, is_last=is_last)
        self.stored.pop(number, None)
        if balance is not None:
            self.stored[number] = balance
        self.stores += 1
        self.limits.note_stored(number, balance)

    def stop(self, now: float) -> None:
        for number in self.limits.partitions:
            self.store(number, now, is_last=True)

    def write(self, units: float, now: float, number: int = 0) -> bool:
        """Do one write and the stores it requires; returns whether the write was accepted."""
        is_accepted = self.limits.writes.serve(number, units, now) is None
        self.store_due(now)
        return is_accepted

    def writes_until_refused(self, now: float, units: float = 1) -> int:
        count = 0
        while self.write(units, now):
            count += 1
        return count


def balance_of(limits: ResourceLimits, now: float, number: int = 0) -> float:
    units = limits.writes.readings(now)[number].balance_units
    assert units is not None
    return units


def test_a_full_partition_has_nothing_stored():
    disk = Disk(provisioned(RATE))

    disk.stop(100)

    assert disk.stored == {}
    assert balance_of(disk.start(100), 100) == FULL


def test_units_left_at_an_orderly_stop_are_there_at_the_next_start():
    disk = Disk(provisioned(RATE))
    disk.write(1_000, 0)
    disk.stop(0)

    assert disk.stored[0].write_units == FULL - 1_000
    assert balance_of(disk.start(0, stopped_at=0), 0) == FULL - 1_000


@pytest.mark.parametrize(("seconds", "expected"), [(10, 550), (200, 1_500), (9_000, 1_500)])
def test_after_an_orderly_stop_time_adds_units_up_to_those_of_300_seconds(seconds, expected):
    disk = Disk(provisioned(RATE))
    disk.write(1_000, 0)
    disk.stop(0)

    assert balance_of(disk.start(seconds, stopped_at=0), seconds) == expected


def test_after_a_crash_the_stored_balance_is_used_at_any_time():
    disk = Disk(provisioned(RATE))
    disk.write(1_000, 0)

    assert balance_of(disk.start(9_000), 9_000) == FULL - 1_000 - RESERVE


def test_the_balance_of_an_unused_partition_is_stored_without_a_reserve():
    disk = Disk(provisioned(RATE))
    disk.write(1_000, 0)
    disk.store(0, 10)

    assert disk.stored[0].write_units == FULL - 1_000 + 10 * RATE


def test_a_start_stores_balances_less_their_reserve_before_requests_come():
    """Units used right after a start do not return after the next crash."""
    disk = Disk(provisioned(RATE))
    disk.write(500, 0)
    disk.stop(0)
    for crash in range(1, 4):
        limits = disk.start(100)
        assert balance_of(limits, 100) == FULL - 500 - (crash - 1) * RESERVE

    disk.store(0, 110)

    assert disk.stored[0].write_units == FULL - 500 - 2 * RESERVE + 10 * RATE


@pytest.mark.parametrize(
    ("units_per_second", "reserve"),
    [(1_000, 5_000), (5, 25), (2, 20), (1, 20), (0.5, 15)],
)
def test_the_reserve_is_of_five_seconds_or_of_20_ms_at_the_ceiling(units_per_second, reserve):
    disk = Disk(provisioned(units_per_second))
    disk.write(1, 0)

    assert disk.stored[0].write_units == 300 * units_per_second - 1 - reserve


def test_a_burst_stores_once_for_the_units_of_five_seconds():
    disk = Disk(provisioned(RATE))

    assert disk.writes_until_refused(0) == 1_000, "the ceiling of a second"
    assert 1_000 / RESERVE - 1 <= disk.stores <= 1_000 / RESERVE + 1


def test_load_within_the_units_stores_once():
    disk = Disk(provisioned(RATE))
    disk.write(1_000, 0)
    disk.stores = 0
    for tenth in range(600):
        if tenth % 2 == 0:
            assert disk.write(1, 100 + tenth / 10)

    assert disk.stores == 0


def test_a_partition_is_due_once_until_it_is_stored():
    disk = Disk(provisioned(RATE))
    told = []
    disk.limits.set_on_due(lambda: told.append(None))
    for _ in range(9):
        disk.limits.writes.take(0, 100, 0)

    assert len(told) == 1
    assert disk.limits.take_due() == {0}
    assert disk.limits.take_due() == set()


def test_a_balance_that_falls_while_it_is_being_stored_is_due_again():
    disk = Disk(provisioned(RATE))
    disk.limits.writes.take(0, 100, 0)
    disk.limits.take_due()
    balance = disk.limits.balance_to_store(0, 0)
    disk.limits.writes.take(0, 100, 0)

    disk.limits.note_stored(0, balance)

    assert disk.limits.take_due() == {0}


def test_reads_and_writes_are_stored_side_by_side():
    disk = Disk(provisioned(RATE, read_units=10))
    disk.limits.reads.take(0, 500, 0)
    disk.stop(0)

    assert disk.stored == {0: Balance(2_500, FULL)}

    limits = disk.start(0, stopped_at=0)

    assert limits.reads.readings(0)[0].balance_units == 2_500
    assert balance_of(limits, 0) == FULL


def test_a_debt_outlives_a_crash():
    disk = Disk(provisioned(RATE))
    disk.write(FULL - 1, 0)
    disk.write(400, 2)

    assert balance_of(disk.start(2), 2) == 11 - 400 - RESERVE


def test_on_demand_nothing_is_stored():
    disk = Disk(on_demand(max_writes=5))
    disk.write(100, 0)
    disk.stop(0)

    assert disk.stored == {}
    assert disk.limits.balances_of_children(0, (1, 2), 0) == {}


def test_stored_balances_of_a_resource_that_became_on_demand_are_ignored():
    disk = Disk(on_demand())
    disk.stored[0] = Balance(-1_000, -1_000)

    assert disk.start(0).writes.refused_by(0, 0) is None


def test_a_stored_balance_is_bounded_by_300_seconds_of_lower_units():
    disk = Disk(provisioned(RATE))
    disk.stored[0] = Balance(100_000, 100_000)

    assert balance_of(disk.start(0), 0) == FULL


def test_a_full_partition_is_stored_with_the_units_that_are_raised():
    """A full partition has no stored balance, and would be full at the new rate after a crash."""
    disk = Disk(provisioned(RATE))
    assert provisioned(RATE, 1).is_raised_to(provisioned(100, 1))
    disk.stored = disk.limits.balances(0)
    raised = disk._throughput = provisioned(100)

    disk.limits.change(raised, 0)

    assert balance_of(disk.limits, 0) == FULL
    assert disk.limits.take_due() == {0}
    assert balance_of(disk.start(0), 0) == FULL


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (provisioned(5, 5), provisioned(5, 5)),
        (provisioned(5, 5), provisioned(4, 1)),
        (provisioned(5), on_demand()),
        (on_demand(), provisioned(5)),
    ],
)
def test_only_an_increase_of_provisioned_units_stores_full_partitions(one, other):
    assert not one.is_raised_to(other)


def test_lower_units_bound_the_balance_and_the_stored_one():
    disk = Disk(provisioned(RATE))
    disk.write(500, 0)

    disk.limits.change(provisioned(1), 0)

    assert balance_of(disk.limits, 0) == 300
    disk._throughput = provisioned(1)
    assert balance_of(disk.start(0), 0) == 300


def test_children_share_the_stored_balance_of_their_parent():
    disk = Disk(provisioned(RATE), partitions=2)
    disk.write(300, 0, number=1)
    stored = disk.limits.balances_of_children(1, (2, 3), 0)
    disk.limits.split(1, (2, 3), 0)

    # The parent had 450 of 750 units left.
    assert {number: each.write_units for number, each in stored.items()} == {2: 225, 3: 225}
    assert disk.limits.take_due() == {2, 3}
    assert disk.limits.balance_to_store(1, 0) is None


def test_a_partition_that_was_split_while_it_was_being_stored_is_ignored():
    disk = Disk(provisioned(RATE))
    disk.limits.writes.take(0, 100, 0)
    disk.limits.take_due()
    balance = disk.limits.balance_to_store(0, 0)
    disk.limits.split(0, (1, 2), 0)

    disk.limits.note_stored(0, balance)

    assert disk.limits.partitions == {1, 2}


def test_a_full_partition_that_lends_is_stored_lower():
    disk = Disk(provisioned(40), partitions=4)
    for tenth in range(100):
        disk.write(100, tenth / 10)

    lenders = [disk.stored.get(number) for number in (1, 2, 3)]
    assert all(each is not None and each.write_units < 3_000 for each in lenders)


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.floats(0, 20), st.integers(0, 3), st.integers(1, 300)),
        st.tuples(st.floats(0, 20), st.sampled_from(["crash", "stop"]), st.just(0)),
    ),
    max_size=80,
)


@given(EVENTS)
def test_no_order_of_crashes_and_stops_earns_units(events):
    """The accepted units never exceed the initial units, those added over time, and debts."""
    disk = Disk(provisioned(40), partitions=4)
    now = 0.0
    accepted, largest = 0, 0
    for wait, what, units in events:
        now += wait
        if what == "stop":
            disk.stop(now)
            disk.start(now + 1, stopped_at=now)
            now += 1
        elif what == "crash":
            disk.start(now)
        else:
            largest = max(largest, units)
            accepted += units * disk.write(units, now, number=what)

    assert accepted <= 40 * (300 + now) + 4 * largest + 1e-6


@given(st.lists(st.floats(0, 3), max_size=60), st.integers(0, 59))
def test_a_crash_costs_at_most_the_reserve_and_later_units(waits, crash_at):
    disk = Disk(provisioned(RATE))
    now, stored_at = 0.0, 0.0
    for at, wait in enumerate(waits):
        now += wait
        before = disk.stores
        disk.write(20, now)
        if disk.stores > before:
            stored_at = now
        if at == crash_at:
            break
    before_crash = balance_of(disk.limits, now)

    after_crash = balance_of(disk.start(now), now)

    assert after_crash <= before_crash + 1e-6
    assert after_crash >= before_crash - RESERVE - RATE * (now - stored_at) - 1e-6
