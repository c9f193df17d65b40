"""Change records: one change in a partition's log, with both images and its origin.

A record is a row of the store, written in the batch of its change. A stream's view type is applied
when the record is read.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from struct import Struct as Layout
from typing import Final

from msgspec import Struct

from dynactor.model.values import item as items
from dynactor.model.values.item import Item
from dynactor.model.values.stored_item import StoredItem
from dynactor.storage.store import Damaged
from dynactor.streams.entry_change import EntryChange
from dynactor.streams.sequence_number import SequenceNumber

FORMAT: Final = 1


class Origin(IntEnum):
    """The author of a change."""

    USER = 1
    TTL = 2
    TRANSACTION = 3
    BACKFILL = 4


class TransactionPlace(Struct, frozen=True):
    """The position of a change in its transaction: action ``ordinal`` of ``total``."""

    transaction_id: bytes
    ordinal: int
    total: int


class ChangeRecord(Struct, frozen=True, gc=False):
    """One change of one item. At least one image exists, and the two images differ.

    ``commit_time_us`` is domain time in microseconds since 1970, which never goes back on a server.
    ``entry_changes`` are the changes of global indexes by index id, if the write has computed them;
    a record read from disk has none. ``author`` is the access key id of the caller; empty if the
    server requires no keys, and for changes that no client has requested.
    """

    sequence_number: SequenceNumber
    commit_time_us: int
    origin: Origin
    keys: bytes
    old: StoredItem | None
    new: StoredItem | None
    transaction: TransactionPlace | None = None
    entry_changes: dict[int, tuple[EntryChange, ...]] = {}
    author: str = ""

    @property
    def key(self) -> Item:
        """The item's primary key."""
        return items.decode(self.keys)


# Format, origin, commit time, version and size of both images, lengths of keys, images and
# transaction id, ordinal and total. A missing image has size and length 0. The author follows the
# transaction id; versions that do not know it ignore it.
_LAYOUT: Final = Layout(">BBQQIQIHIIBHH")

# The first fields of the layout.
_TIME_LAYOUT: Final = Layout(">BBQ")


def encode(record: ChangeRecord) -> bytes:
    """The value of a record's row; its sequence number is the row's key."""
    old, new, transaction = record.old, record.new, record.transaction
    old_data = old.data if old else b""
    new_data = new.data if new else b""
    transaction_id = transaction.transaction_id if transaction else b""
    author = record.author.encode()
    header = _LAYOUT.pack(
        FORMAT,
        record.origin,
        record.commit_time_us,
        old.version if old else 0,
        old.size_bytes if old else 0,
        new.version if new else 0,
        new.size_bytes if new else 0,
        len(record.keys),
        len(old_data),
        len(new_data),
        len(transaction_id),
        transaction.ordinal if transaction else 0,
        transaction.total if transaction else 0,
    )
    return b"".join((header, record.keys, old_data, new_data, transaction_id, author))


def stored_bytes(record: ChangeRecord) -> int:
    """The length of the value of a record's row."""
    return (
        _LAYOUT.size
        + len(record.keys)
        + (len(record.old.data) if record.old else 0)
        + (len(record.new.data) if record.new else 0)
        + (len(record.transaction.transaction_id) if record.transaction else 0)
        + len(record.author.encode())
    )


def time_us(value: bytes) -> int:
    """The commit time in a row's value; 0 if the value has no known format."""
    try:
        format_number, _, commit_time_us = _TIME_LAYOUT.unpack_from(value)
    except struct.error:
        return 0
    return commit_time_us if format_number == FORMAT else 0


def decode(sequence_number: SequenceNumber, value: bytes) -> ChangeRecord:
    """The record in a row's value; raises ``Damaged``."""
    if len(value) < _LAYOUT.size or value[0] != FORMAT:
        raise Damaged("a change record is not in a format that this version knows")
    (
        _,
        origin,
        commit_time_us,
        old_version,
        old_size_bytes,
        new_version,
        new_size_bytes,
        keys_length,
        old_length,
        new_length,
        transaction_length,
        ordinal,
        total,
    ) = _LAYOUT.unpack_from(value)
    at = _LAYOUT.size
    keys = value[at : at + keys_length]
    at += keys_length
    old_data = value[at : at + old_length]
    at += old_length
    new_data = value[at : at + new_length]
    at += new_length
    transaction_id = value[at : at + transaction_length]
    at += transaction_length
    return ChangeRecord(
        sequence_number,
        commit_time_us,
        Origin(origin),
        keys,
        StoredItem(old_version, old_size_bytes, old_data) if old_data else None,
        StoredItem(new_version, new_size_bytes, new_data) if new_data else None,
        TransactionPlace(transaction_id, ordinal, total) if transaction_id else None,
        author=value[at:].decode(),
    )
