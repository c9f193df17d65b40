"""The limits of a table and its indexes: all or nothing, three modes, texts of refusals."""

from __future__ import annotations

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynactor.model.errors import (
    ProvisionedThroughputExceededException,
    RequestLimitExceeded,
    ThrottlingException,
    ThrottlingReason,
)
from dynactor.model.throttling.refusal import LimitType, refusal
from dynactor.model.throttling.table_limits import IndexWrite, TableLimits
from tests.support.environment.virtual_load import (
    INDEX_ARN,
    INDEX_ID,
    TABLE_ARN,
    limits,
    on_demand,
    provisioned,
    receipt,
)

NOTHING: tuple[IndexWrite, ...] = ()


def nearly_used(*arguments, **members) -> TableLimits:
    """Limits with one second of units."""
    return limits(*arguments, saved_seconds=1, **members)


def with_index(table_units: int = 100, index_units: int = 100, mode="enforce") -> TableLimits:
    index = provisioned(index_units), 2
    return nearly_used(provisioned(table_units), 1, index=index, mode=mode)


def balances(table: TableLimits, now: float) -> list[float | None]:
    return [
        reading.balance_units
        for resource in (table.table, *table.indexes.values())
        for units in (resource.reads, resource.writes)
        for reading in units.readings(now).values()
    ]


def taken(table: TableLimits) -> tuple[float, dict[int, float]]:
    of_index = table.indexes[INDEX_ID].writes.readings(0)
    return table.table.writes.readings(0)[0].taken_units, {
        number: reading.taken_units for number, reading in of_index.items()
    }


def test_a_write_takes_units_of_its_table_and_of_each_index_it_touches():
    table = with_index()

    table.take_write(0, receipt(3, global_units=2), [IndexWrite(INDEX_ID, 1, 2)], 0)

    assert taken(table) == (3, {0: 0, 1: 2})


def test_an_entry_that_moves_takes_units_of_both_its_partitions():
    table = with_index()
    writes = [IndexWrite(INDEX_ID, 0, 1), IndexWrite(INDEX_ID, 1, 2)]

    table.take_write(0, receipt(3, global_units=3), writes, 0)

    assert taken(table) == (3, {0: 1, 1: 2})


def test_local_indexes_take_units_of_their_table():
    """S49: a write takes three units for the item and two for its entry."""
    table = with_index()

    table.take_write(0, receipt(3, local_units=2), NOTHING, 0)

    assert taken(table) == (5, {0: 0, 1: 0})


def test_an_index_without_units_refuses_the_tables_write():
    """S102, S110."""
    table = with_index(index_units=10)
    write = (0, receipt(5, global_units=5), [IndexWrite(INDEX_ID, 0, 5)], 0.0)
    assert table.take_write(*write) is None

    before = balances(table, 0)
    refused = table.take_write(*write)

    assert refused is not None
    assert refused.reasons == (
        ThrottlingReason("IndexWriteProvisionedThroughputExceeded", INDEX_ARN),
    )
    assert balances(table, 0) == before
    assert taken(table) == (5, {0: 5, 1: 0})


@pytest.mark.parametrize("used", [0, 1, 2])
def test_each_of_several_indexes_refuses_the_tables_write(used: int):
    table = with_index(index_units=10)
    for index_id in range(INDEX_ID + 1, INDEX_ID + 3):
        table.indexes[index_id] = with_index(index_units=10).indexes[INDEX_ID]
    index_ids = list(table.indexes)
    filled = [IndexWrite(index_ids[used], 0, 10)]
    assert table.take_write(0, receipt(1, global_units=10), filled, 0) is None
    before = balances(table, 0)

    writes = [IndexWrite(index_id, 0, 1) for index_id in index_ids]
    refused = table.take_write(0, receipt(1, global_units=3), writes, 0)

    assert refused is not None
    assert [each.reason for each in refused.reasons] == ["IndexWriteProvisionedThroughputExceeded"]
    assert balances(table, 0) == before


def test_the_other_keys_of_an_index_are_still_written():
    table = with_index(index_units=10)
    for _ in range(2):
        table.take_write(0, receipt(5, global_units=5), [IndexWrite(INDEX_ID, 0, 5)], 0)

    assert table.take_write(0, receipt(5, global_units=5), [IndexWrite(INDEX_ID, 1, 5)], 0) is None


