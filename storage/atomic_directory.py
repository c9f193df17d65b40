"""Creates a data directory atomically: builds it under a temporary name, then renames it.

The directory is built beside its final place, by one process and one thread at a time. The remains
of a crash are removed when the next directory is built.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dynactor.storage.data_directory import make_directory_durably, sync_directory
from dynactor.storage.store import CannotOpen

_UNFINISHED: Final = ".unfinished"
# Possible contents of an unfinished data directory.
_OURS: Final = frozenset(
    {"backup", "format", "format.new", "link", "lock", "mark", "mark.new", "rocksdb", "rocksdb.tmp"}
)


class PathTaken(CannotOpen):
    """The target path exists already."""


@contextmanager
def whole_directory(directory: Path) -> Iterator[Path]:
    """Yield a directory to fill. If the context succeeds, sync the directory and rename it.

    Raises ``Taken`` if it exists already, or ``CannotOpen`` if its parent is locked, or can't be
    used.
    """
    unfinished = directory.with_name(_UNFINISHED)
    try:
        with _alone_in(directory.parent):
            _clear(unfinished, directory)
            try:
                yield unfinished
                unfinished.rename(directory)
                sync_directory(directory.parent)
            finally:
                # Remove a failed attempt: its hard links would keep the disk space of files that
                # the store deletes.
                shutil.rmtree(unfinished, ignore_errors=True)
    except OSError as error:
        raise CannotOpen(f"{directory} can't be created: {error.strerror}") from error


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Lock a directory, which is created if missing, against other builders."""
    make_directory_durably(directory.absolute())
    # This lock belongs to the open file, so it excludes other threads of this process, too. A data
    # directory's lock belongs to the process.
    lock = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(lock, directory)
        yield
    finally:
        os.close(lock)


def _lock(lock: int, directory: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CannotOpen(
            f"Another server is creating a backup in {directory}: retry later, or give each server "
            "its own directory"
        ) from None


def _clear(unfinished: Path, directory: Path) -> None:
    """Remove the remains of a crash. The lock guarantees that no other process builds here."""
    if os.path.lexists(directory):
        raise PathTaken(f"There is a backup of that name: {directory}")
    if not os.path.lexists(unfinished):
        return
    if unfinished.is_symlink() or not {each.name for each in unfinished.iterdir()} <= _OURS:
        raise CannotOpen(f"{unfinished} is not an unfinished backup: move it away")
    shutil.rmtree(unfinished)
