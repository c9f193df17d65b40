"""A rate of units: how long each request's units make the next one wait."""

from __future__ import annotations

from dynactor.api.commands.pace import Pace


def test_requests_wait_until_their_units_are_paid() -> None:
    pace = Pace(10)
    assert pace.delay_seconds(5, now=100.0) == 0.5
    # Sent at once all the same, as by another segment: it waits behind the first.
    assert pace.delay_seconds(20, now=100.0) == 2.5


def test_time_in_which_nothing_was_used_is_not_saved() -> None:
    pace = Pace(10)
    pace.delay_seconds(5, now=100.0)
    assert pace.delay_seconds(10, now=200.0) == 1.0
