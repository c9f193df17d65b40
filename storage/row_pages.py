"""Reads all rows of a range in pages, because a page has limits of rows and bytes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Final

from dynactor.storage.store import Row, RowReads

_PAGE_ROWS: Final = 1_000
_PAGE_BYTES: Final = 1024 * 1024


async def pages_in(
    take_view: Callable[[], RowReads],
    start: bytes,
    end: bytes,
    *,
    max_rows: int = _PAGE_ROWS,
    max_bytes: int = _PAGE_BYTES,
) -> AsyncGenerator[list[Row], None]:
    """The rows from ``start`` to before ``end`` in pages that are not empty; raises ``StoreError``.

    Each page has a new view, because a view keeps the deleted rows of its state on the disk.
    """
    while start < end:
        rows = await take_view().page(start, end, max_rows=max_rows, max_bytes=max_bytes)
        if not rows:
            return
        yield rows
        start = rows[-1].key + b"\x00"


async def rows_in(view: RowReads, start: bytes, end: bytes) -> AsyncGenerator[Row, None]:
    """The rows from ``start`` to before ``end``, from one view; raises ``StoreError``."""
    async for rows in pages_in(lambda: view, start, end):
        for row in rows:
            yield row
