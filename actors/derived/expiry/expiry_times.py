"""The durable, ordered list of a table's expiry times: the first stage of time to live.

The sweepers read the list (S117, S120). A row says when the item at a position expires.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dynactor.actors.followers.sink import ChangeOrder, Contract, Delivery, Gap, RowSink
from dynactor.model.keys import key as keys
from dynactor.model.keys.key import KeySchema
from dynactor.model.values.item import Item
from dynactor.model.values.stored_item import StoredItem
from dynactor.model.writes.expiry import ExpiryReader, expires_at_us
from dynactor.storage import key_layout


class Listed(NamedTuple):
    """A time in microseconds, and the position of the item that expires then."""

    at_us: int
    position: bytes


class ExpiryTimes(RowSink[int]):
    """Lists the times of one table, in microseconds.

    A stale row has no effect, because the partition decides whether an item is expired. A missing
    row would keep an expired item forever.
    """

    contract = Contract(ChangeOrder.ITEM, Gap.REBUILD, None, Delivery.WITH_CHECKPOINT)

    def __init__(
        self,
        table_id: int,
        key_schema: KeySchema,
        attribute_name: str,
        noticed: Callable[[list[Listed]], None] | None = None,
    ) -> None:
        """``noticed`` is called with times that changes have listed, once they are durable."""
        self.table_id = table_id
        self._key_schema = key_schema
        self._reader = ExpiryReader(key_schema, attribute_name)
        self._noticed = noticed

    def entry(self, item: StoredItem) -> int | None:
        """The expiry time of an item; None if it does not expire."""
        return expires_at_us(self._reader.time(item))

    def position(self, key: Item) -> bytes:
        """The position that the table's partitions use."""
        return keys.encode(self._key_schema, key)

    def row(self, entry: int, position: bytes) -> bytes:
        """The key of a row; rows are ordered by slice of the hash space, then by time."""
        return key_layout.expiry_row(self.table_id, entry, position)

    def committed(self, rows: Sequence[bytes]) -> None:
        """Notify the sweeper, which may be sleeping until a later time."""
        if self._noticed is not None:
            self._noticed([Listed(*key_layout.time_and_position(row)) for row in rows])