def test_a_refusal_names_every_table_and_index_that_has_too_little():
    table = with_index(5, 5)
    both = [IndexWrite(INDEX_ID, 0, 5), IndexWrite(INDEX_ID, 1, 5)]
    assert table.take_write(0, receipt(5, global_units=10), both, 0) is None

    refused = table.take_write(0, receipt(5, global_units=10), both, 0)

    assert refused is not None
    assert refused.reasons == (
        ThrottlingReason("TableWriteProvisionedThroughputExceeded", TABLE_ARN),
        ThrottlingReason("IndexWriteProvisionedThroughputExceeded", INDEX_ARN),
    )
    assert table.throttle_events == dict.fromkeys(refused.reasons, 1)


def test_a_write_to_a_partition_without_units_is_refused_before_its_decision():
    table = nearly_used(provisioned(100), 1)
    assert table.refuse_write(0, 0) is None
    table.take_write(0, receipt(100), NOTHING, 0)

    refused = table.refuse_write(0, 0)

    assert refused is not None
    assert refused.limit is LimitType.PROVISIONED
    assert table.throttle_events.total() == 1


def test_a_read_takes_its_units_when_they_are_known():
    table = nearly_used(provisioned(1, read_units=100), 1)
    assert table.refuse_read(0, 0) is None
    table.take_read(0, 250, 0)

    refused = table.refuse_read(0, 1)

    assert refused is not None
    assert refused.reasons[0].reason == "TableReadProvisionedThroughputExceeded"
    assert table.refuse_read(0, 2) is None


def test_a_read_of_an_index_takes_the_indexs_units():
    """S99, S101."""
    table = nearly_used(provisioned(1, 100), 1, index=(provisioned(1, 10), 1))
    table.take_read(0, 20, 0, INDEX_ID)

    refused = table.refuse_read(0, 0, INDEX_ID)

    assert refused is not None
    assert refused.reasons == (
        ThrottlingReason("IndexReadProvisionedThroughputExceeded", INDEX_ARN),
    )
    assert table.refuse_read(0, 0) is None


def test_one_partition_gives_3000_read_units_a_second():
    table = nearly_used(provisioned(1, 40_000), 10)
    for _ in range(30):
        assert table.refuse_read(3, 5) is None
        table.take_read(3, 100, 5)

    refused = table.refuse_read(3, 5)

    assert refused is not None
    assert refused.reasons[0].reason == "TableReadKeyRangeThroughputExceeded"


def test_a_backfill_and_writes_share_an_indexs_units():
    """S168, S197: units taken by a backfill are missing for writes, and vice versa."""
    table = with_index(100, 20)
    assert table.take_backfill(IndexWrite(INDEX_ID, 0, 10), 0) is None

    refused = table.take_write(0, receipt(1, global_units=1), [IndexWrite(INDEX_ID, 0, 1)], 0)
    wait_seconds = table.take_backfill(IndexWrite(INDEX_ID, 0, 10), 0)

    assert refused is not None
    assert wait_seconds
    assert table.take_backfill(IndexWrite(INDEX_ID, 0, 10), wait_seconds + 0.1) is None


def test_a_backfill_does_not_wait_for_an_index_that_is_only_observed():
    table = with_index(100, 2, mode="observe")

    assert [table.take_backfill(IndexWrite(INDEX_ID, 0, 10), 0) for _ in range(3)] == [None] * 3
    assert taken(table)[1][0] == 10


WRITES = st.lists(
    st.tuples(st.floats(0, 1), st.integers(1, 40), st.integers(0, 1), st.integers(0, 40)),
    max_size=60,
)


def run(table: TableLimits, writes: list[tuple[float, int, int, int]]) -> list[bool]:
    now = 0.0
    refused = []
    for wait, units, place, index_units in writes:
        now += wait
        touched = [IndexWrite(INDEX_ID, place, index_units)] if index_units else []
        write = receipt(units, global_units=index_units or None)
        refused.append(table.take_write(0, write, touched, now) is not None)
    return refused


