"""The parts of an explanation: the costs of a request, and cheaper alternatives."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct, field

from dynactor.model.capacity import (
    Receipt,
)
from dynactor.model.definitions.table import TableDefinition

Outcome: TypeAlias = Literal["done", "cancelled"]

WriteKind: TypeAlias = Literal[
    "put", "delete", "nothing to delete", "condition check", "condition failed"
]

EntryChange: TypeAlias = Literal["put", "delete", "delete and put", "none"]

READ_RULE: Final = "Arithmetic: Read"

WRITE_RULE: Final = "Arithmetic: Write"

TRANSACTION_RULE: Final = "Arithmetic: Transactions"


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
    charged_resource: str = field(name="UnitsOf")
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
    charged_resource: str = field(name="UnitsOf")
    rules: tuple[str, ...]
    bytes_before: int | None = None
    bytes_after: int | None = None


class WrittenItem(Struct, frozen=True, rename="pascal", omit_defaults=True):
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
    writes: tuple[WrittenItem, ...] = ()


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
