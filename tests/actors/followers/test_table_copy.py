"""A copy of a table has the items at its positions, despite later changes and store failures."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable, Sequence

import pytest
from msgspec import structs

from dynactor.actors.database.database import Database
from dynactor.actors.followers.pacing import Pacing
from dynactor.actors.followers.sink import SnapshotSink
from dynactor.actors.followers.stored_checkpoint import first_checkpoints
from dynactor.actors.followers.table_copy import TableCopy
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import StreamSettings
from dynactor.model.writes.write import Delete
from dynactor.storage import key_layout
from dynactor.storage.store import Closed, Conflict, Damaged, Full, Group, Row, Store
from dynactor.storage.subscriber_names import table_backup_subscriber
from tests.support.databases.backed_up import rows_of
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.failing_pages import FailingPages
from tests.support.databases.splitting import halve
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

ITEMS = 40
ROWS_ID = 77
CURSOR = key_layout.filling_cursor(ROWS_ID)
PREFIX = key_layout.row_prefix(ROWS_ID)
SUBSCRIBER = table_backup_subscriber(1, ROWS_ID)


@pytest.fixture(autouse=True)
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pages so short that the copy needs several."""
    monkeypatch.setattr("dynactor.actors.followers.scan.PAGE_ROWS", 10)
    monkeypatch.setattr("dynactor.actors.followers.log_positions._RECORDS", 7)
    monkeypatch.setattr("dynactor.actors.followers.table_copy.SCAN_SECONDS", 0.001)


class Copies(SnapshotSink):
    """A sink that copies rows, and calls the test at each page."""

    target = key_layout.table_range(ROWS_ID)

    def __init__(self, on_page: Callable[[int], None] = lambda _: None) -> None:
        self.starts = self.rows = self.pages = 0
        self._on_page = on_page

    def start(self) -> None:
        self.starts += 1
        self.rows = 0

    def key(self, position: bytes) -> bytes:
        return PREFIX + position

    def puts(self, rows: Sequence[Row]) -> list[tuple[bytes, bytes]]:
        self.pages += 1
        self._on_page(self.pages)
        self.rows += len(rows)
        return [(PREFIX + row.key, row.value) for row in rows]


class Outcomes:
    """Records the callbacks of finished copies."""

    def __init__(self) -> None:
        self.ended = 0
        self.failures: list[str] = []

    def copy(self, sink: SnapshotSink, store: Store, table: Table) -> TableCopy:
        return TableCopy(
            "copy",
            table.definition,
            SUBSCRIBER,
            sink,
            store,
            cursor_key=CURSOR,
            ended=self._end,
            failed=self.failures.append,
            pacing=Pacing(lambda: 0.0),
        )

    def _end(self) -> None:
        self.ended += 1


async def filled_table(database: Database, store: Store) -> Table:
    """A table that records changes, with the first checkpoints of a copy."""
    stream = StreamSettings("label", "NEW_IMAGE", enabled=True)
    await database.ask(CreateTable(structs.replace(table_definition(), stream=stream)))
    table = database.table("Thread")
    for number in range(ITEMS):
        await table.write(put(thread(f"{number}", "a")))
    ends = {feed.partition_number: feed.tail for feed in await table.followers.feeds()}
    group = Group(b"\xfe", None, b"1", first_checkpoints(SUBSCRIBER, ends))
    await (await store.commit([group]))
    return table


async def change_everything(database: Database, table: Table) -> None:
    """Change, delete and add items, before and after splits."""
    for number in range(ITEMS):
        if number == ITEMS // 2:
            # The later items have their first change in the logs of children.
            for partition in table.record.partitions[:2]:
                await halve(database, table, partition.number)
        key = thread(f"{number}", "a")
        await table.write(put({**key, "posts": {"N": "1"}}))
        if number % 2:
            await table.write(Delete(key))
        await table.write(put(thread(f"{number}", "new")))
    for number in range(ITEMS):
        await table.write(put(thread(f"{number}", "a", posts=2)))
        await table.write(Delete(thread(f"{number}", "new")))


async def test_a_copy_has_the_items_at_its_positions_while_the_table_changes() -> None:
    async with memory_store() as store, running_database(store) as database:
        table = await filled_table(database, store)
        before = await rows_of(store, table.definition.table_id)
        changing: list[asyncio.Task[None]] = []

        def change(page: int) -> None:
            if page == 2:
                changing.append(asyncio.ensure_future(change_everything(database, table)))

        sink, outcomes = Copies(change), Outcomes()
        await outcomes.copy(sink, store, table).run()
        await asyncio.gather(*changing)
        assert await rows_of(store, ROWS_ID) == before
        assert (sink.rows, outcomes.ended) == (ITEMS, 1)
        # Nothing is left of the table as it was, so this copy comes from the logs alone.
        again = Copies()
        await outcomes.copy(again, store, table).run()
        assert await rows_of(store, ROWS_ID) == before
        assert (again.rows, outcomes.ended) == (ITEMS, 2)


async def test_a_copy_deletes_the_rows_of_an_earlier_one() -> None:
    async with memory_store() as store, running_database(store) as database:
        table = await filled_table(database, store)
        await (await store.commit([Group(b"\xfd", None, b"1", [(PREFIX + b"old", b"")])]))
        await Outcomes().copy(Copies(), store, table).run()
        assert await rows_of(store, ROWS_ID) == await rows_of(store, table.definition.table_id)


async def test_a_copy_whose_pages_cannot_be_read_starts_over() -> None:
    async with memory_store() as inner, running_database(inner) as database:
        table = await filled_table(database, inner)
        before = await rows_of(inner, table.definition.table_id)
        store = FailingPages(inner)
        store.failure = Closed("the store was opened again")
        sink, outcomes = Copies(), Outcomes()
        running = asyncio.ensure_future(outcomes.copy(sink, store, table).run())
        while sink.starts < 2:
            await asyncio.sleep(0)
        await change_everything(database, table)
        store.failure = None
        await running
        assert await rows_of(inner, ROWS_ID) == before
        assert (sink.rows, outcomes.ended, outcomes.failures) == (ITEMS, 1, [])


class OtherWriter(FaultyStore):
    """A store in which another owner changes the head once, between two pages."""

    commits = 0

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        self.commits += 1
        if self.commits == 3:
            raise Conflict("the head is another one: played by a test")
        return await super().commit(groups)


async def test_a_copy_starts_over_after_a_conflict() -> None:
    async with memory_store() as inner, running_database(inner) as database:
        table = await filled_table(database, inner)
        sink, outcomes = Copies(), Outcomes()
        await outcomes.copy(sink, OtherWriter(inner), table).run()
        assert (sink.starts, sink.rows, outcomes.ended) == (2, ITEMS, 1)


async def test_a_copy_does_not_wait_for_a_full_disk() -> None:
    async with memory_store() as inner, running_database(inner) as database:
        table = await filled_table(database, inner)
        store = FaultyStore(inner)
        outcomes = Outcomes()
        sink = Copies(lambda _: store.refuse_commits(Full("the disk is full")))
        await outcomes.copy(sink, store, table).run()
        assert (outcomes.ended, outcomes.failures) == (0, ["the disk is full"])


async def test_a_copy_ends_if_the_table_cannot_be_read() -> None:
    async with memory_store() as inner, running_database(inner) as database:
        table = await filled_table(database, inner)
        store = FailingPages(inner)
        store.failure = Damaged("a block is damaged")
        outcomes = Outcomes()
        await outcomes.copy(Copies(), store, table).run()
        assert (outcomes.ended, outcomes.failures) == (0, ["a block is damaged"])
