"""Refusing commits before the disk is full, so that the engine never finds it so."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from storage.store import Full

_LARGEST_RESERVE_BYTES: Final = 512 * 1024 * 1024
_RESERVE_SHARE: Final = 20
# Asking may be slow on a network file system: not for every commit.
_INTERVAL_SECONDS: Final = 0.1
_INTERVAL_SHARE: Final = 16


class DiskSpace:
    """Watches the free space of the disk that holds a directory.

    It asks again after a tenth of a second, or after a sixteenth of the reserve was written,
    whichever comes first; so other writers on the disk may take the rest of the reserve between.
    """

    def __init__(self, directory: Path, reserve_bytes: int | None) -> None:
        self._directory = directory
        disk = os.statvfs(directory)
        share_bytes = disk.f_blocks * disk.f_frsize // _RESERVE_SHARE
        self._reserve_bytes = (
            min(share_bytes, _LARGEST_RESERVE_BYTES) if reserve_bytes is None else reserve_bytes
        )
        self._free_bytes = 0
        self._written_bytes = 0
        self._asked_at_seconds = float("-inf")

    def take(self, size_bytes: int) -> None:
        """Account for a commit of this size; raises ``Full`` if it must not be written."""
        self._written_bytes += size_bytes
        if self._is_stale():
            self._ask()
        if self._free_bytes - size_bytes < self._reserve_bytes:
            raise Full(
                f"The disk of {self._directory} is full: {self._free_bytes} bytes are free, and "
                f"{self._reserve_bytes} are kept in reserve. Free some space on it."
            )

    def has(self, size_bytes: int) -> bool:
        """Whether this much is free now, beside the reserve."""
        self._ask()
        return self._free_bytes - size_bytes >= self._reserve_bytes

    def _is_stale(self) -> bool:
        return (
            self._written_bytes * _INTERVAL_SHARE >= self._reserve_bytes
            or time.monotonic() - self._asked_at_seconds >= _INTERVAL_SECONDS
        )

    def _ask(self) -> None:
        disk = os.statvfs(self._directory)
        self._free_bytes = disk.f_bavail * disk.f_frsize
        self._written_bytes = 0
        self._asked_at_seconds = time.monotonic()
