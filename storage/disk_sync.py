"""When what was written is on the disk for good: on Linux, and on macOS.

Linux's fsync and fdatasync wait until it is. That of macOS, which RocksDB calls there, leaves
data in the disk's own memory, where a power cut takes it. F_FULLFSYNC empties that memory of
whatever was given to the disk before, through any file; so on macOS it follows each sync of
RocksDB's log.
"""

from __future__ import annotations

import fcntl
import os
from typing import Final

_FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)


def can_sync() -> bool:
    """Whether this system has a way to make data durable that is known here."""
    return _FULL_SYNC is not None or hasattr(os, "fdatasync")


def sync_file(descriptor: int) -> None:
    """Make the content of a file durable, or the names in a directory.

    Raises:
        OSError: it can't be; what the disk holds is unknown from then on.
    """
    if _FULL_SYNC is None:
        os.fsync(descriptor)
    else:
        complete_syncs(descriptor)


def sync_data(descriptor: int) -> None:
    """As ``sync_file``, without what reading the content does not need, where that is less."""
    if _FULL_SYNC is None:
        os.fdatasync(descriptor)
    else:
        complete_syncs(descriptor)


def complete_syncs(descriptor: int) -> None:
    """Make durable what others have synced, of any file on the disk of this one.

    Raises:
        OSError: as ``sync_file``.
    """
    if _FULL_SYNC is not None:
        fcntl.fcntl(descriptor, _FULL_SYNC)
