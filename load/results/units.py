"""Times as they are shown."""

from __future__ import annotations


def milliseconds(microseconds: float | None) -> str:
    """A time as it is shown; a dash where there is none."""
    if microseconds is None:
        return "-"
    shown = microseconds / 1e3
    return f"{shown:,.0f}" if shown >= 100 else f"{shown:.3g}" if shown >= 1 else f"{shown:.2f}"
