"""The messages of a table's partition, except those of transactions, and their replies."""

from __future__ import annotations

from msgspec import Struct

from dynactor.actors.runtime.mailbox import Message
from dynactor.model.capacity import Receipt
from dynactor.model.values.item import Item
from dynactor.model.writes.write import Write


class Written(Struct, frozen=True):
    """The reply to a write. ``collection_size_bytes`` is None without local indexes."""

    attributes: Item | None
    receipt: Receipt
    collection_size_bytes: int | None


class WriteItem(Message[Written], frozen=True):
    """Carry out a write of the item at a position: ``partition_key`` and ``sort_key``, encoded.

    ``author`` is the access key of the caller; see ``ChangeRecord``.
    """

    partition_key: bytes
    sort_key: bytes
    position: bytes
    write: Write
    author: str = ""


class Expired(Struct, frozen=True):
    """Number of deleted items, and the partition's counter after their deletion.

    ``held`` are the positions that were skipped because a transaction has locked them.
    """

    deleted_items: int
    counter: int
    held: tuple[bytes, ...] = ()


class ExpireItems(Message[Expired], frozen=True):
    """Delete the items at these positions that have expired by this attribute (S120)."""

    attribute_name: str
    positions: tuple[bytes, ...]


class RestoreItems(Message[None], frozen=True):
    """Put items of a backup at these positions, as stored rows, unless an item exists there.

    For a table that has no other writers yet; items that are sent again after a crash are skipped.
    """

    positions: tuple[bytes, ...]
    rows: tuple[bytes, ...]
