"""A backup is created while the engine reclaims disk space."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from threading import Event

import pytest

from dynactor.storage.data_directory import open_data_directory
from dynactor.storage.rocks.engine import DiskEngine
from dynactor.storage.rocks.options import RocksOptions
from dynactor.storage.rocks.store import RocksStore
from dynactor.storage.store import Closed, Full, Group, Retry, Store
from tests.support.stores.store import disk_store

_LONGEST_SECONDS = 20
MANY = 1 << 30


class HeldEngine(DiskEngine):
    """An engine whose compactions and checkpoints wait until the test or closing releases them."""

    def __init__(self, directory: Path) -> None:
        super().__init__(open_data_directory(directory), RocksOptions(longest_read_seconds=0.0))
        self.reclaiming = Event()
        self.copying = Event()
        self.may_reclaim = Event()
        self.may_copy = Event()
        self.may_copy.set()
        self.reopened = 0

    def reclaim(self, start: bytes, end: bytes) -> None:
        self.reclaiming.set()
        assert self.may_reclaim.wait(_LONGEST_SECONDS)
        super().reclaim(start, end)

    def checkpoint(self, directory: Path) -> None:
        self.copying.set()
        assert self.may_copy.wait(_LONGEST_SECONDS)
        super().checkpoint(directory)

    def interrupt(self) -> None:
        super().interrupt()
        self.may_reclaim.set()
        self.may_copy.set()

    def open_for_writing(self) -> None:
        super().open_for_writing()
        self.reopened += 1


@pytest.fixture
async def engine(tmp_path: Path) -> HeldEngine:
    return HeldEngine(tmp_path / "data")


@pytest.fixture
async def store(engine: HeldEngine) -> AsyncIterator[Store]:
    store = RocksStore(engine, RocksOptions(longest_read_seconds=0.0))
    try:
        yield store
    finally:
        await store.close()


async def put(store: Store, key: bytes, value: bytes = b"1") -> None:
    await (await store.commit([Group(b"~" + key, None, b"1", puts=[(key, value)])]))


async def keys_in(directory: Path) -> list[bytes]:
    async with disk_store(directory) as copy:
        page = await copy.durable().page(b"a", b"z", max_rows=MANY, max_bytes=MANY)
        return [row.key for row in page]


async def begun(event: Event) -> None:
    assert await asyncio.to_thread(event.wait, _LONGEST_SECONDS)


async def test_a_checkpoint_does_not_wait_for_a_reclaim(
    store: Store, engine: HeldEngine, tmp_path: Path
) -> None:
    await put(store, b"a")
    reclaim = asyncio.ensure_future(store.reclaim(b"t", b"u"))
    await begun(engine.reclaiming)
    await store.checkpoint(tmp_path / "copies" / "copy")
    assert not reclaim.done()
    engine.may_reclaim.set()
    await reclaim
    assert await keys_in(tmp_path / "copies" / "copy") == [b"a"]


async def test_closing_aborts_reclaim_and_checkpoint_and_leaves_a_complete_backup_or_none(
    store: Store, engine: HeldEngine, tmp_path: Path
) -> None:
    await put(store, b"a")
    engine.may_copy.clear()
    reclaim = asyncio.ensure_future(store.reclaim(b"t", b"u"))
    checkpoint = asyncio.ensure_future(store.checkpoint(tmp_path / "copies" / "copy"))
    await begun(engine.reclaiming)
    await begun(engine.copying)
    await store.close()
    answers = await asyncio.gather(reclaim, checkpoint, return_exceptions=True)
    assert {type(answer) for answer in answers} <= {Closed, type(None)}
    left = {each.name for each in (tmp_path / "copies").iterdir()} - {".lock"}
    if isinstance(answers[1], Closed):
        assert left == set()
    else:
        assert await keys_in(tmp_path / "copies" / "copy") == [b"a"]
    assert await keys_in(tmp_path / "data") == [b"a"]


async def test_after_a_full_disk_the_engine_is_reopened_once_reclaim_and_checkpoint_have_ended(
    store: Store, engine: HeldEngine, tmp_path: Path
) -> None:
    await put(store, b"a")
    engine.may_copy.clear()
    reclaim = asyncio.ensure_future(store.reclaim(b"t", b"u"))
    checkpoint = asyncio.ensure_future(store.checkpoint(tmp_path / "copies" / "copy"))
    await begun(engine.reclaiming)
    await begun(engine.copying)
    assert isinstance(store, RocksStore)
    store._end_writing(Exception("IO error: No space left on device"))
    for ending, work in ((engine.may_reclaim, reclaim), (engine.may_copy, checkpoint)):
        with pytest.raises(Full):
            await put(store, b"b")
        assert engine.reopened == 0
        ending.set()
        # Both operations flush the memtable, which may have unsynced changes.
        with pytest.raises((Full, Retry)):
            await work
    await put(store, b"b")
    assert engine.reopened == 1


async def test_checkpoints_made_during_compactions_are_complete(tmp_path: Path) -> None:
    value = bytes(range(256)) * 40
    async with disk_store(tmp_path / "data") as store:
        for row in range(2_000):
            await store.commit([Group(b"~t%04d" % row, None, b"1", puts=[(b"t%04d" % row, value)])])
        await put(store, b"a")
        await store.reclaim(b"t", b"u")
        await (await store.commit([Group(b"~", None, b"1", range_deletes=[(b"t", b"u")])]))
        reclaim = asyncio.ensure_future(store.reclaim(b"t", b"u"))
        copies = 0
        while copies == 0 or not reclaim.done():
            await store.checkpoint(tmp_path / "copies" / str(copies))
            copies += 1
        await reclaim
    for copy in range(copies):
        assert await keys_in(tmp_path / "copies" / str(copy)) == [b"a"]
