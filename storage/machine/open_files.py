"""The number of files that the process may open, for the engine and for connections."""

from __future__ import annotations

import resource
from contextlib import suppress
from typing import Final

# An upper bound that the engine accepts and that is enough. The limit may be infinite.
_MOST_FILES: Final = 1 << 20
# The maximum that macOS grants if the hard limit is infinite.
_MACOS_FILES: Final = 10_240
# Listeners, event loops, logs and requests of operators.
_OTHER_FILES: Final = 64


def raise_open_files_limit() -> None:
    """Raise the soft limit of open files, often 1,024 because of select(), to the hard limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems report a hard limit that they do not grant.
    for files in (_MACOS_FILES, _bounded(hard)):
        if open_files_limit() < files <= _bounded(hard):
            with suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))


def open_files_limit() -> int:
    """The soft limit of the process, but at most ``_MOST_FILES``."""
    return _bounded(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def connections_limit() -> int:
    """The number of connections that leave the engine its half of the files."""
    return max(open_files_limit() // 2 - _OTHER_FILES, 1)


def _bounded(files: int) -> int:
    return _MOST_FILES if files == resource.RLIM_INFINITY else min(files, _MOST_FILES)
