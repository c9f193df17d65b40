"""The logs that a relay publishes, and how far it has come in each.

The log of a child joins the others when its parent's was published whole: until the split an item's
changes are in the one, from then on in the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import structlog

from dynactor.actors.derived import checkpoint
from dynactor.actors.derived.checkpoint import Checkpoint
from dynactor.actors.partition.change_feed import ChangeFeed
from dynactor.storage import key_layout
from dynactor.storage.store import Closed, Conflict, Fenced, Full, Group, Retry, Store
from dynactor.streams import change_record
from dynactor.streams.change_record import ChangeRecord

_RUN_RECORDS: Final = 1_024
_RUN_BYTES: Final = 2 * 1024 * 1024

_log = structlog.get_logger("kafka")


class RelayLog:
    """One of them."""

    def __init__(self, feed: ChangeFeed, key: bytes) -> None:
        self.feed = feed
        self.key = key
        self.stored: bytes | None = None
        self.position = Checkpoint(0, 0)
        # Kept until it completes: a feed does not forget who waits for it.
        self._addition: asyncio.Future[None] | None = None

    @property
    def number(self) -> int:
        """Its partition's."""
        return self.feed.partition_number

    @property
    def stored_counter(self) -> int:
        """The counter of the stored checkpoint."""
        return checkpoint.decode(self.stored).counter

    @property
    def end(self) -> Checkpoint | None:
        """The place behind all that it will ever have; None while it grows."""
        if self.feed.last is None:
            return None
        return Checkpoint(self.feed.last, self.feed.logged_bytes)

    @property
    def is_whole(self) -> bool:
        """Whether it has ended, and all of it was published."""
        return self.feed.last is not None and self.position.counter >= self.feed.last

    @property
    def lag_records(self) -> int:
        """How many of its changes are not published, at most."""
        return max(0, self.feed.tail - self.position.counter)

    @property
    def lag_bytes(self) -> int:
        """How many bytes of its records are not published."""
        if not self.lag_records:
            return 0
        return max(0, self.feed.logged_bytes - self.position.logged_bytes)

    async def first(self) -> ChangeRecord | None:
        """The first record that is not published."""
        records = await self.feed.read(self.position.counter, max_records=1, max_bytes=1)
        return records[0] if records else None

    def wait_addition(self) -> asyncio.Future[None]:
        """A future that completes when records are added, or the log ends."""
        if self._addition is None or self._addition.done():
            self._addition = self.feed.wait_addition()
        return self._addition


