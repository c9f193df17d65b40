"""A global secondary index at work: its partitions, and the followers that fill them."""

from __future__ import annotations

import asyncio
from typing import Final

import anyio
import structlog
from msgspec import Struct

from actors.change_feed import ChangeFeed
from actors.index_partition import ApplyChanges, Backfill, IndexPartition
from actors.partition_map import PartitionMap
from actors.runtime.mailbox import MailboxFull
from actors.runtime.supervisor import Supervisor
from actors.subscribers.index_maintainer import IndexMaintainer
from model.errors import InternalServerError
from model.index import IndexDefinition
from model.key import KeySchema
from storage import keys_layout
from storage.catalog import PartitionRange
from storage.store import Store

# How long a follower waits before it asks again: for room, or for a store that takes writes.
_ROOM_SECONDS: Final = 0.001
_REFUSED_SECONDS: Final = 0.1

_log = structlog.get_logger("actors")


class IndexPlace(Struct, frozen=True):
    """Which index of which table it is, and where its entries lie."""

    table_id: int
    table_key: KeySchema
    definition: IndexDefinition
    ranges: tuple[PartitionRange, ...]

    @property
    def subscriber_id(self) -> bytes:
        """What names the index in checkpoints; ids are never used again."""
        return self.table_id.to_bytes(8, "big") + self.definition.index_id.to_bytes(4, "big")


class GlobalIndexActors:
    """The actors of one index. Each follower asks its partitions; they ask nobody."""

    def __init__(
        self, place: IndexPlace, store: Store, supervisor: Supervisor, *, copy_messages: bool
    ) -> None:
        self.place = place
        self.map = PartitionMap(place.ranges)
        self._store = store
        self._supervisor = supervisor
        self._copy_messages = copy_messages
        self._partitions: dict[int, IndexPartition] = {}
        self._maintainers: list[IndexMaintainer] = []

    def follow(self, feed: ChangeFeed) -> None:
        """Carry the changes of one of the table's partitions into the index from now on."""
        maintainer = IndexMaintainer(
            self.place.definition, self.place.table_key, self, self.place.subscriber_id, feed
        )
        self._maintainers.append(maintainer)
        self._supervisor.start(maintainer)

    @property
    def lag_records(self) -> int:
        """How many changes its followers are behind, at most."""
        return sum(maintainer.lag_records for maintainer in self._maintainers)

    def owner_of(self, position: bytes) -> int:
        """The place of the partition that owns a position."""
        return self.map.owner_of(position)

    async def ask(self, place: int, message: ApplyChanges | Backfill) -> None:
        """Have a message carried out, durably, however long the store takes no writes."""
        while True:
            try:
                await self._partition(place).mailbox.put_nowait(message)
            except MailboxFull:
                await anyio.sleep(_ROOM_SECONDS)
            except InternalServerError as error:
                _log.info("index_write_refused", index=self.place.definition.name, error=str(error))
                await anyio.sleep(_REFUSED_SECONDS)
            else:
                return

    async def close(self) -> None:
        """Stop the followers after their present run, then the partitions."""
        await asyncio.gather(*map(self._supervisor.stop, self._maintainers))
        self._maintainers.clear()
        await asyncio.gather(*map(self._supervisor.stop, self._partitions.values()))
        self._partitions.clear()

    def _partition(self, place: int) -> IndexPartition:
        partition = self._partitions.get(place)
        if partition is None:
            definition = self.place.definition
            partition = IndexPartition(
                self.place.ranges[place].number,
                definition,
                keys_layout.row_prefix(self.place.table_id, definition.index_id),
                self._store,
                copy_messages=self._copy_messages,
            )
            self._partitions[place] = partition
            self._supervisor.start(partition)
        return partition
