"""A planned index: the distribution of its key, and whether the most frequent value is too hot."""

from __future__ import annotations

import pytest

from dynactor.model.advice.index_distribution import (
    Distribution,
    HotValue,
    ValueShare,
    distribution,
    hot_value,
)


def test_values_are_reported_with_their_shares_of_all_items():
    items = [{"status": {"S": "new"}}] * 6 + [{"status": {"S": "sent"}}] * 2 + [{}] * 2

    assert distribution(items, "status") == Distribution(
        10, 2, [ValueShare({"S": "new"}, 0.6), ValueShare({"S": "sent"}, 0.2)], 0.2
    )


def test_values_that_can_not_be_the_key_are_left_out():
    items = [
        {"status": {"S": "new"}},
        {"status": {"S": "new"}},
        # Values that cannot be the key: of another type, empty, and of a type that no key has.
        {"status": {"N": "1"}},
        {"status": {"S": ""}},
        {"status": {"BOOL": True}},
    ]

    found = distribution(items, "status")

    assert found.values == [ValueShare({"S": "new"}, 0.4)]
    assert found.without == pytest.approx(0.6)


def test_an_attribute_that_no_item_has_has_no_values():
    assert distribution([{}], "status") == Distribution(1, 0, (), 1.0)
    assert distribution([], "status") == Distribution(0, 0, (), 0.0)


def test_only_the_most_frequent_values_are_reported():
    items = [{"n": {"N": str(number)}} for number in range(50)]

    found = distribution(items, "n", most_values=3)

    assert (found.distinct, len(found.values)) == (50, 3)


@pytest.mark.parametrize(
    ("share", "entry_bytes", "writes_per_second", "found"),
    [
        # 80 % of 5,000 writes of one unit: four times a key's limit.
        (0.8, 1_024, 5_000, HotValue(4_000, 1_250, 4)),
        (0.8, 1_025, 5_000, HotValue(8_000, 625, 8)),
        (0.2, 100, 5_000, HotValue(1_000, 5_000, 1)),
        (0.2, 100, 5_001, HotValue(pytest.approx(1_000.2), 5_000, 2)),
        (0.5, 100, None, HotValue(None, 2_000, None)),
    ],
)
def test_the_hottest_value_takes_its_share_of_the_writes(
    share, entry_bytes, writes_per_second, found
):
    assert hot_value(share, entry_bytes, writes_per_second) == found
