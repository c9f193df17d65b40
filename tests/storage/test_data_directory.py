"""The data directories that a server accepts, and the errors for others."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynactor.storage.data_directory import FORMAT_VERSION, open_data_directory
from dynactor.storage.rocks.store import open_rocks
from dynactor.storage.store import CannotOpen, Damaged
from tests.support.stores.store_process import StoreProcess


async def test_a_missing_directory_is_created_with_its_parents(tmp_path: Path) -> None:
    store = await open_rocks(tmp_path / "a" / "b")
    await store.close()
    assert (tmp_path / "a" / "b" / "format").read_text() == format_line(FORMAT_VERSION)


async def test_a_directory_in_use_is_refused_until_its_server_stops(tmp_path: Path) -> None:
    with StoreProcess(tmp_path) as process:
        with pytest.raises(CannotOpen, match=r"in use by process \d+\. Stop that server first"):
            await open_rocks(tmp_path)
        process.ask("close")
        store = await open_rocks(tmp_path)
        await store.close()


async def test_a_killed_server_leaves_no_lock_behind(tmp_path: Path) -> None:
    with StoreProcess(tmp_path):
        pass
    store = await open_rocks(tmp_path)
    assert await store.latest.load([b"row"]) == [None]
    await store.close()


async def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    open_data_directory(tmp_path).close()
    newer = FORMAT_VERSION + 1
    (tmp_path / "format").write_text(format_line(newer))
    known = f"has format {newer}, this dynactor knows formats up to {FORMAT_VERSION}"
    with pytest.raises(CannotOpen, match=known):
        await open_rocks(tmp_path)
    assert (tmp_path / "format").read_text() == format_line(newer)


async def test_an_older_format_is_upgraded_so_that_older_versions_refuse_the_directory(
    tmp_path: Path,
) -> None:
    await (await open_rocks(tmp_path)).close()
    (tmp_path / "format").write_text(format_line(1))
    await (await open_rocks(tmp_path)).close()
    assert (tmp_path / "format").read_text() == format_line(FORMAT_VERSION)


async def test_the_format_of_an_unusable_directory_is_not_upgraded(tmp_path: Path) -> None:
    await (await open_rocks(tmp_path)).close()
    (tmp_path / "format").write_text(format_line(1))
    (tmp_path / "rocksdb" / "CURRENT").write_bytes(b"nonsense")
    with pytest.raises(Damaged):
        await open_rocks(tmp_path)
    assert (tmp_path / "format").read_text() == format_line(1)


async def test_a_failed_format_upgrade_leaves_the_directory_unlocked(tmp_path: Path) -> None:
    await (await open_rocks(tmp_path)).close()
    (tmp_path / "format").write_text(format_line(1))
    # A directory of this name prevents writing the new format file.
    (tmp_path / "format.new").mkdir()
    for _attempt in range(2):
        with pytest.raises(CannotOpen, match="can't be used: Is a directory"):
            await open_rocks(tmp_path)
    (tmp_path / "format.new").rmdir()
    await (await open_rocks(tmp_path)).close()


async def test_a_damaged_format_is_refused(tmp_path: Path) -> None:
    open_data_directory(tmp_path).close()
    (tmp_path / "format").write_bytes(b"\xff\x00")
    with pytest.raises(CannotOpen, match="format is damaged"):
        await open_rocks(tmp_path)


async def test_a_directory_of_another_program_is_refused_and_left_unchanged(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(CannotOpen, match="holds files and is not a data directory of dynactor"):
        await open_rocks(tmp_path)
    assert names_in(tmp_path) == ["thesis.txt"]


async def test_a_file_is_refused_as_data_directory(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(CannotOpen, match="can't be used: Not a directory"):
        await open_rocks(tmp_path / "data")


@pytest.mark.parametrize("left_behind", ["lock", "format.new"])
async def test_an_interrupted_first_start_is_repeated(tmp_path: Path, left_behind: str) -> None:
    (tmp_path / left_behind).write_text("")
    store = await open_rocks(tmp_path)
    await store.close()
    assert (tmp_path / "format").read_text() == format_line(FORMAT_VERSION)


async def test_a_failed_opening_leaves_the_directory_unlocked(tmp_path: Path) -> None:
    store = await open_rocks(tmp_path)
    await store.close()
    current = tmp_path / "rocksdb" / "CURRENT"
    whole = current.read_bytes()
    current.write_bytes(b"nonsense")
    for _attempt in range(2):
        with pytest.raises(Damaged, match=r"can't be opened: .*CURRENT"):
            await open_rocks(tmp_path)
    current.write_bytes(whole)
    store = await open_rocks(tmp_path)
    await store.close()


def format_line(version: int) -> str:
    return f"dynactor data, format {version}\n"


def names_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]
