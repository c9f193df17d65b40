"""A sweeper misses no item that is listed during its sweep, or that it failed to delete."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from dynactor.actors.derived.expiry.expiry_times import ExpiryTimes, Listed
from dynactor.actors.derived.expiry.sweeper import SweepEnvironment, Sweeper, SweptRange
from dynactor.actors.feeds.change_feed import ChangeFeed, RecentChanges
from dynactor.actors.partition.messages import Expired
from dynactor.actors.runtime.supervisor import Supervisor
from dynactor.model.errors import InternalServerError
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.throttling.steady_rate import SteadyRate
from dynactor.storage import key_layout
from dynactor.storage.store import Full, Group
from tests.support.databases.databases import SetClock
from tests.support.databases.expiry import expirer_of
from tests.support.stores.stepped_store import Call, Page, SteppedStore, pages_of, soon, turns
from tests.support.stores.store import memory_store

NOW = 1_571_827_560
TABLE_ID = 1
# A position in the first slice of the hash range, which the sweeper reads first.
POSITION = b"\x01position"


class Swept:
    """A sweeper with a stepped store and a stopped clock, and the messages that it sent."""

    def __init__(self, store: SteppedStore) -> None:
        self.store = store
        self.clock = SetClock(NOW)
        self.asked: list[bytes] = []
        rows = ExpiryTimes(TABLE_ID, KeySchema((KeyAttribute("pk", "S"),)), "at")
        follower = expirer_of(rows, ChangeFeed(1, store, RecentChanges()))
        means = SweepEnvironment(store, self.clock, SteadyRate(1_000_000.0), 0.0)
        self.sweeper = Sweeper(SweptRange(TABLE_ID, b"", None), follower, self._expire, means)

        # The next requests to delete raise these errors, one after another.
        self.failures: list[Exception] = []

    async def _expire(self, positions: tuple[bytes, ...]) -> Expired:
        if self.failures:
            raise self.failures.pop(0)
        self.asked += positions
        return Expired(len(positions), 0)

    def notice(self, listed: list[Listed]) -> None:
        self.sweeper.notice(listed)

    async def list(self, at_seconds: int) -> None:
        """Commit an expiry row and then notify the sweeper, as the expirer does."""
        at_us = at_seconds * 1_000_000
        row = key_layout.expiry_row(TABLE_ID, at_us, POSITION)
        (head,) = await self.store.latest.load([b"expirer"])
        group = Group(b"expirer", head, (head or b"") + b"1", puts=[(row, b"")])
        await (await self.store.commit([group]))
        self.notice([Listed(at_us, POSITION)])


def is_due(call: Call) -> bool:
    """Select reads of due rows of the first slice."""
    return pages_of(*key_layout.expiry_span(TABLE_ID, 0, 0))(call) and not is_next(call)


def is_next(call: Call) -> bool:
    """Select reads that search a slice for the earliest future time."""
    return isinstance(call, Page) and call.max_rows == 1


def is_last(call: Call) -> bool:
    """Select reads that search the last slice for the earliest future time."""
    last = key_layout.expiry_span(TABLE_ID, key_layout.EXPIRY_SLICES - 1, 0)
    return pages_of(*last)(call) and is_next(call)


@asynccontextmanager
async def sweeping() -> AsyncIterator[Swept]:
    """Yield a sweeper, which starts when the test awaits for the first time."""
    async with memory_store() as inner, anyio.create_task_group() as tasks:
        swept = Swept(SteppedStore(inner))
        Supervisor(tasks).start(swept.sweeper)
        try:
            yield swept
        finally:
            swept.store.open_all()
            swept.sweeper.mailbox.close()


async def test_an_item_listed_behind_the_page_being_read_is_deleted_in_the_same_sweep() -> None:
    async with sweeping() as swept:
        page = swept.store.gate_behind(is_due)
        over = swept.store.gate_before(is_next)
        await page.reached()
        await swept.list(NOW - 5)
        page.open()
        await over.reached()
        assert swept.asked == [POSITION]


async def test_a_future_time_listed_after_its_page_is_kept() -> None:
    async with sweeping() as swept:
        first, last = swept.store.gate_behind(is_next), swept.store.gate_behind(is_last)
        await first.reached()
        await swept.list(NOW + 5)
        first.open()
        await last.reached()
        last.open()
        await turns()

        swept.clock.set(NOW + 6)
        assert swept.sweeper.lag_seconds == 1
        await soon(lambda: swept.asked == [POSITION])


async def test_an_item_listed_late_whose_deletion_failed_is_deleted_in_the_next_sweep() -> None:
    async with sweeping() as swept:
        over = swept.store.gate_behind(is_last)
        await over.reached()
        full = InternalServerError("the disk is full")
        full.__cause__ = Full("the disk is full")
        swept.failures.append(full)
        over.open()
        await swept.list(NOW - 5)
        await soon(lambda: swept.asked == [POSITION])
        assert swept.failures == []


async def test_items_that_a_crashed_sweep_missed_are_deleted_after_the_restart() -> None:
    async with sweeping() as swept:
        page = swept.store.gate_before(is_due)
        await page.reached()
        swept.failures.append(RuntimeError("played by a test"))
        await swept.list(NOW - 5)
        page.open()
        await soon(lambda: swept.asked == [POSITION])
        assert swept.failures == []
