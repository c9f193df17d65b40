"""The mark: the file that says how far the log is durable."""

from __future__ import annotations

import errno
import os
from contextlib import closing
from pathlib import Path
from struct import pack
from zlib import crc32

import pytest

from dynactor.storage.durable_watermark import DurableMark
from dynactor.storage.store import Damaged

SLOT_BYTES = 24
OFFSETS = (0, 4096)


def read(path: Path) -> tuple[int, bool]:
    with closing(DurableMark(path)) as mark:
        return mark.sequence, mark.only_synced


def one_slot(sequence: int, flags: int = 0) -> bytes:
    """A mark in data format 2."""
    rest = pack("<Q", sequence)
    return pack("<HHI", 1, flags, crc32(rest, 1 << 16 | flags)) + rest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mark"


def test_a_new_mark_covers_no_change(path: Path) -> None:
    assert read(path) == (0, False)


def test_a_reopened_mark_has_the_values_that_were_written(path: Path) -> None:
    with closing(DurableMark(path)) as mark:
        mark.advance(7)
        mark.advance(2**40)
    assert read(path) == (2**40, False)


def test_the_mark_forbids_replay_of_unsynced_changes_until_the_log_is_cut(path: Path) -> None:
    with closing(DurableMark(path)) as mark:
        mark.advance(6)
        mark.keep_only_synced()
        # A sync that was in progress succeeds.
        mark.advance(7)
    with closing(DurableMark(path)) as mark:
        assert (mark.sequence, mark.only_synced) == (7, True)
        mark.settle(6)
    assert read(path) == (6, False)


class WatchedMark(DurableMark):
    """A mark whose syncs are counted; a power cut reverts it to its last sync."""

    durable = b""

    def sync(self) -> None:
        super().sync()
        self.durable = self.path.read_bytes()


def test_a_mark_that_requires_a_cut_of_the_log_keeps_acknowledged_changes(path: Path) -> None:
    with closing(WatchedMark(path)) as mark:
        mark.advance(6)
        mark.keep_only_synced()
        mark.advance(7)
        path.write_bytes(mark.durable)
    assert read(path) == (7, True)


@pytest.mark.parametrize("at", OFFSETS)
def test_acknowledged_changes_are_kept_if_a_mark_that_requires_a_cut_is_damaged(
    path: Path, at: int
) -> None:
    with closing(DurableMark(path)) as mark:
        mark.keep_only_synced()
        mark.advance(7)
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    assert read(path) == (7, True)


class FullMark(DurableMark):
    """A mark on a disk that is full after ``syncs_left`` more syncs."""

    syncs_left = 1_000

    def sync(self) -> None:
        if self.syncs_left == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.syncs_left -= 1
        super().sync()


@pytest.mark.parametrize("slots", [0, 1])
def test_a_change_whose_mark_was_written_to_one_slot_is_not_replayed(
    path: Path, slots: int
) -> None:
    with closing(FullMark(path)) as mark:
        mark.advance(6)
        mark.keep_only_synced()
        mark.syncs_left = slots
        with pytest.raises(OSError, match="No space left"):
            mark.advance(7)
        # The commits up to change 7 were answered with an error, so the log is cut after 6.
        assert (mark.sequence, mark.only_synced) == (6, True)
        mark.syncs_left = 2
        mark.keep_only_synced()
    assert read(path) == (6, True)


@pytest.mark.parametrize("slots", [0, 1])
def test_the_log_is_not_cut_before_both_slots_have_the_position(path: Path, slots: int) -> None:
    with closing(FullMark(path)) as mark:
        mark.advance(6)
        assert not mark.is_kept
        mark.syncs_left = slots
        with pytest.raises(OSError, match="No space left"):
            mark.keep_only_synced()
        assert not mark.is_kept
        mark.syncs_left = 2
        mark.keep_only_synced()
        assert mark.is_kept
        mark.syncs_left = slots
        with pytest.raises(OSError, match="No space left"):
            mark.advance(7)
        assert not mark.is_kept


@pytest.mark.parametrize("slots", [0, 1])
def test_the_log_is_still_cut_if_one_slot_requires_it(path: Path, slots: int) -> None:
    with closing(FullMark(path)) as mark:
        mark.advance(6)
        mark.keep_only_synced()
        mark.syncs_left = slots
        with pytest.raises(OSError, match="No space left"):
            mark.settle(5)
        assert (mark.sequence, mark.only_synced) == (6, True)
        assert not mark.is_kept


