"""A scan passes all items to sinks that send messages or copy rows, despite store failures."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest

from dynactor.actors.derived.scan import TableScan
from dynactor.actors.derived.sink import FillSink, Send, SnapshotSink, Step, TakeUnits, Turn
from dynactor.model.errors import InternalServerError
from dynactor.storage import key_layout
from dynactor.storage.store import Closed, Conflict, Damaged, Full, Group, Row, Store
from tests.support.databases.failing_pages import FailingPages
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

ITEMS = 70
TABLE_ID = 1
CURSOR = key_layout.filling_cursor(7)
COPIES = b"\x7f"
PREFIX = key_layout.row_prefix(TABLE_ID)
POSITIONS = [number.to_bytes(8, "big") for number in range(0, 1 << 24, (1 << 24) // ITEMS + 1)]


@pytest.fixture(autouse=True)
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pages so short that the scan needs several."""
    monkeypatch.setattr("dynactor.actors.derived.scan.PAGE_ROWS", 10)
    monkeypatch.setattr("dynactor.actors.derived.scan._AGAIN_SECONDS", 0.001)


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


class Copies(SnapshotSink):
    """A sink that copies rows, and calls the test at each page."""

    target = (COPIES, b"\x80")

    def __init__(self, on_page: Callable[[], None] = lambda: None) -> None:
        self.starts = 0
        self._on_page = on_page

    def start(self) -> None:
        self.starts += 1

    def puts(self, rows: Sequence[Row]) -> list[tuple[bytes, bytes]]:
        self._on_page()
        return [(COPIES + row.key, row.value) for row in rows]


async def filled(store: Store) -> None:
    """Put the items of a table."""
    puts = [(PREFIX + position, b"item") for position in POSITIONS]
    await (await store.commit([Group(b"\xff", None, b"1", puts)]))


class Outcomes:
    """Records the callbacks of finished scans."""

    def __init__(self) -> None:
        self.ended = 0
        self.failures: list[str] = []

    def scan(self, sink: FillSink | SnapshotSink, store: Store) -> TableScan:
        return TableScan(
            "scan", TABLE_ID, CURSOR, sink, store, ended=self._end, failed=self.failures.append
        )

    def _end(self) -> None:
        self.ended += 1


async def copies(store: Store) -> list[bytes]:
    rows = await store.durable().page(COPIES, b"\x80", max_rows=1_000, max_bytes=1 << 20)
    return [row.key[1:] for row in rows]


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


async def test_a_snapshot_copies_the_rows_of_one_moment_and_deletes_earlier_copies():
    async with memory_store() as store:
        await filled(store)
        await (await store.commit([Group(b"\xfe", None, b"1", [(COPIES + b"old", b"")])]))
        late = PREFIX + b"\xff" * 8
        later = Group(b"\xfe", b"1", b"2", [(late, b"item")])
        written: list[asyncio.Task[Future[None]]] = []

        def write() -> None:
            if not written:
                written.append(asyncio.ensure_future(store.commit([later])))

        sink, outcomes = Copies(write), Outcomes()
        await outcomes.scan(sink, store).run()
        assert await copies(store) == POSITIONS
        assert (sink.starts, outcomes.ended) == (1, 1)
        # A second owner repeats the whole snapshot.
        await outcomes.scan(sink, store).run()
        assert await copies(store) == [*POSITIONS, b"\xff" * 8]


async def test_a_snapshot_whose_view_is_lost_starts_over():
    async with memory_store() as inner:
        await filled(inner)
        store = FailingPages(inner)
        store.failure = Closed("the store was opened again")
        sink, outcomes = Copies(), Outcomes()
        running = asyncio.ensure_future(outcomes.scan(sink, store).run())
        while sink.starts < 2:
            await asyncio.sleep(0)
        store.failure = None
        await running
        assert await copies(inner) == POSITIONS
        assert (outcomes.ended, outcomes.failures) == (1, [])


class OtherWriter(FaultyStore):
    """A store in which another owner changes the cursor once, between two pages."""

    commits = 0

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        self.commits += 1
        if self.commits == 3:
            raise Conflict("the head is another one: played by a test")
        return await super().commit(groups)


async def test_a_snapshot_starts_over_after_a_conflict():
    async with memory_store() as inner:
        await filled(inner)
        sink, outcomes = Copies(), Outcomes()
        await outcomes.scan(sink, OtherWriter(inner)).run()
        assert await copies(inner) == POSITIONS
        assert (sink.starts, outcomes.ended) == (2, 1)


async def test_a_snapshot_does_not_wait_for_a_full_disk():
    async with memory_store() as inner:
        await filled(inner)
        store = FaultyStore(inner)
        outcomes = Outcomes()
        sink = Copies(lambda: store.refuse_commits(Full("the disk is full")))
        await outcomes.scan(sink, store).run()
        assert (outcomes.ended, outcomes.failures) == (0, ["the disk is full"])


@pytest.mark.parametrize("sink", [Sent(), Copies()])
async def test_a_scan_ends_if_the_table_cannot_be_read(sink: FillSink | SnapshotSink):
    async with memory_store() as inner:
        await filled(inner)
        store = FailingPages(inner)
        store.failure = Damaged("a block is damaged")
        outcomes = Outcomes()
        await outcomes.scan(sink, store).run()
        assert (outcomes.ended, outcomes.failures) == (0, ["a block is damaged"])
