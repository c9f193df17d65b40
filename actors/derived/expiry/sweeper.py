"""The actor that deletes a partition's expired items: the second stage of time to live (S120).

It reads which items are due from what the expirer keeps, and asks the partition to delete them.
The partition decides on what the item says then, so that an update that came before wins (S127).
While nothing is due it sleeps until the earliest time it knows of.
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
from dynactor.actors.derived.expiry.sweep_rate import SweepRate
from dynactor.actors.derived.follower import Follower
from dynactor.actors.partition.messages import Expired
from dynactor.actors.partition.partition_map import PartitionMoved
from dynactor.actors.runtime.clock import Clock
from dynactor.actors.runtime.fencing import is_fenced
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.model.errors import InternalServerError, ResourceNotFoundException
from dynactor.model.tables.time_to_live import PAST_US
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.storage import key_layout
from dynactor.storage.store import Row, Store, StoreError

# Even and small: a request waits for as many as are in work.
_BATCH_ITEMS: Final = 128
_BATCH_BYTES: Final = 64 * 1024
# What comes due within this goes in one sweep.
_PAUSE_SECONDS: Final = 0.1
_REFUSED_SECONDS: Final = 1.0
# A transaction is over soon, and tells nobody; damage is mended by people.
_HELD_SECONDS: Final = 0.25
_DAMAGED_SECONDS: Final = 60.0
# How many positions are remembered that were listed when their time was swept already.
_MOST_LATE: Final = 10_000
_NEVER: Final = math.inf

_log = structlog.get_logger("actors")


class SweptRange(Struct, frozen=True):
    """The positions of a partition: from ``start`` on, before ``end`` (None: to the last)."""

    table_id: int
    start: bytes
    end: bytes | None

    @property
    def slices(self) -> range:
        """The slices of the hash space in which positions of the range lie."""
        first = key_layout.slice_of(self.start) if self.start else 0
        if self.end is None:
            return range(first, key_layout.EXPIRY_SLICES)
        last = key_layout.slice_of(self.end)
        ends_with_slice = not self.end.rstrip(b"\x00")[1:] and not self.end[0] & 0x0F
        return range(first, last if ends_with_slice else last + 1)

    def __contains__(self, position: bytes) -> bool:
        return self.start <= position and (self.end is None or position < self.end)


class SweepMeans(NamedTuple):
    """What all sweepers live with; ``delay_seconds`` is domain time."""

    store: Store
    clock: Clock
    rate: SweepRate
    delay_seconds: float


class Sweeper:
    """The actor.

    Invariants: while it sleeps, nothing that the expirer has listed is due before it wakes; a
    row is not swept again before the expirer has passed what its first sweep did.
    """

    def __init__(
        self,
        swept: SweptRange,
        expirer: Follower,
        expire: Callable[[tuple[bytes, ...]], Awaitable[Expired]],
        means: SweepMeans,
    ) -> None:
        """``expire`` asks the partition to delete the items at these positions, if expired.

        It raises PartitionMoved when that was split: its children have sweepers of their own.
        """
        self.name = f"sweeper of partition {expirer.feed.partition_number}"
        self.mailbox = Mailbox(1)
        self.in_hand: list[Envelope] = []
        self._swept = swept
        self._expirer = expirer
        self._expire = expire
        self._store, self._clock, self._rate, delay_seconds = means
        # An item expires behind its time, not at it.
        self._delay_us = max(1, round(delay_seconds * MICROSECONDS_PER_SECOND))
        # All that is listed before this was swept, but for what was noticed since: the positions
        # in ``_late``, in their order.
        self._swept_before_us: float = -_NEVER
        self._late: dict[bytes, None] = {}
        # The earliest time that is listed, of those that were not due at the last sweep.
        self._earliest_us: float = _NEVER
        # The time of what is being deleted now.
        self._sweeping_us: int | None = None
        self._closed = asyncio.get_running_loop().create_future()
        self._noticed = asyncio.get_running_loop().create_future()

    def notice(self, listed: Sequence[Listed]) -> None:
        """The expirer has listed these times."""
        never_us = _epoch_us(self._clock.now_epoch_seconds()) - PAST_US
        earliest_us = self._earliest_us
        for at_us, position in listed:
            if at_us <= never_us:
                continue
            if at_us < self._swept_before_us:
                if len(self._late) < _MOST_LATE:
                    self._late[position] = None
                    continue
                # Too many to remember: they are looked for again.
                self._swept_before_us = at_us
            earliest_us = min(earliest_us, at_us)
        if (self._late or earliest_us < self._earliest_us) and not self._noticed.done():
            self._noticed.set_result(None)
        self._earliest_us = earliest_us

    @property
    def lag_seconds(self) -> float:
        """For how long the items have been expired that are to be deleted next; 0 for none."""
        at_us = self._earliest_us if self._sweeping_us is None else self._sweeping_us
        return max(0.0, self._clock.now_epoch_seconds() - at_us / MICROSECONDS_PER_SECOND)

    @property
    def swept(self) -> SweptRange:
        """The positions that it looks after."""
        return self._swept

    async def run(self) -> None:
        """Sweep whenever something is due, until the mailbox is closed or the partition split."""
        self._closed = self.mailbox.when_closed()
        # What was known before a crash is found again.
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
                await self._pause(_REFUSED_SECONDS)
            else:
                self._sweeping_us = None
                await self._pause(_PAUSE_SECONDS)
                await self._sleep()

    async def _sweep(self, from_us: float) -> None:
        """Have everything deleted that is due now; return when the expirer has seen that.

        What is gone leaves marks in the store that are dear to pass by: only what is listed
        from ``from_us`` on is looked for, beside what was noticed late.
        """
        now_us = _epoch_us(self._clock.now_epoch_seconds())
        before_us = now_us - self._delay_us + 1
        first_us = int(max(from_us, now_us - PAST_US + 1))
        # Before rows are read: what is noticed from now on may not be among them.
        self._swept_before_us = max(from_us, before_us)
        self._earliest_us = _NEVER
        counter = 0
        async for positions in self._due(first_us, before_us):
            await self._pause(self._rate.take(len(positions)))
            if self._closed.done():
                return
            try:
                counter = max(counter, await self._ask_past_damage(positions))
            except (InternalServerError, ResourceNotFoundException):
                self._late.update(dict.fromkeys(positions))
                raise
        # The rows of what is deleted are there until the expirer has passed it.
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
        """The positions of the items that are due, some at a time."""
        for slice_number in self._swept.slices:
            start, end = key_layout.expiry_span(
                self._swept.table_id, slice_number, from_us, before_us
            )
            while start < end and (rows := await self._page(start, end, _BATCH_ITEMS)):
                if self._late:
                    yield self._take_late()
                times_and_positions = [key_layout.expiry_of(row.key) for row in rows]
                positions = tuple(
                    position for _, position in times_and_positions if position in self._swept
                )
                if positions:
                    self._sweeping_us = times_and_positions[0][0]
                    yield positions
                start = rows[-1].key + b"\x00"
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
        """Have the partition delete what is expired of these; its counter after that.

        What a transaction has is asked for again soon.
        """
        expired = await self._expire(positions)
        if expired.held:
            self._put_off(expired.held, _HELD_SECONDS)
        return expired.counter

    async def _ask_past_damage(self, positions: tuple[bytes, ...]) -> int:
        """As ``_ask``, past items that are damaged: they are tried again a minute later.

        Raises:
            InternalServerError: the store takes no writes; or all were refused, and there were
                several.
        """
        try:
            return await self._ask(positions)
        except InternalServerError as error:
            if _is_of_store(error):
                raise
        # Each alone, also where it was: a crash may have been another message's.
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
        _log.warning("not_swept", sweeper=self.name, error=str(error))
        self._put_off((position,), _DAMAGED_SECONDS)

    def _put_off(self, positions: tuple[bytes, ...], seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._try_again, positions)

    def _try_again(self, positions: tuple[bytes, ...]) -> None:
        self._late.update(dict.fromkeys(positions))
        if not self._noticed.done():
            self._noticed.set_result(None)

    async def _earliest_from(self, from_us: int) -> float:
        """The earliest listed time from this one on, in microseconds; infinite for none."""
        earliest_us = _NEVER
        for slice_number in self._swept.slices:
            start, end = key_layout.expiry_span(self._swept.table_id, slice_number, from_us)
            for row in await self._page(start, end, 1):
                earliest_us = min(earliest_us, key_layout.expiry_of(row.key)[0])
        return earliest_us

    async def _sleep(self) -> None:
        """Wait until the earliest time is due, or one before it is listed."""
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
    """Whether the store takes no writes, whatever they are."""
    return isinstance(error.__cause__, StoreError)


def _epoch_us(epoch_seconds: float) -> int:
    return math.floor(epoch_seconds * MICROSECONDS_PER_SECOND)


def _epoch_seconds(epoch_us: float) -> float:
    """The first time of a clock that is not before that microsecond, whatever rounding does."""
    epoch_seconds = epoch_us / MICROSECONDS_PER_SECOND
    while _epoch_us(epoch_seconds) < epoch_us:
        epoch_seconds = math.nextafter(epoch_seconds, math.inf)
    return epoch_seconds
