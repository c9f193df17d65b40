"""Reading, deleting and replacing all rows of a store at once, in memory and on disk."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dynactor.storage import key_layout
from dynactor.storage.contents import StoreTooLarge, read_contents, replace_contents
from dynactor.storage.store import ClearableStore, Group, Row, Store
from tests.support.stores.store import disk_store, memory_store

HEAD = key_layout.CATALOG_HEAD
ROWS = [Row(b"\x01" + bytes([number]), b"value %d" % number) for number in range(100)]


@asynccontextmanager
async def a_store(medium: str, directory: Path) -> AsyncIterator[Store]:
    async with memory_store() if medium == "memory" else disk_store(directory) as store:
        yield store


async def write(store: Store, rows: list[Row], head: bytes = b"head") -> None:
    (expected,) = await store.latest.load([HEAD])
    durable = await store.commit([Group(HEAD, expected, head, puts=rows)])
    await durable


@pytest.mark.parametrize("medium", ["memory", "disk"])
async def test_rows_that_were_read_can_replace_all_rows_of_a_store(medium: str, tmp_path: Path):
    async with a_store(medium, tmp_path / "data") as store:
        await write(store, ROWS)
        contents = await read_contents(store, 1_000_000)
        assert list(contents.rows) == ROWS
        assert contents.size_bytes == sum(len(row.key) + len(row.value) for row in ROWS)
        await write(store, [Row(b"\x05later", b"x"), Row(ROWS[0].key, b"changed")])
        await replace_contents(store, contents.rows)
        assert (await read_contents(store, 1_000_000)).rows == contents.rows
        assert await store.durable().load([ROWS[0].key, b"\x05later"]) == [ROWS[0].value, None]


@pytest.mark.parametrize("medium", ["memory", "disk"])
async def test_all_rows_are_deleted_except_the_head_of_the_catalog(medium: str, tmp_path: Path):
    async with a_store(medium, tmp_path / "data") as store:
        for turn in range(3):
            await write(store, ROWS, b"head %d" % turn)
            await replace_contents(store)
            assert (await read_contents(store, 0)).rows == ()
            assert await store.durable().load([HEAD, ROWS[0].key]) == [b"head %d" % turn, None]


async def test_rows_of_many_pages_are_replaced_in_one_commit():
    rows = [Row(b"\x03%03d" % number, bytes(1024 * 1024)) for number in range(40)]
    async with memory_store() as store:
        await replace_contents(store, rows)
        assert list((await read_contents(store, 50 * 1024 * 1024)).rows) == rows


async def test_rows_larger_than_the_limit_are_not_read():
    async with memory_store() as store:
        await write(store, ROWS)
        with pytest.raises(StoreTooLarge):
            await read_contents(store, 100)


async def test_a_store_in_memory_can_be_cleared_again_at_once():
    async with memory_store() as store:
        assert isinstance(store, ClearableStore)
        for _ in range(20):
            await write(store, ROWS)
            kept = store.durable()
            await store.clear()
            assert await store.latest.load([HEAD, ROWS[0].key]) == [None, None]
            # A view that was taken before shows the earlier rows.
            assert kept is store.durable() or await kept.load([ROWS[0].key]) == [ROWS[0].value]


async def test_replaced_rows_on_disk_survive_a_restart(tmp_path: Path):
    async with disk_store(tmp_path / "data") as store:
        await write(store, ROWS)
        await replace_contents(store, ROWS[:3])
    async with disk_store(tmp_path / "data") as store:
        assert list((await read_contents(store, 1_000_000)).rows) == ROWS[:3]
