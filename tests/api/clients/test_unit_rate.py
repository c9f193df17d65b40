"""A limit on units per second: each request delays the next one."""

from __future__ import annotations

from dynactor.api.clients.unit_rate import UnitRate


def test_a_request_waits_until_earlier_units_are_within_the_rate() -> None:
    rate = UnitRate(10)
    assert rate.delay_seconds(5, now=100.0) == 0.5
    # A concurrent segment sends the second request at the same time, so it waits for both.
    assert rate.delay_seconds(20, now=100.0) == 2.5


def test_unused_units_are_not_saved() -> None:
    rate = UnitRate(10)
    rate.delay_seconds(5, now=100.0)
    assert rate.delay_seconds(10, now=200.0) == 1.0
