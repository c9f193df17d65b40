"""Capacity units, and the receipt of a request, from which all uses of the units are computed.

Source: "DynamoDB read and write operations", "Read/write capacity units".
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from dynactor.model.limits import READ_UNIT_BYTES, WRITE_UNIT_BYTES

IndexKind: TypeAlias = Literal["LocalSecondaryIndexes", "GlobalSecondaryIndexes"]
ReturnConsumedCapacity: TypeAlias = Literal["INDEXES", "TOTAL", "NONE"]
TransactionUnits: TypeAlias = Literal["ReadCapacityUnits", "WriteCapacityUnits"]


class IndexUnits(Struct, frozen=True):
    """The units of one index of a table in a request."""

    name: str
    kind: IndexKind
    read_units: float = 0.0
    write_units: float = 0.0

    @property
    def units(self) -> float:
        """Reads and writes together."""
        return self.read_units + self.write_units


class KeyRead(Struct, frozen=True):
    """The read of one item by its key; ``size_bytes`` is 0 if the item does not exist."""

    size_bytes: int
    units: float
    consistent: bool


class RangeRead(Struct, frozen=True):
    """One page of a Query or Scan: the entries it evaluated, and the items it fetched.

    ``partition_bytes`` are the sizes that were rounded up to blocks of 4 KB separately: one for
    each partition of a Scan, one sum for a Query. ``index`` is None for the table.
    """

    is_scan: bool
    index: str | None
    kind: IndexKind | None
    consistent: bool
    entries: int
    returned: int
    partition_bytes: tuple[int, ...]
    units: float
    fetched_items: int = 0
    fetched_blocks: int = 0
    fetched_units: float = 0.0


class EntryWrite(IndexUnits, frozen=True):
    """The write of an item's entry in one index; None for no entry.

    ``moves``: the entry was deleted under one key and put under another.
    """

    old_bytes: int | None = None
    new_bytes: int | None = None
    moves: bool = False


class ItemWrite(Struct, frozen=True):
    """The write of one item, from its old size to its new size; None for no item.

    ``refused``: its condition was false, and only the existing item counts. ``is_check``: a
    transaction only checked the item. ``units`` are those of a single write, even if the write is
    part of a transaction, which costs twice as much.
    """

    old_bytes: int | None
    new_bytes: int | None
    units: int
    entries: tuple[EntryWrite, ...] = ()
    refused: bool = False
    is_check: bool = False

    @property
    def counted_bytes(self) -> int:
        """The size that was rounded up to units: the larger one."""
        return max(self.old_bytes or 0, self.new_bytes or 0)


Work: TypeAlias = KeyRead | RangeRead | ItemWrite


class Receipt(Struct, frozen=True):
    """The capacity units that a request took from one table and each of its indexes.

    ``work`` lists the pieces of work that the units were counted from. Reads by key are listed only
    if the request asks for an explanation.
    """

    read_units: float = 0.0
    write_units: float = 0.0
    indexes: tuple[IndexUnits, ...] = ()
    work: tuple[Work, ...] = ()

    def __add__(self, other: Receipt) -> Receipt:
        """The receipt of two pieces of work on the same table."""
        indexes = {index.name: index for index in self.indexes}
        for index in other.indexes:
            before = indexes.get(index.name)
            indexes[index.name] = (
                index
                if before is None
                else IndexUnits(
                    index.name,
                    index.kind,
                    before.read_units + index.read_units,
                    before.write_units + index.write_units,
                )
            )
        return Receipt(
            self.read_units + other.read_units,
            self.write_units + other.write_units,
            tuple(indexes.values()),
            self.work + other.work,
        )

    @property
    def total_units(self) -> float:
        """All units, of the table and its indexes."""
        return self.read_units + self.write_units + sum(index.units for index in self.indexes)


def read_blocks(size_bytes: int) -> int:
    """The number of 4 KB units that a size fills, rounded up; 0 for size 0."""
    return -(-size_bytes // READ_UNIT_BYTES)


def read_units(blocks: int, *, consistent: bool) -> float:
    """Read capacity units of a number of 4 KB blocks: one each, half if eventually consistent."""
    return float(blocks) if consistent else blocks / 2


def item_read_units(size_bytes: int, *, consistent: bool) -> float:
    """Read capacity units of one item; a missing item (size 0) costs as much as a small one."""
    blocks = -(-size_bytes // READ_UNIT_BYTES) or 1
    return float(blocks) if consistent else blocks / 2


def write_units(size_bytes: int) -> int:
    """Write capacity units of a size: 1 KB each, rounded up, at least 1."""
    return -(-size_bytes // WRITE_UNIT_BYTES) or 1


def consumed_capacity(
    table_name: str,
    receipt: Receipt,
    mode: ReturnConsumedCapacity | None,
    *,
    repeated_as: TransactionUnits | None = None,
) -> dict[str, Any] | None:
    """The ConsumedCapacity member of an answer; None if not requested.

    ``repeated_as``: the member in which transactions repeat all units (AWS CLI reference,
    "transact-write-items").
    """
    if mode is None or mode == "NONE":
        return None

    def units_members(units: float) -> dict[str, Any]:
        return (
            {"CapacityUnits": units}
            if repeated_as is None
            else {"CapacityUnits": units, repeated_as: units}
        )

    consumed: dict[str, Any] = {"TableName": table_name, **units_members(receipt.total_units)}
    if mode == "INDEXES":
        consumed["Table"] = units_members(receipt.read_units + receipt.write_units)
        for index in receipt.indexes:
            consumed.setdefault(index.kind, {})[index.name] = units_members(index.units)
    return consumed
