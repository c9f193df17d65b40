"""The actor that moves the virtual clock, and alone writes its row, the head of its commits."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog
from msgspec import Struct, msgpack

from dynactor.actors.runtime.clock import (
    LATEST_EPOCH_SECONDS,
    Clock,
    ClockRefusal,
    SystemClock,
    VirtualClock,
)
from dynactor.actors.runtime.commit_retry import commit_past_stalls
from dynactor.actors.runtime.mailbox import Envelope, Mailbox, Message
from dynactor.model.errors import InternalServerError
from dynactor.storage import key_layout
from dynactor.storage.store import Conflict, Fenced, Group, Store, StoreError, Unknown, View

_MAILBOX_MESSAGES: Final = 100
# Interval of storing a running clock. The stored time is ahead by more than that.
_KEEP_SECONDS: Final = 1.0
_AHEAD_SECONDS: Final = 3.0
_UNKNOWN: Final = "Whether the stored time was moved is unknown"

_encode = msgpack.Encoder().encode
_log = structlog.get_logger("actors")


class ClockState(Struct, frozen=True):
    """Domain time and its speed. At speed 0 the clock is stopped."""

    now_epoch_seconds: float
    speed: float


class MoveClock(Message[ClockState], frozen=True):
    """Set or step the clock, and change its speed; omitted values stay."""

    to_epoch_seconds: float | None = None
    by_seconds: float = 0.0
    speed: float | None = None


class KeepClock(Message[None], frozen=True):
    """Store the next limit of a running clock."""


class StoredClock(Struct, frozen=True):
    """The clock's row: no durable row contains a time after ``epoch_seconds``.

    Without ``is_virtual``, the server has used real time since ``epoch_seconds``.
    """

    epoch_seconds: float
    speed: float
    is_virtual: bool = True


_decode = msgpack.Decoder(StoredClock).decode


class ClockBehindData(Exception):
    """The data has a virtual time that is later than the real time."""

    def __init__(self, stored_epoch_seconds: float) -> None:
        super().__init__(f"The stored domain time is {stored_epoch_seconds}")
        self.stored_epoch_seconds = stored_epoch_seconds


class VirtualClockControl:
    """The owner of a virtual clock.

    Invariant: the clock's limit is durable before the clock reaches it, and each time that an
    operator sets is durable first. So after a crash, the clock never shows a time before one that
    it has shown.
    """

    name = "clock"

    def __init__(
        self, store: Store, clock: VirtualClock, row: bytes | None, *, copy_messages: bool = False
    ) -> None:
        self.mailbox = Mailbox(_MAILBOX_MESSAGES, copy_messages=copy_messages)
        self.in_progress: list[Envelope] = []
        self._store = store
        self._clock = clock
        self._row = row
        self._timer: asyncio.TimerHandle | None = None

    @property
    def state(self) -> ClockState:
        """The present time and speed."""
        return ClockState(self._clock.now_epoch_seconds(), self._clock.speed)

    async def move(self, message: MoveClock) -> ClockState:
        """Move the clock, durably.

        Raises ``ClockRefusal`` for an invalid time or speed; ``InternalServerError`` if the store
        failed, and the clock continues unchanged; ``MailboxFull`` or ``MailboxClosed`` if the
        message was not put in.
        """
        return await self.mailbox.put_nowait(message)

    async def start(self, floor_epoch_seconds: float) -> None:
        """Continue at the stored time, with the stored speed.

        Without a stored virtual time, continue at ``floor_epoch_seconds``. The clock never goes
        back, so it keeps a later time of its own.
        """
        stored = _stored(self._row)
        speed = self._clock.speed
        if stored is not None and stored.is_virtual:
            floor_epoch_seconds, speed = stored.epoch_seconds, stored.speed
        self._clock.set_speed(0)
        await self._move(max(self._clock.now_epoch_seconds(), floor_epoch_seconds), speed)

    async def run(self) -> None:
        """Work through the mailbox until it is closed and drained."""
        # After a crash of this actor the outcome of its last writes is unknown.
        self._row = await _load(self._store.latest)
        self._keep_later()
        while batch := await self.mailbox.take(1, 1):
            self.in_progress = batch
            for envelope in batch:
                try:
                    envelope.answer(await self._handle(envelope.message))
                except ClockRefusal as refusal:
                    envelope.refuse(refusal)
                except StoreError as error:
                    known = _UNKNOWN if isinstance(error, Unknown) else "The clock was not moved"
                    envelope.refuse(InternalServerError(f"{known}: {error}"))
            self.in_progress = []

    async def close(self) -> None:
        """Stop the clock and store its exact time, after the last use."""
        if self._timer is not None:
            self._timer.cancel()
        state = self.state
        self._clock.limit(state.now_epoch_seconds)
        try:
            await self._put(StoredClock(state.now_epoch_seconds, state.speed))
        except StoreError as error:
            # The stored time is ahead: a restart continues from there.
            _log.warning("clock_not_stored", error=str(error))

    async def _handle(self, message: Message[object]) -> object:
        match message:
            case MoveClock():
                return await self._moved(message)
            case KeepClock():
                await self._keep()
                return None
        raise AssertionError(message)

    async def _moved(self, message: MoveClock) -> ClockState:
        before = self.state
        speed = before.speed if message.speed is None else message.speed
        # Stop the clock: the target may depend on the time, which must not advance until the target
        # is durable.
        self._clock.set_speed(0)
        try:
            now = self._clock.now_epoch_seconds()
            target = now if message.to_epoch_seconds is None else message.to_epoch_seconds
            target += message.by_seconds
            # Try the change on another clock first, so that a refused change is never stored.
            trial = VirtualClock(now)
            trial.set(target)
            trial.set_speed(speed)
            await self._move(target, speed)
        except BaseException:
            self._clock.set_speed(before.speed)
            raise
        finally:
            self._keep_later()
        return self.state

    async def _move(self, epoch_seconds: float, speed: float) -> None:
        limit = _limit(epoch_seconds, speed)
        await self._put(StoredClock(limit, speed))
        self._clock.limit(limit)
        self._clock.set(epoch_seconds)
        self._clock.set_speed(speed)

    async def _keep(self) -> None:
        limit = _limit(self._clock.now_epoch_seconds(), self._clock.speed)
        try:
            await self._put(StoredClock(limit, self._clock.speed))
            self._clock.limit(limit)
        except StoreError as error:
            # The clock stops at its limit.
            _log.warning("clock_not_stored", error=str(error))
        finally:
            self._keep_later()

    def _keep_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._clock.speed:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_KEEP_SECONDS, self._tell_keep)

    def _tell_keep(self) -> None:
        if not self.mailbox.closed:
            self.mailbox.put_nowait(KeepClock(), always=True)

    async def _put(self, stored: StoredClock) -> None:
        try:
            self._row = await _put(self._store, self._row, stored)
        except Fenced:
            raise
        except Conflict:
            # An earlier commit of unknown outcome was written, so load the row and try again.
            self._row = await _load(self._store.latest)
            self._row = await _put(self._store, self._row, stored)


async def open_clock(
    store: Store, clock: Clock, *, has_data: bool, copy_messages: bool = False
) -> VirtualClockControl | None:
    """The control of a virtual clock, which continues at the stored time; None for a real clock.

    Data that was written in real time is not older than now, so a virtual clock starts now or
    later. Real time continues after a stored virtual time that has passed. Raises
    ``ClockBehindData`` if real time is behind the stored time, or ``StoreError``.
    """
    row = await _load(store.latest)
    stored = _stored(row)
    if not isinstance(clock, VirtualClock):
        if stored is not None and stored.is_virtual:
            now = clock.now_epoch_seconds()
            if stored.epoch_seconds > now:
                raise ClockBehindData(stored.epoch_seconds)
            await _put(store, row, StoredClock(now, 1.0, is_virtual=False))
        return None
    control = VirtualClockControl(store, clock, row, copy_messages=copy_messages)
    floor = stored.epoch_seconds if stored is not None else 0.0
    await control.start(max(floor, SystemClock().now_epoch_seconds()) if has_data else floor)
    return control


def clock_row(epoch_seconds: float, speed: float) -> tuple[bytes, bytes]:
    """The row, key and value, from which a virtual clock starts at this time and speed."""
    return key_layout.VIRTUAL_CLOCK, _encode(StoredClock(epoch_seconds, speed))


def _limit(epoch_seconds: float, speed: float) -> float:
    return min(epoch_seconds + speed * _AHEAD_SECONDS, LATEST_EPOCH_SECONDS)


def _stored(row: bytes | None) -> StoredClock | None:
    return None if row is None else _decode(row)


async def _load(view: View) -> bytes | None:
    (row,) = await view.load([key_layout.VIRTUAL_CLOCK])
    return row


async def _put(store: Store, expected: bytes | None, stored: StoredClock) -> bytes:
    """Write the clock's row, and return it once it is durable."""
    row = _encode(stored)
    if row == expected:
        return row
    group = Group(key_layout.VIRTUAL_CLOCK, expected, row)
    durable = await commit_past_stalls(store, [group])
    await durable
    return row
