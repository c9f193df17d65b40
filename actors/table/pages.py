"""Pages of Query and Scan, which cross the partitions of a table or index in order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Final, NamedTuple

import anyio
from msgspec import Struct

from dynactor.actors.indexes.global_index import GlobalIndexActors
from dynactor.actors.table.row_sizes import RowSizes
from dynactor.actors.table.table import Table, unreadable
from dynactor.model import capacity
from dynactor.model.capacity import IndexKind
from dynactor.model.definitions.index import IndexDefinition
from dynactor.model.definitions.table import TABLE_INDEX_ID
from dynactor.model.key_conditions.key_range import KeyRange
from dynactor.model.keys.key import KeySchema
from dynactor.model.limits import KIB
from dynactor.model.reads.page import Page, PageBuilder, PageRules
from dynactor.model.values.item import Item, part_decoder
from dynactor.model.values.stored_item import StoredItem
from dynactor.storage import codec, key_layout
from dynactor.storage.store import NOT_CACHED, Row, RowReads, StoreError, View

# Rows are added to a page in pieces of this size; other tasks run between them.
_PIECE_ROWS: Final = 256
# A page of at most this size is read without an await.
_NOWAIT_ROWS: Final = 128
_NOWAIT_BYTES: Final = 128 * KIB
# Number of index entries whose whole items are fetched at once: each may have 400 KB, and three of
# those fill a page.
_FETCHED_ROWS: Final = 8
# Number of tables and indexes whose key attributes are cached.
_KNOWN_KEYS: Final = 1_024


class ReadRange(Struct, frozen=True):
    """The range that a Query or Scan reads: of one index (None: the table), in one direction.

    ``after`` is the position after which a page continues. ``consistent`` changes the price; a read
    from a standby, which may lag, is never consistent.
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


async def read_past_page(table: Table, request: ReadRange, past: RowReads) -> Page:
    """One page of a table or local index in a view of a past state; raises as ``read_page``."""
    builder, owed = await _read_pieces(table, request, None, past)
    _pay(table, request, None, owed)
    return _finished(table, request, None, builder)


async def read_page(table: Table, request: ReadRange) -> Page:
    """One page of a Query or Scan of a table, from one durable view.

    Raises ``Throttled`` if the first partition has no read units left; a later one without units
    ends the page instead. Raises ``InternalServerError`` if a stored row can't be read.
    """
    index = request.index
    index_used = table.followers.indexes.get(index.index_id) if index else None
    # A read that waits for acknowledged writes must not use a standby, which may lack them.
    is_waited = index_used is not None and index_used.reads_wait_seconds > 0
    if index_used is not None and is_waited:
        await index_used.wait_readable()
    read = partial(_read_pieces, table, request, index_used)
    try:
        builder, owed = await table.in_snapshot(
            read, calls_once=not request.rules.fetch, eventual=not (request.consistent or is_waited)
        )
    except StoreError as error:
        raise unreadable(table.definition.name, error) from error
    _pay(table, request, index_used, owed)
    return _finished(table, request, index_used, builder)


def begin_page(table: Table, request: ReadRange) -> Page | Awaitable[Page]:
    """Read a page of a Query like ``read_page``; return a short page, or a long one's awaitable."""
    index = request.index
    index_used = table.followers.indexes.get(index.index_id) if index else None
    partition_map = (index_used or table).partitions.map
    rest = _rest(request)
    pieces = partition_map.pieces(rest, reverse=request.reverse)
    is_waited = index_used is not None and index_used.reads_wait_seconds > 0
    if len(pieces) > 1 or is_waited or request.rules.fetch or request.by_partition:
        return read_page(table, request)
    limited = index if index_used else None
    throttle = table.throttle
    start = request.key_range.start
    number = partition_map.number_at(rest.start)
    refusal = throttle.refused_page(number, limited.index_id if limited else TABLE_INDEX_ID, start)
    if refusal is not None:
        raise refusal.error()
    limit = request.rules.limit
    max_rows = _NOWAIT_ROWS if limit is None else min(limit, _NOWAIT_ROWS)
    view = table.view(consistent=request.consistent)
    builder = PageBuilder(request.rules)
    try:
        rows = view.page_nowait(
            *_with_prefix(_prefix(table, index), rest),
            reverse=request.reverse,
            max_rows=max_rows,
            max_bytes=_NOWAIT_BYTES,
        )
        if rows is NOT_CACHED:
            return read_page(table, request)
        if len(rows) != limit and not _is_end(rows, max_rows, _NOWAIT_BYTES):
            return _read_on(table, request, index_used, view, rows)
        if rows:
            builder.add_all(codec.decode_all([value for _, value in rows]))
    except StoreError as error:
        raise unreadable(table.definition.name, error) from error
    units = capacity.read_units(builder.blocks, consistent=request.consistent)
    throttle.take_page(number, units, limited, start)
    if throttle.read_positions.is_due(units):
        throttle.read_positions.note(number, rest.start)
    return _finished(table, request, index_used, builder)


