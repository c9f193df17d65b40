"""The encoding of an item in a row's value: a small header, then its JSON.

The format is versioned. A new field makes a new version, and old versions stay readable.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from struct import error as StructError  # noqa: N812 - a class
from typing import Final

from dynactor.model.values.stored_item import StoredItem
from dynactor.storage.store import Damaged

FORMAT: Final = 1
# Format, version of the item (the sequence number of its change), size in bytes.
_HEADER: Final = Struct(">BQI")
HEADER_BYTES: Final = _HEADER.size


def encode(stored: StoredItem) -> bytes:
    """The value of the row that holds this item or index entry."""
    return _HEADER.pack(FORMAT, stored.version, stored.size_bytes) + stored.data


def pack(version: int, size_bytes: int, data: bytes) -> bytes:
    """The value of the row that holds an item with this canonical JSON."""
    return _HEADER.pack(FORMAT, version, size_bytes) + data


def decode(value: bytes) -> StoredItem:
    """The item or index entry in a row's value; raises ``Damaged``."""
    try:
        row_format, version, size = _HEADER.unpack_from(value)
    except StructError:
        raise _unknown() from None
    if row_format != FORMAT:
        raise _unknown()
    return StoredItem(version, size, value[_HEADER.size :])


def decode_all(values: Iterable[bytes]) -> list[StoredItem]:
    """The items or entries in the values of rows; raises like ``decode``."""
    items = []
    # Runs for every row of a page, so it avoids function calls.
    unpack, start = _HEADER.unpack_from, _HEADER.size
    try:
        for value in values:
            row_format, version, size = unpack(value)
            if row_format != FORMAT:
                raise _unknown()
            items.append(StoredItem(version, size, value[start:]))
    except StructError:
        raise _unknown() from None
    return items


def _unknown() -> Damaged:
    return Damaged("a row's value is not in a format that this version knows")


def version(value: bytes) -> int:
    """The version of the item or entry in a row, without decoding it; raises ``Damaged``."""
    try:
        row_format, number, _ = _HEADER.unpack_from(value)
    except StructError:
        raise _unknown() from None
    if row_format != FORMAT:
        raise _unknown()
    return int(number)


def size_bytes(value: bytes) -> int:
    """The size of the item or entry in a row's value, without decoding it."""
    size: int = _HEADER.unpack_from(value)[2]
    return size
