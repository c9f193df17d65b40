"""Making a directory that is there when it is whole, and not before.

It is made beside its place under another name, by one process and one thread at a time. What a
crash leaves there is removed when the next one is made.
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
# What a data directory holds, at any stage of being made.
_OURS: Final = frozenset(
    {"backup", "format", "format.new", "link", "lock", "mark", "mark.new", "rocksdb", "rocksdb.tmp"}
)


class Taken(CannotOpen):
    """There is something in its place."""


@contextmanager
def whole_directory(directory: Path) -> Iterator[Path]:
    """Make a data directory: yields where, and gives it its name, durably, if nothing fails.

    Raises:
        Taken, CannotOpen: it can't be made, or another one is being made beside it.
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
                # Links in it would keep what is deleted elsewhere on the disk.
                shutil.rmtree(unfinished, ignore_errors=True)
    except OSError as error:
        raise CannotOpen(f"{directory} can't be made: {error.strerror}") from error


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Keep everybody else from making one in a directory, which is made if it is not there."""
    make_directory_durably(directory.absolute())
    # Of the open file, and not of the process as the lock of a data directory is.
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
            f"Another server makes a backup in {directory} right now: try again, or give each "
            "server a directory of its own"
        ) from None


def _clear(unfinished: Path, directory: Path) -> None:
    """Remove what a crash has left behind; nobody else is at work there."""
    if os.path.lexists(directory):
        raise Taken(f"There is a backup of that name: {directory}")
    if not os.path.lexists(unfinished):
        return
    if unfinished.is_symlink() or not {each.name for each in unfinished.iterdir()} <= _OURS:
        raise CannotOpen(f"{unfinished} is no unfinished backup: move it away")
    shutil.rmtree(unfinished)
