"""A long-lived view, such as one for copying a table, uses no more memory for later writes."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dynactor.storage.changed_keys import ChangedKeys
from dynactor.storage.rocks.memory_store import open_rocks_in_memory
from dynactor.storage.rocks.options import RocksOptions
from dynactor.storage.store import Group, Store

COMMITS = 300
VALUES = [b"old-%d" % number for number in range(20)]
KEYS = [b"k%d" % number for number in range(20)]


@asynccontextmanager
async def opened() -> AsyncIterator[Store]:
    """A store in which every view counts as long-lived at once."""
    store = await open_rocks_in_memory(RocksOptions(longest_read_seconds=0.0))
    try:
        yield store
    finally:
        await store.close()


async def write(store: Store, counter: int, value: bytes = b"new") -> None:
    head = str(counter).encode()
    expected = str(counter - 1).encode() if counter else None
    puts = [(key, value if counter else old) for key, old in zip(KEYS, VALUES, strict=True)]
    await (await store.commit([Group(b"head", expected, head, puts)]))


def accounts() -> int:
    """The number of lists that record changes for older views."""
    gc.collect()
    return sum(isinstance(each, ChangedKeys) for each in gc.get_objects())


async def test_changes_are_not_recorded_for_a_long_lived_view() -> None:
    async with opened() as store:
        await write(store, 0)
        view = store.durable()
        before = accounts()
        for counter in range(1, COMMITS):
            await write(store, counter)
        assert accounts() < before + COMMITS // 10
        assert await view.load(KEYS) == VALUES


async def test_a_long_lived_view_does_not_show_later_changes() -> None:
    async with opened() as store:
        await write(store, 0)
        view = store.durable()
        for counter in range(1, 5):
            await write(store, counter)
        assert await view.load(KEYS) == VALUES
        assert [view.cached(key) for key in KEYS] == VALUES
        page = await view.page(b"k", b"l", max_rows=100, max_bytes=1 << 20)
        assert dict(page) == dict(zip(KEYS, VALUES, strict=True))
        assert await store.durable().load(KEYS) == [b"new"] * len(KEYS)
