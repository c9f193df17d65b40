"""How many files the process may have open: those of the engine, connections, and what else."""

from __future__ import annotations

import resource
from contextlib import suppress
from typing import Final

# More are never needed, and a number that the engine takes; a limit may be none at all.
_MOST_FILES: Final = 1 << 20
# What macOS grants where the hard limit is none.
_MODEST_FILES: Final = 10_240


def raise_open_files_limit() -> None:
    """Let the process open as many files as its hard limit allows.

    The soft limit that shells give, often 1,024, is for programs that call select().
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems name a hard limit that they do not grant.
    for files in (_MODEST_FILES, _bounded(hard)):
        if open_files_limit() < files <= _bounded(hard):
            with suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))


def open_files_limit() -> int:
    """The soft limit of the process, as it is now, or as many as are ever needed."""
    return _bounded(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _bounded(files: int) -> int:
    return _MOST_FILES if files == resource.RLIM_INFINITY else min(files, _MOST_FILES)
