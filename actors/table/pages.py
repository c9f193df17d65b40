"""Pages of Query and Scan, which cross the partitions of a table or index in order."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import chain
from typing import Final

import anyio
from msgspec import Struct

from dynactor.actors.derived.indexes.global_index import GlobalIndexActors
from dynactor.actors.table.table import Table, unreadable
from dynactor.actors.table.throttle import TableThrottle
from dynactor.model.capacity import capacity
from dynactor.model.capacity.capacity import IndexKind
from dynactor.model.indexes.index import IndexDefinition
from dynactor.model.keys.key import KeySchema
from dynactor.model.keys.key_range import KeyRange
from dynactor.model.limits import KIB
from dynactor.model.page import Page, PageBuilder, PageRules
from dynactor.model.tables.table import TABLE_INDEX_ID
from dynactor.model.values.item import Item, part_decoder
from dynactor.model.values.stored_item import StoredItem
from dynactor.storage import codec, key_layout
from dynactor.storage.store import StoreError, View

# Rows are read in pieces of about this size; other tasks run between them.
_PIECE_BYTES: Final = 128 * KIB
_PIECE_ROWS: Final = 256
# Number of index entries whose whole items are fetched at once: each may have 400 KB, and three of
# those fill a page.
_FETCHED_ROWS: Final = 8
# Number of tables and indexes whose key attributes are cached.
_KNOWN_KEYS: Final = 1_024


class ReadRange(Struct, frozen=True):
    """The range that a Query or Scan reads: of one index (None: the table), in one direction.

    ``after`` is the position after which a page continues. ``consistent`` changes only the price:
    every read sees all writes that were answered before it.
    """

    key_range: KeyRange
    rules: PageRules
    index: IndexDefinition | None = None
    after: bytes | None = None
    reverse: bool = False
    consistent: bool = False
    # A Scan rounds the units of each partition, a Query rounds their sum.
    by_partition: bool = False
    # Reads that no application asked for are not counted for advice; they are charged as usual.
    is_counted: bool = True


async def read_page(table: Table, request: ReadRange) -> Page:
    """One page of a Query or Scan of a table, from one durable view.

    Raises:
        Throttled: the first partition has no read units left. A later partition without units ends
            the page instead.
        InternalServerError: a stored row can't be read.
    """
    index = request.index
    of_index = table.followers.indexes.get(index.index_id) if index else None
    if of_index is not None and of_index.reads_wait_seconds:
        await of_index.wait_readable()
    builder = PageBuilder(request.rules)
    try:
        snapshot = await table.snapshot()
        try:
            await _read_pieces(table, snapshot.view, request, of_index, builder)
        finally:
            snapshot.release()
    except StoreError as error:
        raise unreadable(table.definition.name, error) from error
    builder.finish_partition()
    kind: IndexKind = "GlobalSecondaryIndexes" if of_index else "LocalSecondaryIndexes"
    page = builder.page(
        consistent=request.consistent,
        last=_last_key(table, builder, index),
        index=(index.name, kind) if index else None,
        is_scan=request.by_partition,
    )
    traffic = table.throttle.traffic
    if traffic is not None and request.is_counted:
        index_id = index.index_id if index else TABLE_INDEX_ID
        traffic.read_page(
            index_id, _query_start(request), page.receipt, request.rules, page.scanned_count
        )
    return page


async def _read_pieces(
    table: Table,
    view: View,
    request: ReadRange,
    of_index: GlobalIndexActors | None,
    builder: PageBuilder,
) -> None:
    """Read partition by partition until the page is full; each checks and charges its units."""
    throttle = table.throttle
    partition_map = (of_index or table).partitions.map
    # A local index uses the limits of its table.
    limited = request.index if of_index else None
    limited_id = limited.index_id if limited else TABLE_INDEX_ID
    start = _query_start(request)
    pieces = partition_map.pieces(_rest(request), reverse=request.reverse)
    begun = False
    counted_blocks = 0
    # The units of the partitions read so far. They are charged once an item is found. Until then, a
    # later partition may refuse the request.
    owed: list[tuple[int, float]] = []
    for piece in pieces:
        number = partition_map.number_of(piece.start)
        refusal = throttle.refused_page(number, limited_id, start)
        if refusal is not None:
            if builder.last is None:
                raise refusal.error()
            builder.end()
            break
        if begun and request.by_partition:
            builder.finish_partition()
        begun = True
        await _read_piece(table, view, request, piece, builder)
        blocks = builder.blocks - counted_blocks
        counted_blocks += blocks
        owed.append((number, capacity.read_units(blocks, consistent=request.consistent)))
        if builder.last is not None:
            _pay(throttle, owed, limited, start)
        if builder.full:
            break
    _pay(throttle, owed, limited, start)
    heat = throttle.read_positions
    page_units = capacity.read_units(builder.blocks, consistent=request.consistent)
    if pieces and not request.by_partition and heat.is_due(page_units):
        # A sample needs no exact position. A reverse read starts at the other end of the piece.
        began_at = pieces[0].start
        heat.note(partition_map.number_of(began_at), began_at)


def _pay(
    throttle: TableThrottle,
    owed: list[tuple[int, float]],
    limited: IndexDefinition | None,
    start: bytes,
) -> None:
    """Charge partitions, by number, the units that a page owes them, and clear the debt."""
    for number, units in owed:
        throttle.take_page(number, units, limited, start)
    owed.clear()


def _query_start(request: ReadRange) -> bytes:
    """The start of a Query's range, which contains a partition key; empty for a Scan."""
    return b"" if request.by_partition else request.key_range.start


