"""Tests that a run leaves out, reported at its end; parallel workers pass theirs on."""

from __future__ import annotations

import pytest

_LINES = pytest.StashKey[set[str]]()


def leave_out(config: pytest.Config, line: str) -> None:
    """Record that a test does not run; the line says why, and how to run it."""
    config.stash.setdefault(_LINES, set()).add(line)


def left_out(config: pytest.Config) -> list[str]:
    """The lines so far."""
    lines: set[str] = config.stash.setdefault(_LINES, set())
    return sorted(lines)
