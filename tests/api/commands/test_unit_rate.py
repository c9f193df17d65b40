"""A rate of units: the delay that each request's units cause for the next one."""

from __future__ import annotations

from dynactor.api.commands.unit_rate import UnitRate


def test_requests_wait_until_their_units_are_paid() -> None:
    rate = UnitRate(10)
    assert rate.delay_seconds(5, now=100.0) == 0.5
    # This request was sent anyway, as by another segment, so it waits after the first one.
    assert rate.delay_seconds(20, now=100.0) == 2.5


def test_time_in_which_nothing_was_used_is_not_saved() -> None:
    rate = UnitRate(10)
    rate.delay_seconds(5, now=100.0)
    assert rate.delay_seconds(10, now=200.0) == 1.0