def _rest(request: ReadRange) -> KeyRange:
    """The remaining range, after the position where the last page ended."""
    whole = request.key_range
    if request.after is None:
        return whole
    if request.reverse:
        end = request.after if whole.end is None else min(request.after, whole.end)
        return KeyRange(whole.start, end)
    return KeyRange(max(request.after + b"\x00", whole.start), whole.end)


async def _read_piece(
    table: Table, view: View, request: ReadRange, piece: KeyRange, builder: PageBuilder
) -> None:
    """Add the rows of a range, in pieces, until it ends or the page is full."""
    index = request.index
    prefix = table.row_prefix
    if index is not None:
        prefix = key_layout.row_prefix(table.definition.table_id, index.index_id)
    start = prefix + piece.start
    end = key_layout.end_of(prefix) if piece.end is None else prefix + piece.end
    fetches = request.rules.fetch
    most_rows = _FETCHED_ROWS if fetches else _PIECE_ROWS
    while True:
        left = builder.rows_left
        max_rows = most_rows if left is None else min(left, most_rows)
        rows = await view.page(
            start, end, reverse=request.reverse, max_rows=max_rows, max_bytes=_PIECE_BYTES
        )
        if not rows:
            return
        entries = codec.decode_all([value for _, value in rows])
        if fetches:
            builder.add_fetched(entries, await _fetch(table, view, entries))
        else:
            builder.add_all(entries)
        if builder.full:
            return
        if len(rows) < max_rows and sum(map(len, chain.from_iterable(rows))) < _PIECE_BYTES:
            return
        if request.reverse:
            end = rows[-1].key
        else:
            start = rows[-1].key + b"\x00"
        await anyio.lowlevel.checkpoint()


async def _fetch(table: Table, view: View, entries: list[StoredItem]) -> list[StoredItem]:
    """The whole items of a local index's entries; the same view contains all of them."""
    values = await view.load(
        [key_layout.item_row(table.definition, entry.item) for entry in entries]
    )
    fetched = []
    for value in values:
        assert value is not None, "an index entry has its item in every view"
        fetched.append(codec.decode(value))
    return fetched


def _last_key(table: Table, builder: PageBuilder, index: IndexDefinition | None) -> Item | None:
    if not builder.full or builder.last is None:
        return None
    names, decode = _key_decoder(table.definition.key_schema, index.key_schema if index else None)
    part = decode(builder.last.data)
    return {name: part[name] for name in names}


@lru_cache(_KNOWN_KEYS)
def _key_decoder(
    of_table: KeySchema, of_index: KeySchema | None
) -> tuple[tuple[str, ...], Callable[[bytes], Item]]:
    """The key attributes of the table or index, and a decoder that decodes only them."""
    attributes = of_table.attributes + (of_index.attributes if of_index else ())
    names = tuple(dict.fromkeys(attribute.name for attribute in attributes))
    return names, part_decoder(names)
