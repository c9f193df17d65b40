"""An item as it is kept: its bytes, size and version, decoded only when somebody looks."""

from __future__ import annotations

from msgspec import Struct

from dynactor.model.values import item as items
from dynactor.model.values.item import Item


class StoredItem(Struct, eq=False, gc=False):
    """An item or index entry on its way from or to the disk.

    ``data`` is compact canonical DynamoDB JSON, spliced into answers as it is. ``version`` is
    the sequence number of the change that made it. Never changed once made, but for the version,
    which a transaction's changes get with their numbers
    (``dynactor.model.writes.change.give_version``).
    """

    version: int
    size_bytes: int
    data: bytes
    _item: Item | None = None

    @classmethod
    def of(cls, item: Item, version: int, size_bytes: int | None = None) -> StoredItem:
        """The stored form of a checked item."""
        size = items.size_bytes(item) if size_bytes is None else size_bytes
        return cls(version, size, items.encode(item), item)

    @property
    def item(self) -> Item:
        """The decoded item; decoded once."""
        if self._item is None:
            self._item = items.decode(self.data)
        return self._item

    def undecoded(self) -> StoredItem:
        """The same without the decoded item, to be kept for long.

        Millions of small objects would make the garbage collector stop everything, at times,
        for a tenth of a second.
        """
        return StoredItem(self.version, self.size_bytes, self.data)
