"""Files that only their owner may read: those of the data directory and its backups.

The data directory has items, and the key that seals session tokens.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_IMODE, S_ISLNK
from typing import Final

import structlog

# The permissions of the group and of all others.
_OTHERS_MODE: Final = 0o077

_log = structlog.get_logger(__name__)


@contextmanager
def new_files_are_private() -> Iterator[int]:
    """Make files of this process private within the context; yields the umask before.

    The engine makes files at any time and in threads of its own, so the umask is the process's.
    """
    before = os.umask(_OTHERS_MODE)
    try:
        yield before
    finally:
        os.umask(before)


def restrict(directory: Path) -> int:
    """Take all permissions on a directory's content from others; returns the number of changes.

    Without the right to change a mode, the rest is still restricted, and a line is logged.
    """
    count = 0
    refused: OSError | None = None
    for folder, _, names in os.walk(directory):
        for path in (Path(folder), *(Path(folder, name) for name in names)):
            mode = path.lstat().st_mode
            if S_ISLNK(mode) or not mode & _OTHERS_MODE:
                continue
            try:
                path.chmod(S_IMODE(mode) & ~_OTHERS_MODE)
            except PermissionError as error:
                # The directory may be a mounted volume that belongs to another user.
                refused = error
            else:
                count += 1
    if refused is not None:
        _log.warning(
            "permissions_not_restricted", path=str(refused.filename), reason=refused.strerror
        )
    return count
