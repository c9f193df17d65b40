"""The data directory: its format, its lock and its files.

- ``format``: one line with the kind of directory and the version of its format
- ``lock``: held by the process that uses the directory, whose id it contains
- ``mark``: the position up to which the log is known to be durable (storage/durable_watermark.py)
- ``rocksdb/``: the engine's files, which no other module reads
- ``backup``: only in a backup and in copies of one (storage/backup_mark.py)

Each version reads the formats of all earlier versions. A version raises the format when it opens a
directory, before its first write. So an older version refuses the directory, instead of losing data
that it does not know. The formats:

- 1: the first one
- 2: a table or index in UPDATING stores the requested throughput and the present one
- 3: the mark has two slots; the unused capacity of partitions is stored; namespaces have tables
- 4: a partition has a head from its creation to its end; the catalog has a version
- 5: the changes of tables with point-in-time recovery are listed by key
"""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path
from typing import Final

import structlog

from dynactor.storage.disk_sync import sync_file
from dynactor.storage.machine.private_files import restrict
from dynactor.storage.store import CannotOpen

# Raise this when older versions could not read the stored data, or would lose a part of it.
FORMAT_VERSION: Final = 5

_FORMAT_LINE: Final = "dynactor data, format {}\n"
_FORMAT_PATTERN: Final = re.compile(r"dynactor data, format (\d+)\n")
# Files that an interrupted first start may have left.
_UNFINISHED: Final = frozenset({"lock", "format.new"})

_log = structlog.get_logger(__name__)


class DataDirectory:
    """A data directory in use by this process, until it is closed."""

    def __init__(self, path: Path, lock: int, format_version: int, *, is_new: bool) -> None:
        self.path = path
        self.format_version = format_version
        self.is_new = is_new
        self._lock = lock

    @property
    def engine(self) -> Path:
        """The directory of the engine's files."""
        return self.path / "rocksdb"

    @property
    def mark(self) -> Path:
        """The file of the durable mark."""
        return self.path / "mark"

    def raise_format(self) -> None:
        """Raise the format durably before what older versions don't know; raises ``CannotOpen``."""
        if self.format_version == FORMAT_VERSION:
            return
        try:
            _write_format(self.path)
        except OSError as error:
            raise _cannot_be_used(self.path, error) from error
        _log.info("format_raised", before=self.format_version, now=FORMAT_VERSION)
        self.format_version = FORMAT_VERSION

    def close(self) -> None:
        """Release the lock of the directory."""
        os.close(self._lock)


def open_data_directory(path: Path) -> DataDirectory:
    """Lock the directory for this process; a missing or empty one is initialized.

    Only the owner may read the directory and its files from now on.

    Raises ``CannotOpen`` with a message for the person who starts the server.
    """
    try:
        make_directory_durably(path.absolute())
        directory = _take(path)
    except OSError as error:
        raise _cannot_be_used(path, error) from error
    try:
        count = restrict(path)
        if count and not directory.is_new:
            _log.info("permissions_restricted", path=str(path), files=count)
    except OSError as error:
        directory.close()
        raise _cannot_be_used(path, error) from error
    return directory


def open_existing_directory(path: Path) -> DataDirectory:
    """Lock an existing data directory for this process; raises ``CannotOpen``."""
    try:
        if not (path / "format").is_file():
            raise CannotOpen(f"{path} is not a data directory of dynactor")
        return _take(path)
    except OSError as error:
        raise _cannot_be_used(path, error) from error


def make_directory_durably(path: Path) -> None:
    """Create a directory and its parents, so that they survive a power cut."""
    if not path.exists():
        make_directory_durably(path.parent)
        path.mkdir(exist_ok=True)
        sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Sync a directory, because the sync of a file does not make the file's name durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)


def sync_unlinked_files(path: Path) -> None:
    """Sync a directory and its files, except files with other hard links: those are durable."""
    for file in path.iterdir():
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if os.fstat(descriptor).st_nlink == 1:
                sync_file(descriptor)
        finally:
            os.close(descriptor)
    sync_directory(path)


def write_durably(path: Path, content: bytes) -> None:
    """Replace a small file atomically: a power cut leaves either the old or the new content."""
    replacement = path.with_name(f"{path.name}.new")
    with replacement.open("wb") as file:
        file.write(content)
        file.flush()
        sync_file(file.fileno())
    replacement.replace(path)
    sync_directory(path.parent)


def _take(path: Path) -> DataDirectory:
    _read_format(path)
    lock = _lock(path / "lock")
    try:
        # Read again, because another process may have raised the format meanwhile.
        format_version = _read_format(path)
        is_new = format_version is None
        if format_version is None:
            format_version = FORMAT_VERSION
            _write_format(path)
        directory = DataDirectory(path, lock, format_version, is_new=is_new)
        if not directory.engine.exists():
            directory.engine.mkdir()
            sync_directory(path)
    except (OSError, CannotOpen):
        os.close(lock)
        raise
    return directory


def _write_format(path: Path) -> None:
    write_durably(path / "format", _FORMAT_LINE.format(FORMAT_VERSION).encode())


def _cannot_be_used(path: Path, error: OSError) -> CannotOpen:
    return CannotOpen(
        f"The data directory {path} can't be used: {error.strerror}. "
        "Choose another one, or correct its permissions."
    )


def _read_format(path: Path) -> int | None:
    """The format of a directory; None if empty. Raises ``CannotOpen``, also for a newer one."""
    names = {entry.name for entry in path.iterdir()}
    if "format" not in names:
        if names <= _UNFINISHED:
            return None
        raise CannotOpen(
            f"{path} holds files and is not a data directory of dynactor. "
            "Choose an empty directory, or one that does not exist yet."
        )
    text = (path / "format").read_bytes().decode(errors="replace")
    match = _FORMAT_PATTERN.fullmatch(text)
    if match is None:
        raise CannotOpen(
            f"The file {path / 'format'} is damaged: it should read "
            f"{_FORMAT_LINE.format(FORMAT_VERSION)!r}. Restore the directory from a backup."
        )
    format_version = int(match[1])
    if format_version > FORMAT_VERSION:
        raise CannotOpen(
            f"The data directory {path} has format {format_version}, this dynactor knows formats "
            f"up to {FORMAT_VERSION}. Start the newer version that wrote it, or choose another "
            "directory."
        )
    return format_version


def _lock(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError) as error:
        holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
        os.close(descriptor)
        raise CannotOpen(
            f"The data directory {path.parent} is in use by process {holder or 'unknown'}. "
            "Stop that server first, or choose another directory."
        ) from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor
