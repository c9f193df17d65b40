"""Reads of items from the table for entries of a local index."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.pages import ReadRange, read_page
from dynactor.model.definitions.index import Projection
from dynactor.model.key_conditions import key_range
from dynactor.model.limits import KIB
from dynactor.model.reads.page import PageRules
from dynactor.storage.store import NOT_CACHED, NotCached, Row, View
from tests.support.databases.databases import (
    HeldStore,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.stores.store import memory_store

ITEM_BYTES = 100 * KIB


class CountingView:
    """A view that counts how often it returns each value, by key."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.loaded = 0

    def cached(self, key: bytes) -> bytes | NotCached | None:
        self.loaded += 1
        return self._view.cached(key)

    def page_nowait(self, *_: object, **__: object) -> NotCached:
        return NOT_CACHED

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self.loaded += len(keys)
        return await self._view.load(keys)

    async def page(
        self, start: bytes, end: bytes, *, reverse: bool = False, max_rows: int, max_bytes: int
    ) -> list[Row]:
        return await self._view.page(
            start, end, reverse=reverse, max_rows=max_rows, max_bytes=max_bytes
        )

    async def first_rows(
        self, ranges: Sequence[tuple[bytes, bytes]], *, max_rows: int, reverse: bool = False
    ) -> list[list[Row]]:
        return await self._view.first_rows(ranges, max_rows=max_rows, reverse=reverse)

    async def load_with_page(
        self, keys: Sequence[bytes], start: bytes, end: bytes, *, max_rows: int, max_bytes: int
    ) -> tuple[list[bytes | None], list[Row]]:
        values = await self.load(keys)
        return values, await self.page(start, end, max_rows=max_rows, max_bytes=max_bytes)


class CountedStore(HeldStore):
    """A store whose durable view is a ``CountingView`` after ``count``."""

    counted: CountingView | None = None

    def count(self) -> CountingView:
        self.counted = CountingView(super().durable())
        return self.counted

    def durable(self) -> View:
        return super().durable() if self.counted is None else self.counted


async def test_a_page_fetches_few_more_items_than_it_returns() -> None:
    async with memory_store() as real:
        store = CountedStore(real)
        async with running_database(store) as database:
            definition = table_definition(local_sort_keys=["posts"])
            index = structs.replace(definition.local_indexes[0], projection=Projection("KEYS_ONLY"))
            definition = structs.replace(definition, local_indexes=(index,))
            await database.ask(CreateTable(definition))
            table = database.table("Thread")
            for at in range(50):
                item = thread("EC2", f"{at:02}", posts=at)
                item["text"] = {"S": "x" * ITEM_BYTES}
                await table.write(put(item))
            view = store.count()
            page = await read_page(
                table,
                ReadRange(
                    key_range.WHOLE,
                    PageRules(fetch=True, count_only=True),
                    index=index,
                ),
            )
            assert page.scanned_count < 11
            assert page.last is not None
            assert view.loaded < page.scanned_count + 8
