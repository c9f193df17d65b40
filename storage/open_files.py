"""How many files the process may have open: those of the engine, connections, and what else."""

from __future__ import annotations

import resource
from contextlib import suppress


def raise_open_files_limit() -> None:
    """Let the process open as many files as its hard limit allows.

    The soft limit that shells give, often 1,024, is for programs that call select().
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems name a hard limit that they do not grant; then it stays what it was.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def open_files_limit() -> int:
    """The soft limit of the process, as it is now."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