async def _read_on(
    table: Table,
    request: ReadRange,
    index_used: GlobalIndexActors | None,
    view: View,
    first: list[Row],
) -> Page:
    """The page that starts with these rows, from the same view."""
    try:
        builder, owed = await _read_pieces(table, request, index_used, view, first)
    except StoreError as error:
        raise unreadable(table.definition.name, error) from error
    _pay(table, request, index_used, owed)
    return _finished(table, request, index_used, builder)


def _finished(
    table: Table, request: ReadRange, index_used: GlobalIndexActors | None, builder: PageBuilder
) -> Page:
    """The page of all rows that were added and charged."""
    index = request.index
    builder.finish_partition()
    kind: IndexKind = "GlobalSecondaryIndexes" if index_used else "LocalSecondaryIndexes"
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


class _Owed(NamedTuple):
    """The units of a page that a partition is charged."""

    partition_number: int
    units: float


async def _read_pieces(
    table: Table,
    request: ReadRange,
    index_used: GlobalIndexActors | None,
    view: RowReads,
    first: Sequence[Row] = (),
) -> tuple[PageBuilder, list[_Owed]]:
    """Read partition by partition until the page is full or a partition has no units left.

    Nothing is charged here, because the store may repeat the call. ``first`` are rows of the range
    that were read before.
    """
    throttle = table.throttle
    partition_map = (index_used or table).partitions.map
    # A local index uses the limits of its table.
    limited_id = request.index.index_id if request.index and index_used else TABLE_INDEX_ID
    start = _query_start(request)
    builder = PageBuilder(request.rules)
    rest = _rest(request)
    rows = _PageRows(table, view, request, rest)
    if first:
        rows.add(first)
    counted_blocks = 0
    owed: list[_Owed] = []
    for piece in partition_map.pieces(rest, reverse=request.reverse):
        number = partition_map.number_at(piece.start)
        refusal = throttle.refused_page(number, limited_id, start)
        if refusal is not None:
            if builder.last is None:
                raise refusal.error()
            builder.end()
            break
        if owed and request.by_partition:
            builder.finish_partition()
        await _read_piece(table, rows, request, piece, builder)
        blocks = builder.blocks - counted_blocks
        counted_blocks += blocks
        owed.append(_Owed(number, capacity.read_units(blocks, consistent=request.consistent)))
        if builder.full:
            break
    rows.learn(builder)
    return builder, owed


def _pay(
    table: Table, request: ReadRange, index_used: GlobalIndexActors | None, owed: list[_Owed]
) -> None:
    """Charge each partition the units that a page has read from it."""
    throttle = table.throttle
    limited = request.index if index_used else None
    start = _query_start(request)
    for number, units in owed:
        throttle.take_page(number, units, limited, start)
    heat = throttle.read_positions
    if owed and not request.by_partition and heat.is_due(sum(units for _, units in owed)):
        # A sample needs no exact position. A reverse read starts at the other end of the piece.
        partition_map = (index_used or table).partitions.map
        began_at = partition_map.pieces(_rest(request), reverse=request.reverse)[0].start
        heat.note(partition_map.number_at(began_at), began_at)


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


