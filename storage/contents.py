"""Reads and replaces all rows of a store.

Nothing else may read or write the store meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from dynactor.storage import catalog, key_layout
from dynactor.storage.catalog import CatalogHead
from dynactor.storage.row_pages import pages_in
from dynactor.storage.store import ClearableStore, Group, Row, Store

_PAGE_ROWS: Final = 10_000
_PAGE_BYTES: Final = 16 * 1024 * 1024
# The head stays, because numbers of tables and partitions are never reused.
_START: Final = key_layout.CATALOG_HEAD + b"\x00"
_END: Final = b"\xff"


class Contents(Struct, frozen=True):
    """Every row of a store except the catalog's head."""

    rows: tuple[Row, ...]
    size_bytes: int


class StoreTooLarge(Exception):
    """A store has more rows than fit into the given memory."""


async def read_contents(store: Store, most_bytes: int) -> Contents:
    """Read every row; raises ``TooLarge`` above ``most_bytes`` in total, or ``StoreError``."""
    rows: list[Row] = []
    size_bytes = 0
    async for page in pages_in(
        lambda: store.latest, _START, _END, max_rows=_PAGE_ROWS, max_bytes=_PAGE_BYTES
    ):
        rows += page
        size_bytes += sum(len(row.key) + len(row.value) for row in page)
        if size_bytes > most_bytes:
            raise StoreTooLarge
    return Contents(tuple(rows), size_bytes)


async def replace_contents(store: Store, rows: Sequence[Row] = ()) -> None:
    """Replace every row; returns when the new rows are durable.

    A large replacement takes several commits, and a crash in between leaves only part of the rows.
    On disk, a replacement also waits for a compaction, which frees the space of the deleted rows.
    Raises ``StoreError``.
    """
    (head,) = await store.latest.load([key_layout.CATALOG_HEAD])
    kept = head or catalog.encode_head(CatalogHead())
    deleted: tuple[tuple[bytes, bytes], ...] = ((_START, _END),)
    clearable = store if isinstance(store, ClearableStore) else None
    if clearable is not None:
        await clearable.clear()
        head, deleted = None, ()
    for piece in _pieces(rows):
        group = Group(key_layout.CATALOG_HEAD, head, kept, puts=piece, range_deletes=deleted)
        durable = await store.commit([group])
        await durable
        head, deleted = kept, ()
    if clearable is None:
        await store.reclaim(_START, _END)


def _pieces(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """The rows in batches of about one page; one empty batch if there are none."""
    piece: list[Row] = []
    size_bytes = 0
    for row in rows:
        piece.append(row)
        size_bytes += len(row.key) + len(row.value)
        if size_bytes >= _PAGE_BYTES:
            yield piece
            piece, size_bytes = [], 0
    if piece or not rows:
        yield piece
