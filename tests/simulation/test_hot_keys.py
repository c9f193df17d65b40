"""Keys that are hotter than a partition (S139, A11), in virtual time.

The tests split partitions themselves, to show the effect of a split by heat on the limits, not its
time.
"""

from __future__ import annotations

from collections import Counter

import pytest

from dynactor.model.keys.key import partition_hash
from tests.support.environment.virtual_load import (
    Writes,
    limits,
    offer,
    on_demand,
    provisioned,
    reasons_of,
    taken_units,
)

KEY_RANGE = "TableWriteKeyRangeThroughputExceeded"


def suffixed_load(partitions: int) -> list[Writes]:
    """5,000 units a second on one key with the suffixes 1 to 5, by partition."""
    hashes = (partition_hash([{"S": f"121212-{suffix}"}]) for suffix in range(1, 6))
    places = (int.from_bytes(hashed, "big") * partitions >> 64 for hashed in hashes)
    return [Writes(place, 100, 10) for place in places]


@pytest.mark.parametrize("throughput", [provisioned(10_000), on_demand(warm_writes=10_000)])
def test_one_key_is_limited_to_the_units_of_its_partition(throughput):
    outcomes = offer(limits(throughput, 10), [Writes(3, 500, 10)], range(20))

    assert taken_units(outcomes) == [1_000] * 20
    assert reasons_of(outcomes) == {KEY_RANGE}


@pytest.mark.parametrize("throughput", [provisioned(10_000), on_demand(warm_writes=10_000)])
def test_a_collection_split_by_sort_key_accepts_more(throughput):
    """Each half of the collection's sort keys gets a partition, and then each quarter."""
    table = limits(throughput, 10)
    table.table.split(3, (10, 11), 1)
    halves = offer(table, [Writes(number, 250, 10) for number in (10, 11)], range(1, 5))
    table.table.split(10, (12, 13), 5)
    table.table.split(11, (14, 15), 5)
    quarters = offer(table, [Writes(number, 100, 10) for number in range(12, 16)], range(5, 9))

    assert taken_units(halves) == [2_000] * 4
    assert taken_units(quarters) == [4_000] * 4


def test_suffixes_in_the_same_partition_share_its_units():
    table = limits(on_demand(), 4)
    load = suffixed_load(4)

    outcomes = offer(table, load, range(5))

    occupied = len(Counter(writes.partition for writes in load))
    assert occupied < 5
    assert taken_units(outcomes) == [1_000 * occupied] * 5
    assert reasons_of(outcomes) == {KEY_RANGE}


def test_five_suffixes_take_five_partitions_units_once_the_table_is_warm():
    """A11: warmed for 40,000 units, each suffix has a partition of its own."""
    outcomes = offer(limits(on_demand(warm_writes=40_000), 40), suffixed_load(40), range(5))

    assert taken_units(outcomes) == [5_000] * 5
    assert not reasons_of(outcomes)