@pytest.mark.parametrize("written_bytes", range(SLOT_BYTES + 1))
@pytest.mark.parametrize("advances", [1, 2, 3])
def test_a_torn_write_leaves_the_old_mark_or_the_new_one(
    path: Path, advances: int, written_bytes: int
) -> None:
    with closing(DurableMark(path)) as mark:
        mark.settle(5)
    before = path.read_bytes()
    with closing(DurableMark(path)) as mark:
        for number in range(advances):
            mark.advance(1_000_000 + number)
    after = path.read_bytes()
    (changed,) = (
        at for at in OFFSETS if before[at : at + SLOT_BYTES] != after[at : at + SLOT_BYTES]
    )
    torn = bytearray(before)
    torn[changed : changed + written_bytes] = after[changed : changed + written_bytes]
    path.write_bytes(torn)

    found = read(path)

    assert found in ((5, False), (1_000_000 + advances - 1, False))
    if written_bytes == SLOT_BYTES:
        assert found != (5, False)


def test_a_slot_is_not_written_while_the_other_slot_is_not_durable(path: Path) -> None:
    with closing(DurableMark(path)) as mark:
        mark.settle(5)
        durable = path.read_bytes()
        for sequence in range(6, 20):
            mark.advance(sequence)
        after = path.read_bytes()

    changed = [at for at in OFFSETS if durable[at : at + 24] != after[at : at + 24]]
    assert len(changed) == 1


@pytest.mark.parametrize("at", OFFSETS)
@pytest.mark.parametrize("keeps", [False, True])
def test_both_slots_hold_the_flags_of_the_log(path: Path, at: int, keeps: bool) -> None:
    with closing(DurableMark(path)) as mark:
        mark.advance(7)
        mark.keep_only_synced()
        if not keeps:
            mark.settle(6)
    content = bytearray(path.read_bytes())
    content[at : at + SLOT_BYTES] = bytes(SLOT_BYTES)
    path.write_bytes(content)

    assert read(path) == ((7, True) if keeps else (6, False))


def test_a_mark_with_a_flipped_bit_is_read_as_one_of_the_last_two_marks(path: Path) -> None:
    with closing(DurableMark(path)) as mark:
        mark.settle(6)
        mark.advance(7)
    whole = path.read_bytes()
    for at in OFFSETS:
        for bit in range(8 * SLOT_BYTES):
            content = bytearray(whole)
            content[at + bit // 8] ^= 1 << bit % 8
            path.write_bytes(content)
            assert read(path) in ((6, False), (7, False))


@pytest.mark.parametrize("size_bytes", [0, 8, 15, 16, 17, 24, 4_120])
def test_a_mark_without_a_valid_slot_is_reported_as_damaged(path: Path, size_bytes: int) -> None:
    path.write_bytes(bytes(size_bytes))
    with pytest.raises(Damaged):
        DurableMark(path)


@pytest.mark.parametrize("flags", [0, 1])
def test_a_mark_of_one_slot_is_read_and_gets_a_second_one(path: Path, flags: int) -> None:
    path.write_bytes(one_slot(7, flags))
    with closing(DurableMark(path)) as mark:
        assert (mark.sequence, mark.only_synced) == (7, bool(flags))
        # Keep one slot, because an older version may still have to read the mark.
        mark.advance(8)
        assert path.read_bytes() == one_slot(8, flags)
        mark.add_slot()
        mark.advance(9)
    assert path.stat().st_size == OFFSETS[1] + SLOT_BYTES
    assert read(path) == (9, bool(flags))


def test_every_flipped_bit_in_a_mark_of_one_slot_is_detected(path: Path) -> None:
    whole = one_slot(7)
    for bit in range(8 * len(whole)):
        content = bytearray(whole)
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        with pytest.raises(Damaged):
            DurableMark(path)


def test_a_second_slot_is_added_only_once(path: Path) -> None:
    path.write_bytes(one_slot(7))
    with closing(DurableMark(path)) as mark:
        mark.add_slot()
        inode = path.stat().st_ino
        mark.add_slot()
        assert path.stat().st_ino == inode
