"""A sink made for tests: counts the items of a table by the value of one string attribute.

``docs/EXTENDING.md`` shows it as an example. ``ItemCounts`` is the sink. ``CountedTable`` attaches
it to a table: a scan writes the rows of existing items, then followers apply the table's logs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dynactor.actors.feeds.change_feed import ChangeFeed
from dynactor.actors.followers.follower_group import FollowerGroup
from dynactor.actors.followers.scan import TableScan
from dynactor.actors.followers.sink import ChangeOrder, Contract, Delivery, Gap, RowSink
from dynactor.actors.followers.stored_checkpoint import first_checkpoints
from dynactor.actors.runtime.supervisor import Supervisor
from dynactor.actors.table.followers import Subscription
from dynactor.actors.table.table import Table
from dynactor.model.keys import key as keys
from dynactor.model.keys.key import KeySchema
from dynactor.model.values.item import Item, decode
from dynactor.model.values.stored_item import StoredItem
from dynactor.storage import key_layout
from dynactor.storage.store import Group, Store
from dynactor.storage.subscriber_names import index_subscriber

# An id that no index of a table has, and a first byte that no other row has.
_SUBSCRIBER_ID = 0x7000_0000
_ROWS = b"\x7f"


class ItemCounts(RowSink[str]):
    """Writes one row for each item with the attribute; a count is the number of rows of a value."""

    contract = Contract(ChangeOrder.ITEM, Gap.REBUILD, None, Delivery.WITH_CHECKPOINT)

    def __init__(self, key_schema: KeySchema, attribute_name: str) -> None:
        self._key_schema = key_schema
        self._attribute_name = attribute_name

    def entry(self, item: StoredItem) -> str | None:
        return decode(item.data).get(self._attribute_name, {}).get("S")

    def position(self, key: Item) -> bytes:
        return keys.encode(self._key_schema, key)

    def row(self, entry: str, position: bytes) -> bytes:
        return _ROWS + entry.encode() + b"\x00" + position


class CountedTable:
    """The counts of one table; attaching it makes the table record its changes."""

    subscription = Subscription.ALL
    contract = ItemCounts.contract

    def __init__(self, table: Table, sink: ItemCounts, store: Store, actors: Supervisor) -> None:
        self.subscriber_id = index_subscriber(table.definition.table_id, _SUBSCRIBER_ID)
        self._table = table
        self._sink = sink
        self._store = store
        self._actors = actors
        self.followers = FollowerGroup("counter", self.subscriber_id, lambda _: sink, actors)

    async def start(self) -> None:
        """Start counting, or continue from the checkpoints of an earlier start."""
        followers, table_id = self._table.followers, self._table.definition.table_id
        followers.attach(self.subscriber_id, self)
        cursor_key = key_layout.backfill_cursor(table_id, _SUBSCRIBER_ID)
        if await self._store.latest.load([cursor_key]) == [None]:
            tails = {feed.partition_number: feed.tail for feed in await followers.feeds()}
            first = first_checkpoints(self.subscriber_id, tails)
            begin = Group(cursor_key, None, key_layout.row_prefix(table_id), puts=first)
            await (await self._store.commit([begin]))
        self._actors.start(
            TableScan("counts", table_id, cursor_key, self._sink, self._store, ended=self._follow)
        )

    def _follow(self) -> None:
        self._actors.run_in_background(self._follow_all)

    async def _follow_all(self) -> None:
        self.followers.follow(await self._table.followers.feeds_for(self.subscriber_id))

    def split(self, parent: int, children: Sequence[ChangeFeed]) -> None:
        self.followers.split(parent, children)

    async def close(self) -> None:
        await self.followers.close()

    async def counts(self) -> Counter[str]:
        """The number of items with each value, as of the last applied changes."""
        rows = await self._store.durable().page(
            _ROWS, key_layout.prefix_end(_ROWS), max_rows=1 << 20, max_bytes=1 << 30
        )
        return Counter(row.key[1:].partition(b"\x00")[0].decode() for row in rows)
