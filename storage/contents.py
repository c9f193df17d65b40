"""All rows of a store: read as a whole, and replaced as a whole.

Only for a store that nobody else reads or writes at that moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from dynactor.storage import catalog, key_layout
from dynactor.storage.catalog import CatalogHead
from dynactor.storage.store import ClearableStore, Group, Row, Store

_PAGE_ROWS: Final = 10_000
_PAGE_BYTES: Final = 16 * 1024 * 1024
# The head stays: numbers of tables and partitions are never given out again.
_START: Final = key_layout.CATALOG_HEAD + b"\x00"
_END: Final = b"\xff"


class Contents(Struct, frozen=True):
    """Every row of a store but the catalog's head."""

    rows: tuple[Row, ...]
    size_bytes: int


class TooLarge(Exception):
    """A store has more rows than may be kept in memory."""


async def read_contents(store: Store, most_bytes: int) -> Contents:
    """Read every row.

    Raises:
        TooLarge: keys and values are more than ``most_bytes``.
        StoreError: as the store.
    """
    rows: list[Row] = []
    size_bytes = 0
    start = _START
    while page := await store.latest.page(start, _END, max_rows=_PAGE_ROWS, max_bytes=_PAGE_BYTES):
        rows += page
        size_bytes += sum(len(row.key) + len(row.value) for row in page)
        if size_bytes > most_bytes:
            raise TooLarge
        start = page[-1].key + b"\x00"
    return Contents(tuple(rows), size_bytes)


async def replace_contents(store: Store, rows: Sequence[Row] = ()) -> None:
    """Delete every row and put these in their place; returns when that is durable.

    A large replacement is several commits: a crash in between leaves a part of the rows. On a disk
    this also takes the time of a compaction, which frees the space of what was deleted.

    Raises:
        StoreError: as the store.
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
    """The rows in pieces of about one page; one empty piece if there are none."""
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
