"""Records the tests that a run skips; the end of the run reports them for all workers."""

from __future__ import annotations

import pytest

_LINES = pytest.StashKey[set[str]]()


def leave_out(config: pytest.Config, line: str) -> None:
    """Record that a test is skipped; the line says why, and how to run the test."""
    config.stash.setdefault(_LINES, set()).add(line)


def left_out(config: pytest.Config) -> list[str]:
    """The lines recorded so far."""
    lines: set[str] = config.stash.setdefault(_LINES, set())
    return sorted(lines)
