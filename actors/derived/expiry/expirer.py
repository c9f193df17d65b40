"""The follower that keeps the durable, ordered list of when a partition's items expire.

It is the first stage of time to live (S117, S120): of each change the time of the old item goes
and that of the new one comes. The rows are its own, so they are written together with its
checkpoint. Carried out again, a run leaves the same rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from dynactor.actors.derived.subscriber import Subscriber, encode_position
from dynactor.actors.partition.change_feed import ChangeFeed
from dynactor.actors.runtime.commit_retry import commit_with_retries
from dynactor.model.keys import key as keys
from dynactor.model.keys.key import KeySchema
from dynactor.model.tables.time_to_live import ExpiryReader, expires_at_us
from dynactor.model.values.item import Item
from dynactor.model.values.stored_item import StoredItem
from dynactor.storage import key_layout
from dynactor.storage.store import Conflict, Group
from dynactor.streams.change_record import ChangeRecord


class ExpiryRows:
    """Where the expiry times of one table stand."""

    def __init__(self, table_id: int, key_schema: KeySchema, attribute_name: str) -> None:
        self.table_id = table_id
        self._key_schema = key_schema
        self._reader = ExpiryReader(key_schema, attribute_name)

    def at_us(self, stored: StoredItem | None) -> int | None:
        """When an item expires, in microseconds; None for never."""
        return None if stored is None else expires_at_us(self._reader.time(stored))

    def position(self, key: Item) -> bytes:
        """The position of an item, by its key."""
        return keys.encode(self._key_schema, key)

    def row(self, at_us: int, position: bytes) -> bytes:
        """The key of an item's row."""
        return key_layout.expiry_row(self.table_id, at_us, position)


class Listed(NamedTuple):
    """A time in microseconds, and the position of the item that expires then."""

    at_us: int
    position: bytes


class Expirer(Subscriber):
    """The actor. ``noticed`` is told what came with a run, once it is durable."""

    def __init__(
        self,
        rows: ExpiryRows,
        feed: ChangeFeed,
        noticed: Callable[[list[Listed]], None],
        *,
        after: asyncio.Future[None] | None = None,
    ) -> None:
        subscriber = key_layout.expiry_subscriber(rows.table_id)
        super().__init__("expirer", subscriber, feed, after=after)
        self._rows = rows
        self._noticed = noticed
        self._given_up = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """As a subscriber; ends quietly where the store takes no more commits."""
        self._given_up = self.mailbox.when_closed()
        with suppress(_GivenUp):
            await super().run()

    async def carry_out(self, records: list[ChangeRecord]) -> None:
        """Write the rows that these changes leave, and with them how far it got."""
        changed: dict[bytes, Listed | None] = {}
        for record in records:
            self._apply(record, changed)
        if not changed:
            return
        await self._commit(
            records[-1].sequence_number.counter,
            [(key, b"") for key, listed in changed.items() if listed is not None],
            [key for key, listed in changed.items() if listed is None],
        )
        came = [listed for listed in changed.values() if listed is not None]
        if came:
            self._noticed(came)

    def _apply(self, record: ChangeRecord, changed: dict[bytes, Listed | None]) -> None:
        old_us, new_us = self._rows.at_us(record.old), self._rows.at_us(record.new)
        if old_us == new_us:
            return
        position = self._rows.position(record.key)
        if old_us is not None:
            changed[self._rows.row(old_us, position)] = None
        if new_us is not None:
            changed[self._rows.row(new_us, position)] = Listed(new_us, position)

    async def _commit(
        self, position: int, puts: list[tuple[bytes, bytes]], deletes: list[bytes]
    ) -> None:
        stored = encode_position(position)
        while True:
            group = Group(self._key, self._stored, stored, puts, deletes)
            try:
                if not await commit_with_retries(self._store, group, self._given_up, self.name):
                    raise _GivenUp
            except Conflict:
                # The store was opened again, without the last checkpoint or with this one.
                (self._stored,) = await self._store.latest.load([self._key])
            else:
                break
        self._stored = stored
        # Those of this run are added when it is over.
        self._unstored_records = 0


class _GivenUp(Exception):
    """The actor is to stop, and the store takes no commits."""
