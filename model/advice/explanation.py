"""Explains the cost of a request, and cheaper alternatives, from its receipts alone.

The units that were taken are never recounted here; only alternatives are computed. Rules are named
as in docs/RULES.md: by number, or by row for the arithmetic of units, which has no numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct, structs

from dynactor.model import capacity
from dynactor.model.capacity import (
    EntryWrite,
    IndexKind,
    ItemWrite,
    KeyRead,
    RangeRead,
    Receipt,
    Work,
)
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.limits import READ_UNIT_BYTES, WRITE_UNIT_BYTES
from dynactor.model.writes.transaction import UNITS_FACTOR

# The outcome of a transaction.
Outcome: TypeAlias = Literal["done", "cancelled"]
WriteKind: TypeAlias = Literal[
    "put", "delete", "nothing to delete", "condition check", "condition failed"
]
EntryChange: TypeAlias = Literal["put", "delete", "delete and put", "none"]

_READ: Final = "Arithmetic: Read"
_WRITE: Final = "Arithmetic: Write"
_TRANSACTIONS: Final = "Arithmetic: Transactions"
# A size is near a multiple of the unit if the excess is at most this share of the size.
_NEAR: Final = 1 / 4


class Paid(NamedTuple):
    """The cost of a request, or of a part of a request, on one table."""

    table: TableDefinition
    receipt: Receipt
    transaction: Outcome | None = None


class Fetched(Struct, frozen=True, rename="pascal"):
    """The items that were fetched from the table for the entries of a local index."""

    items: int
    blocks: int
    units: float
    rules: tuple[str, ...]


class Read(Struct, frozen=True, rename="pascal", omit_defaults=True):
    """A read in blocks of 4 KB; the request had ``count`` equal reads.

    ``charged_resource`` is the table or global index whose units the read took.
    """

    read: Literal["Item", "Query", "Scan"]
    bytes: int
    blocks: int
    consistent: bool
    units: float
    charged_resource: str
    rules: tuple[str, ...]
    index: str | None = None
    evaluated: int | None = None
    returned: int | None = None
    partitions: int = 1
    fetched: Fetched | None = None
    count: int = 1


class WrittenEntry(Struct, frozen=True, rename="pascal", omit_defaults=True):
    """The change of an item's entry in an index, and the resource whose units it consumed."""

    index: str
    change: EntryChange
    units: int
    charged_resource: str
    rules: tuple[str, ...]
    bytes_before: int | None = None
    bytes_after: int | None = None


class Written(Struct, frozen=True, rename="pascal", omit_defaults=True):
    """The cost of writing one item, in units of 1 KB; the request had ``count`` equal writes.

    ``bytes`` is the size that counts, the larger one.
    """

    write: WriteKind
    bytes: int
    units: int
    rules: tuple[str, ...]
    bytes_before: int | None = None
    bytes_after: int | None = None
    indexes: tuple[WrittenEntry, ...] = ()
    count: int = 1


class TableCost(Struct, frozen=True, rename="pascal", omit_defaults=True):
    """The cost of a request on one table and its indexes."""

    table_name: str
    capacity_units: float
    reads: tuple[Read, ...] = ()
    writes: tuple[Written, ...] = ()


class Cheaper(Struct, frozen=True, rename="pascal", omit_defaults=True):
    """A cheaper alternative, and the units it saves; None if unknown."""

    advice: str
    rule: str
    saves: float | None = None


class Explanation(Struct, frozen=True, rename="pascal", omit_defaults=True):
    """The whole explanation: tables in the order of the request, advice by decreasing saving.

    ``cancelled``: a transaction wrote nothing, but consumed these units.
    """

    operation: str
    capacity_units: float
    tables: tuple[TableCost, ...]
    cheaper: tuple[Cheaper, ...] = ()
    cancelled: bool = False


def explain(operation: str, paid: Sequence[Paid]) -> Explanation:
    """The explanation of a request with these receipts."""
    by_table: dict[str, Paid] = {}
    for part in paid:
        known = by_table.get(part.table.name)
        receipt = part.receipt if known is None else known.receipt + part.receipt
        by_table[part.table.name] = part._replace(receipt=receipt)
    costs = tuple(_table_cost(each) for each in by_table.values())
    cheaper = [advice for each in by_table.values() for advice in _cheaper(each)]
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
    writes: list[Written] = []
    for work in receipt.work:
        match work:
            case KeyRead():
                reads.append(_item_read(table, work, in_transaction=in_transaction))
            case RangeRead():
                reads.append(_range_read(table, work))
            case ItemWrite():
                writes.append(_written(table, work, in_transaction=in_transaction))
    return TableCost(table.name, receipt.total_units, _counted(reads), _counted(writes))


