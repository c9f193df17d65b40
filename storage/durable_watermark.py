"""The watermark: the position up to which the log is known to be durable.

A log ends after its last whole record. After a power cut that is normal: the torn record was never
acknowledged. But a flipped byte looks the same to RocksDB, which would silently drop it and all
that follows. The mark distinguishes the two cases. It names the last change that a completed sync
covered, so a log that ends before the mark is damaged.

The mark is written after each sync, and synced itself at most once a second. After a power cut it
may therefore be behind, but never ahead. So the check never reports an intact log as damaged, and
misses only a byte that flips in the last second before the power cut. The mark also records that
later changes in the log must not come back: they were answered with an error, because a sync failed
or the disk was full.

The file has two slots. Each write has a higher turn number, and the valid slot with the higher turn
is read. A slot is overwritten only while the other one is durable, so a power cut that tears a
write leaves the earlier mark. Both slots hold the flags about the log, so they don't depend on
which slot is read.

Layout of a slot, little-endian: format u16, flags u16, CRC-32 of the rest u32, turn u64, sequence
u64. The slots begin at 0 and 4096, because disks write sectors of up to 4,096 bytes. A file of data
format 2 and earlier has one slot, without a turn, until ``add_slot`` is called.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from struct import Struct
from threading import RLock
from typing import Final, NamedTuple
from zlib import crc32

from dynactor.storage.data_directory import write_durably
from dynactor.storage.disk_sync import complete_syncs, sync_data
from dynactor.storage.store import CannotOpen, Damaged

_FORMAT: Final = 2
_ONE_SLOT_FORMAT: Final = 1
_ONLY_SYNCED: Final = 1
_HEAD: Final = Struct("<HHI")
_REST: Final = Struct("<QQ")
_ONE_SLOT_REST: Final = Struct("<Q")
_SLOT_BYTES: Final = _HEAD.size + _REST.size
_OFFSETS: Final = (0, 4096)
_SYNC_INTERVAL_SECONDS: Final = 1.0


class _Slot(NamedTuple):
    """The content of a slot."""

    turn: int
    sequence: int
    only_synced: bool


class DurableMark:
    """The open file of the mark; the event loop and the thread that syncs use it.

    Invariants: one slot is durable, and ``_next`` is the other one; a file of one slot has no
    other. ``sequence`` changes only after all writes and syncs of a call have succeeded. After a
    call that raised, the file may be ahead of ``sequence`` until ``keep_only_synced`` or ``settle``
    succeeds.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            write_durably(path, _two_slots(_Slot(0, 0, only_synced=False)))
        content = path.read_bytes()
        one = _one_slot(content)
        slots = [(slot, at) for at in range(2) if (slot := _decoded(content, at)) is not None]
        if one is None and not slots:
            raise Damaged(
                f"The file {path} is damaged, so it is unknown whether the log beside it is "
                "complete. Restore the data directory from a backup. To continue with the log as "
                f"it is, delete {path}."
            )
        self._has_two = one is None
        latest, at = (one, 1) if one is not None else max(slots)
        self._turn, self.sequence, self.only_synced = latest
        self._next = 1 - at
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._is_synced = True
        # Whether both slots are durable and hold ``sequence`` and ``only_synced``.
        self._is_in_both = False
        self._lock = RLock()
        self._synced_at_seconds = time.monotonic()

    def add_slot(self) -> None:
        """Add a second slot to a file, which earlier versions can't read; raises ``CannotOpen``."""
        with self._lock:
            if self._has_two:
                return
            slot = _Slot(self._turn, self.sequence, self.only_synced)
            try:
                write_durably(self.path, _two_slots(slot))
                replacement = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            except OSError as error:
                raise CannotOpen(f"{self.path} can't be written: {error.strerror}") from error
            os.close(self._file)
            self._file, self._has_two = replacement, True

    def advance(self, sequence: int) -> None:
        """Record that a sync of RocksDB covered all changes up to this sequence number.

        After ``OSError`` the mark did not advance, so later changes are answered with an error.
        """
        complete_syncs(self._file)
        with self._lock:
            if self.only_synced:
                # The log will be cut at this mark. A mark that is behind would cut acknowledged
                # changes, so write both slots.
                self._write_both(sequence, only_synced=True)
                return
            self._write(sequence, only_synced=False)
            now_seconds = time.monotonic()
            if now_seconds - self._synced_at_seconds >= _SYNC_INTERVAL_SECONDS:
                self.sync()
                self._synced_at_seconds = now_seconds
            self.sequence = sequence

    @property
    def is_kept(self) -> bool:
        """Whether ``keep_only_synced`` has succeeded, so the log can be cut at the mark.

        If the log were cut earlier, a file ahead of ``sequence`` would report it as damaged.
        """
        return self.only_synced and self._is_in_both

    def keep_only_synced(self) -> None:
        """Record that changes after the mark must not come back at the next opening.

        Raises ``OSError`` if the mark can't be written; retry.
        """
        with self._lock:
            if not self.is_kept:
                # Set this first, because it must hold in this process even if the write fails.
                self.only_synced = True
                self._write_both(self.sequence, only_synced=True)

    def settle(self, sequence: int) -> None:
        """Record that the whole log, which ends with this change, is durable."""
        with self._lock:
            # Sync first: the system may still buffer the writes of a killed process, and a slot is
            # overwritten only while the other one is durable.
            sync_data(self._file)
            self._write_both(sequence, only_synced=False)

    def sync(self) -> None:
        """Make the written slot durable; then the other slot is next."""
        with self._lock:
            sync_data(self._file)
            if not self._is_synced:
                self._is_synced = True
                self._next = 1 - self._next

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _write_both(self, sequence: int, *, only_synced: bool) -> None:
        for _ in range(2):
            self._write(sequence, only_synced=only_synced)
            self.sync()
        # Set these after both slots are written. If the second write fails, the changes up to this
        # sequence number are answered with an error, and must not reappear at the next start.
        self.sequence, self.only_synced, self._is_in_both = sequence, only_synced, True

    def _write(self, sequence: int, *, only_synced: bool) -> None:
        self._turn += 1
        self._is_in_both = False
        slot = _Slot(self._turn, sequence, only_synced)
        if self._has_two:
            os.pwrite(self._file, _encoded(slot), _OFFSETS[self._next])
        else:
            os.pwrite(self._file, _encoded_as_one(slot), 0)
        self._is_synced = False


