"""What every subscriber is: an actor that follows one partition's log from a checkpoint.

It pulls at its own pace, and no write waits for it. A run is read, carried out, and then the
checkpoint moves: after a crash a run may be carried out again, whole, from the checkpoint, so
its effects must not mind that.

The log of a partition that was split ends. Who follows it goes on to the end, stores that, and
only then do those begin who follow its children's logs: what happened to an item stays in order.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final

import structlog

from dynactor.actors.partition.change_feed import ChangeFeed
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.storage import key_layout
from dynactor.storage.store import Closed, Conflict, Fenced, Full, Group, Retry
from dynactor.streams.change_record import ChangeRecord

_RUN_RECORDS: Final = 512
_RUN_BYTES: Final = 2 * 1024 * 1024
# How much work a crash may make the subscriber do again.
_CHECKPOINT_RECORDS: Final = 4_096
# Who found fewer keeps up, and waits for the tick.
_TICK_RECORDS: Final = 64
# Of those who have no feed to wait at.
_TICK_SECONDS: Final = 0.008
_COUNTER_BYTES: Final = 8
_REFUSED_SECONDS: Final = 0.1
_STEP_SECONDS: Final = 0.001

_log = structlog.get_logger("actors")


class Subscriber(ABC):
    """The actor.

    Invariant: the effect of every record up to ``position`` is durable, and the stored
    checkpoint is at or below it. ``ended`` completes when the log has ended and its end is stored.
    """

    def __init__(
        self,
        name: str,
        subscriber_id: bytes,
        feed: ChangeFeed,
        *,
        after: asyncio.Future[None] | None = None,
    ) -> None:
        """``after``: the ``ended`` of who follows the parent's log, None if nobody does."""
        self.name = f"{name} of partition {feed.partition_number}"
        self.mailbox = Mailbox(1)
        self.in_hand: list[Envelope] = []
        self.feed = feed
        self.position = 0
        self._store = feed.store
        self._key = key_layout.checkpoint(subscriber_id, feed.partition_number)
        self._stored: bytes | None = None
        self._unstored_records = 0
        self._after = after
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @abstractmethod
    async def carry_out(self, records: list[ChangeRecord]) -> None:
        """Have the effect of these records, durably; they come in the order of the log."""

    def wait_seconds(self, last: int) -> float:
        """How long a run is to wait that ends with this counter, for whoever has a lag."""
        del last
        return 0.0

    @property
    def stored_position(self) -> int:
        """The durable checkpoint: after a crash it goes on behind it."""
        return int.from_bytes(self._stored or b"", "big")

    @property
    def lag_records(self) -> int:
        """How many changes it is behind, at most."""
        return max(0, self.feed.tail - self.position)

    async def wait_passed(self, counter: int) -> bool:
        """Wait until the changes up to a counter are carried out.

        Returns:
            False if the follower was stopped or given up before.
        """
        # A follower tells nobody where it is; milliseconds don't matter here.
        while self.position < counter and not self.mailbox.closed:  # noqa: ASYNC110
            await asyncio.sleep(_STEP_SECONDS)
        return self.position >= counter

    async def run(self) -> None:
        """Follow the log until it ends or the mailbox is closed; then store the checkpoint."""
        (self._stored,) = await self._store.latest.load([self._key])
        self.position = self.stored_position
        closed = self.mailbox.when_closed()
        if self._after is not None:
            await asyncio.wait([self._after, closed], return_when=asyncio.FIRST_COMPLETED)
        while not closed.done():
            additions, last = self.feed.additions, self.feed.last
            records = await self.feed.read(
                self.position, max_records=_RUN_RECORDS, max_bytes=_RUN_BYTES
            )
            if records:
                wait_seconds = self.wait_seconds(records[-1].sequence_number.counter)
                if wait_seconds:
                    await asyncio.wait([closed], timeout=wait_seconds)
                    if closed.done():
                        break
                await self.carry_out(records)
                self._moved(records)
                if self._unstored_records >= _CHECKPOINT_RECORDS:
                    await self._store_checkpoint()
                if len(records) < _TICK_RECORDS:
                    await self.feed.wait_wakeup()
            elif last is not None:
                await self._end(last, closed)
                return
            elif self.feed.additions == additions:
                await asyncio.wait(
                    [self.feed.wait_addition(), closed], return_when=asyncio.FIRST_COMPLETED
                )
        await self._store_checkpoint()

    async def _end(self, last: int, closed: asyncio.Future[None]) -> None:
        """Store that the log was followed to its end, however long the store takes no writes."""
        self.position = last
        while self.stored_position < last and not closed.done():
            self._unstored_records += 1
            await self._store_checkpoint()
            if self.stored_position < last:
                await asyncio.wait([closed], timeout=_REFUSED_SECONDS)
        if self.stored_position >= last and not self.ended.done():
            self.ended.set_result(None)

    def _moved(self, records: list[ChangeRecord]) -> None:
        self.position = records[-1].sequence_number.counter
        self._unstored_records += len(records)

    async def _store_checkpoint(self) -> None:
        """Store how far it got; refused by the store, the next checkpoint does."""
        if not self._unstored_records:
            return
        stored = encode_position(self.position)
        try:
            await self._store.commit([Group(self._key, self._stored, stored)])
        except Fenced:
            raise
        except Conflict:
            # The store was opened again, without the last checkpoint: what it covers is done anew.
            (self._stored,) = await self._store.latest.load([self._key])
            return
        except (Full, Retry, Closed) as error:
            _log.info("checkpoint_not_stored", subscriber=self.name, error=str(error))
            return
        self._stored = stored
        self._unstored_records = 0


def encode_position(counter: int) -> bytes:
    """The value of a checkpoint's row."""
    return counter.to_bytes(_COUNTER_BYTES, "big")


def first_checkpoints(
    subscriber_id: bytes, counters: Mapping[int, int]
) -> list[tuple[bytes, bytes]]:
    """The rows of a subscriber that begins behind these counters, by partition number."""
    return [
        (key_layout.checkpoint(subscriber_id, number), encode_position(counter))
        for number, counter in counters.items()
    ]


async def wait_wakeup() -> None:
    """Wait until the next tick of the loop's clock, the same for all followers."""
    await asyncio.sleep(_TICK_SECONDS - asyncio.get_running_loop().time() % _TICK_SECONDS)
