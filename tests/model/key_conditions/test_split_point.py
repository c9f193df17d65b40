"""The position that divides a partition, by its bytes and by its requests."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynactor.model.key_conditions.key_range import KeyRange
from dynactor.model.key_conditions.split_point import (
    SizeProfile,
    SplitPoint,
    by_heat,
    divides_collection,
    middle,
    share_before,
    width,
)


def at(hashed: int, sort: int | None = None) -> bytes:
    """A position: a hash that differs only in its first byte, then a sort key."""
    position = bytes([hashed]) + b"\x00" * 7
    return position if sort is None else position + b"pk" + sort.to_bytes(4, "big")


def profile(rows: Iterable[tuple[bytes, int]], grain_bytes: int = 1) -> SizeProfile:
    made = SizeProfile(grain_bytes)
    for position, size_bytes in rows:
        made.add(position, size_bytes)
    return made


def test_even_collections_are_divided_between_two_of_them():
    made = profile((at(hashed, 0), 10) for hashed in range(100))

    assert made.halves(divides_collections=True) == SplitPoint(at(50), 0.5)


def test_a_collection_that_holds_most_bytes_is_divided_by_sort_key():
    rows = [(at(1, 0), 10), *((at(2, sort), 10) for sort in range(80)), (at(3, 0), 10)]
    made = profile(rows)

    point = made.halves(divides_collections=True)

    assert point is not None
    assert point.at == at(2, 40)
    assert point.share == pytest.approx(0.5, abs=0.01)


def test_a_collection_with_local_indexes_is_never_divided():
    alone = profile((at(2, sort), 10) for sort in range(80))
    with_others = profile(
        [*((at(1, sort), 10) for sort in range(10)), *((at(2, sort), 10) for sort in range(90))]
    )

    assert alone.halves(divides_collections=False) is None
    assert with_others.halves(divides_collections=False) == SplitPoint(at(2), 0.1)


def test_a_collection_that_fills_the_partition_is_not_separated_from_a_few_other_rows():
    rows = [(at(1, 0), 10), *((at(2, sort), 10) for sort in range(999))]

    assert profile(rows).halves(divides_collections=False) is None


@given(
    st.lists(st.tuples(st.integers(0, 255), st.integers(0, 9), st.integers(1, 500)), min_size=1),
    st.integers(1, 1_000),
)
def test_the_share_is_the_part_of_the_bytes_before_the_split_point(rows, grain_bytes):
    ordered = sorted({at(hashed, sort): size for hashed, sort, size in rows}.items())
    made = profile(ordered, grain_bytes)
    for divides_collections in (True, False):
        point = made.halves(divides_collections=divides_collections)
        if point is None:
            continue
        before = sum(size for position, size in ordered if position < point.at)
        assert before / made.total_bytes == pytest.approx(point.share)
        assert 0 < before < made.total_bytes
        assert divides_collections or not divides_collection(point.at)


def test_the_profile_of_a_large_partition_stays_small():
    made = profile(((at(hashed, sort), 100) for hashed in range(200) for sort in range(50)), 10_000)

    assert len(made._rows) <= 101
    assert len(made._collections) <= 202
    point = made.halves(divides_collections=True)
    assert point is not None
    assert point.share == pytest.approx(0.5, abs=0.02)


def test_requests_to_many_keys_are_halved_at_a_hash():
    positions = [at(number * 37 % 100, 0) for number in range(100)]

    assert by_heat(positions, divides_collections=True) == SplitPoint(at(50), 0.5)


def test_requests_to_one_collection_are_halved_at_a_sort_key():
    positions = [at(1, sort % 20) for sort in range(100)]

    point = by_heat(positions, divides_collections=True)

    assert point == SplitPoint(at(1, 10), 0.5)
    assert by_heat(positions, divides_collections=False) is None


def test_the_requests_for_one_item_can_not_be_divided():
    positions = [at(1, 0), *([at(2, 0)] * 96), at(3, 0), at(4, 0), at(5, 0)]

    assert by_heat(in_turn(positions), divides_collections=True) is None


@pytest.mark.parametrize("hot", [51, 60, 94])
def test_an_item_that_is_hotter_than_all_others_together_gets_its_own_partition(hot: int):
    others = [at(2, sort) for sort in range(100 - hot)]

    point = by_heat(in_turn([at(1, 0)] * hot + others), divides_collections=True)

    assert point == SplitPoint(at(2), hot / 100)


def test_a_hot_item_between_others_is_separated_from_one_side_first():
    before, after = ([at(hashed, 0)] * 20 for hashed in (1, 3))

    point = by_heat(in_turn([*before, *([at(2, 0)] * 60), *after]), divides_collections=True)

    assert point is not None
    assert point.at in (at(2), at(3))


def in_turn(positions: list[bytes]) -> list[bytes]:
    """The same requests, mixed in time."""
    return [positions[number * 37 % len(positions)] for number in range(len(positions))]


@pytest.mark.parametrize("direction", [1, -1])
def test_keys_that_rise_or_fall_with_time_are_not_divided(direction):
    positions = [at(1, 1_000 + direction * number) for number in range(100)]

    assert by_heat(positions, divides_collections=True) is None


def test_two_collections_with_rising_keys_are_separated():
    positions = [at(1 + number % 2, number) for number in range(100)]

    assert by_heat(positions, divides_collections=True) == SplitPoint(at(2), 0.5)


def test_a_few_requests_are_not_enough_for_a_split_point():
    assert by_heat([at(hashed) for hashed in range(10)], divides_collections=True) is None


def test_a_range_of_hashes_has_a_middle():
    assert middle(KeyRange(b"", None)) == SplitPoint(at(128), 0.5)
    assert middle(KeyRange(at(16), at(32))) == SplitPoint(at(24), 0.5)
    assert middle(KeyRange(at(16, 1), at(16, 9))) is None
    assert width(KeyRange(at(16, 1), at(16, 9))) == 0
    assert width(KeyRange(b"", None)) == 1 << 64
    assert share_before(KeyRange(at(16), at(32)), at(20)) == 0.25
    assert share_before(KeyRange(at(16, 1), at(16, 9)), at(16, 5)) == 0.5
