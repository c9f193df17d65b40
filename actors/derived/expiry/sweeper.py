"""The actor that deletes a partition's expired items: the second stage of time to live (S120).

The actor reads due items from the expirer's list, and asks the partition to delete them. The
partition checks the present item, so an earlier update wins (S127). While no item is due, the actor
sleeps until the earliest listed time.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import islice
from typing import Final, NamedTuple

import structlog
from msgspec import Struct

from dynactor.actors.derived.expiry.expiry_times import Listed
from dynactor.actors.followers.partition_follower import PartitionFollower
from dynactor.actors.partition.messages import Expired
from dynactor.actors.runtime.clock import Clock
from dynactor.actors.runtime.fencing import is_fenced
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.actors.runtime.replies import PartitionMoved
from dynactor.model.errors import InternalServerError, ResourceNotFoundException
from dynactor.model.pauses import DAMAGED_ITEM_SECONDS, LOCKED_ITEM_SECONDS, SWEEP_SECONDS
from dynactor.model.throttling.steady_rate import SteadyRate
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.model.writes.expiry import PAST_US
from dynactor.storage import key_layout
from dynactor.storage.row_pages import pages_in
from dynactor.storage.store import Row, Store, StoreError

# Small, because a request may have to wait for a batch of deletions.
_BATCH_ITEMS: Final = 128
_BATCH_BYTES: Final = 64 * 1024
# Items that become due within this time go in one sweep.
_PAUSE_SECONDS: Final = 0.1
# Deletions that a busy event loop has delayed may catch up, for at most this time.
MOST_BEHIND_SECONDS: Final = 0.1
# Maximum number of remembered positions that were listed after their time was swept.
_MOST_LATE: Final = 10_000
_NEVER: Final = math.inf

_log = structlog.get_logger("actors")


class SweptRange(Struct, frozen=True):
    """The positions of a partition: from ``start`` on, before ``end`` (None: no end)."""

    table_id: int
    start: bytes
    end: bytes | None

    @property
    def slices(self) -> range:
        """The slices of the hash space that contain positions of the range."""
        first = key_layout.hash_slice(self.start) if self.start else 0
        if self.end is None:
            return range(first, key_layout.EXPIRY_SLICES)
        last = key_layout.hash_slice(self.end)
        ends_with_slice = not self.end.rstrip(b"\x00")[1:] and not self.end[0] & 0x0F
        return range(first, last if ends_with_slice else last + 1)

    def __contains__(self, position: bytes) -> bool:
        return self.start <= position and (self.end is None or position < self.end)


class SweepEnvironment(NamedTuple):
    """The shared environment of all sweepers; ``delay_seconds`` is domain time."""

    store: Store
    clock: Clock
    rate: SteadyRate
    delay_seconds: float


class Sweeper:
    """The actor that deletes one partition's expired items.

    Invariants: while it sleeps, no listed item is due before it wakes. A row is not swept again
    before the expirer has passed the effects of its first sweep.
    """

    def __init__(
        self,
        swept: SweptRange,
        expirer: PartitionFollower,
        expire: Callable[[tuple[bytes, ...]], Awaitable[Expired]],
        shared: SweepEnvironment,
    ) -> None:
        """``expire`` asks the partition to delete the items at these positions, if expired.

        It raises PartitionMoved if the partition was split: its children have their own sweepers.
        """
        self.name = f"sweeper of partition {expirer.feed.partition_number}"
        self.mailbox = Mailbox(1)
        self.in_progress: list[Envelope] = []
        self._swept = swept
        self._expirer = expirer
        self._expire = expire
        self._store, self._clock, self._rate, delay_seconds = shared
        # An item is not expired yet at its time, but a microsecond later.
        self._delay_us = max(1, round(delay_seconds * MICROSECONDS_PER_SECOND))
        # All rows with earlier times were swept, except rows that were listed afterwards. The
        # positions of these are in ``_late``, in the order of listing.
        self._swept_before_us: float = -_NEVER
        self._late: dict[bytes, None] = {}
        # The earliest listed time that was not due at the last sweep.
        self._earliest_us: float = _NEVER
        # The time of the items that are being deleted now.
        self._sweeping_us: int | None = None
        self._closed = asyncio.get_running_loop().create_future()
        self._noticed = asyncio.get_running_loop().create_future()

    def notice(self, listed: Sequence[Listed]) -> None:
        """Take note of times that the expirer has listed."""
        never_us = _epoch_us(self._clock.now_epoch_seconds()) - PAST_US
        earliest_us = self._earliest_us
        for at_us, position in listed:
            if at_us <= never_us:
                continue
            if at_us < self._swept_before_us:
                if len(self._late) < _MOST_LATE:
                    self._late[position] = None
                    continue
                # There are too many positions to remember, so read them from the list again.
                self._swept_before_us = at_us
            earliest_us = min(earliest_us, at_us)
        if (self._late or earliest_us < self._earliest_us) and not self._noticed.done():
            self._noticed.set_result(None)
        self._earliest_us = earliest_us

    @property
    def lag_seconds(self) -> float:
        """How long the oldest undeleted item has been expired; 0 if there is none."""
        at_us = self._earliest_us if self._sweeping_us is None else self._sweeping_us
        return max(0.0, self._clock.now_epoch_seconds() - at_us / MICROSECONDS_PER_SECOND)

    @property
    def swept(self) -> SweptRange:
        """The range of positions that this actor sweeps."""
        return self._swept

    async def run(self) -> None:
        """Sweep whenever an item is due, until the mailbox is closed or the partition is split."""
        self._closed = self.mailbox.when_closed()
        # After a crash, read the whole list again.
        self._swept_before_us = -_NEVER
        self._late.clear()
        while not self._closed.done():
            from_us = self._swept_before_us
            try:
                await self._sweep(from_us)
            except PartitionMoved:
                return
            except (InternalServerError, ResourceNotFoundException) as error:
                if is_fenced(error):
                    raise
                _log.info("sweep_refused", sweeper=self.name, error=str(error))
                self._swept_before_us = min(self._swept_before_us, from_us)
                await self._pause(SWEEP_SECONDS)
            else:
                self._sweeping_us = None
                await self._pause(_PAUSE_SECONDS)
                await self._sleep()

    async def _sweep(self, from_us: float) -> None:
        """Delete everything that is due now; return when the expirer has passed the deletions.

        Deleted rows leave tombstones, which are expensive to skip. So only rows from ``from_us`` on
        are read, and the positions in ``_late``.
        """
        now_us = _epoch_us(self._clock.now_epoch_seconds())
        before_us = now_us - self._delay_us + 1
        first_us = int(max(from_us, now_us - PAST_US + 1))
        # Set this before the read, because the read may miss times that are listed during it.
        self._swept_before_us = max(from_us, before_us)
        self._earliest_us = _NEVER
        counter = 0
        async for positions in self._due(first_us, before_us):
            now_seconds = asyncio.get_running_loop().time()
            await self._pause(self._rate.take(len(positions), now_seconds))
            if self._closed.done():
                return
            try:
                counter = max(counter, await self._ask_past_damage(positions))
            except (InternalServerError, ResourceNotFoundException):
                self._late.update(dict.fromkeys(positions))
                raise
        # The rows of deleted items exist until the expirer has passed the deletions.
        await self._wait_passed(counter)
        listed_us = await self._earliest_from(max(first_us, before_us))
        self._earliest_us = min(self._earliest_us, listed_us)

    async def _wait_passed(self, counter: int) -> None:
        passed = self._expirer.when_passed(counter)
        try:
            await asyncio.wait([passed, self._closed], return_when=asyncio.FIRST_COMPLETED)
        finally:
            passed.cancel()

    async def _due(self, from_us: int, before_us: int) -> AsyncIterator[tuple[bytes, ...]]:
        for slice_number in self._swept.slices:
            start, end = key_layout.expiry_span(
                self._swept.table_id, slice_number, from_us, before_us
            )
            async for rows in pages_in(
                self._store.durable, start, end, max_rows=_BATCH_ITEMS, max_bytes=_BATCH_BYTES
            ):
                if self._late:
                    yield self._take_late()
                times_and_positions = [key_layout.time_and_position(row.key) for row in rows]
                positions = tuple(
                    position for _, position in times_and_positions if position in self._swept
                )
                if positions:
                    self._sweeping_us = times_and_positions[0][0]
                    yield positions
        while self._late:
            yield self._take_late()

    def _take_late(self) -> tuple[bytes, ...]:
        late = tuple(islice(self._late, _BATCH_ITEMS))
        for position in late:
            del self._late[position]
        return late

    async def _page(self, start: bytes, end: bytes, max_rows: int) -> list[Row]:
        return await self._store.durable().page(
            start, end, max_rows=max_rows, max_bytes=_BATCH_BYTES
        )

    async def _ask(self, positions: tuple[bytes, ...]) -> int:
        """Have the partition delete the expired items at these positions; return its counter.

        Items that a transaction has locked are tried again after a pause.
        """
        expired = await self._expire(positions)
        if expired.held:
            self._put_off(expired.held, LOCKED_ITEM_SECONDS)
        return expired.counter

    async def _ask_past_damage(self, positions: tuple[bytes, ...]) -> int:
        """See ``_ask``; skip damaged items, and try them again a minute later.

        Raises ``InternalServerError`` if the store refuses writes, or each of several items failed.
        """
        try:
            return await self._ask(positions)
        except InternalServerError as error:
            if _is_of_store(error):
                raise
        # Send the items one by one, even a single item again: another message of the partition's
        # batch may have caused the error.
        counter, refused = 0, 0
        for position in positions:
            try:
                counter = max(counter, await self._ask((position,)))
            except InternalServerError as error:
                refused += 1
                if _is_of_store(error) or refused == len(positions) > 1:
                    raise
                self._refuse(position, error)
        return counter

    def _refuse(self, position: bytes, error: InternalServerError) -> None:
        _log.warning("expired_item_skipped", sweeper=self.name, error=str(error))
        self._put_off((position,), DAMAGED_ITEM_SECONDS)

    def _put_off(self, positions: tuple[bytes, ...], seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._try_again, positions)

    def _try_again(self, positions: tuple[bytes, ...]) -> None:
        self._late.update(dict.fromkeys(positions))
        if not self._noticed.done():
            self._noticed.set_result(None)

    async def _earliest_from(self, from_us: int) -> float:
        """The earliest listed time that is not before this time, in microseconds; or infinity."""
        earliest_us = _NEVER
        for slice_number in self._swept.slices:
            start, end = key_layout.expiry_span(self._swept.table_id, slice_number, from_us)
            for row in await self._page(start, end, 1):
                earliest_us = min(earliest_us, key_layout.time_and_position(row.key)[0])
        return earliest_us

    async def _sleep(self) -> None:
        """Wait until the earliest time is due, or until an earlier one is listed."""
        while not self._closed.done():
            if self._late:
                return
            self._noticed = asyncio.get_running_loop().create_future()
            waiting = [self._closed, self._noticed]
            if self._earliest_us is _NEVER:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                continue
            due = self._clock.wait_until(_epoch_seconds(self._earliest_us + self._delay_us))
            await asyncio.wait([*waiting, due], return_when=asyncio.FIRST_COMPLETED)
            if due.done():
                return
            due.cancel()

    async def _pause(self, seconds: float) -> None:
        if seconds > 0:
            await asyncio.wait([self._closed], timeout=seconds)


def _is_of_store(error: InternalServerError) -> bool:
    """Whether the store caused the error, and so refuses all writes."""
    return isinstance(error.__cause__, StoreError)


def _epoch_us(epoch_seconds: float) -> int:
    return math.floor(epoch_seconds * MICROSECONDS_PER_SECOND)


def _epoch_seconds(epoch_us: float) -> float:
    """The smallest number of seconds that rounds down to this microsecond or a later one."""
    epoch_seconds = epoch_us / MICROSECONDS_PER_SECOND
    while _epoch_us(epoch_seconds) < epoch_us:
        epoch_seconds = math.nextafter(epoch_seconds, math.inf)
    return epoch_seconds
