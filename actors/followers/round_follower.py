"""Follows all logs of a table in rounds, after a snapshot of its items if the sink needs one.

The buffer is in the logs, not in memory: a round of records is read and delivered, and the
positions move once all of it is acknowledged. A slow destination delays no write, because later
changes wait in the logs.

A snapshot is not resumed after a crash: it is taken again, after another gap.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from typing import Final, Generic

import anyio
import structlog
from msgspec import Struct

from dynactor.actors.feeds.coalesced_wakeups import wait_wakeup
from dynactor.actors.followers.round_sink import M, Round, RoundSender, RoundSink
from dynactor.actors.followers.rounds import RoundMaker
from dynactor.actors.followers.sink import ChangeOrder
from dynactor.actors.followers.table_progress import TableProgress
from dynactor.actors.followers.table_snapshot import TableSnapshot
from dynactor.actors.runtime.cancellation import cancel_when
from dynactor.actors.runtime.clock import Clock
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.storage import key_layout
from dynactor.storage.store import Store

# A follower that finds fewer records has caught up, and waits for the next tick.
_KEEPING_UP_RECORDS: Final = 64

_log = structlog.get_logger("actors")


class RoundSettings(Struct, frozen=True):
    """The settings of a round follower.

    ``checkpoint_records``: store the checkpoints after this number of records. ``closing_seconds``:
    deadline of the round in progress when the follower is stopped.
    """

    checkpoint_records: int
    closing_seconds: float = 0.0


class SnapshotSource(Struct, frozen=True):
    """The table to take snapshots of."""

    store: Store
    clock: Clock
    table_name: str


class RoundFollower(Generic[M]):
    """The work of an actor that follows a table for a sink.

    ``on_progress`` is called when the positions are loaded, and after each acknowledged round.
    ``on_current`` is called whenever the destination is connected and has the snapshot that it may
    need.

    Invariant: every change up to a log's position was acknowledged.
    """

    def __init__(
        self,
        name: str,
        logs: TableProgress,
        sink: RoundSink[M],
        sender: RoundSender[M],
        source: SnapshotSource,
        *,
        settings: RoundSettings,
        needs_snapshot: bool,
        on_progress: Callable[[], None],
        on_current: Callable[[], None],
    ) -> None:
        assert sink.contract.order is ChangeOrder.ITEM, (
            "parents' logs are read before their children's"
        )
        self.is_running = False
        self.needs_snapshot = needs_snapshot
        # Number of changes and items, and bytes of messages, that were acknowledged.
        self.records = 0
        self.size_bytes = 0
        # Number of acknowledged items of the present snapshot, and of all snapshots.
        self.items = 0
        self.all_items = 0
        # Number of changes that are in no log, because the table had no followers then.
        self.missing_changes = 0
        self.snapshots = 0
        # Whether everything was delivered at some moment since the start.
        self.has_caught_up = False
        self.logs = logs
        self._name = name
        self._rounds = RoundMaker(logs, sink)
        self._sender = sender
        self._source = source
        self._settings = settings
        self._on_progress = on_progress
        self._on_current = on_current
        # The round that is not acknowledged yet; kept after a failed delivery.
        self._round: Round[M] | None = None
        self._snapshot_rounds: AsyncGenerator[Round[M], None] | None = None

    def end_at(self, counters: Mapping[int, int]) -> None:
        """Stop after these changes, by log. Every followed log has a counter."""
        self._rounds.ends = counters

    async def run(self, stopped: asyncio.Future[None]) -> None:
        """Follow the logs to the end that was set, or until ``stopped`` completes."""
        # After a crash, the last round may not be acknowledged, so make it again.
        self._round = None
        self.has_caught_up = False
        # Set this before the first await: a follower that still loads its positions is not idle.
        self.is_running = True
        try:
            await self.logs.load()
            self._on_progress()
            await cancel_when(stopped, partial(self._work, stopped), self._closing_seconds)
        finally:
            self.is_running = False
            with anyio.CancelScope(shield=True):
                await self._sender.close()
                await self._drop_snapshot()
        await self.logs.try_store()

    def _closing_seconds(self) -> float:
        """The time that the round in progress gets once the follower is stopped."""
        return self._settings.closing_seconds if self._sender.is_answered else 0.0

    async def _work(self, stopped: asyncio.Future[None]) -> None:
        goes_on = True
        while goes_on and not stopped.done():
            if self._sender.is_open:
                goes_on = await self._step(stopped)
            else:
                await self._open(stopped)

    async def _open(self, stopped: asyncio.Future[None]) -> None:
        """Connect to the destination, and skip the changes that it has already."""
        opened = await self._sender.open(
            {log.number: log.position.counter for log in self.logs}, stopped
        )
        if opened is None:
            return
        # The publisher has fenced the one of a later home if this is the table's former home. Then
        # the store refuses the read, before anything is published.
        await self._source.store.latest.load([key_layout.CATALOG_VERSION])
        self.needs_snapshot |= opened.needs_snapshot or await self.logs.are_behind(opened.counters)
        # The current round may be committed already, if its commit got no answer.
        if await self.logs.skip(opened.counters):
            self._round = None
        if not self.needs_snapshot:
            self._on_current()

    async def _step(self, stopped: asyncio.Future[None]) -> bool:
        """Deliver a round, or wait for one. False if the follower has reached its end."""
        await self.logs.load_joined()
        seen = self.logs.seen()
        if self._round is None:
            self._round = await self._next()
        current = self._round
        if current is not None:
            if not await self._sender.deliver(current, stopped):
                return True
            await self._passed(current)
            if current.records < _KEEPING_UP_RECORDS and self._rounds.ends is None:
                await wait_wakeup()
        elif self.logs.has_unstored_end:
            await self.logs.store_ends(stopped)
        elif self._rounds.ends is not None:
            return False
        else:
            self.has_caught_up = True
            await self.logs.wait_more(seen, stopped)
        return True

    async def _next(self) -> Round[M] | None:
        if self.needs_snapshot:
            current = await self._next_of_snapshot()
            if current is not None:
                return current
            self.needs_snapshot = False
            await self._drop_snapshot()
            await self.logs.try_store()
            self._on_current()
        return await self._rounds.next(self._sender.round_bytes)

    async def _passed(self, current: Round[M]) -> None:
        """Move the positions past an acknowledged round."""
        self._round = None
        if not self.needs_snapshot:
            moved = sum(
                position.counter - self.logs[number].position.counter
                for number, position in current.positions.items()
            )
            self.missing_changes += moved - current.records
        self.logs.passed(current.positions, current.records)
        is_due = self.logs.unstored_records >= self._settings.checkpoint_records
        if is_due or self.logs.has_unstored_end:
            await self.logs.try_store()
        self.records += current.records
        self.size_bytes += current.size_bytes
        self.items += current.items
        self.all_items += current.items
        self._on_progress()

    # -- snapshots --------------------------------------------------------------------------

    async def _next_of_snapshot(self) -> Round[M] | None:
        """The next round of the snapshot; None at its end."""
        if self._snapshot_rounds is None:
            await self._take_snapshot()
        assert self._snapshot_rounds is not None
        return await anext(self._snapshot_rounds, None)

    async def _take_snapshot(self) -> None:
        await self._drop_snapshot()
        source = self._source
        snapshot = await TableSnapshot.take(source.store, source.table_name, self.logs)
        taken_us = int(source.clock.now_epoch_seconds() * MICROSECONDS_PER_SECOND)
        self._snapshot_rounds = self._rounds.snapshot_rounds(snapshot, taken_us)
        self.snapshots += 1
        self.items = 0

    @property
    def has_snapshot(self) -> bool:
        """Whether a snapshot is being delivered."""
        return self._snapshot_rounds is not None

    async def _drop_snapshot(self) -> None:
        rounds, self._snapshot_rounds = self._snapshot_rounds, None
        if rounds is not None:
            await rounds.aclose()
