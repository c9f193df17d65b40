"""How an item stands in a row's value: a small header, then its JSON.

The format is versioned: a field more is a new version, and the old one stays readable.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from model.stored_item import StoredItem
from storage.store import Damaged

FORMAT: Final = 1
# Format, version of the item (the sequence number of its change), size in bytes.
_HEADER: Final = Struct(">BQI")


def encode(stored: StoredItem) -> bytes:
    """The value of the row that holds this item or index entry."""
    return _HEADER.pack(FORMAT, stored.version, stored.size_bytes) + stored.data


def decode(value: bytes) -> StoredItem:
    """The item or index entry in a row's value.

    Raises:
        Damaged: the value has no header that this version knows.
    """
    if len(value) < _HEADER.size or value[0] != FORMAT:
        raise Damaged("a row's value is not in a format that this version knows")
    _, version, size_bytes = _HEADER.unpack_from(value)
    return StoredItem(version, size_bytes, value[_HEADER.size :])


def size_bytes(value: bytes) -> int:
    """The size of the item or entry in a row's value, without decoding it."""
    size: int = _HEADER.unpack_from(value)[2]
    return size
