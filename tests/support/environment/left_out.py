"""What a run of the tests leaves out, for its end: in a parallel run each worker passes it on."""

from __future__ import annotations

import pytest

_LINES = pytest.StashKey[set[str]]()


def leave_out(config: pytest.Config, line: str) -> None:
    """Something is not run; the line says what, and why or how it would be."""
    config.stash.setdefault(_LINES, set()).add(line)


def left_out(config: pytest.Config) -> list[str]:
    """The lines so far."""
    lines: set[str] = config.stash.setdefault(_LINES, set())
    return sorted(lines)
