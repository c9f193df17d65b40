"""The mark of a backup, which prevents a server from starting on the backup itself.

A copy of the backup is an ordinary data directory with the same files. To distinguish the two, the
mark names its own file by file system and inode number. A copied mark is another file, so it no
longer matches. A renamed backup keeps its mark.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from dynactor.storage.data_directory import sync_directory
from dynactor.storage.disk_sync import sync_file
from dynactor.storage.store import CannotOpen

_NAME: Final = "backup"


def mark_as_backup(directory: Path) -> None:
    """Mark a data directory as a backup, durably; raises ``OSError``."""
    with (directory / _NAME).open("xb") as file:
        file.write(_identity(file.fileno()))
        file.flush()
        sync_file(file.fileno())
    sync_directory(directory)


def refuse_backup(directory: Path) -> None:
    """Refuse to serve a backup, which would change, but no copy of it; raises ``CannotOpen``."""
    if _is_backup(directory):
        raise CannotOpen(
            f"{directory} is a backup, which a server would change: start the server on a copy "
            f"(cp -r {directory} COPY), or add --serve-backup to change the backup"
        )


def drop_backup_mark(directory: Path) -> None:
    """Turn a backup, or a copy of one, into an ordinary data directory; raises ``CannotOpen``."""
    try:
        (directory / _NAME).unlink()
        sync_directory(directory)
    except FileNotFoundError:
        return
    except OSError as error:
        raise CannotOpen(f"{directory / _NAME} can't be deleted: {error.strerror}") from error


def _is_backup(directory: Path) -> bool:
    try:
        with (directory / _NAME).open("rb") as file:
            return file.read() == _identity(file.fileno())
    except OSError:
        # If the directory can't be read, opening it later reports that.
        return False


def _identity(file: int) -> bytes:
    """The file system and the inode number of an open file."""
    return f"{os.fstatvfs(file).f_fsid} {os.fstat(file).st_ino}\n".encode()
