"""Capacity units, and the receipt from which everything that counts them derives.

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
    """The units that one index of a table took in a request."""

    name: str
    kind: IndexKind
    read_units: float = 0.0
    write_units: float = 0.0

    @property
    def units(self) -> float:
        """Reads and writes together."""
        return self.read_units + self.write_units


class KeyRead(Struct, frozen=True):
    """The read of one item by its key; ``size_bytes`` is 0 where there is none."""

    size_bytes: int
    units: float
    consistent: bool


class RangeRead(Struct, frozen=True):
    """One page of a Query or Scan: the entries that it evaluated, and the items it fetched.

    ``partition_bytes`` are the sizes that were rounded up to blocks of 4 KB, each on its own:
    one for each partition of a Scan, and of a Query one sum. ``index`` is None for the table.
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
    """What a write did to the entry of its item in one index, and the units; None for no entry.

    ``moves``: it was deleted under one key and put under another.
    """

    old_bytes: int | None = None
    new_bytes: int | None = None
    moves: bool = False


class ItemWrite(Struct, frozen=True):
    """The write of one item, from the size that it had to the one it has; None for no item.

    ``refused``: its condition was false, and only the item that is there counts. ``is_check``: a
    transaction only looked at it. ``units`` are those of the write alone, in a transaction too.
    """

    old_bytes: int | None
    new_bytes: int | None
    units: int
    entries: tuple[EntryWrite, ...] = ()
    refused: bool = False
    is_check: bool = False

    @property
    def counted_bytes(self) -> int:
        """The size that was rounded up to units: the larger of both."""
        return max(self.old_bytes or 0, self.new_bytes or 0)


Work: TypeAlias = KeyRead | RangeRead | ItemWrite


class Receipt(Struct, frozen=True):
    """The capacity units that a request took from one table and each of its indexes.

    ``work`` is what they were counted from, piece by piece. Of reads by key it is kept only where
    the request is to be explained.
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
    """How many units of 4 KB a size fills, rounded up; nothing at all fills none."""
    return -(-size_bytes // READ_UNIT_BYTES)


def read_units(blocks: int, *, consistent: bool) -> float:
    """Read capacity units of so many 4 KB blocks: one each, half if eventually consistent."""
    return float(blocks) if consistent else blocks / 2


def item_read_units(size_bytes: int, *, consistent: bool) -> float:
    """Read capacity units of one item; a missing one, of size 0, costs as much as a small one."""
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
    told_as: TransactionUnits | None = None,
) -> dict[str, Any] | None:
    """The ConsumedCapacity member of an answer; None where it is not to be returned.

    ``told_as``: the member in which transactions tell all units once more (AWS CLI reference,
    "transact-write-items").
    """
    if mode is None or mode == "NONE":
        return None

    def told(units: float) -> dict[str, Any]:
        return (
            {"CapacityUnits": units}
            if told_as is None
            else {"CapacityUnits": units, told_as: units}
        )

    consumed: dict[str, Any] = {"TableName": table_name, **told(receipt.total_units)}
    if mode == "INDEXES":
        consumed["Table"] = told(receipt.read_units + receipt.write_units)
        for index in receipt.indexes:
            consumed.setdefault(index.kind, {})[index.name] = told(index.units)
    return consumed
