"""The simulator of power cuts, tested with synced and unsynced writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.support.stores.power_loss import PowerLoss
from tests.support.stores.store_process import StoreProcess


@pytest.fixture
def power(tmp_path: Path) -> PowerLoss:
    return PowerLoss(tmp_path / "power", tmp_path / "data")


def run(power: PowerLoss, data: Path, *lines: str) -> None:
    """Run this Python code in the data directory, in a process with the simulator's library."""
    code = "\n".join(["import os", *lines])
    environment = {**os.environ, **power.environment()}
    subprocess.run([sys.executable, "-c", code], cwd=data, env=environment, check=True)


SYNC_NAMES = "os.fsync(os.open('.', 0))"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_a_synced_file_with_a_synced_name_is_kept(power: PowerLoss, data: Path) -> None:
    run(power, data, "f = open('a', 'w', 1)", "f.write('whole\\n')", "os.fsync(f)", SYNC_NAMES)
    power.cut()
    assert (data / "a").read_text() == "whole\n"


def test_a_file_whose_name_was_not_synced_is_lost(power: PowerLoss, data: Path) -> None:
    run(power, data, "f = open('a', 'w', 1)", "f.write('whole\\n')", "os.fsync(f)")
    power.cut()
    assert not (data / "a").exists()


def test_a_file_is_cut_to_its_length_at_the_last_sync(power: PowerLoss, data: Path) -> None:
    write = ["f = open('a', 'w', 1)", "f.write('whole\\n')", "os.fdatasync(f)", SYNC_NAMES]
    run(power, data, *write, "f.write('torn\\n')")
    assert (data / "a").read_text() == "whole\ntorn\n"
    power.cut()
    assert (data / "a").read_text() == "whole\n"


def test_in_place_writes_are_reverted_to_the_last_sync(data: Path) -> None:
    data.mkdir()
    (data / "a").write_text("0123456789")
    power = PowerLoss(data.parent / "power", data)
    write = ["f = os.open('a', os.O_WRONLY)", "os.write(f, b'AB')", "os.pwrite(f, b'CD', 2)"]
    run(power, data, *write, "os.fdatasync(f)", "os.pwrite(f, b'EFGHIJKL', 4)")
    assert (data / "a").read_text() == "ABCDEFGHIJKL"
    power.cut()
    assert (data / "a").read_text() == "ABCD456789"


def test_a_random_cut_may_keep_the_first_in_place_writes(data: Path) -> None:
    data.mkdir()
    found = set()
    for seed in range(30):
        (data / "a").write_bytes(b"-" * 1_200)
        power = PowerLoss(data.parent / "power", data)
        run(
            power,
            data,
            "f = os.open('a', os.O_WRONLY)",
            "os.write(f, b'A' * 100)",
            "os.write(f, b'B' * 1_100)",
        )
        power.cut(Random(seed))
        content = (data / "a").read_bytes()
        assert len(content) == 1_200
        found.add((content.count(b"A"), content.count(b"B")))
    assert found == {(0, 0), (100, 0), (100, 412), (100, 924), (100, 1_100)}


def test_the_later_of_two_concurrent_syncs_counts_even_if_the_other_ends_last(
    power: PowerLoss, data: Path
) -> None:
    write = ["open('a', 'w').close()", "names = os.open('.', 0)", "os.fsync(names)"]
    run(power, data, *write)
    trace = data.parent / "power" / "trace"
    earlier = trace.read_bytes().splitlines(keepends=True)[-1]
    run(power, data, "f = open('b', 'w')", "os.fsync(f)", SYNC_NAMES)
    with trace.open("ab") as file:
        file.write(earlier)
    power.cut()
    assert (data / "b").exists()


def test_an_unsynced_rename_is_undone(power: PowerLoss, data: Path) -> None:
    write = ["f = open('a', 'w', 1)", "f.write('old\\n')", "os.fsync(f)", SYNC_NAMES]
    replace = ["f = open('b', 'w', 1)", "f.write('new\\n')", "os.fsync(f)", "os.rename('b', 'a')"]
    run(power, data, *write, *replace)
    assert (data / "a").read_text() == "new\n"
    power.cut()
    assert [path.name for path in data.iterdir()] == ["a"]
    assert (data / "a").read_text() == "old\n"


def test_a_deleted_file_comes_back_until_its_directory_is_synced(
    power: PowerLoss, data: Path
) -> None:
    write = ["f = open('a', 'w', 1)", "f.write('old\\n')", "os.fsync(f)", SYNC_NAMES]
    run(power, data, *write, "os.unlink('a')")
    power.cut()
    assert (data / "a").read_text() == "old\n"
    run(power, data, "os.unlink('a')", SYNC_NAMES)
    power.cut()
    assert not (data / "a").exists()


def test_a_random_cut_may_keep_a_part_of_unsynced_writes(power: PowerLoss, data: Path) -> None:
    lengths = set()
    for seed in range(20):
        (data / "a").write_text("")
        power = PowerLoss(data.parent / "power", data)
        run(power, data, "open('a', 'w').write('0123456789')")
        power.cut(Random(seed))
        lengths.add((data / "a").stat().st_size)
    assert {0, 10} <= lengths
    assert len(lengths) > 3


def test_every_acknowledged_write_survives_a_power_cut(power: PowerLoss, data: Path) -> None:
    for seed in range(10):
        # With small memtables the engine often switches logs, and flushes and compacts table files.
        with StoreProcess(data, power, memtable_bytes=1 << 16) as process:
            assert process.opening == "open"
            for earlier in range(seed):
                assert process.ask("durable", f"answered-{earlier}") == "yes"
                assert process.ask("count", f"rows-{earlier}") == "150"
                assert process.ask("count", f"unanswered-{earlier}") in {"0", "70"}
            assert process.ask("fill", f"rows-{seed}", 150) == "durable"
            assert process.ask("write", f"answered-{seed}", "yes") == "accepted"
            assert process.ask("wait", f"answered-{seed}") == "durable"
            process.send("fill", f"unanswered-{seed}", 70)
        power.cut(Random(seed) if seed % 2 else None)


def test_without_a_sync_an_accepted_write_is_lost(power: PowerLoss, data: Path) -> None:
    with StoreProcess(data, power) as process:
        power.hold_syncs()
        assert process.ask("write", "key", "value") == "accepted"
        assert process.ask("latest", "key") == "value"
    power.release_syncs()
    power.cut()
    with StoreProcess(data, power) as process:
        assert process.ask("latest", "key") == "-"


def test_killing_the_process_alone_loses_nothing_even_without_a_sync(
    power: PowerLoss, data: Path
) -> None:
    with StoreProcess(data, power) as process:
        power.hold_syncs()
        assert process.ask("write", "key", "value") == "accepted"
    power.release_syncs()
    with StoreProcess(data, power) as process:
        assert process.ask("latest", "key") == "value"
