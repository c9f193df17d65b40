"""Reads of many items of several tables, from as few states of the store as memory allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from dynactor.actors.table.row_sizes import RowSizes
from dynactor.actors.table.table import ItemRead, Table, unreadable
from dynactor.model import capacity
from dynactor.model.definitions.table import TABLE_INDEX_ID
from dynactor.model.errors import Throttled
from dynactor.model.limits import MIB
from dynactor.model.reads.batch_get_budget import BatchGetBudget
from dynactor.storage import codec
from dynactor.storage.store import RowReads, StoreError

# Items are loaded in pieces of about this size: 100 items of 400 KB are more than twice the largest
# answer. A piece has at least ten items.
_PIECE_BYTES: Final = 4 * MIB
_PIECE_ITEMS: Final = 10

# None stands for an item that does not fit into the answer; it consumes no units.
BatchRead: TypeAlias = ItemRead | Throttled | None


class BatchPart(NamedTuple):
    """The positions of the items that are read from one table, or from a view of a past state."""

    table: Table
    positions: Sequence[bytes]
    consistent: bool
    past: RowReads | None = None


# An item to load: the ordinals of its part and of its position, its partition, and its row. It is a
# tuple, because a class would cost time with each item.
_Wanted: TypeAlias = tuple[int, int, int, bytes]


async def read_items(parts: Sequence[BatchPart], budget: BatchGetBudget) -> list[list[BatchRead]]:
    """The items of each part, each admitted and charged alone; raises ``InternalServerError``."""
    reads: list[list[BatchRead]] = [[None] * len(part.positions) for part in parts]
    places = [(at, ordinal) for at, part in enumerate(parts) for ordinal in range(len(reads[at]))]
    sizes = [part.table.row_sizes.setdefault(TABLE_INDEX_ID, RowSizes()) for part in parts]
    while places:
        item_bytes = max(table_sizes.item_bytes for table_sizes in sizes)
        count = max(_PIECE_ITEMS, int(_PIECE_BYTES / item_bytes))
        piece, places = places[:count], places[count:]
        wanted = _admitted(parts, piece, budget, reads)
        values = await _load(parts, wanted)
        _charge(parts, wanted, values, budget, reads)
        sizes_bytes = [len(value) for value in values if value is not None]
        for table_sizes in sizes:
            table_sizes.learn_items(sizes_bytes)
    return reads


def _admitted(
    parts: Sequence[BatchPart],
    places: Sequence[tuple[int, int]],
    budget: BatchGetBudget,
    reads: Sequence[list[BatchRead]],
) -> list[_Wanted]:
    """The items that limits admit; the others get their refusals."""
    wanted: list[_Wanted] = []
    last = -1
    for at, ordinal in places:
        if at != last:
            last = at
            table, positions = parts[at].table, parts[at].positions
            number_at, prefix = table.partitions.map.number_at, table.row_prefix
            refused_read = table.throttle.refused_read
        position = positions[ordinal]
        number = number_at(position)
        if budget.is_closed(number):
            continue
        refusal = refused_read(number, position)
        if refusal is not None:
            reads[at][ordinal] = refusal.error()
        else:
            wanted.append((at, ordinal, number, prefix + position))
    return wanted


async def _load(parts: Sequence[BatchPart], wanted: Sequence[_Wanted]) -> list[bytes | None]:
    """The values of the items; strongly and eventually consistent ones are read separately."""
    if parts[0].past is not None:
        return await _load_past(parts, wanted)
    kinds = {part.consistent for part in parts}
    values: dict[bytes, bytes | None] = {}
    for consistent in kinds:
        rows = [row for at, _, _, row in wanted if parts[at].consistent is consistent]
        if not rows:
            continue
        # All tables of a request are in one store.
        table = parts[wanted[0][0]].table
        try:
            found = await table.view(consistent=consistent).load(rows)
        except StoreError as error:
            raise unreadable(table.definition.name, error) from error
        if len(kinds) == 1:
            return found
        values.update(zip(rows, found, strict=True))
    return [values[row] for _, _, _, row in wanted]


async def _load_past(parts: Sequence[BatchPart], wanted: Sequence[_Wanted]) -> list[bytes | None]:
    """The values that the items had, each table from the view of its past state."""
    values: dict[bytes, bytes | None] = {}
    for at, part in enumerate(parts):
        rows = [row for part_place, _, _, row in wanted if part_place == at]
        if rows and part.past is not None:
            values.update(zip(rows, await part.past.load(rows), strict=True))
    return [values[row] for _, _, _, row in wanted]


def _charge(
    parts: Sequence[BatchPart],
    wanted: Sequence[_Wanted],
    values: Sequence[bytes | None],
    budget: BatchGetBudget,
    reads: Sequence[list[BatchRead]],
) -> None:
    """Charge the items that fit, and add them to the results."""
    for (at, ordinal, number, _), value in zip(wanted, values, strict=True):
        table, positions, consistent, _ = parts[at]
        stored = None if value is None else codec.decode(value)
        size_bytes = 0 if stored is None else stored.size_bytes
        if not budget.fits(number, size_bytes):
            continue
        throttle, position = table.throttle, positions[ordinal]
        units = capacity.item_read_units(size_bytes, consistent=consistent)
        # The items before this one may have consumed the last units since it was admitted.
        refusal = throttle.take_read(number, position, units)
        if throttle.read_positions.is_due(units):
            throttle.read_positions.note(number, position)
        if refusal is not None:
            reads[at][ordinal] = refusal.error()
            continue
        budget.take(number, size_bytes)
        reads[at][ordinal] = ItemRead(stored, units)
