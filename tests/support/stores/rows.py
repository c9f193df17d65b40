"""Writes and reads rows in tests of the storage port."""

from __future__ import annotations

from typing import Final

from dynactor.storage.store import Group, Store

MANY: Final = 1 << 30


async def put(store: Store, rows: dict[bytes, bytes]) -> None:
    """Commit rows and wait until they are durable."""
    await (await store.commit([group(rows)]))


def group(rows: dict[bytes, bytes], *, name: bytes = b"h", head: bytes | None = None) -> Group:
    """A group with these rows. Its head's key contains the first row's key."""
    head_key = b"~" + name + next(iter(rows), b"")
    return Group(head_key, head, b"1", puts=list(rows.items()))


async def keys_between(store: Store, start: bytes, end: bytes) -> list[bytes]:
    """The keys of a range that readers see."""
    page = await store.durable().page(start, end, max_rows=MANY, max_bytes=MANY)
    return [row.key for row in page]