class _PageRows:
    """Reads the rows of a range, across partitions, with few calls of the store."""

    def __init__(
        self, table: Table, view: RowReads, request: ReadRange, key_range: KeyRange
    ) -> None:
        index_id = request.index.index_id if request.index else TABLE_INDEX_ID
        self.prefix = _prefix(table, request.index)
        self.view = view
        self._start, self._end = _with_prefix(self.prefix, key_range)
        self._reverse = request.reverse
        self._fetches = request.rules.fetch
        self._sizes = table.row_sizes.setdefault(index_id, RowSizes())
        # Rows that were read, and how many of them ``take`` has returned.
        self._rows: Sequence[Row] = ()
        self._taken = 0
        self._is_ended = False
        self._count = self._size_bytes = 0

    async def take(self, piece: KeyRange, builder: PageBuilder) -> Sequence[Row]:
        """The next rows in a partition's part of the range; none at its end."""
        while self._taken == len(self._rows):
            if self._is_ended:
                return []
            await self._read(builder)
        start, end = _with_prefix(self.prefix, piece)
        most = _FETCHED_ROWS if self._fetches else _PIECE_ROWS
        rows = self._rows[self._taken : self._taken + most]
        if not start <= rows[-1].key < end:
            rows = [row for row in rows if start <= row.key < end]
        self._taken += len(rows)
        return rows

    async def _read(self, builder: PageBuilder) -> None:
        max_rows, max_bytes = self._sizes.bounds(builder.bytes_left)
        if self._fetches:
            max_rows = _FETCHED_ROWS
        if builder.rows_left is not None:
            max_rows = min(max_rows, builder.rows_left)
        rows = await self.view.page(
            self._start, self._end, reverse=self._reverse, max_rows=max_rows, max_bytes=max_bytes
        )
        self._is_ended = _is_end(rows, max_rows, max_bytes)
        self.add(rows)

    def add(self, rows: Sequence[Row]) -> None:
        """Add rows that were read from the start of the remaining range."""
        self._rows, self._taken = rows, 0
        self._count += len(rows)
        self._size_bytes += _size_bytes(rows)
        if rows and self._reverse:
            self._end = rows[-1].key
        elif rows:
            self._start = rows[-1].key + b"\x00"

    def learn(self, builder: PageBuilder) -> None:
        """Store the sizes of the page's rows for the next page, if there are many rows."""
        if self._count >= _PIECE_ROWS and not self._fetches and builder.scanned_count:
            self._sizes.learn(self._count, self._size_bytes, builder)


def _is_end(rows: Sequence[Row], max_rows: int, max_bytes: int) -> bool:
    """Whether the range ended with these rows, which were read with these bounds."""
    return len(rows) < max_rows and _size_bytes(rows) < max_bytes


def _size_bytes(rows: Sequence[Row]) -> int:
    return sum(map(len, chain.from_iterable(rows)))


def _prefix(table: Table, index: IndexDefinition | None) -> bytes:
    """The prefix of the row keys of a table or an index."""
    if index is None:
        return table.row_prefix
    return key_layout.row_prefix(table.definition.table_id, index.index_id)


def _with_prefix(prefix: bytes, key_range: KeyRange) -> tuple[bytes, bytes]:
    """The bounds of the row keys of a range of positions."""
    end = key_layout.prefix_end(prefix) if key_range.end is None else prefix + key_range.end
    return prefix + key_range.start, end


async def _read_piece(
    table: Table, rows: _PageRows, request: ReadRange, piece: KeyRange, builder: PageBuilder
) -> None:
    """Add the rows of a partition until its part of the range ends, or the page is full."""
    while found := await rows.take(piece, builder):
        entries = codec.decode_all([value for _, value in found])
        if request.rules.fetch:
            builder.add_fetched(entries, await _fetch(table, rows.view, entries))
        else:
            builder.add_all(entries)
        if builder.full:
            return
        if len(found) == _PIECE_ROWS:
            await anyio.lowlevel.checkpoint()


async def _fetch(table: Table, view: RowReads, entries: list[StoredItem]) -> list[StoredItem]:
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
    table_key: KeySchema, index_key: KeySchema | None
) -> tuple[tuple[str, ...], Callable[[bytes], Item]]:
    """The key attributes of the table or index, and a decoder that decodes only them."""
    attributes = table_key.attributes + (index_key.attributes if index_key else ())
    names = tuple(dict.fromkeys(attribute.name for attribute in attributes))
    return names, part_decoder(names)
