"""A table's writes and the hot partitions of its index, in virtual time (S139, S102).

The classic index on a status: the table's keys are spread well, but the index has few key values.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import pytest

from dynactor.model.definitions.table import Throughput
from dynactor.model.keys.key import partition_hash
from dynactor.model.throttling.partition_count import partition_count
from dynactor.model.throttling.table_limits import TableLimits
from tests.support.environment.virtual_load import (
    INDEX_ID,
    Outcome,
    Writes,
    limits,
    offer_second,
    provisioned,
    reasons_of,
    taken_units,
)

UNITS = 20_000
# Items of 10 KB: ten units each.
ITEM_UNITS = 10
HASH_SPACE = 1 << 64
KEY_RANGE = "IndexWriteKeyRangeThroughputExceeded"


class Load:
    """20,000 units a second on evenly used table keys and this many index key values."""

    def __init__(self, values: int) -> None:
        throughput = Throughput(0, UNITS)
        self.partitions = partition_count("PROVISIONED", throughput)
        self.table = limits(
            provisioned(UNITS, 0), self.partitions, index=(provisioned(UNITS, 0), self.partitions)
        )
        hashes = (partition_hash([{"S": f"value {number}"}]) for number in range(values))
        self._hashes = [int.from_bytes(hashed, "big") for hashed in hashes]
        self._starts = [at * HASH_SPACE // self.partitions for at in range(self.partitions)]
        self._numbers = list(range(self.partitions))

    def offer(self, second: int) -> Outcome:
        return offer_second(self.table, list(self._writes()), second)

    def _writes(self) -> Iterator[Writes]:
        per_second = UNITS // ITEM_UNITS // len(self._hashes) // self.partitions
        for hashed in self._hashes:
            index_partition = self._numbers[bisect_right(self._starts, hashed) - 1]
            for partition in range(self.partitions):
                yield Writes(partition, per_second, ITEM_UNITS, index_partition)

    def split(self, number: int, second: int) -> None:
        """Divide a partition of the index between the hashes of its key values."""
        place = self._numbers.index(number)
        end = self._starts[place + 1] if place + 1 < len(self._starts) else HASH_SPACE
        inside = sorted(hashed for hashed in self._hashes if self._starts[place] <= hashed < end)
        if len(inside) < 2:
            return
        children = (max(self._numbers) + 1, max(self._numbers) + 2)
        self.table.indexes[INDEX_ID].split(number, children, second)
        self._numbers[place : place + 1] = children
        self._starts.insert(place + 1, inside[len(inside) // 2])


def hot_partitions(table: TableLimits, before: dict[int, int], second: int) -> list[int]:
    """The partitions of the index that exceeded their ceilings since ``before``."""
    readings = table.indexes[INDEX_ID].writes.readings(second)
    hot = [
        number for number, now in readings.items() if now.ceiling_refusals > before.get(number, 0)
    ]
    before.clear()
    before.update({number: now.ceiling_refusals for number, now in readings.items()})
    return hot


def test_two_index_key_values_are_limited_to_the_units_of_two_partitions():
    load = Load(values=2)

    outcomes = [load.offer(second) for second in range(10)]

    assert taken_units(outcomes) == [2_000] * 10
    assert reasons_of(outcomes) == {KEY_RANGE}


def test_splits_do_not_help_two_index_key_values():
    load = Load(values=2)
    refusals: dict[int, int] = {}
    for second in range(10):
        load.offer(second)
        for number in hot_partitions(load.table, refusals, second + 1):
            load.split(number, second + 1)

    assert load.offer(10).units == 2_000


def test_a_hundred_index_key_values_are_all_accepted_once_the_hot_partitions_are_split():
    """Some partitions happen to hold ten of the values and some one: 200 units a second each."""
    load = Load(values=100)
    at_first = load.offer(0)
    refusals: dict[int, int] = {}
    for second in range(1, 8):
        for number in hot_partitions(load.table, refusals, second):
            load.split(number, second)
        outcome = load.offer(second)

    assert at_first.units == pytest.approx(UNITS, rel=0.25)
    assert set(at_first.refused) == {KEY_RANGE}
    assert outcome.units == pytest.approx(UNITS, rel=0.002)
    assert KEY_RANGE not in outcome.refused


def test_a_hundred_evenly_placed_values_are_all_accepted_at_once():
    table = limits(provisioned(UNITS), 20, index=(provisioned(UNITS), 20))
    load = [Writes(at % 20, 20, ITEM_UNITS, at % 20) for at in range(100)]

    assert [offer_second(table, load, second).units for second in range(5)] == [UNITS] * 5