class RelayLogs:
    """All of them, parents before their children.

    Invariant: a log's stored checkpoint is at or below its position.
    """

    def __init__(
        self, feeds: Sequence[ChangeFeed], *, subscriber: bytes, store: Store, relay: str
    ) -> None:
        self._subscriber = subscriber
        self._store = store
        self._relay = relay
        self._logs: dict[int, RelayLog] = {}
        self._joined = asyncio.get_running_loop().create_future()
        # Since the checkpoints were stored last.
        self.unstored_records = 0
        self.add(feeds)

    def __iter__(self) -> Iterator[RelayLog]:
        # Others may join them meanwhile.
        return iter(list(self._logs.values()))

    def __contains__(self, partition_number: object, /) -> bool:
        return partition_number in self._logs

    def __getitem__(self, partition_number: int) -> RelayLog:
        return self._logs[partition_number]

    def add(self, feeds: Sequence[ChangeFeed]) -> None:
        """Logs that nothing was published of, children behind their parents."""
        for feed in feeds:
            key = key_layout.checkpoint(self._subscriber, feed.partition_number)
            self._logs[feed.partition_number] = RelayLog(feed, key)
        self._forget_gone()
        self._joined.set_result(None)
        self._joined = asyncio.get_running_loop().create_future()

    def _forget_gone(self) -> None:
        """Forget the logs that were published whole and are kept no longer.

        As long as one is kept, its children know of it.
        """
        kept = {log.feed.parent for log in self}
        for log in self:
            if log.is_whole and log.number not in kept:
                del self._logs[log.number]

    @property
    def open(self) -> list[RelayLog]:
        """Those to be published now: neither whole, nor with an ancestor's that is not."""
        return [log for log in self if not log.is_whole and self._is_next(log)]

    def _is_next(self, log: RelayLog) -> bool:
        parent = None if log.feed.parent is None else self._logs.get(log.feed.parent)
        # One that is not among them was published whole before; an empty one is whole at once.
        return parent is None or (parent.is_whole and self._is_next(parent))

    @property
    def has_unstored_end(self) -> bool:
        """Whether one is whole and its checkpoint does not say so: it is kept until it does."""
        return any(log.is_whole and log.stored_counter < log.position.counter for log in self)

    # -- waiting ----------------------------------------------------------------------------

    def seen(self) -> Sequence[object]:
        """What changes whenever there is more to read."""
        return [(log.feed.additions, log.feed.last) for log in self]

    async def wait_more(self, seen: Sequence[object], closed: asyncio.Future[None]) -> None:
        """Wait until there is more to read than when that was seen, or it is closed."""
        if seen == self.seen():
            waiting = [log.wait_addition() for log in self.open]
            await asyncio.wait(
                [*waiting, self._joined, closed], return_when=asyncio.FIRST_COMPLETED
            )

    # -- positions --------------------------------------------------------------------------

    def passed(self, positions: Mapping[int, Checkpoint], records: int) -> None:
        """All is acknowledged up to these positions; so many records they were."""
        for log in self:
            log.position = positions.get(log.number, log.position)
        self.unstored_records += records

    def are_behind(self, counters: Mapping[int, int]) -> bool:
        """Whether more was published of a log than it ever had: the data are from a backup."""
        ahead = [
            log.number
            for log in self
            if counters.get(log.number, 0) > max(log.feed.tail, log.position.counter)
        ]
        for number in ahead:
            _log.error("published_more_than_stored", relay=self._relay, log=number)
        return bool(ahead)

    async def pass_over(self, counters: Mapping[int, int]) -> bool:
        """Pass over what was published without our knowing; whether there was anything."""
        has_moved = False
        for log in self:
            counter = counters.get(log.number, 0)
            while log.position.counter < counter:
                records = await log.feed.read(
                    log.position.counter, max_records=_RUN_RECORDS, max_bytes=_RUN_BYTES
                )
                known = [record for record in records if record.sequence_number.counter <= counter]
                if not known:
                    break
                log.position = behind(log.position, known)
                self.unstored_records += len(known)
                has_moved = True
        return has_moved

    async def load(self) -> None:
        """Read the checkpoints; a log that has come further stays where it is."""
        self._forget_gone()
        logs = list(self)
        values = await self._store.latest.load([log.key for log in logs])
        for log, value in zip(logs, values, strict=True):
            log.stored = value
            if log.position.counter == 0:
                log.position = checkpoint.decode(value)

    async def store_checkpoints(self) -> None:
        """Store how far they were published; refused by the store, the next time does."""
        moved = [log for log in self if log.position != checkpoint.decode(log.stored)]
        if not moved:
            return
        values = [log.position.encode() for log in moved]
        try:
            await self._store.commit(
                [
                    Group(log.key, log.stored, value)
                    for log, value in zip(moved, values, strict=True)
                ]
            )
        except Fenced:
            raise
        except Conflict:
            # The store was opened again, without the last checkpoint: what it covers is sent anew
            # by whoever starts from it, not by this one.
            stored = await self._store.latest.load([log.key for log in moved])
            for log, value in zip(moved, stored, strict=True):
                log.stored = value
            return
        except (Full, Retry, Closed) as error:
            _log.info("checkpoint_not_stored", relay=self._relay, error=str(error))
            return
        for log, value in zip(moved, values, strict=True):
            log.stored = value
        self.unstored_records = 0


def behind(position: Checkpoint, records: Sequence[ChangeRecord]) -> Checkpoint:
    """The position behind these records, which follow on it."""
    size_bytes = sum(map(change_record.stored_bytes, records))
    return Checkpoint(records[-1].sequence_number.counter, position.logged_bytes + size_bytes)
