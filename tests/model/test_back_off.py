"""Pauses between attempts grow."""

from __future__ import annotations

from dynactor.model.back_off import BackOff


def test_each_pause_is_twice_as_long_as_the_one_before_up_to_the_longest() -> None:
    back_off = BackOff(0.5, 3.0)
    assert [back_off.pause_seconds() for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_a_longer_pause_once_does_not_make_the_later_ones_longer() -> None:
    back_off = BackOff(0.5, 3.0)
    assert [back_off.pause_seconds(least) for least in (3.0, 0.0)] == [3.0, 1.0]


def test_the_first_pause_follows_a_successful_attempt() -> None:
    back_off = BackOff(0.5, 3.0)
    back_off.pause_seconds()
    back_off.reset()
    assert back_off.pause_seconds() == 0.5