@given(WRITES)
def test_observing_counts_what_enforcing_refuses(writes):
    enforced, observed = with_index(20, 10), with_index(20, 10, mode="observe")

    assert run(observed, writes) == run(enforced, writes)
    assert observed.observed_events == enforced.throttle_events
    assert not observed.throttle_events
    now = sum(wait for wait, *_ in writes)
    assert balances(observed, now) == balances(enforced, now)


@given(WRITES)
def test_off_counts_and_takes_nothing(writes):
    table = with_index(1, 1, mode="off")

    assert not any(run(table, writes))
    assert not table.throttle_events
    assert not table.observed_events
    assert taken(table) == (0, {0: 0, 1: 0})


@given(WRITES)
def test_a_refused_write_takes_nothing_anywhere(writes):
    table = with_index(20, 10)
    refused = run(table, writes)

    of_table, of_index = taken(table)
    accepted = [write for write, was in zip(writes, refused, strict=True) if not was]
    assert of_table == sum(units for _, units, _, _ in accepted)
    assert sum(of_index.values()) == sum(units for *_, units in accepted)


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_nothing_is_refused_early_unless_enforced(mode):
    table = nearly_used(provisioned(1, 1), 1, mode=mode)
    for _ in range(3):
        table.take_write(0, receipt(50), NOTHING, 0)
        table.take_read(0, 50, 0)

    assert table.refuse_write(0, 0) is None
    assert table.refuse_read(0, 0) is None


def test_a_read_that_is_only_observed_is_judged_when_it_is_done():
    table = nearly_used(provisioned(1, 10), 1, mode="observe")

    refused = [table.take_read(0, 50, 0) is not None for _ in range(3)]

    reading = table.table.reads.readings(0)[0]
    assert refused == [False, True, True]
    assert (reading.taken_units, reading.refusals) == (50, 2)
    assert table.observed_events.total() == 2


@pytest.mark.parametrize("throughput", [provisioned(40_000, 40_000), on_demand(max_writes=9_000)])
def test_an_admitted_request_leaves_nothing_to_collect(throughput):
    """The garbage collector's objects that were created are freed again."""
    table = limits(throughput, 50, index=(throughput, 50))
    write, touched = receipt(1, global_units=1), (IndexWrite(INDEX_ID, 1, 1),)
    gc.collect()
    gc.disable()
    try:
        before = gc.get_count()[0]
        for at in range(1_000):
            assert table.take_write(0, write, touched, at / 100) is None
            assert table.refuse_read(0, at / 100) is None
            table.take_read(0, 1, at / 100)
        after = gc.get_count()[0]
    finally:
        gc.enable()

    assert after - before < 10


def test_a_change_of_units_takes_effect_at_once():
    table = nearly_used(provisioned(10), 1)
    table.take_write(0, receipt(200), NOTHING, 0)
    assert table.refuse_write(0, 1)

    table.table.change(provisioned(1_000, 500), 1)

    assert table.refuse_write(0, 1.2) is None
    assert table.table.reads.units_per_second == 500


def test_a_change_of_billing_mode_changes_the_error():
    table = nearly_used(provisioned(10), 1)
    table.take_write(0, receipt(1_000), NOTHING, 0)
    before = table.refuse_write(0, 0)
    table.table.change(on_demand(), 1)
    table.take_write(0, receipt(1_000), NOTHING, 1)

    after = table.refuse_write(0, 1)

    assert before is not None
    assert after is not None
    assert (before.billing_mode, before.limit) == ("PROVISIONED", LimitType.KEY_RANGE)
    assert (after.billing_mode, after.limit) == ("PAY_PER_REQUEST", LimitType.KEY_RANGE)


def test_a_table_and_its_index_are_split_independently():
    table = with_index()
    table.table.split(0, (5, 6), 0)
    table.indexes[INDEX_ID].split(1, (7, 8), 0)

    write = receipt(1, global_units=1)
    assert table.take_write(6, write, [IndexWrite(INDEX_ID, 8, 1)], 0) is None
    assert table.refuse_read(5, 0) is None


