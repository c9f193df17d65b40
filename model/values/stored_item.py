"""A stored item: its bytes, size and version, decoded on first use."""

from __future__ import annotations

from msgspec import Struct

from dynactor.model.values import item as items
from dynactor.model.values.item import Item


class StoredItem(Struct, eq=False, gc=False):
    """An item or index entry as read from or written to disk.

    ``data`` is compact canonical DynamoDB JSON, which answers include unchanged. ``version`` is the
    sequence number of the change that made the item. The object is immutable with one exception:
    new items of a transaction get their version when the sequence numbers are known
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
        """The decoded item, decoded once."""
        if self._item is None:
            self._item = items.decode(self.data)
        return self._item

    def undecoded(self) -> StoredItem:
        """A copy without the decoded item, for long-lived caches.

        With millions of small objects, the garbage collector can pause the server for 0.1 seconds.
        """
        return StoredItem(self.version, self.size_bytes, self.data)
