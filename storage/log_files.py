"""RocksDB's log files: listing them, and truncating them after a given change.

The format, since 2011 ("Write Ahead Log File Format" in RocksDB's wiki): blocks of 32 KiB with
records of CRC u32, length u16, type u8 and payload. A batch is one full record, or a first record,
middle ones and a last. A batch begins with the sequence number of its first row, u64. Recycled logs
have longer headers; this store does not recycle logs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import Final

from dynactor.storage.disk_sync import sync_file

_BLOCK_BYTES: Final = 32 * 1024
_HEADER: Final = Struct("<IHB")
_SEQUENCE: Final = Struct("<Q")
_PADDING: Final = 0
_FULL: Final = 1
_FIRST: Final = 2


def log_files(engine_directory: Path) -> list[Path]:
    """The logs, oldest first."""
    return sorted(engine_directory.glob("*.log"), key=lambda path: int(path.stem))


def logged_bytes(engine_directory: Path) -> int:
    """The total size of the logs; the open engine may delete old ones meanwhile."""
    total_bytes = 0
    for path in log_files(engine_directory):
        with suppress(FileNotFoundError):
            total_bytes += path.stat().st_size
    return total_bytes


def cut_after(engine_directory: Path, sequence: int) -> None:
    """Durably remove every batch that begins after this sequence number from the logs."""
    is_cut = False
    for path in log_files(engine_directory):
        offset = 0 if is_cut else _offset_after(path.read_bytes(), sequence)
        if offset is not None:
            is_cut = True
            with path.open("r+b") as file:
                file.truncate(offset)
                sync_file(file.fileno())


def _offset_after(log: bytes, sequence: int) -> int | None:
    for offset, first_sequence in _batches(log):
        if first_sequence > sequence:
            return offset
    return None


def _batches(log: bytes) -> Iterator[tuple[int, int]]:
    """The offset and first sequence number of every batch."""
    start, head = -1, b""
    for offset, kind, payload_start, payload_end in _records(log):
        if kind in (_FULL, _FIRST):
            start, head = offset, b""
        if start >= 0:
            # A first record at the very end of a block may be too short for the sequence number.
            missing_bytes = _SEQUENCE.size - len(head)
            head += log[payload_start:payload_end][:missing_bytes]
            if len(head) == _SEQUENCE.size:
                yield start, _SEQUENCE.unpack(head)[0]
                start = -1


def _records(log: bytes) -> Iterator[tuple[int, int, int, int]]:
    """The offset, type and payload bounds of every record, up to the end of the file."""
    offset = 0
    while offset + _HEADER.size <= len(log):
        left_in_block = _BLOCK_BYTES - offset % _BLOCK_BYTES
        _checksum, length, kind = _HEADER.unpack_from(log, offset)
        if left_in_block < _HEADER.size or kind == _PADDING:
            offset += left_in_block
            continue
        payload_start = offset + _HEADER.size
        yield offset, kind, payload_start, payload_start + length
        offset = payload_start + length