def _two_slots(slot: _Slot) -> bytes:
    """A file with the same content in both slots."""
    return _encoded(slot).ljust(_OFFSETS[1], b"\0") + _encoded(slot)


def _encoded(slot: _Slot) -> bytes:
    return _sealed(_FORMAT, slot, _REST.pack(slot.turn, slot.sequence))


def _encoded_as_one(slot: _Slot) -> bytes:
    return _sealed(_ONE_SLOT_FORMAT, slot, _ONE_SLOT_REST.pack(slot.sequence))


def _sealed(version: int, slot: _Slot, rest: bytes) -> bytes:
    flags = _ONLY_SYNCED if slot.only_synced else 0
    return _HEAD.pack(version, flags, _checksum(version, flags, rest)) + rest


def _decoded(content: bytes, at: int) -> _Slot | None:
    """The content of a slot; None if it is torn or damaged."""
    found = _unsealed(_FORMAT, content[_OFFSETS[at] : _OFFSETS[at] + _SLOT_BYTES], _REST.size)
    if found is None:
        return None
    flags, rest = found
    turn, sequence = _REST.unpack(rest)
    return _Slot(turn, sequence, bool(flags & _ONLY_SYNCED))


def _one_slot(content: bytes) -> _Slot | None:
    """The content of a file of one slot; None if it is damaged or has two."""
    found = _unsealed(_ONE_SLOT_FORMAT, content, _ONE_SLOT_REST.size)
    if found is None:
        return None
    flags, rest = found
    return _Slot(0, _ONE_SLOT_REST.unpack(rest)[0], bool(flags & _ONLY_SYNCED))


def _unsealed(version: int, content: bytes, rest_bytes: int) -> tuple[int, bytes] | None:
    """Verify a slot; return its flags and remaining bytes, or None if it is not valid."""
    if len(content) != _HEAD.size + rest_bytes:
        return None
    found_version, flags, checksum = _HEAD.unpack_from(content)
    rest = content[_HEAD.size :]
    is_whole = found_version == version and checksum == _checksum(version, flags, rest)
    return (flags, rest) if is_whole else None


def _checksum(version: int, flags: int, rest: bytes) -> int:
    return crc32(rest, version << 16 | flags)
