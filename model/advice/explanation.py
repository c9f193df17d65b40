"""Explains the cost of a request, and cheaper alternatives, from its receipts alone.

The units that were taken are never recounted here; only alternatives are computed. Rules are named
as in docs/RULES.md: by number, or by row for the arithmetic of units, which has no numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from msgspec import structs

from dynactor.model import capacity
from dynactor.model.advice.cheaper import cheaper_ways
from dynactor.model.advice.explained_costs import (
    READ_RULE,
    TRANSACTION_RULE,
    WRITE_RULE,
    EntryChange,
    Explanation,
    Fetched,
    Paid,
    Read,
    TableCost,
    WriteKind,
    WrittenEntry,
    WrittenItem,
)
from dynactor.model.capacity import (
    EntryWrite,
    IndexKind,
    ItemWrite,
    KeyRead,
    RangeRead,
)
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.writes.transaction import UNITS_FACTOR


def explain(operation: str, paid: Sequence[Paid]) -> Explanation:
    """The explanation of a request with these receipts."""
    by_table: dict[str, Paid] = {}
    for part in paid:
        known = by_table.get(part.table.name)
        receipt = part.receipt if known is None else known.receipt + part.receipt
        by_table[part.table.name] = part._replace(receipt=receipt)
    costs = tuple(_table_cost(each) for each in by_table.values())
    cheaper = [advice for each in by_table.values() for advice in cheaper_ways(each)]
    cheaper.sort(key=lambda advice: advice.saves or 0.0, reverse=True)
    return Explanation(
        operation,
        sum(cost.capacity_units for cost in costs),
        costs,
        tuple(cheaper),
        cancelled=any(part.transaction == "cancelled" for part in paid),
    )


# -- reads and writes -----------------------------------------------------------------------


def _table_cost(paid: Paid) -> TableCost:
    table, receipt, transaction = paid
    in_transaction = transaction is not None
    reads: list[Read] = []
    writes: list[WrittenItem] = []
    for work in receipt.work:
        match work:
            case KeyRead():
                reads.append(_item_read(table, work, in_transaction=in_transaction))
            case RangeRead():
                reads.append(_range_read(table, work))
            case ItemWrite():
                writes.append(_written(table, work, in_transaction=in_transaction))
    return TableCost(table.name, receipt.total_units, _counted(reads), _counted(writes))


_CountedT = TypeVar("_CountedT", Read, WrittenItem)


def _counted(each: Sequence[_CountedT]) -> tuple[_CountedT, ...]:
    """Equal elements once, with their count."""
    counts: dict[_CountedT, int] = {}
    for one in each:
        counts[one] = counts.get(one, 0) + 1
    return tuple(structs.replace(one, count=count) for one, count in counts.items())


def _item_read(table: TableDefinition, work: KeyRead, *, in_transaction: bool) -> Read:
    return Read(
        "Item",
        work.size_bytes,
        capacity.read_blocks(work.size_bytes) or 1,
        work.consistent,
        work.units,
        table.name,
        (READ_RULE, TRANSACTION_RULE) if in_transaction else (READ_RULE, "S42"),
    )


def _range_read(table: TableDefinition, work: RangeRead) -> Read:
    rules: tuple[str, ...] = (READ_RULE, "S42")
    charged_resource = table.name
    if work.kind == "LocalSecondaryIndexes":
        rules = ("S41", "S42", "S49")
    elif work.kind == "GlobalSecondaryIndexes":
        rules = ("S99", "S105", "S106")
        charged_resource = work.index or charged_resource
    fetched = None
    if work.fetched_items:
        fetched = Fetched(
            work.fetched_items, work.fetched_blocks, work.fetched_units, ("S43", "S44")
        )
    return Read(
        "Scan" if work.is_scan else "Query",
        sum(work.partition_bytes),
        _blocks(work.units, consistent=work.consistent),
        work.consistent,
        work.units,
        charged_resource,
        rules,
        index=work.index,
        evaluated=work.entries,
        returned=work.returned,
        partitions=len(work.partition_bytes),
        fetched=fetched,
    )


def _blocks(units: float, *, consistent: bool) -> int:
    """The blocks that cost this many units."""
    return int(units if consistent else units * 2)


def _written(table: TableDefinition, work: ItemWrite, *, in_transaction: bool) -> WrittenItem:
    touched = {entry.name for entry in work.entries}
    indexes = [_index_write(table, entry) for entry in work.entries]
    if not (work.refused or work.is_check):
        indexes += [
            WrittenEntry(name, "none", 0, _payer(table, name, kind), (_NONE_RULES[kind],))
            for name, kind in _index_names(table)
            if name not in touched
        ]
    if work.refused:
        write: WriteKind = "condition failed"
    elif work.is_check:
        write = "condition check"
    elif work.new_bytes is not None:
        write = "put"
    else:
        write = "nothing to delete" if work.old_bytes is None else "delete"
    return WrittenItem(
        write,
        work.counted_bytes,
        work.units * UNITS_FACTOR if in_transaction else work.units,
        (WRITE_RULE, TRANSACTION_RULE) if in_transaction else (WRITE_RULE,),
        work.old_bytes,
        work.new_bytes,
        tuple(indexes),
    )


_NONE_RULES: Final[dict[IndexKind, str]] = {
    "LocalSecondaryIndexes": "S50",
    "GlobalSecondaryIndexes": "S109",
}


def _index_names(table: TableDefinition) -> Iterator[tuple[str, IndexKind]]:
    """The indexes that the table's writes maintain."""
    for local in table.local_indexes:
        yield local.name, "LocalSecondaryIndexes"
    for index in table.global_indexes:
        if index.holds_entries:
            yield index.definition.name, "GlobalSecondaryIndexes"


def _payer(table: TableDefinition, index: str, kind: IndexKind) -> str:
    """The resource whose units an index uses: its table if local, else itself (S49, S100)."""
    return table.name if kind == "LocalSecondaryIndexes" else index


def _index_write(table: TableDefinition, entry: EntryWrite) -> WrittenEntry:
    change: EntryChange
    if entry.moves:
        change, local_rule = "delete and put", "S52"
    elif entry.new_bytes is None:
        change, local_rule = "delete", "S53"
    else:
        change, local_rule = "put", "S51" if entry.old_bytes is None else "S55"
    is_local = entry.kind == "LocalSecondaryIndexes"
    rules = [local_rule if is_local else "S111"]
    if entry.write_units > _LEAST_WRITES[change]:
        rules.append("S56" if is_local else "S112")
    return WrittenEntry(
        entry.name,
        change,
        int(entry.write_units),
        _payer(table, entry.name, entry.kind),
        tuple(rules),
        entry.old_bytes,
        entry.new_bytes,
    )


# The units of an index's change if no entry is larger than 1 KB.
_LEAST_WRITES: Final[dict[EntryChange, int]] = {
    "put": 1,
    "delete": 1,
    "delete and put": 2,
    "none": 0,
}


# -- cheaper alternatives -------------------------------------------------------------------
