"""Keys, numbers and tables as text for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from dynactor.model.values.value_types import AttributeValue, Item

_KEY_CHARACTERS: Final = 48
_SMALL: Final = 10
_KIB: Final = 1024
_UNITS: Final = ("bytes", "KB", "MB", "GB")
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def key_text(key: Item) -> str:
    """The values of a key; long ones are shortened in the middle."""
    text = " / ".join(map(value_text, key.values()))
    if len(text) <= _KEY_CHARACTERS:
        return text
    half = _KEY_CHARACTERS // 2
    return f"{text[: half - 1]}…{text[-half:]}"


def value_text(value: AttributeValue) -> str:
    """A value of a key, on one line."""
    ((type_name, content),) = value.items()
    text = str(content)
    if type_name == "S" and (not text.isprintable() or not text):
        return repr(text)
    return text


def figure(number: float) -> str:
    """A number with few digits."""
    if abs(number) >= _SMALL:
        return f"{number:,.0f}"
    rounded = f"{number:.1f}".removesuffix(".0")
    return f"{number:.2g}" if rounded == "0" and number else rounded


def percent(share: float) -> str:
    """A share in percent."""
    return f"{figure(share * 100)} %"


def size(size_bytes: float) -> str:
    """A size in the largest suitable unit."""
    unit = 0
    while size_bytes >= _KIB and unit < len(_UNITS) - 1:
        size_bytes, unit = size_bytes / _KIB, unit + 1
    return f"{figure(size_bytes)} {_UNITS[unit]}"


def span(seconds: float) -> str:
    """An approximate duration."""
    for unit, name in ((_DAY, "days"), (_HOUR, "hours"), (_MINUTE, "minutes")):
        if seconds >= 2 * unit:
            return f"{figure(seconds / unit)} {name}"
    return f"{figure(seconds)} seconds"


def time_span(start_epoch_seconds: float, end_epoch_seconds: float) -> str:
    """From one time to another, in UTC, to the minute."""
    start, end = (
        datetime.fromtimestamp(seconds, tz=UTC)
        for seconds in (start_epoch_seconds, end_epoch_seconds)
    )
    date = "" if start.date() == end.date() else f"{end:%Y-%m-%d} "
    return f"{start:%Y-%m-%d %H:%M} to {date}{end:%H:%M} UTC"


def table(headlines: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "  ") -> str:
    """Lines of a table: the first column is text, the others are numbers."""
    widths = [max(map(len, column)) for column in zip(headlines, *rows, strict=True)]
    return "".join(
        indent
        + "  ".join(
            text.ljust(width) if at == 0 else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        + "\n"
        for row in (headlines, *rows)
    )