@pytest.mark.parametrize(
    ("limit", "reason", "mode", "error", "code"),
    [
        (
            LimitType.PROVISIONED,
            "ProvisionedThroughputExceeded",
            "PROVISIONED",
            ProvisionedThroughputExceededException,
            "ProvisionedThroughputExceeded",
        ),
        (
            LimitType.KEY_RANGE,
            "KeyRangeThroughputExceeded",
            "PROVISIONED",
            ProvisionedThroughputExceededException,
            "ProvisionedThroughputExceeded",
        ),
        (
            LimitType.KEY_RANGE,
            "KeyRangeThroughputExceeded",
            "PAY_PER_REQUEST",
            ThrottlingException,
            "ThrottlingError",
        ),
        (
            LimitType.GROWTH,
            "KeyRangeThroughputExceeded",
            "PAY_PER_REQUEST",
            ThrottlingException,
            "ThrottlingError",
        ),
        (
            LimitType.MAX_ON_DEMAND,
            "MaxOnDemandThroughputExceeded",
            "PAY_PER_REQUEST",
            ThrottlingException,
            "ThrottlingError",
        ),
        (
            LimitType.ACCOUNT,
            "AccountLimitExceeded",
            "PAY_PER_REQUEST",
            RequestLimitExceeded,
            "ThrottlingError",
        ),
    ],
)
def test_the_billing_mode_and_the_limit_decide_the_error(limit, reason, mode, error, code):
    refused = refusal("Read", limit, mode, TABLE_ARN, is_index=False)

    raised = refused.error()

    member = "throttlingReasons" if error is ThrottlingException else "ThrottlingReasons"
    assert type(raised) is error
    assert raised.members() == {
        "message": refused.message,
        member: [ThrottlingReason(f"TableRead{reason}", TABLE_ARN)],
    }
    assert refused.cancellation_code == code


@pytest.mark.parametrize(
    ("mode", "of_index", "message"),
    [
        ("PROVISIONED", False, "The level of configured provisioned throughput for the table was"),
        ("PROVISIONED", True, "The level of configured provisioned throughput for one or more glo"),
        ("PAY_PER_REQUEST", False, "Throughput exceeds the current capacity of your table or"),
        ("PAY_PER_REQUEST", True, "Throughput exceeds the current capacity for one or more global"),
    ],
)
def test_an_indexs_refusal_has_its_own_message(mode, of_index, message):
    refused = refusal("Write", LimitType.KEY_RANGE, mode, INDEX_ARN, is_index=of_index)

    assert refused.message.startswith(message)


@pytest.mark.parametrize(
    "error", [ProvisionedThroughputExceededException, ThrottlingException, RequestLimitExceeded]
)
def test_an_error_without_a_limit_has_no_reasons(error):
    assert error("Try again").members() == {"message": "Try again"}


def test_a_failed_write_returns_its_units_everywhere():
    table = with_index()
    before = balances(table, 0)
    cost = receipt(3, global_units=2, local_units=1)
    writes = [IndexWrite(INDEX_ID, 0, 1), IndexWrite(INDEX_ID, 1, 1)]
    assert table.take_write(0, cost, writes, 0) is None
    assert taken(table) == (4, {0: 1, 1: 1})

    table.give_back_write(0, cost, writes, 0)

    assert taken(table) == (0, {0: 0, 1: 0})
    assert balances(table, 0) == before


def test_no_units_are_returned_to_an_index_that_was_deleted_meanwhile():
    table = with_index()
    write = (0, receipt(1, global_units=1), [IndexWrite(INDEX_ID, 0, 1)], 0.0)
    table.take_write(*write)
    del table.indexes[INDEX_ID]

    table.give_back_write(*write)

    assert table.table.writes.readings(0)[0].taken_units == 0


@pytest.mark.parametrize("mode", ["enforce", "observe", "off"])
def test_a_read_of_an_item_is_admitted_and_paid_at_once(mode):
    table = nearly_used(provisioned(1, read_units=10), 1, mode=mode)

    refusals = [table.serve_read(0, 8, 0) is not None for _ in range(4)]

    assert refusals == ([False] * 4 if mode == "off" else [False, False, True, True])
    reading = table.table.reads.readings(0)[0]
    assert (reading.taken_units, reading.refusals) == ((0, 0) if mode == "off" else (16, 2))
