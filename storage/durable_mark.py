"""How far the log is known to be durable, kept beside it.

A log ends where its last whole record ends. After a power cut that is no error: the torn record
was never answered. But a flipped byte looks the same to RocksDB, which would drop it and all
that follows without a word. The mark tells the two apart: it names the last change that a
completed sync covered, so a log that ends before it is damaged.

The mark is written after each sync and synced itself once a second at most. It may therefore be
behind after a power cut, never ahead: no false alarm, and nothing missed but a byte that flips
in the last second before the power goes. It also remembers that a sync failed: what was accepted
after the mark was answered with an error, and must not come back at the next start.

Layout of the file, little-endian: format u16, flags u16, CRC-32 of the rest u32, sequence u64.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from struct import Struct
from typing import Final
from zlib import crc32

from storage.data_directory import write_durably
from storage.store import Damaged

_FORMAT: Final = 1
_SYNC_FAILED: Final = 1
_HEAD: Final = Struct("<HHI")
_SEQUENCE: Final = Struct("<Q")
_SIZE_BYTES: Final = _HEAD.size + _SEQUENCE.size
_SYNC_INTERVAL_SECONDS: Final = 1.0


class DurableMark:
    """The open mark. ``advance`` is for the thread that syncs, the rest for whoever opened it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            write_durably(path, _encode(0, 0))
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self.sequence, flags = _decode(os.pread(self._file, _SIZE_BYTES + 1, 0), path)
        self.sync_failed = bool(flags & _SYNC_FAILED)
        self._synced_at_seconds = time.monotonic()

    def advance(self, sequence: int) -> None:
        """A completed sync covered everything up to this change."""
        os.pwrite(self._file, _encode(sequence, 0), 0)
        self.sequence = sequence
        now_seconds = time.monotonic()
        if now_seconds - self._synced_at_seconds >= _SYNC_INTERVAL_SECONDS:
            os.fdatasync(self._file)
            self._synced_at_seconds = now_seconds

    def remember_failed_sync(self) -> None:
        """Nothing after the mark may be seen again."""
        os.pwrite(self._file, _encode(self.sequence, _SYNC_FAILED), 0)
        self.sync_failed = True
        os.fdatasync(self._file)

    def settle(self, sequence: int) -> None:
        """The engine was opened, or is about to be closed, with everything durable up to here."""
        os.pwrite(self._file, _encode(sequence, 0), 0)
        self.sequence = sequence
        self.sync_failed = False
        os.fdatasync(self._file)

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
