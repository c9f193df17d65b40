"""Reopening the engine while the disk is full again: reads continue, and writes resume later."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from dynactor.storage.rocks.options import RocksOptions
from dynactor.storage.store import Closed, Damaged, Full, Group, Retry, Store, Unknown
from tests.support.stores.full_engine import FullEngine, store_on
from tests.support.stores.store import disk_store

MANY = 1 << 30
ROWS = 1_000


@pytest.fixture
def _no_collector() -> Iterator[None]:
    """Switch the garbage collector off: the store must free its views without it."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
async def engine(tmp_path: Path) -> FullEngine:
    return FullEngine(tmp_path / "data")


@pytest.fixture
async def store(engine: FullEngine, _no_collector: None) -> AsyncIterator[Store]:
    async with store_on(engine) as store:
        yield store


async def put(store: Store, key: bytes, value: bytes) -> None:
    (head,) = await store.latest.load([b"~" + key])
    counter = b"%d" % (int(head or 0) + 1)
    await (await store.commit([Group(b"~" + key, head, counter, puts=[(key, value)])]))


async def fill(store: Store) -> None:
    rows = [(b"row%04d" % number, b"x" * 1_000) for number in range(ROWS)]
    await (await store.commit([Group(b"~rows", None, b"1", puts=rows)]))


async def refused_openings(store: Store, engine: FullEngine, count: int) -> None:
    """Write until opening the engine for writing has failed this many times."""
    while engine.refused_openings < count:
        with pytest.raises((Full, Unknown)):
            await put(store, b"other", b"refused")


async def written(store: Store, key: bytes, value: bytes) -> None:
    """Repeat a write until it is accepted."""
    while True:
        try:
            return await put(store, key, value)
        except Full:
            await asyncio.sleep(0)


async def value(store: Store, key: bytes) -> tuple[bytes | None, bytes | None]:
    """The value in the owner's view and in the durable view."""
    (latest,) = await store.latest.load([key])
    (durable,) = await store.durable().load([key])
    return latest, durable


async def test_reads_continue_with_the_durable_rows(store: Store, engine: FullEngine) -> None:
    await put(store, b"key", b"old")
    await fill(store)
    engine.is_full = True
    with pytest.raises(Unknown):
        await put(store, b"key", b"new")
    for count in range(1, 4):
        await refused_openings(store, engine, count)
        assert await value(store, b"key") == (b"old", b"old")
        assert store.latest.cached(b"nothing") is None
        for view in (store.latest, store.durable()):
            page = await view.page(b"row", b"s", max_rows=MANY, max_bytes=MANY)
            assert len(page) == ROWS


async def test_writes_resume_once_the_disk_has_space(store: Store, engine: FullEngine) -> None:
    await put(store, b"key", b"old")
    for number in range(3):
        engine.is_full = True
        await refused_openings(store, engine, 2 * number + 2)
        engine.is_full = False
        await written(store, b"key", b"%d" % number)
        assert await value(store, b"key") == (b"%d" % number, b"%d" % number)
        assert await value(store, b"other") == (None, None)


async def test_refused_writes_are_missing_after_a_restart(
    store: Store, engine: FullEngine, tmp_path: Path
) -> None:
    await put(store, b"key", b"old")
    engine.is_full = True
    with pytest.raises(Unknown):
        await put(store, b"key", b"new")
    await refused_openings(store, engine, 1)
    await store.close()
    async with disk_store(tmp_path / "data") as opened:
        assert await value(opened, b"key") == (b"old", b"old")
        await put(opened, b"key", b"newer")


async def test_started_pages_continue(store: Store, engine: FullEngine) -> None:
    await fill(store)
    view = store.durable()
    pages = [
        asyncio.ensure_future(view.page(b"row", b"s", max_rows=MANY, max_bytes=MANY))
        for _ in range(4)
    ]
    latest = asyncio.ensure_future(
        store.latest.page(b"row", b"s", max_rows=MANY, max_bytes=MANY, reverse=True)
    )
    await asyncio.sleep(0)
    engine.is_full = True
    await refused_openings(store, engine, 1)
    engine.is_full = False
    await written(store, b"key", b"new")
    for page in (*pages, latest):
        assert len(await page) == ROWS


