"""Damaged files cause an error at the start or at a read, and never a wrong answer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynactor.storage.rocks.store import open_rocks
from dynactor.storage.store import Damaged, Group, Row, Store
from tests.support.stores.store_process import StoreProcess

ROWS = 40
MARK_SLOTS = (0, 4096)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data directory of a killed process, with many durable commits in its log."""
    with StoreProcess(tmp_path / "data") as process:
        for number in range(ROWS):
            process.ask("write", f"key-{number}", "value")
            process.ask("wait", f"key-{number}")
    return tmp_path / "data"


def log_of(data: Path) -> Path:
    [log] = (data / "rocksdb").glob("*.log")
    return log


def flip(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 0x20
    path.write_bytes(content)


def contents(data: Path) -> dict[Path, bytes]:
    return {
        path: path.read_bytes()
        for path in (data / "rocksdb").iterdir()
        if path.is_file() and not path.name.startswith("LOG")
    }


async def test_an_undamaged_log_is_replayed(data: Path) -> None:
    store = await open_rocks(data)
    assert await store.durable().load([b"key-39"]) == [b"value"]
    await store.close()


@pytest.mark.parametrize("where", [0.0, 0.1, 0.5, 0.9, 0.999])
async def test_a_flipped_byte_in_the_log_is_reported_and_nothing_is_changed(
    data: Path, where: float
) -> None:
    log = log_of(data)
    flip(log, int(where * log.stat().st_size))
    before = contents(data)
    for _attempt in range(2):
        with pytest.raises(Damaged, match=r"is damaged.*Restore the data directory from a backup"):
            await open_rocks(data)
        assert contents(data) == before


async def test_a_missing_log_is_reported(data: Path) -> None:
    log_of(data).unlink()
    with pytest.raises(Damaged, match="up to change 0, but change 80 was written"):
        await open_rocks(data)


@pytest.mark.parametrize("lost_bytes", [1, 8, 30])
async def test_a_log_without_its_last_durable_commit_is_reported(
    data: Path, lost_bytes: int
) -> None:
    log = log_of(data)
    os.truncate(log, log.stat().st_size - lost_bytes)
    with pytest.raises(Damaged):
        await open_rocks(data)


@pytest.mark.parametrize("tail", [b"\x00" * 5000, b"\x17torn record\x01\x02\x03" * 9, b"\x00"])
async def test_a_torn_record_after_the_durable_commits_is_no_error(data: Path, tail: bytes) -> None:
    with log_of(data).open("ab") as log:
        log.write(tail)
    store = await open_rocks(data)
    assert await store.durable().load([b"key-0", b"key-39"]) == [b"value", b"value"]
    await store.close()


async def test_a_damaged_log_can_be_accepted_by_deleting_the_mark(data: Path) -> None:
    flip(log_of(data), log_of(data).stat().st_size // 2)
    (data / "mark").unlink()
    store = await open_rocks(data)
    assert await store.durable().load([b"key-0", b"key-39"]) == [b"value", None]
    await store.close()


@pytest.mark.parametrize("slot", MARK_SLOTS)
async def test_a_mark_that_is_torn_in_one_of_its_slots_is_no_error(data: Path, slot: int) -> None:
    flip(data / "mark", slot + 9)
    store = await open_rocks(data)
    assert await store.durable().load([b"key-0", b"key-39"]) == [b"value", b"value"]
    await store.close()


async def test_a_mark_that_is_damaged_in_both_slots_is_reported(data: Path) -> None:
    for slot in MARK_SLOTS:
        flip(data / "mark", slot + 9)
    with pytest.raises(Damaged, match=r"delete .*mark"):
        await open_rocks(data)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("CURRENT", "can't be opened"), ("MANIFEST-*", r"The file \S+/MANIFEST-\d+ may be corrupted")],
)
async def test_a_damaged_manifest_of_the_engine_is_reported(
    data: Path, name: str, hint: str
) -> None:
    [path] = (data / "rocksdb").glob(name)
    flip(path, 5)
    with pytest.raises(Damaged, match=hint):
        await open_rocks(data)


async def test_the_error_at_the_start_names_a_damaged_table_file_and_not_the_manifest(
    tmp_path: Path,
) -> None:
    store = await open_rocks(tmp_path)
    rows = [(b"key-%04d" % number, os.urandom(200)) for number in range(200)]
    await (await store.commit([Group(b"head", None, b"1", puts=rows)]))
    await store.close()
    [table] = (tmp_path / "rocksdb").glob("*.sst")
    whole = table.read_bytes()
    refusals = set()
    for content in flipped_ends(whole), [whole[: len(whole) // 2], b""]:
        for each in content:
            table.unlink()
            table.write_bytes(each)
            with pytest.raises(Damaged) as caught:
                await open_rocks(tmp_path)
            refusals.add(str(caught.value))
    table.unlink()
    with pytest.raises(Damaged) as caught:
        await open_rocks(tmp_path)
    refusals.add(str(caught.value))

    assert len(refusals) > 10
    assert not [refusal for refusal in refusals if "MANIFEST" in refusal or ".." in refusal]
    # For one kind of damage, RocksDB's message names no file.
    unnamed = {refusal for refusal in refusals if table.name not in refusal}
    engine = tmp_path / "rocksdb"
    assert all(each.startswith(f"The files in {engine} can't be opened: ") for each in refusals)
    assert all("properties unsorted" in each for each in unnamed)


def flipped_ends(whole: bytes) -> Iterator[bytes]:
    """A table file with a flipped byte in its index, properties or footer."""
    for offset in range(len(whole) - 1_000, len(whole), 13):
        content = bytearray(whole)
        content[offset] ^= 0x20
        yield bytes(content)


async def test_a_flipped_byte_in_a_table_never_gives_a_wrong_answer(tmp_path: Path) -> None:
    expected = {b"key-%04d" % number: os.urandom(200) for number in range(200)}
    store = await open_rocks(tmp_path)
    await (await store.commit([Group(b"head", None, b"1", puts=list(expected.items()))]))
    await store.close()
    [table] = (tmp_path / "rocksdb").glob("*.sst")
    whole = table.read_bytes()
    reported = 0
    for offset in range(0, len(whole), len(whole) // 150):
        # Create a new file each time, because RocksDB may have cached blocks of the old file.
        table.unlink()
        table.write_bytes(whole)
        flip(table, offset)
        reported += await is_damage_reported(tmp_path, expected)
    assert reported > 100


async def is_damage_reported(directory: Path, expected: dict[bytes, bytes]) -> bool:
    try:
        store = await open_rocks(directory)
    except Damaged:
        return True
    try:
        return await is_damage_met(store, expected)
    finally:
        await store.close()


async def is_damage_met(store: Store, expected: dict[bytes, bytes]) -> bool:
    is_met = False
    for key, value in expected.items():
        try:
            assert await store.durable().load([key]) == [value]
        except Damaged:
            is_met = True
    for reverse in (False, True):
        try:
            page = await store.durable().page(
                b"key", b"kez", reverse=reverse, max_rows=1000, max_bytes=1 << 20
            )
            rows = [Row(key, value) for key, value in expected.items()]
            assert page == (rows[::-1] if reverse else rows)
        except Damaged:
            is_met = True
    return is_met