_CountedT = TypeVar("_CountedT", Read, Written)


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
        (_READ, _TRANSACTIONS) if in_transaction else (_READ, "S42"),
    )


def _range_read(table: TableDefinition, work: RangeRead) -> Read:
    rules: tuple[str, ...] = (_READ, "S42")
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


def _written(table: TableDefinition, work: ItemWrite, *, in_transaction: bool) -> Written:
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
    return Written(
        write,
        work.counted_bytes,
        work.units * UNITS_FACTOR if in_transaction else work.units,
        (_WRITE, _TRANSACTIONS) if in_transaction else (_WRITE,),
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


def _cheaper(paid: Paid) -> Iterator[Cheaper]:
    """The advice on one table's share."""
    work = paid.receipt.work
    if paid.transaction is not None:
        yield from _cheaper_than_a_transaction(work)
        return
    item_reads = [each for each in work if isinstance(each, KeyRead)]
    range_reads = [each for each in work if isinstance(each, RangeRead)]
    writes = [each for each in work if isinstance(each, ItemWrite)]
    yield from _eventually(item_reads, range_reads)
    yield from _smaller_items(item_reads)
    yield from _read_together(item_reads, range_reads)
    for read in range_reads:
        yield from _less_of_a_range(read)
    yield from _smaller_writes(writes)
    yield from _less_of_indexes([entry for write in writes for entry in write.entries])


def _cheaper_than_a_transaction(work: Sequence[Work]) -> Iterator[Cheaper]:
    """The advice on one table's share of a transaction, which pays for each item twice."""
    reads = [each for each in work if isinstance(each, KeyRead)]
    writes = [each for each in work if isinstance(each, ItemWrite)]
    if reads:
        yield Cheaper(
            "Use BatchGetItem if the items need not be of one moment: half the units with "
            "ConsistentRead true, a quarter without",
            _TRANSACTIONS,
            sum(read.units for read in reads) / UNITS_FACTOR,
        )
    changes = [write for write in writes if not write.is_check]
    if changes:
        yield Cheaper(
            "Use single writes or BatchWriteItem if one write may succeed without the others: "
            "half the table's units",
            _TRANSACTIONS,
            float(sum(write.units for write in changes)),
        )
    checks = [write for write in writes if write.is_check]
    if checks:
        yield Cheaper(
            "Put the conditions on items that the transaction writes, instead of checking others",
            _TRANSACTIONS,
            float(sum(write.units for write in checks) * UNITS_FACTOR),
        )
    for advice in (*_smaller_items(reads), *_smaller_writes(changes)):
        assert advice.saves is not None
        yield structs.replace(advice, saves=advice.saves * UNITS_FACTOR)
    yield from _less_of_indexes([entry for write in writes for entry in write.entries])


def _eventually(
    item_reads: Sequence[KeyRead], range_reads: Sequence[RangeRead]
) -> Iterator[Cheaper]:
    units = sum(read.units for read in item_reads if read.consistent)
    units += sum(read.units + read.fetched_units for read in range_reads if read.consistent)
    if units:
        yield Cheaper("Read with ConsistentRead false: half the units", "S42", units / 2)


def _smaller_items(reads: Sequence[KeyRead]) -> Iterator[Cheaper]:
    near = [read for read in reads if _bytes_above(read.size_bytes, READ_UNIT_BYTES)]
    if near:
        above = max(_bytes_above(read.size_bytes, READ_UNIT_BYTES) for read in near)
        saves = sum(capacity.read_units(1, consistent=read.consistent) for read in near)
        yield Cheaper(f"{_items(len(near))} {above} bytes above a multiple of 4 KB", _READ, saves)


def _read_together(
    item_reads: Sequence[KeyRead], range_reads: Sequence[RangeRead]
) -> Iterator[Cheaper]:
    """Reads of several items by key are cheaper as one Query, which rounds up one sum."""
    for consistent in (True, False):
        sizes = [read.size_bytes for read in item_reads if read.consistent is consistent]
        units = sum(read.units for read in item_reads if read.consistent is consistent)
        for read in range_reads:
            if _is_of_one_item(read) and read.consistent is consistent:
                sizes.append(sum(read.partition_bytes))
                units += read.units
        together = capacity.read_units(capacity.read_blocks(sum(sizes)) or 1, consistent=consistent)
        if len(sizes) > 1 and together < units:
            yield Cheaper(
                f"Use one Query instead of {len(sizes)} reads if the items are neighbors in one "
                "item collection: their sizes are summed and rounded up once",
                _READ,
                units - together,
            )


def _is_of_one_item(read: RangeRead) -> bool:
    return read.index is None and not read.is_scan and read.entries <= 1


def _less_of_a_range(read: RangeRead) -> Iterator[Cheaper]:
    if read.fetched_items:
        yield Cheaper(
            f"Request only attributes that {read.index} projects, or project the fetched ones: "
            "the items themselves would not be read",
            "S43",
            read.fetched_units,
        )
    size_bytes = sum(read.partition_bytes)
    if read.entries > read.returned:
        kept_bytes = size_bytes * read.returned // read.entries
        kept_blocks = capacity.read_blocks(kept_bytes) or 1
        dropped = read.entries - read.returned
        yield Cheaper(
            f"The filter dropped {dropped} of {read.entries} entries after they were charged. A "
            "key condition or a sparse index would read only the others (saving estimated from "
            "the mean size)",
            _FILTER_RULES.get(read.kind, _READ),
            max(0.0, read.units - capacity.read_units(kept_blocks, consistent=read.consistent))
            or None,
        )
    if read.is_scan:
        partitions = len(read.partition_bytes)
        yield Cheaper(
            "A Query reads the items of one partition key; this Scan read items of all keys"
            + (f", and rounded up in each of {partitions} partitions" if partitions > 1 else ""),
            "S158",
        )
    elif above := _bytes_above(size_bytes, READ_UNIT_BYTES):
        yield Cheaper(
            f"The entries are together {above} bytes above a multiple of 4 KB",
            _READ,
            capacity.read_units(1, consistent=read.consistent),
        )


_FILTER_RULES: Final[dict[IndexKind | None, str]] = {
    "LocalSecondaryIndexes": "S41",
    "GlobalSecondaryIndexes": "S106",
}


def _smaller_writes(writes: Sequence[ItemWrite]) -> Iterator[Cheaper]:
    # The larger size counts. If the item became smaller, its next write costs less anyway.
    near = [
        write.counted_bytes
        for write in writes
        if write.new_bytes == write.counted_bytes
        and _bytes_above(write.counted_bytes, WRITE_UNIT_BYTES)
    ]
    if near:
        above = max(_bytes_above(size_bytes, WRITE_UNIT_BYTES) for size_bytes in near)
        yield Cheaper(
            f"{_items(len(near))} {above} bytes above a multiple of 1 KB", _WRITE, float(len(near))
        )


def _less_of_indexes(entries: Sequence[EntryWrite]) -> Iterator[Cheaper]:
    in_place = [entry for entry in entries if _is_in_place(entry)]
    if in_place:
        yield Cheaper(
            f"Do not project the changed attributes into {_names(in_place)}: an unchanged entry is "
            "not written",
            "S57",
            float(sum(entry.write_units for entry in in_place)),
        )
    large = [
        (entry, saves)
        for entry in entries
        if not _is_in_place(entry) and (saves := entry.write_units - (2 if entry.moves else 1)) > 0
    ]
    if large:
        yield Cheaper(
            f"Project less into {_names([entry for entry, _ in large])}: entries of at most 1 KB "
            "cost 1 unit",
            "S57",
            float(sum(saves for _, saves in large)),
        )


def _is_in_place(entry: EntryWrite) -> bool:
    return entry.old_bytes is not None and entry.new_bytes is not None and not entry.moves


def _names(entries: Sequence[EntryWrite]) -> str:
    """The indexes that these entries belong to, each once."""
    return ", ".join(dict.fromkeys(entry.name for entry in entries))


def _items(count: int) -> str:
    return "The item is" if count == 1 else f"{count} items are each at most"


def _bytes_above(size_bytes: int, unit_bytes: int) -> int:
    """The bytes above the last whole unit, for a size of several units; 0 if not near."""
    above = size_bytes % unit_bytes
    return above if size_bytes > unit_bytes and above <= size_bytes * _NEAR else 0
