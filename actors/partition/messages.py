"""The messages of a table's partition, but for those of transactions, and their replies."""

from __future__ import annotations

from msgspec import Struct

from dynactor.actors.runtime.mailbox import Message
from dynactor.model.capacity.capacity import Receipt
from dynactor.model.tables.table import TableDefinition
from dynactor.model.values.item import Item
from dynactor.model.writes.write import Write


class Written(Struct, frozen=True):
    """The reply to a write.

    ``collection_size_bytes`` is the size of the item's collection, None on a table without
    local indexes.
    """

    attributes: Item | None
    receipt: Receipt
    collection_size_bytes: int | None


class WriteItem(Message[Written], frozen=True):
    """Carry out a write on the item at a position, its encoded key: the two keys together."""

    partition_key: bytes
    sort_key: bytes
    position: bytes
    write: Write


class Expired(Struct, frozen=True):
    """How many items were deleted, and the counter of the last change they saw or made.

    ``held`` are the positions that were passed over, as a transaction has them.
    """

    deleted_items: int
    counter: int
    held: tuple[bytes, ...] = ()


class ExpireItems(Message[Expired], frozen=True):
    """Delete those of the items at these positions that have expired by this attribute (S120)."""

    attribute_name: str
    positions: tuple[bytes, ...]


class RestoreItems(Message[None], frozen=True):
    """Put items of a backup, as its rows have them, at these positions, each where there is none.

    For a table that nobody else writes to yet; items that a crash made come again are skipped.
    """

    positions: tuple[bytes, ...]
    rows: tuple[bytes, ...]


class Redefine(Message[int], frozen=True):
    """Keep to this definition of the table from now on.

    The reply is the counter of the last change made under the old one.
    """

    definition: TableDefinition
