"""A store that fails to read a table's rows after the first page: a fake of the storage port."""

from __future__ import annotations

from collections.abc import Sequence

from dynactor.storage import key_layout
from dynactor.storage.store import NOT_CACHED, NotCached, Row, Store, View
from tests.support.stores.faulty_store import FaultyStore


class FailingView:
    """A view that fails, when enabled, at the second page of a table."""

    def __init__(self, view: View, store: FailingPages) -> None:
        self._view = view
        self._store = store

    def cached(self, key: bytes) -> bytes | NotCached | None:
        return self._view.cached(key)

    def page_nowait(self, *_: object, **__: object) -> NotCached:
        return NOT_CACHED

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return await self._view.load(keys)

    async def page(
        self, start: bytes, end: bytes, *, reverse: bool = False, max_rows: int, max_bytes: int
    ) -> list[Row]:
        prefix = key_layout.row_prefix(self._store.failing_table_id)
        if start.startswith(prefix) and start != prefix and self._store.failure is not None:
            await self._store.met()
            raise self._store.failure
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


class FailingPages(FaultyStore):
    """A store whose tables can't be read beyond the first page."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.failing_table_id = 1
        self.failure: Exception | None = None

    async def met(self) -> None:
        """Record the failure."""

    def durable(self) -> View:
        return FailingView(super().durable(), self)
