"""A sample of a table for advice: some of its items, and the sizes of its item collections.

The server itself makes these reads: they consume no units, and count for no key.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Sequence
from heapq import heappush, heappushpop
from typing import Final, NamedTuple

import anyio

from dynactor.actors.table.table import Table
from dynactor.model.values.item import Item
from dynactor.storage import codec, key_layout
from dynactor.storage.row_pages import pages_in
from dynactor.storage.store import Row

_ROWS: Final = 500
_BYTES: Final = 128 * 1024
# Number of rows to read for each sampled item, and at most. A larger table is read in pieces, after
# each of ``_POINTS`` positions.
_LOOKED_AT_EACH: Final = 10
_LOOKED_AT: Final = 50_000
_POINTS: Final = 500
_HASH_BITS: Final = 64
_SAMPLE_BYTES: Final = 4 * 1024 * 1024


class Collection(NamedTuple):
    """An item collection: its size with local index entries, and its encoded partition key."""

    size_bytes: int
    partition_key: bytes


class CollectionStart(NamedTuple):
    """The total size of the items of a partition key; a lower bound unless ``is_whole``."""

    size_bytes: int
    is_whole: bool


async def sample_items(table: Table, item_count: int, count: int) -> list[Item]:
    """About this number of items, evenly spread over the table; all items of a smaller table.

    In a large table, items of very large collections are underrepresented.
    """
    prefix = key_layout.row_prefix(table.definition.table_id)
    end = key_layout.prefix_end(prefix)
    most_rows = min(_LOOKED_AT, max(_POINTS, count) * _LOOKED_AT_EACH)
    is_whole = item_count <= most_rows
    points = 1 if is_whole else _POINTS
    # A multiple of ``every`` would find the same positions in item collections of equal lengths.
    rows_each = item_count + _ROWS if is_whole else most_rows // _POINTS - 1
    every = max(1, min(item_count, most_rows) // count)
    found: list[Item] = []
    start, left_bytes, seen = prefix, _SAMPLE_BYTES, 0
    for point in range(points):
        position = ((point << _HASH_BITS) // points).to_bytes(_HASH_BITS // 8, "big")
        # The rows between two points may have been read already, from an earlier point.
        start = max(start, prefix + position) if point else prefix
        async for row in _rows(table, start, end, rows_each):
            seen += 1
            start = row.key + b"\x00"
            if seen % every == 0:
                left_bytes -= len(row.value)
                if left_bytes < 0:
                    return found
                found.append(codec.decode(row.value).item)
    return found


async def items_at(table: Table, positions: Sequence[bytes]) -> list[Item]:
    """The items that exist at these positions, each as often as its position is given."""
    prefix = key_layout.row_prefix(table.definition.table_id)
    found: list[Item] = []
    for first in range(0, len(positions), _ROWS):
        keys = [prefix + position for position in positions[first : first + _ROWS]]
        values = await table.durable().load(keys)
        found += [codec.decode(value).item for value in values if value is not None]
        await anyio.lowlevel.checkpoint()
    return found


async def collection_start(table: Table, partition_key: bytes, most_bytes: int) -> CollectionStart:
    """The total size of the items of an encoded partition key, counted up to a bound."""
    prefix = key_layout.row_prefix(table.definition.table_id) + partition_key
    size_bytes = 0
    async for row in _rows(table, prefix, key_layout.prefix_end(prefix), most_bytes):
        size_bytes += codec.size_bytes(row.value)
        if size_bytes >= most_bytes:
            return CollectionStart(size_bytes, is_whole=False)
    return CollectionStart(size_bytes, is_whole=True)


async def largest_collections(table: Table, count: int) -> list[Collection]:
    """The largest item collections of a table with local indexes, the largest first."""
    start, end = key_layout.collection_range(table.definition.table_id)
    largest: list[Collection] = []
    async for row in _rows(table, start, end, None):
        size_bytes = int.from_bytes(row.value, "big")
        found = Collection(size_bytes, key_layout.collection_key(row.key))
        if len(largest) < count:
            heappush(largest, found)
        else:
            heappushpop(largest, found)
    return sorted(largest, reverse=True)


async def _rows(
    table: Table, start: bytes, end: bytes, most_rows: int | None
) -> AsyncIterator[Row]:
    """Rows of a range, in pieces; other tasks run between them."""
    view = table.durable()
    left = sys.maxsize if most_rows is None else most_rows
    max_rows = min(_ROWS, left)
    async for rows in pages_in(lambda: view, start, end, max_rows=max_rows, max_bytes=_BYTES):
        for row in rows[:left]:
            yield row
        left -= len(rows)
        if left <= 0:
            return
        await anyio.lowlevel.checkpoint()
