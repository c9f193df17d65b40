"""Reads of many items of several tables, from as few states of the store as memory allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from dynactor.actors.table.row_sizes import RowSizes
from dynactor.actors.table.table import ItemRead, Table, unreadable
from dynactor.model.batch_get_budget import BatchGetBudget
from dynactor.model.capacity import capacity
from dynactor.model.errors import Throttled
from dynactor.model.limits import MIB
from dynactor.model.tables.table import TABLE_INDEX_ID
from dynactor.storage import codec
from dynactor.storage.store import StoreError

# Items are loaded in pieces of about this size: 100 items of 400 KB are more than twice the largest
# answer. A piece has at least ten items.
_PIECE_BYTES: Final = 4 * MIB
_PIECE_ITEMS: Final = 10

# None stands for an item that does not fit into the answer; it consumes no units.
BatchRead: TypeAlias = ItemRead | Throttled | None


class BatchPart(NamedTuple):
    """The positions of the items that are read from one table."""

    table: Table
    positions: Sequence[bytes]
    consistent: bool


class _Wanted(NamedTuple):
    """An item to load, by the ordinals of its part and of its position."""

    part: int
    ordinal: int
    number: int
    row: bytes


async def read_items(parts: Sequence[BatchPart], budget: BatchGetBudget) -> list[list[BatchRead]]:
    """The items of each part; each item is admitted and charged separately.

    Raises:
        InternalServerError: a stored value can't be read.
    """
    reads: list[list[BatchRead]] = [[None] * len(part.positions) for part in parts]
    places = [(at, ordinal) for at, part in enumerate(parts) for ordinal in range(len(reads[at]))]
    sizes = [part.table.row_sizes.setdefault(TABLE_INDEX_ID, RowSizes()) for part in parts]
    while places:
        item_bytes = max(of_table.item_bytes for of_table in sizes)
        count = max(_PIECE_ITEMS, int(_PIECE_BYTES / item_bytes))
        piece, places = places[:count], places[count:]
        wanted = _admitted(parts, piece, budget, reads)
        values = await _load(parts, wanted)
        for each, value in zip(wanted, values, strict=True):
            reads[each.part][each.ordinal] = _charged(parts[each.part], each, value, budget)
        sizes_bytes = [len(value) for value in values if value is not None]
        for of_table in sizes:
            of_table.learn_items(sizes_bytes)
    return reads


def _admitted(
    parts: Sequence[BatchPart],
    places: Sequence[tuple[int, int]],
    budget: BatchGetBudget,
    reads: Sequence[list[BatchRead]],
) -> list[_Wanted]:
    """The items that limits admit; the others get their refusals."""
    wanted = []
    for at, ordinal in places:
        table, positions, _ = parts[at]
        position = positions[ordinal]
        number = table.number_of(position)
        if budget.is_closed(number):
            continue
        refusal = table.throttle.refused_read(number, position)
        if refusal is not None:
            reads[at][ordinal] = refusal.error()
        else:
            wanted.append(_Wanted(at, ordinal, number, table.row_prefix + position))
    return wanted


async def _load(parts: Sequence[BatchPart], wanted: Sequence[_Wanted]) -> list[bytes | None]:
    """The values of the items; strongly and eventually consistent ones are read separately."""
    values: dict[bytes, bytes | None] = {}
    for consistent in (True, False):
        rows = [each.row for each in wanted if parts[each.part].consistent is consistent]
        if rows:
            # All tables of a request are in one store.
            table = parts[wanted[0].part].table
            try:
                found = await table.view(consistent=consistent).load(rows)
            except StoreError as error:
                raise unreadable(table.definition.name, error) from error
            values.update(zip(rows, found, strict=True))
    return [values[each.row] for each in wanted]


def _charged(
    part: BatchPart, each: _Wanted, value: bytes | None, budget: BatchGetBudget
) -> BatchRead:
    """Charge the read of an item, and return it; None if the item does not fit."""
    throttle = part.table.throttle
    stored = None if value is None else codec.decode(value)
    size_bytes = 0 if stored is None else stored.size_bytes
    if not budget.fits(each.number, size_bytes):
        return None
    units = capacity.item_read_units(size_bytes, consistent=part.consistent)
    position = part.positions[each.ordinal]
    # Earlier items may have consumed the last units since this item was admitted.
    refusal = throttle.take_read(each.number, position, units)
    if throttle.read_positions.is_due(units):
        throttle.read_positions.note(each.number, position)
    if refusal is not None:
        return refusal.error()
    budget.take(each.number, size_bytes)
    return ItemRead(stored, units)
