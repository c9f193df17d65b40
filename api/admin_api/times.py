"""Parses and prints times and durations for a virtual clock."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 60 * 60, "d": 24 * 60 * 60}
_LENGTH: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)\Z")


def parse_time(text: str) -> float:
    """Parse epoch seconds or ISO 8601, by default in UTC; ``ValueError`` lists the valid forms."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is not a time: give seconds since 1970, or ISO 8601 such as "
            "2030-01-31T12:00:00Z"
        ) from None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def parse_length(text: str) -> float:
    """Parse seconds, or a number followed by s, m, h or d; ``ValueError`` lists the valid forms."""
    found = _LENGTH.match(text)
    if found is None:
        raise ValueError(f"{text!r} is not a duration: give seconds, or 90s, 15m, 25h or 2d")
    return float(found[1]) * _SECONDS[found[2]]


def is_length(text: str) -> bool:
    """Whether the text is a duration with a unit."""
    found = _LENGTH.match(text)
    return found is not None and found[2] != ""


def iso_time(epoch_seconds: float) -> str:
    """The time in ISO 8601, in UTC, with milliseconds."""
    time = datetime.fromtimestamp(epoch_seconds, tz=UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def pace(speed: float) -> str:
    """The speed of a clock in words."""
    return f"running at speed {speed:g}" if speed else "stopped"
