"""Formats times."""

from __future__ import annotations


def milliseconds(microseconds: float | None) -> str:
    """A time in milliseconds; a dash if absent."""
    if microseconds is None:
        return "-"
    shown = microseconds / 1e3
    return f"{shown:,.0f}" if shown >= 100 else f"{shown:.3g}" if shown >= 1 else f"{shown:.2f}"
