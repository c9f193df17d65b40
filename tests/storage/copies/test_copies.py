"""Copies of a store have every row, continue after a failure, and are served once complete."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from dynactor.actors.table.messages import CreateTable
from dynactor.storage import copies, key_layout
from dynactor.storage.copies import copy_rows, refuse_unfinished_copy
from dynactor.storage.store import CannotOpen, Damaged, Full, Group, Row, Store
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

MANY = 1 << 30


@pytest.fixture
async def source() -> AsyncIterator[Store]:
    """A store with a table of 30 items and a local index."""
    async with memory_store() as store:
        async with running_database(store) as database:
            await database.ask(CreateTable(table_definition(local_sort_keys=["posts"])))
            table = database.table("Thread")
            for number in range(30):
                item = thread("forum", f"{number}", posts=number)
                await table.write(put(item))
        yield store


@pytest.fixture
async def target() -> AsyncIterator[Store]:
    async with memory_store() as store:
        yield store


async def rows(store: Store) -> list[Row]:
    return await store.latest.page(b"\x00", b"\xff", max_rows=MANY, max_bytes=MANY)


def nothing(_rows: int) -> None:
    return


async def test_a_copy_has_all_rows(source: Store, target: Store) -> None:
    told: list[int] = []
    copied = await copy_rows(source, target, told.append)
    assert await rows(target) == await rows(source)
    # The catalog's head is not copied.
    assert sum(told) == sum(table.rows for table in copied) == len(await rows(source)) - 1
    assert [(table.name, table.rows) for table in copied if table.name == "Thread"] == [
        ("Thread", 60)
    ]
    await refuse_unfinished_copy(target)


async def test_an_interrupted_copy_is_not_served_and_can_be_continued(
    source: Store, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "_PAGE_ROWS", 10)
    told: list[int] = []
    faulty = FaultyStore(target)

    def count(number: int) -> None:
        told.append(number)
        if len(told) == 3:
            faulty.refuse_commits(Full("no space"))

    with pytest.raises(Full):
        await copy_rows(source, faulty, count)
    with pytest.raises(CannotOpen, match="unfinished copy"):
        await refuse_unfinished_copy(target)
    with pytest.raises(CannotOpen, match="unfinished copy"):
        await copy_rows(target, source, nothing)
    await copy_rows(source, target, told.append)
    assert sum(told) == len(await rows(source)) - 1
    assert await rows(target) == await rows(source)


async def test_a_store_with_rows_is_refused_as_target(source: Store, target: Store) -> None:
    await (await target.commit([Group(b"\x03k", None, b"1")]))
    with pytest.raises(CannotOpen, match="has data already"):
        await copy_rows(source, target, nothing)


async def test_an_empty_store_is_refused_as_source(source: Store, target: Store) -> None:
    with pytest.raises(CannotOpen, match="nothing to copy"):
        await copy_rows(target, source, nothing)


async def test_a_copy_that_differs_from_its_source_is_reported(
    source: Store, target: Store
) -> None:
    cursor = Group(key_layout.COPY_CURSOR, None, b"\x02", puts=[(b"\x0dstray", b"")])
    await (await target.commit([cursor]))
    with pytest.raises(Damaged):
        await copy_rows(source, target, nothing)
