"""Refuses commits before the disk is full, so the engine never runs out of space."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from dynactor.storage.store import Full

_LARGEST_RESERVE_BYTES: Final = 512 * 1024 * 1024
_RESERVE_SHARE: Final = 20
# Querying the free space may be slow on a network file system, so not every commit does it.
_INTERVAL_SECONDS: Final = 0.1
_INTERVAL_SHARE: Final = 16
# Number of trial writes. Opening needs more writes, so it would fail if one of these fails.
_PROBES: Final = 16


class DiskSpace:
    """Monitors the free space of the disk that holds a directory.

    ``unflushed_bytes`` returns the bytes that are only in the log. They take disk space a second
    time, in a table file, before the log is deleted.

    The disk is queried again after 0.1 seconds, or after a sixteenth of the reserve was written,
    whichever comes first. Other processes may use some of the reserve in between.
    """

    def __init__(
        self, directory: Path, reserve_bytes: int | None, unflushed_bytes: Callable[[], int]
    ) -> None:
        self._directory = directory
        self._reserve_bytes = _reserve_bytes(directory) if reserve_bytes is None else reserve_bytes
        self._unflushed_bytes = unflushed_bytes
        self._free_bytes = 0
        self._written_bytes = 0
        self._queried_at_seconds = float("-inf")

    def take(self, size_bytes: int) -> None:
        """Account for a commit of this size; raises ``Full`` if it must not be written."""
        self._written_bytes += size_bytes
        if self._is_stale():
            self._query()
        if self._free_bytes - 2 * size_bytes < self._reserve_bytes:
            raise Full(
                f"The disk of {self._directory} is full: {max(0, self._free_bytes)} bytes are "
                f"free for writing, and {self._reserve_bytes} of them are kept in reserve. "
                "Free some space on it."
            )

    def free_bytes(self) -> int | None:
        """The bytes that are free now; None if the disk does not report them."""
        try:
            return _free_bytes(self._directory)
        except OSError:
            return None

    def has(self, size_bytes: int) -> bool:
        """Whether this many bytes are free in addition to the reserve.

        Also writes a trial file, because the free space that the disk reports ignores quotas.
        """
        try:
            is_free = _free_bytes(self._directory) - size_bytes >= self._reserve_bytes
            return is_free and _can_be_written(self._directory / "probe", size_bytes)
        except OSError:
            return False

    def _is_stale(self) -> bool:
        return (
            self._written_bytes * _INTERVAL_SHARE >= self._reserve_bytes
            or time.monotonic() - self._queried_at_seconds >= _INTERVAL_SECONDS
        )

    def _query(self) -> None:
        self._free_bytes = _free_bytes(self._directory) - self._unflushed_bytes()
        self._written_bytes = 0
        self._queried_at_seconds = time.monotonic()


def disk_bytes(directory: Path) -> int:
    """The capacity of this directory's disk, in bytes."""
    disk = os.statvfs(directory)
    return disk.f_blocks * disk.f_frsize


def _free_bytes(directory: Path) -> int:
    disk = os.statvfs(directory)
    return disk.f_bavail * disk.f_frsize


def _can_be_written(path: Path, size_bytes: int) -> bool:
    """Write a trial file; raises ``OSError`` if the disk is full."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(file, 0, size_bytes + 1)
        for _ in range(_PROBES):
            os.pwrite(file, b"\0", size_bytes)
        return True
    finally:
        os.close(file)
        path.unlink()


def _reserve_bytes(directory: Path) -> int:
    return min(disk_bytes(directory) // _RESERVE_SHARE, _LARGEST_RESERVE_BYTES)
