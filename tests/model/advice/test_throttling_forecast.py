"""The predicted throttling of a load: too few units, uneven keys, a hot key, on demand."""

from __future__ import annotations

import pytest

from dynactor.model.advice.throttling_forecast import (
    Expected,
    KeyShare,
    MinuteLoad,
    expected,
    key_place,
)

# Keys at the beginning and at the end of the hash space.
FIRST, LAST = b"\x00" * 8 + b"a", b"\xff" * 8 + b"b"


def load(per_second: float, *keys: KeyShare, minutes: int = 10) -> list[MinuteLoad]:
    return [MinuteLoad(60.0 * at, [per_second] * 60, keys) for at in range(minutes)]


def shares(found: Expected) -> dict[str, float]:
    """The significant causes of refusals, as shares of the load."""
    causes = {name: getattr(found, name) for name in ("over_rate", "uneven", "ceiling", "growth")}
    return {
        cause: round(units / found.offered, 2)
        for cause, units in causes.items()
        if units / found.offered > 0.005
    }


def test_a_load_within_its_units_is_not_throttled():
    found = expected(load(100), "write", 100, 4)

    assert found.offered == 100 * 600
    assert found.refused == 0


def test_a_load_of_twice_its_units_is_throttled_by_half():
    found = expected(load(200, minutes=60), "write", 100, 1)

    assert shares(found) == {"over_rate": pytest.approx(0.5, abs=0.01)}


def test_unused_units_are_available_for_a_burst():
    quiet, burst = load(0, minutes=10), MinuteLoad(600, [400] * 60)
    quiet[0] = MinuteLoad(0, [1] * 60)

    assert expected([*quiet, burst], "write", 100, 1).refused == 0
    assert expected([burst], "write", 100, 1).refused > 0


def test_a_hot_key_is_throttled_by_the_limit_of_its_partition_despite_unused_units():
    found = expected(load(2_000, KeyShare(FIRST, 1.0)), "write", 40_000, 40)

    assert shares(found) == {"ceiling": pytest.approx(0.5, abs=0.01)}


def test_a_partition_takes_three_thousand_read_units():
    assert expected(load(2_900, KeyShare(FIRST, 1.0)), "read", 12_000, 4).refused == 0
    assert shares(expected(load(4_000, KeyShare(FIRST, 1.0)), "read", 12_000, 4)) == {
        "ceiling": pytest.approx(0.25, abs=0.01)
    }


def test_a_busy_partition_borrows_the_unused_units_of_others():
    """S161: the partition has a quarter of the units, and borrows the others."""
    found = expected(load(390, KeyShare(FIRST, 1.0)), "write", 400, 4)

    assert shares(found) == {}


def test_on_demand_load_is_throttled_by_growth_or_by_the_limit_of_a_partition():
    even = [KeyShare(bytes([place * 64]) * 8, 0.25) for place in range(4)]

    assert expected(load(3_900, *even), "write", None, 4).refused == 0
    assert shares(expected(load(8_000, *even), "write", None, 4)) == {"growth": 0.5}
    assert expected(load(8_000), "write", None, 16).refused == 0
    assert shares(expected(load(2_000, KeyShare(FIRST, 1.0)), "write", None, 4)) == {"ceiling": 0.5}


def test_without_load_nothing_is_refused():
    assert expected([], "write", 5, 1) == Expected(0.0)


def test_a_key_is_in_the_partition_of_its_hash():
    assert [key_place(FIRST, 4), key_place(LAST, 4), key_place(b"\x40" + b"\x00" * 7, 4)] == [
        0,
        3,
        1,
    ]
