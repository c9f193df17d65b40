"""The largest item collections of a table with local indexes, found among the sizes of all."""

from __future__ import annotations

from heapq import heappush, heappushpop
from typing import Final, NamedTuple

import anyio

from storage import keys_layout
from storage.store import View

_ROWS: Final = 1_000
_BYTES: Final = 128 * 1024


class Collection(NamedTuple):
    """An item collection: how large it is, with its entries, and its encoded partition key."""

    size_bytes: int
    partition_key: bytes


async def largest_collections(view: View, table_id: int, count: int) -> list[Collection]:
    """So many of the largest, the largest first; every size is looked at, some at a time."""
    start, end = keys_layout.collection_range(table_id)
    largest: list[Collection] = []
    while True:
        rows = await view.page(start, end, max_rows=_ROWS, max_bytes=_BYTES)
        if not rows:
            return sorted(largest, reverse=True)
        for row in rows:
            size_bytes = int.from_bytes(row.value, "big")
            found = Collection(size_bytes, keys_layout.collection_of(row.key))
            if len(largest) < count:
                heappush(largest, found)
            else:
                heappushpop(largest, found)
        start = rows[-1].key + b"\x00"
        await anyio.lowlevel.checkpoint()
