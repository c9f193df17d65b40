"""Copies all rows of a store into an empty store, which may have another engine.

The copy commits its progress together with the rows, so an interrupted copy continues. The
catalog's head is written last. Until then no server opens the target.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from hashlib import sha256
from typing import Any, Final, NamedTuple

from dynactor.storage import catalog, key_layout
from dynactor.storage.row_pages import pages_in
from dynactor.storage.store import CannotOpen, Damaged, Group, Row, Store

_PAGE_ROWS: Final = 5_000
_PAGE_BYTES: Final = 4 * 1024 * 1024
_START: Final = key_layout.CATALOG_HEAD + b"\x00"
_END: Final = b"\xff"


class CopiedTable(NamedTuple):
    """The number of rows of a table and its indexes, and the checksum that both stores have."""

    name: str
    rows: int
    checksum: str


async def refuse_unfinished_copy(store: Store) -> None:
    """Refuse to serve a store after an unfinished copy; raises ``CannotOpen`` or ``StoreError``."""
    (cursor,) = await store.latest.load([key_layout.COPY_CURSOR])
    if cursor is not None:
        raise CannotOpen("The data is an unfinished copy. Repeat dynactor copy until it ends")


async def copy_rows(
    source: Store, target: Store, on_rows: Callable[[int], None]
) -> list[CopiedTable]:
    """Copy all rows, compare both stores, and write the target's catalog head.

    ``on_rows`` is called with the number of rows of a page once the page is durable. Nothing else
    may use either store meanwhile. Raises ``CannotOpen`` if there is nothing to copy, or the target
    is not empty; ``Damaged`` if the target differs. After another ``StoreError`` the next call
    continues the copy.
    """
    await refuse_unfinished_copy(source)
    (head,) = await source.latest.load([key_layout.CATALOG_HEAD])
    if head is None:
        raise CannotOpen("There is nothing to copy: the store to copy from has no tables")
    cursor = await _cursor(target)
    async for page in _pages(source, cursor or _START):
        following = page[-1].key + b"\x00"
        group = Group(key_layout.COPY_CURSOR, cursor, following, puts=page)
        await (await target.commit([group]))
        cursor = following
        on_rows(len(page))
    copied = await _checksums(target)
    if copied != await _checksums(source):
        raise Damaged("The copy differs from its source: delete it, and copy again")
    deletes = [] if cursor is None else [key_layout.COPY_CURSOR]
    await (await target.commit([Group(key_layout.CATALOG_HEAD, None, head, deletes=deletes)]))
    return copied


async def _cursor(target: Store) -> bytes | None:
    """The first key that the target lacks; None before the first page."""
    (cursor,) = await target.latest.load([key_layout.COPY_CURSOR])
    if cursor is None and await target.latest.page(b"\x00", _END, max_rows=1, max_bytes=1):
        raise CannotOpen("The store to copy to has data already: choose an empty one")
    return cursor


async def _pages(store: Store, start: bytes) -> AsyncIterator[list[Row]]:
    """All rows from a key on, except the catalog's head and the cursor of a copy."""
    async for page in pages_in(
        lambda: store.latest, start, _END, max_rows=_PAGE_ROWS, max_bytes=_PAGE_BYTES
    ):
        rows = [row for row in page if row.key != key_layout.COPY_CURSOR]
        if rows:
            yield rows


async def _checksums(store: Store) -> list[CopiedTable]:
    """The checksum of each table's rows, and one of all other rows of a namespace."""
    names: dict[tuple[str, int], str] = {}
    rows: dict[tuple[str, int], int] = {}
    digests: dict[tuple[str, int], Any] = {}
    async for page in _pages(store, _START):
        for row in page:
            namespace, key = key_layout.split_namespace(row.key)
            kind = key_layout.row_kind(key)
            owner = (
                namespace,
                key_layout.table_and_index(key)[0] if kind == "item or entry" else 0,
            )
            if kind == "table":
                definition = catalog.decode_record(row.value).definition
                names[namespace, definition.table_id] = definition.name
            rows[owner] = rows.get(owner, 0) + 1
            digest = digests.setdefault(owner, sha256())
            digest.update(b"%d %d " % (len(row.key), len(row.value)))
            digest.update(row.key)
            digest.update(row.value)
    return [
        CopiedTable(_shown(owner, names), rows[owner], digests[owner].hexdigest())
        for owner in sorted(digests)
    ]


def _shown(owner: tuple[str, int], names: dict[tuple[str, int], str]) -> str:
    """The label of these rows: a table's name, the id of a backup's items, or "other rows"."""
    namespace, table_id = owner
    name = names.get(owner, f"items of a backup, {table_id}" if table_id else "other rows")
    return f"{name} in {namespace.rstrip('/')}" if namespace else name
