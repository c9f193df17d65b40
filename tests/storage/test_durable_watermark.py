"""The mark beside the log."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from dynactor.storage.durable_watermark import DurableMark
from dynactor.storage.store import Damaged


def test_a_new_mark_names_no_change(tmp_path: Path) -> None:
    with closing(DurableMark(tmp_path / "mark")) as mark:
        assert (mark.sequence, mark.only_synced) == (0, False)


def test_a_mark_is_read_back_as_it_was_left(tmp_path: Path) -> None:
    with closing(DurableMark(tmp_path / "mark")) as mark:
        mark.advance(7)
        mark.advance(2**40)
    with closing(DurableMark(tmp_path / "mark")) as mark:
        assert (mark.sequence, mark.only_synced) == (2**40, False)


def test_what_must_not_come_back_is_remembered_until_the_log_is_settled(tmp_path: Path) -> None:
    with closing(DurableMark(tmp_path / "mark")) as mark:
        mark.advance(6)
        mark.keep_only_synced()
        # A sync that was under way ends well.
        mark.advance(7)
    with closing(DurableMark(tmp_path / "mark")) as mark:
        assert (mark.sequence, mark.only_synced) == (7, True)
        mark.settle(6)
    with closing(DurableMark(tmp_path / "mark")) as mark:
        assert (mark.sequence, mark.only_synced) == (6, False)


class WatchedMark(DurableMark):
    """A mark whose syncs are counted, and take it to what it was then when the power goes."""

    durable = b""

    def sync(self) -> None:
        super().sync()
        self.durable = self.path.read_bytes()


def test_what_is_answered_is_kept_by_a_mark_that_cuts_the_log(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    with closing(WatchedMark(path)) as mark:
        mark.advance(6)
        mark.keep_only_synced()
        mark.advance(7)
        path.write_bytes(mark.durable)
    with closing(DurableMark(path)) as mark:
        assert (mark.sequence, mark.only_synced) == (7, True)


def test_no_flipped_bit_goes_unnoticed(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    with closing(DurableMark(path)) as mark:
        mark.advance(7)
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        content = bytearray(whole)
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        with pytest.raises(Damaged):
            DurableMark(path)


@pytest.mark.parametrize("size_bytes", [0, 8, 15, 17])
def test_a_mark_of_another_size_is_damaged(tmp_path: Path, size_bytes: int) -> None:
    (tmp_path / "mark").write_bytes(bytes(size_bytes))
    with pytest.raises(Damaged):
        DurableMark(tmp_path / "mark")