async def test_a_view_in_use_delays_writes_for_at_most_the_longest_read(
    tmp_path: Path,
) -> None:
    options = RocksOptions(longest_read_seconds=0.5)
    engine = FullEngine(tmp_path / "data", options)
    async with store_on(engine, options) as store:
        await put(store, b"key", b"old")
        held = store.durable()
        await put(store, b"key", b"newer")
        engine.is_full = True
        await refused_openings(store, engine, 1)
        assert await held.load([b"key"]) == [b"old"]
        assert await value(store, b"key") == (b"newer", b"newer")
        engine.is_full = False
        await written(store, b"key", b"newest")
        with pytest.raises(Closed):
            await held.load([b"key"])


async def test_unsynced_changes_are_never_flushed(store: Store, engine: FullEngine) -> None:
    await put(store, b"key", b"old")
    engine.is_full = True
    with pytest.raises(Unknown):
        await put(store, b"key", b"new")
    engine.is_full = False
    assert not engine.flush()
    await written(store, b"other", b"new")
    assert await value(store, b"key") == (b"old", b"old")
    assert engine.flush()


async def test_after_a_flush_of_unsynced_changes_nothing_is_written_before_a_restart(
    store: Store, engine: FullEngine, tmp_path: Path
) -> None:
    # The flushed change can't be removed. Only a restart makes all actors load their state again,
    # so writes are refused until then.
    await put(store, b"key", b"old")
    engine.is_full = engine.flushes_before_sync = True
    with pytest.raises(Unknown):
        await put(store, b"key", b"new")
    engine.is_full = False
    with pytest.raises(Closed, match="restart the server: changes without a sync"):
        await put(store, b"other", b"new")
    assert (await value(store, b"key"))[1] == b"old"
    await store.close()
    async with disk_store(tmp_path / "data") as opened:
        assert await value(opened, b"key") == (b"new", b"new")
        await put(opened, b"key", b"newer")


async def test_reclaims_and_checkpoints_stopped_by_a_failed_sync_may_be_retried(
    store: Store, engine: FullEngine, tmp_path: Path
) -> None:
    await put(store, b"key", b"old")
    engine.keep_only_synced()
    with pytest.raises(Retry):
        await store.checkpoint(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


async def test_reclaims_and_checkpoints_fail_on_a_full_disk(
    store: Store, engine: FullEngine, tmp_path: Path
) -> None:
    engine.is_full = True
    await refused_openings(store, engine, 1)
    with pytest.raises(Full):
        await store.checkpoint(tmp_path / "copy")
    with pytest.raises(Full):
        await store.reclaim(b"a", b"b")
    assert not (tmp_path / "copy").exists()


async def test_another_disk_error_ends_writing_and_reads_continue(
    store: Store, engine: FullEngine
) -> None:
    await put(store, b"key", b"old")
    engine.is_full = True
    engine.refusal = Damaged("IO error: played by a test")
    while not engine.refused_openings:
        with pytest.raises((Full, Unknown, Closed)):
            await put(store, b"key", b"new")
    for _ in range(2):
        with pytest.raises(Closed, match="restart the server: IO error"):
            await put(store, b"key", b"new")
        assert await value(store, b"key") == (b"old", b"old")


async def test_the_engine_writes_no_file_with_its_settings(tmp_path: Path) -> None:
    # RocksDB's wrapper would write the file at each opening, even for reading, and fail on a full
    # disk.
    settings = tmp_path / "data" / "rocksdb" / "rocksdict-config.json"
    for _ in range(2):
        async with disk_store(tmp_path / "data") as store:
            await put(store, b"key", b"new")
            assert settings.read_bytes() == b""
        # An older version leaves this file.
        settings.unlink()
        settings.write_bytes(b"{}")
