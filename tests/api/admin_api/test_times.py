"""Parsing and printing of times and durations."""

from __future__ import annotations

import math

import pytest

from dynactor.api.admin_api.times import iso_time, pace, parse_length, parse_time

NOON = 1_896_091_200.0


@pytest.mark.parametrize(
    ("text", "epoch_seconds"),
    [
        ("1896091200", NOON),
        ("1896091200.25", NOON + 0.25),
        ("2030-01-31T12:00:00Z", NOON),
        ("2030-01-31T12:00:00.250Z", NOON + 0.25),
        ("2030-01-31T12:00", NOON),
        ("2030-01-31T14:00:00+02:00", NOON),
        ("2030-01-31", NOON - 12 * 3_600),
    ],
)
def test_a_time_is_a_number_or_iso_8601(text: str, epoch_seconds: float):
    assert parse_time(text) == epoch_seconds


@pytest.mark.parametrize("text", ["", "soon", "2030-13-01", "25h", "2030-01-31T25:00"])
def test_an_invalid_time_is_refused(text: str):
    with pytest.raises(ValueError, match="is not a time: give"):
        parse_time(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("1.5", 1.5), ("90s", 90), ("15m", 900), ("25h", 90_000), ("2d", 172_800)],
)
def test_a_duration_is_a_number_of_seconds_or_has_a_unit(text: str, seconds: float):
    assert parse_length(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "-1", "1w", "1 h", "1h30m", "nan"])
def test_an_invalid_duration_is_refused(text: str):
    with pytest.raises(ValueError, match="is not a duration: give"):
        parse_length(text)


def test_a_time_is_shown_in_utc_with_milliseconds():
    assert iso_time(NOON) == "2030-01-31T12:00:00.000Z"
    assert iso_time(math.nextafter(253_402_300_800, 0)) == "9999-12-31T23:59:59.999Z"


def test_the_speed_of_a_clock_is_described_in_words():
    assert pace(0) == "stopped"
    assert pace(60) == "running at speed 60"
