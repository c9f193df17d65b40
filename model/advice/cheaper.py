"""Cheaper alternatives to a request, from its receipts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import structs

from dynactor.model import capacity
from dynactor.model.advice.explained_costs import (
    READ_RULE,
    TRANSACTION_RULE,
    WRITE_RULE,
    Cheaper,
    Paid,
)
from dynactor.model.capacity import (
    EntryWrite,
    IndexKind,
    ItemWrite,
    KeyRead,
    RangeRead,
    Work,
)
from dynactor.model.limits import READ_UNIT_BYTES, WRITE_UNIT_BYTES
from dynactor.model.writes.transaction import UNITS_FACTOR

# A size is near a multiple of the unit if the excess is at most this share of the size.
_NEAR: Final = 1 / 4


def cheaper_ways(paid: Paid) -> Iterator[Cheaper]:
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
            TRANSACTION_RULE,
            sum(read.units for read in reads) / UNITS_FACTOR,
        )
    changes = [write for write in writes if not write.is_check]
    if changes:
        yield Cheaper(
            "Use single writes or BatchWriteItem if one write may succeed without the others: "
            "half the table's units",
            TRANSACTION_RULE,
            float(sum(write.units for write in changes)),
        )
    checks = [write for write in writes if write.is_check]
    if checks:
        yield Cheaper(
            "Put the conditions on items that the transaction writes, instead of checking others",
            TRANSACTION_RULE,
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
        yield Cheaper(
            f"{_items(len(near))} {above} bytes above a multiple of 4 KB", READ_RULE, saves
        )


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
                READ_RULE,
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
            _FILTER_RULES.get(read.kind, READ_RULE),
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
            READ_RULE,
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
            f"{_items(len(near))} {above} bytes above a multiple of 1 KB",
            WRITE_RULE,
            float(len(near)),
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
