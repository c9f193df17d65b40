"""The contract of the storage port, on disk and in memory."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Protocol

import pytest

from dynactor.storage.rocks.memory_store import open_rocks_in_memory
from dynactor.storage.rocks.reads import DiskReads
from dynactor.storage.rocks.store import open_rocks
from dynactor.storage.store import NOT_CACHED, CannotOpen, Closed, Group, Row, Store
from tests.support.stores.rows import MANY, group, keys_between, put
from tests.support.stores.store import disk_store, memory_store


class OpenStore(Protocol):
    def __call__(self) -> AbstractAsyncContextManager[Store]: ...


@pytest.fixture(params=["disk", "memory"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> OpenStore:
    if request.param == "memory":
        return memory_store
    return lambda: disk_store(tmp_path)


@pytest.fixture
async def store(open_store: OpenStore) -> AsyncIterator[Store]:
    async with open_store() as store:
        yield store


async def test_a_commit_is_seen_by_its_owner_at_once_and_by_readers_once_durable(
    tmp_path: Path,
) -> None:
    async with disk_store(tmp_path) as store:
        before = store.durable()
        future = await store.commit([group({b"a": b"1"})])
        assert await store.latest.load([b"a"]) == [b"1"]
        assert await store.durable().load([b"a"]) == [None]
        assert store.durable().cached(b"a") is None
        await future
        assert await store.durable().load([b"a", b"b"]) == [b"1", None]
        assert await before.load([b"a"]) == [None]


async def test_in_memory_a_commit_is_durable_at_once_and_waits_for_one_turn() -> None:
    async with memory_store() as store:
        before = store.durable()
        future = await store.commit([group({b"a": b"1"})])
        assert await store.durable().load([b"a"]) == [b"1"]
        assert await before.load([b"a"]) == [None]
        assert not future.done()
        assert store.figures().waiting_commits == 1
        await asyncio.sleep(0)
        assert future.done()
        assert store.figures().waiting_commits == 0
        assert store.durable() is store.durable()


async def test_a_closed_store_in_memory_refuses_reads_that_follow_a_commit() -> None:
    async with memory_store() as store:
        await (await store.commit([group({b"a": b"1"})]))
        await store.close()
        with pytest.raises(Closed):
            await store.durable().load([b"a"])


async def test_cached_values_equal_loaded_ones(store: Store) -> None:
    before = store.durable()
    await (await store.commit([group({b"a": b"1"})]))
    assert store.latest.cached(b"a") == b"1"
    assert store.durable().cached(b"a") == b"1"
    assert store.durable().cached(b"b") is None
    assert before.cached(b"a") is None


async def test_a_reopened_store_holds_the_written_rows(tmp_path: Path) -> None:
    for number in range(3):
        async with disk_store(tmp_path) as store:
            await put(store, {b"%d" % number: b"x"})
            assert await keys_between(store, b"0", b"9") == [b"0", b"1", b"2"][: number + 1]


@pytest.mark.parametrize("reverse", [False, True])
async def test_other_tasks_run_during_a_long_page_and_the_page_shows_one_state(
    store: Store, reverse: bool
) -> None:
    await put(store, {b"k%05d" % number: b"old" for number in range(2000)})
    turns = 0

    async def write() -> None:
        nonlocal turns
        for number in range(0, 2000, 250):
            await asyncio.sleep(0)
            turns += 1
            await store.commit([group({b"k%05d" % number: b"new"}, name=b"writer")])

    read = store.latest.page(b"k", b"l", reverse=reverse, max_rows=MANY, max_bytes=MANY)
    page, _ = await asyncio.gather(read, write())
    assert turns == 8
    assert {row.value for row in page} == {b"old"}
    assert len(page) == 2000


class EvenReads(DiskReads):
    """Reads whose slices keep their size, whatever the load of the machine."""

    def note_slice(self, rows: int, seconds: float) -> None:
        del rows, seconds


async def test_a_short_page_needs_no_await_and_a_long_one_does(tmp_path: Path) -> None:
    store = await open_rocks(tmp_path, reads=EvenReads())
    await put(store, {b"k%d" % number: b"x" for number in range(3)})
    view = store.durable()
    await put(store, {b"k5": b"later"})
    rows = [Row(b"k%d" % number, b"x") for number in range(3)]
    assert view.page_nowait(b"k", b"l", max_rows=128, max_bytes=MANY) is NOT_CACHED
    assert view.page_nowait(b"k", b"l", max_rows=129, max_bytes=1_000) is NOT_CACHED
    assert view.page_nowait(b"k", b"l", max_rows=128, max_bytes=1_000) == rows
    reverse = view.page_nowait(b"k", b"l", reverse=True, max_rows=2, max_bytes=1_000)
    assert reverse == [rows[2], rows[1]]
    await store.close()


async def test_deleting_a_range_frees_its_disk_space(tmp_path: Path) -> None:
    async with disk_store(tmp_path) as store:
        value = bytes(range(256)) * 40
        for batch in range(20):
            rows = {b"t%06d" % (batch * 100 + row): b"%d" % row + value for row in range(100)}
            await put(store, rows)
        await store.reclaim(b"t", b"u")
        before_bytes = size_bytes(tmp_path, "*.sst")
        await (await store.commit([Group(b"head", None, b"1", range_deletes=[(b"t", b"u")])]))
        await store.reclaim(b"t", b"u")
        assert before_bytes > 100_000
        async with asyncio.timeout(60):
            # RocksDB deletes files in the background, so poll.
            while await asyncio.to_thread(size_bytes, tmp_path, "*.sst") > before_bytes / 20:
                pass
        assert await keys_between(store, b"t", b"u") == []


async def test_closing_does_not_wait_for_a_reclaim_to_finish(tmp_path: Path) -> None:
    async with disk_store(tmp_path) as store:
        value = bytes(range(256)) * 8
        for batch in range(50):
            await put(store, {b"t%06d" % (row * 50 + batch): value for row in range(200)})
        reclaims = [asyncio.ensure_future(store.reclaim(b"t", b"u")) for _ in range(3)]
        await asyncio.sleep(0)
    answers = await asyncio.gather(*reclaims, return_exceptions=True)
    assert {type(answer) for answer in answers} <= {type(None), Closed}
    assert isinstance(answers[-1], Closed)
    async with disk_store(tmp_path) as store:
        assert len(await keys_between(store, b"t", b"u")) == 10_000


async def test_a_checkpoint_is_an_independent_data_directory(store: Store, tmp_path: Path) -> None:
    await put(store, {b"a": b"1"})
    await store.checkpoint(tmp_path / "some" / "copy")
    await put(store, {b"b": b"1"})
    async with disk_store(tmp_path / "some" / "copy") as copy:
        assert await keys_between(copy, b"a", b"z") == [b"a"]
        await put(copy, {b"c": b"1"})
    assert await keys_between(store, b"a", b"z") == [b"a", b"b"]


async def test_a_checkpoint_needs_an_empty_directory(store: Store, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "thesis.txt").write_text("mine")
    with pytest.raises(CannotOpen):
        await store.checkpoint(tmp_path / "copy")


async def test_a_store_in_memory_leaves_no_file_if_its_process_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    store = await open_rocks_in_memory()
    for _ in range(2):
        await (await store.commit([group({b"a": b"1"})]))
        await store.clear()
        assert await store.durable().load([b"a"]) == [None]
    assert files_in(tmp_path) == []
    await store.close()
    assert files_in(tmp_path) == []


def files_in(directory: Path) -> list[Path]:
    return list(directory.iterdir())


def size_bytes(directory: Path, pattern: str) -> int:
    total_bytes = 0
    for path in directory.rglob(pattern):
        # RocksDB may delete the file after it was listed.
        with suppress(FileNotFoundError):
            total_bytes += path.stat().st_size
    return total_bytes
