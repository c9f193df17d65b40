"""A scan passes all items to sinks that send messages, despite store failures."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Iterator, Sequence
from functools import partial

import pytest

from dynactor.actors.followers.scan import TableScan
from dynactor.actors.followers.sink import FillSink, Send, Step, TakeUnits, Turn
from dynactor.model.errors import InternalServerError
from dynactor.storage import key_layout
from dynactor.storage.store import Damaged, Group, Row, Store
from tests.support.databases.failing_pages import FailingPages
from tests.support.stores.store import memory_store

ITEMS = 70
TABLE_ID = 1
CURSOR = key_layout.filling_cursor(7)
PREFIX = key_layout.row_prefix(TABLE_ID)
POSITIONS = [number.to_bytes(8, "big") for number in range(0, 1 << 24, (1 << 24) // ITEMS + 1)]


@pytest.fixture(autouse=True)
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pages so short that the scan needs several."""
    monkeypatch.setattr("dynactor.actors.followers.scan.PAGE_ROWS", 10)


class Sent(FillSink):
    """A sink that records the positions of items; each item is a message."""

    pages_in_flight = 2
    pages_per_cursor = 2

    def __init__(self) -> None:
        self.arrived: list[bytes] = []
        self.pages = 0
        # Errors that the next messages raise.
        self.refusals: list[Exception] = []
        self.units = 1_000
        # The units that each wait for units grants.
        self.units_given = [3] * ITEMS
        self.is_held = False
        self.held: list[Future[None]] = []

    def steps(self, rows: Sequence[Row]) -> Iterator[Step]:
        self.pages += 1
        for row in rows:
            yield Turn()
            if not self.units:
                refused = asyncio.get_running_loop().create_future()
                refused.get_loop().call_soon(refused.set_result, None)
                yield TakeUnits(refused, self._take)
            self.units -= 1
            yield Send(partial(self._ask, row.key), 1 / len(rows))

    def _take(self) -> None:
        self.units += self.units_given.pop()

    def _ask(self, position: bytes) -> Future[None]:
        reply: Future[None] = asyncio.get_running_loop().create_future()
        if self.refusals:
            reply.set_exception(self.refusals.pop())
        elif self.is_held:
            self.held.append(reply)
        else:
            self.arrived.append(position)
            reply.set_result(None)
        return reply


async def filled(store: Store) -> None:
    """Put the items of a table."""
    puts = [(PREFIX + position, b"item") for position in POSITIONS]
    await (await store.commit([Group(b"\xff", None, b"1", puts)]))


class Outcomes:
    """Records the callbacks of finished scans."""

    def __init__(self) -> None:
        self.ended = 0
        self.failures: list[str] = []

    def scan(self, sink: FillSink, store: Store) -> TableScan:
        return TableScan(
            "scan", TABLE_ID, CURSOR, sink, store, ended=self._end, failed=self.failures.append
        )

    def _end(self) -> None:
        self.ended += 1


async def test_every_item_is_sent_once_in_the_order_of_positions():
    async with memory_store() as store:
        await filled(store)
        sink, outcomes = Sent(), Outcomes()
        scan = outcomes.scan(sink, store)
        await scan.run()
        assert sink.arrived == POSITIONS
        assert outcomes.ended == 1
        assert scan.fraction_done == 1
        assert await store.latest.load([CURSOR]) == [b""]


async def test_a_finished_scan_sends_nothing_and_calls_back_again():
    async with memory_store() as store:
        await filled(store)
        await Outcomes().scan(Sent(), store).run()
        sink, outcomes = Sent(), Outcomes()
        await outcomes.scan(sink, store).run()
        assert (sink.arrived, outcomes.ended) == ([], 1)


async def test_refused_messages_are_sent_again():
    async with memory_store() as store:
        await filled(store)
        sink, outcomes = Sent(), Outcomes()
        sink.refusals = [InternalServerError("the disk is full")] * 2
        scan = outcomes.scan(sink, store)
        await scan.run()
        assert sorted(sink.arrived) == POSITIONS
        assert not scan.is_refused


async def test_after_a_crash_items_after_the_stored_cursor_are_sent_again():
    async with memory_store() as store:
        await filled(store)
        sink, outcomes = Sent(), Outcomes()
        scan = outcomes.scan(sink, store)
        sink.units = 45
        # The list is empty, so the next wait for units raises IndexError.
        sink.units_given = []
        with pytest.raises(IndexError):
            await scan.run()
        assert sink.arrived == POSITIONS[:45]
        sink.units = 1_000
        await scan.run()
        assert set(sink.arrived) == set(POSITIONS)
        assert len(sink.arrived) <= len(POSITIONS) + 30
        assert outcomes.ended == 1


async def test_units_granted_before_a_crash_are_not_taken_again():
    async with memory_store() as store:
        await filled(store)
        sink, outcomes = Sent(), Outcomes()
        sink.units = 25
        await outcomes.scan(sink, store).run()
        assert sink.arrived == POSITIONS
        assert outcomes.ended == 1


async def test_no_message_is_in_flight_when_a_scan_has_ended():
    async with memory_store() as store:
        await filled(store)
        sink, outcomes = Sent(), Outcomes()
        sink.is_held = True
        scan = outcomes.scan(sink, store)
        running = asyncio.ensure_future(scan.run())
        while len(sink.held) < 20:
            await asyncio.sleep(0)
        scan.mailbox.close()
        for _ in range(20):
            await asyncio.sleep(0)
        assert not running.done(), "two pages are in flight"
        assert sink.pages == 2
        for replies in (sink.held[:10], sink.held[10:]):
            assert not running.done(), "a page is in flight"
            for reply in replies:
                reply.set_result(None)
            for _ in range(20):
                await asyncio.sleep(0)
        await running
        assert outcomes.ended == 0


async def test_a_scan_ends_if_the_table_cannot_be_read():
    async with memory_store() as inner:
        await filled(inner)
        store = FailingPages(inner)
        store.failure = Damaged("a block is damaged")
        outcomes = Outcomes()
        await outcomes.scan(Sent(), store).run()
        assert (outcomes.ended, outcomes.failures) == (0, ["a block is damaged"])
