"""The arithmetic of partition keys: suffixes (A9), skew, and the read cost of suffixes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynactor.model.advice.key_choice import (
    QueryCost,
    Skew,
    query_cost,
    skew,
    suffixes_for_writes,
)

KB = 1024
LOADS = st.lists(st.floats(0.001, 1_000_000), min_size=1, max_size=200)


@pytest.mark.parametrize(
    ("writes_per_second", "item_kilobytes", "suffixes"),
    [
        # A9.
        (5_000, 1, 5),
        (5_000, 1.5, 10),
        (1_000, 1, 1),
        (1_001, 1, 2),
        # Sizes just above a whole kilobyte, and a small size.
        (5_000, 1 + 1 / KB, 10),
        (5_000, 0.1, 5),
        (2.5, 400, 1),
        (2.51, 400, 2),
        (0, 1, 1),
    ],
)
def test_suffixes_keep_each_partition_within_1000_write_units(
    writes_per_second, item_kilobytes, suffixes
):
    assert suffixes_for_writes(writes_per_second, int(item_kilobytes * KB)) == suffixes


@given(st.floats(0, 1e6), st.integers(0, 400 * KB))
def test_one_suffix_fewer_would_not_suffice(writes_per_second, size_bytes):
    suffixes = suffixes_for_writes(writes_per_second, size_bytes)
    units = writes_per_second * max(1, -(-size_bytes // KB))

    assert units / suffixes <= 1_000
    assert suffixes == 1 or units / (suffixes - 1) > 1_000


def test_even_load_has_no_skew():
    assert skew([5.0] * 50) == Skew(0.02, 0.2, 50)


def test_a_key_with_the_whole_load_is_one_effective_key():
    assert skew([7.0, 0, 0]) == Skew(1, 1, 1)


def test_a_hot_key_lowers_the_number_of_effective_keys():
    """Half of the load on one of 101 keys is as uneven as the load of four equal keys."""
    measured = skew([100.0] + [1.0] * 100)

    assert measured is not None
    assert measured.hottest_share == 0.5
    assert measured.top_ten_share == pytest.approx(109 / 200)
    assert measured.effective_count == pytest.approx(40_000 / 10_100)


def test_unlisted_keys_each_have_a_negligible_share():
    assert skew([10.0], all_load=100) == Skew(0.1, 0.1, 100)


@pytest.mark.parametrize("loads", [[], [0.0, 0.0]])
def test_no_load_has_no_skew(loads):
    assert skew(loads) is None


@given(LOADS)
def test_there_are_no_more_effective_keys_than_keys(loads):
    measured = skew(loads)

    assert measured is not None
    assert 1 - 1e-9 <= measured.effective_count <= len(loads) * (1 + 1e-9)
    assert 1 / len(loads) - 1e-9 <= measured.hottest_share <= measured.top_ten_share <= 1 + 1e-9


@pytest.mark.parametrize(
    ("kilobytes", "suffixes", "cost"),
    [
        # 12 KB are 3 units; over 5 suffixes each has 2.4 KB, a unit.
        (12, 1, QueryCost(1, 3.0)),
        (12, 5, QueryCost(5, 5.0)),
        (40, 10, QueryCost(10, 10.0)),
        (0, 10, QueryCost(10, 10.0)),
    ],
)
def test_the_cost_of_the_query_of_each_suffix_is_rounded_up_separately(kilobytes, suffixes, cost):
    assert query_cost(kilobytes * KB, suffixes, consistent=True) == cost


def test_eventually_consistent_queries_cost_half():
    assert query_cost(12 * KB, 5) == QueryCost(5, 2.5)


def test_a_large_collection_takes_a_request_for_each_megabyte():
    assert query_cost(5 * KB * KB + 1, consistent=True) == QueryCost(6, 1_281)
