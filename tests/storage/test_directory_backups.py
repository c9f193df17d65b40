"""Backups of a running store: each is a complete directory, or does not exist."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from dynactor.storage.atomic_directory import PathTaken, whole_directory
from dynactor.storage.data_directory import open_data_directory
from dynactor.storage.directory_backups import Backups, BadName
from dynactor.storage.store import CannotOpen, Closed, Full, Group, Store
from tests.support.stores.store import disk_store

MANY = 1 << 30


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with disk_store(tmp_path / "data") as store:
        yield store


@pytest.fixture
def backups(store: Store, tmp_path: Path) -> Backups:
    return Backups(store, tmp_path / "backups")


async def put(store: Store, key: bytes) -> None:
    await (await store.commit([Group(b"~" + key, None, b"1", puts=[(key, b"1")])]))


async def keys_in(directory: Path) -> list[bytes]:
    async with disk_store(directory) as copy:
        page = await copy.durable().page(b"a", b"z", max_rows=MANY, max_bytes=MANY)
        return [row.key for row in page]


def tables_in(directory: Path) -> set[int]:
    return {each.stat().st_ino for each in directory.glob("rocksdb/*.sst")}


def names(tmp_path: Path) -> list[str]:
    return sorted(each.name for each in (tmp_path / "backups").iterdir() if each.name != ".lock")


async def test_a_backup_has_the_durable_data_and_never_changes(
    store: Store, backups: Backups, tmp_path: Path
) -> None:
    await put(store, b"a")
    made = await backups.make("first")
    await put(store, b"b")
    assert made.directory == tmp_path / "backups" / "first"
    assert await keys_in(made.directory) == [b"a"]
    second = await backups.make("second")
    assert await keys_in(second.directory) == [b"a", b"b"]
    assert names(tmp_path) == ["first", "second"]


async def test_the_table_files_of_a_backup_are_hard_links(
    store: Store, backups: Backups, tmp_path: Path
) -> None:
    await put(store, b"a")
    made = await backups.make("first")
    linked = tables_in(made.directory)
    assert linked
    assert linked <= tables_in(tmp_path / "data")


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "-rf", "a/b", "../a", "a b", "ä", "a\n", "a" * 201]
)
async def test_a_backup_name_with_special_characters_is_refused(
    backups: Backups, tmp_path: Path, name: str
) -> None:
    with pytest.raises(BadName):
        await backups.make(name)
    assert not (tmp_path / "backups").exists()


async def test_a_backup_name_can_be_used_once(store: Store, backups: Backups) -> None:
    await put(store, b"a")
    made = await backups.make("first")
    await put(store, b"b")
    with pytest.raises(PathTaken):
        await backups.make("first")
    assert await keys_in(made.directory) == [b"a"]


async def test_two_concurrent_backups_are_both_complete(
    store: Store, backups: Backups, tmp_path: Path
) -> None:
    await put(store, b"a")
    made = await asyncio.gather(*(backups.make(f"made-{number}") for number in range(4)))
    for each in made:
        assert await keys_in(each.directory) == [b"a"]
    assert len(names(tmp_path)) == 4


async def test_an_incomplete_backup_of_a_crashed_server_is_removed_by_the_next_backup(
    store: Store, backups: Backups, tmp_path: Path
) -> None:
    left = tmp_path / "backups" / ".unfinished"
    open_data_directory(left).close()
    (left / "rocksdb" / "000001.sst").write_bytes(b"half")
    await put(store, b"a")
    made = await backups.make("first")
    assert await keys_in(made.directory) == [b"a"]
    assert names(tmp_path) == ["first"]


async def test_files_of_other_programs_are_not_removed(backups: Backups, tmp_path: Path) -> None:
    theirs = tmp_path / "backups" / ".unfinished" / "thesis.txt"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("mine")
    with pytest.raises(CannotOpen, match="is not an unfinished backup"):
        await backups.make("first")
    assert theirs.read_text() == "mine"


async def test_a_concurrent_backup_of_another_server_is_not_removed(
    store: Store, backups: Backups, tmp_path: Path
) -> None:
    await put(store, b"a")
    with whole_directory(tmp_path / "backups" / "others") as unfinished:
        open_data_directory(unfinished).close()
        with pytest.raises(CannotOpen, match="Another server is creating a backup"):
            await backups.make("first")
    assert names(tmp_path) == ["others"]
    await backups.make("first")
    assert names(tmp_path) == ["first", "others"]


async def test_a_backup_is_completed_after_its_caller_is_cancelled(
    store: Store, backups: Backups, tmp_path: Path
) -> None:
    await put(store, b"a")
    for name in ("first", "second"):
        waiting = asyncio.create_task(backups.make(name))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    await backups.make("third")
    assert names(tmp_path) == ["first", "second", "third"]
    assert await keys_in(tmp_path / "backups" / "first") == [b"a"]


async def test_closing_the_store_during_a_backup_leaves_a_complete_backup_or_none(
    tmp_path: Path,
) -> None:
    async with disk_store(tmp_path / "data") as store:
        await put(store, b"a")
        waiting = asyncio.create_task(Backups(store, tmp_path / "backups").make("first"))
        await asyncio.sleep(0)
    (made,) = await asyncio.gather(waiting, return_exceptions=True)
    if isinstance(made, Closed):
        assert names(tmp_path) == []
    else:
        assert await keys_in(tmp_path / "backups" / "first") == [b"a"]


def test_a_failed_backup_leaves_nothing(tmp_path: Path) -> None:
    def fill() -> None:
        with whole_directory(tmp_path / "backups" / "first") as unfinished:
            open_data_directory(unfinished).close()
            raise Full("The disk is full")

    with pytest.raises(Full):
        fill()
    assert names(tmp_path) == []


async def test_only_the_owner_may_read_a_backup(backups: Backups, tmp_path: Path) -> None:
    (tmp_path / "data").chmod(0o755)
    made = await backups.make("first")
    assert made.directory.stat().st_mode & 0o777 == 0o700


async def test_the_error_for_an_unwritable_backup_directory_says_why(
    store: Store, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotOpen, match="Not a directory"):
        await Backups(store, tmp_path / "file" / "backups").make("first")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A directory on another file system than the test's: in memory, or on the disk."""
    device = tmp_path.stat().st_dev
    places = (Path("/dev", "shm"), Path.home(), Path(__file__).parent)
    place = next(place for place in places if place.exists() and place.stat().st_dev != device)
    with TemporaryDirectory(dir=place) as directory:
        yield Path(directory)


async def test_a_backup_directory_on_another_file_system_is_refused(
    store: Store, elsewhere: Path
) -> None:
    await put(store, b"a")
    with pytest.raises(CannotOpen, match="on the same file system"):
        await Backups(store, elsewhere).make("first")
    assert not (elsewhere / "first").exists()
