"""How far the log is known to be durable, kept beside it.

A log ends where its last whole record ends. After a power cut that is no error: the torn record
was never answered. But a flipped byte looks the same to RocksDB, which would drop it and all
that follows without a word. The mark tells the two apart: it names the last change that a
completed sync covered, so a log that ends before it is damaged.

The mark is written after each sync and synced itself once a second at most. It may therefore be
behind after a power cut, never ahead: no false alarm, and nothing missed but a byte that flips
in the last second before the power goes. It also remembers when what follows it in the log was
answered with an error, because a sync failed or the disk was full, and must not come back.

Layout of the file, little-endian: format u16, flags u16, CRC-32 of the rest u32, sequence u64.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from struct import Struct
from threading import Lock
from typing import Final
from zlib import crc32

from dynactor.storage.data_directory import write_durably
from dynactor.storage.disk_sync import complete_syncs, sync_data
from dynactor.storage.store import Damaged

_FORMAT: Final = 1
_ONLY_SYNCED: Final = 1
_HEAD: Final = Struct("<HHI")
_SEQUENCE: Final = Struct("<Q")
_SIZE_BYTES: Final = _HEAD.size + _SEQUENCE.size
_SYNC_INTERVAL_SECONDS: Final = 1.0


class DurableMark:
    """The open mark, for the event loop and for the thread that syncs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            write_durably(path, _encode(0, 0))
        self.sequence, flags = _decode(path.read_bytes(), path)
        self.only_synced = bool(flags & _ONLY_SYNCED)
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._lock = Lock()
        self._synced_at_seconds = time.monotonic()

    def advance(self, sequence: int) -> None:
        """Complete a sync of RocksDB's, which covered all up to this change, and note that."""
        complete_syncs(self._file)
        with self._lock:
            only_synced = self.only_synced
            self._write(sequence, only_synced=only_synced)
        now_seconds = time.monotonic()
        # A mark that cuts the log must not be behind: what it cuts off may have been answered.
        if only_synced or now_seconds - self._synced_at_seconds >= _SYNC_INTERVAL_SECONDS:
            self.sync()
            self._synced_at_seconds = now_seconds

    def keep_only_synced(self) -> None:
        """What is in the log after the mark must not come back at the next opening."""
        with self._lock:
            # True in this process even if it can't be written down.
            self.only_synced = True
            self._write(self.sequence, only_synced=True)
        sync_data(self._file)

    def settle(self, sequence: int) -> None:
        """Everything in the log is durable, up to this change."""
        with self._lock:
            self._write(sequence, only_synced=False)
        sync_data(self._file)

    def sync(self) -> None:
        """Make what was written durable."""
        sync_data(self._file)

    def _write(self, sequence: int, *, only_synced: bool) -> None:
        os.pwrite(self._file, _encode(sequence, _ONLY_SYNCED if only_synced else 0), 0)
        self.sequence, self.only_synced = sequence, only_synced

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def _encode(sequence: int, flags: int) -> bytes:
    tail = _SEQUENCE.pack(sequence)
    return _HEAD.pack(_FORMAT, flags, crc32(tail, (_FORMAT << 16) | flags)) + tail


def _decode(content: bytes, path: Path) -> tuple[int, int]:
    if len(content) == _SIZE_BYTES:
        version, flags, checksum = _HEAD.unpack_from(content)
        (sequence,) = _SEQUENCE.unpack_from(content, _HEAD.size)
        if version == _FORMAT and checksum == crc32(content[_HEAD.size :], version << 16 | flags):
            return sequence, flags
    raise Damaged(
        f"The file {path} is damaged, so nobody can tell whether the log beside it is whole. "
        "Restore the data directory from a backup; or, to go on with what the log holds, "
        f"delete {path}."
    )
