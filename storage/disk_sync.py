"""Makes written data durable on Linux and on macOS.

Linux's fsync and fdatasync wait until data is durable. macOS's fsync, which RocksDB calls there,
leaves data in the disk's cache, where a power cut loses it. F_FULLFSYNC flushes that cache for all
files of the disk. So on macOS, F_FULLFSYNC follows each of RocksDB's syncs of its log.
"""

from __future__ import annotations

import fcntl
import os
from typing import Final

_FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)


def can_sync() -> bool:
    """Whether the server knows how to make data durable on this system."""
    return _FULL_SYNC is not None or hasattr(os, "fdatasync")


def sync_file(descriptor: int) -> None:
    """Make the content of a file, or the names in a directory, durable.

    After ``OSError`` the content of the disk is unknown.
    """
    if _FULL_SYNC is None:
        os.fsync(descriptor)
    else:
        complete_syncs(descriptor)


def sync_data(descriptor: int) -> None:
    """Sync like ``sync_file``, without metadata that reading does not need, if that is cheaper."""
    if _FULL_SYNC is None:
        os.fdatasync(descriptor)
    else:
        complete_syncs(descriptor)


def complete_syncs(descriptor: int) -> None:
    """On macOS, flush the cache of this file's disk, which completes the syncs of other code.

    Raises as ``sync_file``.
    """
    if _FULL_SYNC is not None:
        fcntl.fcntl(descriptor, _FULL_SYNC)
