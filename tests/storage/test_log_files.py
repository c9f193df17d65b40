"""Cutting a log after a given change; RocksDB then reads the log, to check the result."""

from __future__ import annotations

from pathlib import Path
from random import Random
from shutil import copytree

import pytest
from rocksdict import AccessType, Rdict, WriteBatch

from dynactor.storage.log_files import cut_after, log_files, logged_bytes
from dynactor.storage.rocks.options import RocksOptions, engine_options

# Sizes of values for which a record ends near a header, a block's end, or after several blocks.
SIZES = [0, 1, 5, 40, 300, 32_700, 32_734, 32_735, 32_741, 32_768, 100_000]


def sequence_read_from(directory: Path) -> int:
    options = engine_options(RocksOptions())
    rows = Rdict(str(directory), options, access_type=AccessType.read_only(False))
    return rows.latest_sequence_number()


@pytest.mark.parametrize("seed", range(3))
def test_after_a_cut_the_log_ends_with_the_given_change(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    rows = Rdict(str(tmp_path / "whole"), engine_options(RocksOptions()))
    ends = [0]
    for number in range(60):
        batch = WriteBatch(raw_mode=True)
        for part in range(random.randint(1, 3)):
            batch.put(b"%d/%d" % (number, part), bytes(random.choice(SIZES)))
        rows.write(batch)
        ends.append(rows.latest_sequence_number())
    rows.flush_wal(sync=True)
    for number, end in enumerate(ends):
        copy = tmp_path / str(number)
        copytree(tmp_path / "whole", copy)
        cut_after(copy, end)
        assert sequence_read_from(copy) == end
    rows.close()


def test_logs_after_a_cut_one_are_emptied(tmp_path: Path) -> None:
    rows = Rdict(str(tmp_path), engine_options(RocksOptions()))
    rows[b"key"] = b"value"
    rows[b"key"] = b"value"
    [log] = log_files(tmp_path)
    whole_bytes = log.stat().st_size
    later = log.with_name(f"{int(log.stem) + 1}.log")
    later.write_bytes(log.read_bytes())
    cut_after(tmp_path, 2)
    assert later.stat().st_size == log.stat().st_size == whole_bytes
    cut_after(tmp_path, 1)
    assert 0 < log.stat().st_size < whole_bytes
    assert later.stat().st_size == 0
    rows.close()


def test_a_log_that_is_deleted_meanwhile_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "000001.log").symlink_to(tmp_path / "deleted")
    (tmp_path / "000002.log").write_bytes(bytes(100))
    assert logged_bytes(tmp_path) == 100
