"""Times and lengths of time as people write them for a virtual clock."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 60 * 60, "d": 24 * 60 * 60}
_LENGTH: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)\Z")


def parse_time(text: str) -> float:
    """Epoch seconds of such a number or of an ISO 8601 time, in UTC where it names no zone.

    Raises:
        ValueError: it is neither; the message says what would be.
    """
    try:
        return float(text)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is no time: give seconds since 1970, or ISO 8601 such as "
            "2030-01-31T12:00:00Z"
        ) from None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def parse_length(text: str) -> float:
    """Seconds of a number of them, or of a number with s, m, h or d behind it.

    Raises:
        ValueError: it is neither; the message says what would be.
    """
    found = _LENGTH.match(text)
    if found is None:
        raise ValueError(f"{text!r} is no length of time: give seconds, or 90s, 15m, 25h or 2d")
    return float(found[1]) * _SECONDS[found[2]]


def is_length(text: str) -> bool:
    """Whether the text is a length of time with its unit behind it."""
    found = _LENGTH.match(text)
    return found is not None and found[2] != ""


def iso_time(epoch_seconds: float) -> str:
    """The time in ISO 8601, in UTC, with milliseconds."""
    time = datetime.fromtimestamp(epoch_seconds, tz=UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def pace(speed: float) -> str:
    """How a clock of that speed runs, in words."""
    return f"running at speed {speed:g}" if speed else "standing still"
