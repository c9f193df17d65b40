"""An index added to a table with items finally matches the table, despite concurrent writes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from itertools import count, pairwise

import pytest
from msgspec import structs
from structlog.testing import capture_logs

from dynactor.actors.database.database import Database
from dynactor.actors.followers.pacing import Pacing
from dynactor.actors.followers.scan import TableScan
from dynactor.actors.indexes.index_backfill import IndexBackfill
from dynactor.actors.limits.backfill_units import BackfillUnits, FreeUnits
from dynactor.actors.partition.index_partition import ApplyChanges, Backfill
from dynactor.actors.phases.table_changes import TableChanges
from dynactor.actors.table.messages import CreateTable, UpdateTable, UpdateTimeToLive
from dynactor.actors.table.pages import ReadRange, read_page
from dynactor.actors.table.table import Table
from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import GlobalIndex, Throughput
from dynactor.model.key_conditions import key_range
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.reads.page import PageRules
from dynactor.model.tables.global_index_rules import NewGlobalIndex
from dynactor.model.tables.schema_rules import KeyElement
from dynactor.model.tables.table_edits import TableEdit
from dynactor.model.tables.time_to_live import TimeToLiveChange
from dynactor.model.values.item import decode
from dynactor.model.writes.write import Delete
from dynactor.storage import key_layout
from dynactor.storage.store import Full, Store
from tests.support.databases.databases import (
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.stored_items import read_item
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store
from tests.support.tables.index_lag import index_lag_records

INDEX = IndexDefinition(
    1, "by_posts", KeySchema((KeyAttribute("posts", "N"),), ()), Projection("ALL")
)


async def add_index(database: Database) -> None:
    """Add the index as UpdateTable does after its validation."""
    table = database.table("Thread")
    adding = structs.replace(
        table.definition,
        global_indexes=(GlobalIndex(INDEX, status="CREATING", backfilling=False),),
        next_index_id=2,
    )
    changes = database.part(TableChanges)
    await changes._redefine(table, adding, database.clock.now_epoch_seconds())
    await database.actor.parts.resume(table)


async def until_active(table: Table) -> None:
    while table.definition.global_indexes[0].status != "ACTIVE":
        await asyncio.sleep(0.001)
    while index_lag_records(table, INDEX):
        await asyncio.sleep(0)


async def whole(table: Table, index: IndexDefinition | None = None) -> list[dict]:
    page = await read_page(table, ReadRange(key_range.WHOLE, PageRules(), index=index))
    return sorted((decode(item) for item in page.items), key=str)


async def write_something(table: Table, source: random.Random) -> None:
    key = thread(f"f{source.randrange(30)}", f"s{source.randrange(30)}")
    if source.randrange(4) == 0:
        await table.write(Delete(key))
    else:
        await table.write(put({**key, "posts": {"N": str(source.randrange(50))}}))


async def test_writes_during_the_backfill_are_in_the_index():
    async with running_database() as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        source = random.Random(2)
        for _ in range(600):
            await write_something(table, source)
        await add_index(database)
        for _ in range(400):
            await write_something(table, source)
        await until_active(table)
        assert await whole(table, INDEX) == await whole(table)
        state = await database.describe("Thread")
        assert state.indexes["by_posts"].item_count == len(await whole(table))


async def test_an_active_index_is_complete_although_its_table_was_changed_during_the_backfill():
    clock = SetClock()
    provisioned = structs.replace(
        table_definition(), billing_mode="PROVISIONED", throughput=Throughput(100, 100)
    )
    async with running_database(clock=clock, index_allocation_seconds=0.01) as database:
        await database.ask(CreateTable(provisioned))
        table = database.table("Thread")
        for number in range(30):
            await table.write(put(thread("EC2", f"{number}", posts=number)))
        # The index has one write unit per second, so the backfill is slow.
        index = NewGlobalIndex(
            "by_posts", (KeyElement("posts", "HASH"),), "ALL", throughput=Throughput(1, 1)
        )
        posts = (KeyAttribute("posts", "N"),)
        edit = TableEdit(index_creates=(index,), attribute_definitions=posts)
        await database.ask(UpdateTable("Thread", edit))
        await database.ask(UpdateTable("Thread", TableEdit(tags_to_add=(("team", "storage"),))))
        await database.ask(UpdateTimeToLive("Thread", TimeToLiveChange(True, "at")))
        while table.definition.global_indexes[0].status != "ACTIVE":
            clock.step(0.05)
            await asyncio.sleep(0.001)
        assert await whole(table, INDEX) == await whole(table)


async def test_items_that_violate_the_index_key_get_no_entry():
    async with running_database() as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await table.write(put({**thread("EC2", "a"), "posts": {"S": "many"}}))
        await table.write(put(thread("EC2", "b", posts=1)))
        await add_index(database)
        await until_active(table)
        assert await whole(table, INDEX) == [thread("EC2", "b", posts=1)]


async def test_a_backfill_continues_after_a_restart():
    async with memory_store() as store:
        async with running_database(store) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            source = random.Random(3)
            for _ in range(600):
                await write_something(table, source)
            await add_index(database)
            while table.definition.global_indexes[0].backfilling is not True:
                await asyncio.sleep(0)
        async with running_database(store) as database:
            table = database.table("Thread")
            for _ in range(100):
                await write_something(table, source)
            await until_active(table)
            assert await whole(table, INDEX) == await whole(table)


class _Writer:
    """A fake index writer that writes at once, and records the loop's turn of each request."""

    follows_all = False

    def __init__(self, turns: Turns) -> None:
        self.asked: list[int] = []
        self._turns = turns

    def number_at(self, position: bytes) -> int:  # noqa: ARG002 - all are in one partition
        return 1

    def ask(self, number: int, message: ApplyChanges | Backfill) -> asyncio.Future[None]:  # noqa: ARG002
        self.asked.append(self._turns.passed)
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done


def _use(*, in_use: bool) -> Pacing:
    """The pacing of a backfill for a table that clients use, or don't use."""
    consumed = count()
    return Pacing(lambda: next(consumed) if in_use else 0)


class Turns:
    """Counts the turns of the event loop, as another task sees them."""

    def __init__(self) -> None:
        self.passed = 0

    async def count(self) -> None:
        while True:
            self.passed += 1
            await asyncio.sleep(0)


async def asked_in_turns(*, in_use: bool) -> list[int]:
    """The turns of the loop in which a backfill of 500 items writes each of its pages."""
    async with memory_store() as store, running_database(store) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await asyncio.gather(
            *(table.submit(put(thread("EC2", f"s{number}", posts=number))) for number in range(500))
        )
        return await _asked_in_turns(table, store, in_use=in_use)


async def _asked_in_turns(table: Table, store: Store, *, in_use: bool) -> list[int]:
    turns = Turns()
    writer = _Writer(turns)
    backfill = _backfill(table, store, writer, in_use=in_use)
    others = asyncio.ensure_future(turns.count())
    await backfill.run()
    others.cancel()
    return writer.asked


def _backfill(
    table: Table,
    store: Store,
    writer: _Writer,
    ended: Callable[[], None] = lambda: None,
    *,
    in_use: bool = False,
) -> TableScan:
    return _scan(table, store, writer, FreeUnits(), ended=ended, pacing=_use(in_use=in_use))


def _scan(
    table: Table,
    store: Store,
    writer: _Writer,
    units: BackfillUnits,
    *,
    ended: Callable[[], None] = lambda: None,
    pacing: Pacing | None = None,
) -> TableScan:
    return TableScan(
        "backfill",
        table.definition.table_id,
        key_layout.backfill_cursor(table.definition.table_id, INDEX.index_id),
        IndexBackfill(INDEX, table.definition.key_schema, writer, units),
        store,
        ended=ended,
        pacing=pacing,
    )


async def test_a_backfill_without_entries_waits_until_a_full_disk_has_space():
    async with memory_store() as inner:
        store = FaultyStore(inner)
        async with running_database(store) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            await table.write(put(thread("EC2", "a")))
            ended = asyncio.Event()
            backfill = _backfill(table, store, _Writer(Turns()), ended.set)
            store.refuse_commits(Full("the disk is full"))
            with capture_logs() as logs:
                running = asyncio.ensure_future(backfill.run())
                while not any(each["event"] == "write_retried" for each in logs):
                    assert not running.done()
                    await asyncio.sleep(0)
            assert not ended.is_set()
            store.allow_commits()
            await running
            assert ended.is_set()


async def test_a_backfill_yields_within_a_page_and_more_often_if_the_table_is_in_use():
    alone = await asked_in_turns(in_use=False)
    shared = await asked_in_turns(in_use=True)
    assert len(alone) == len(shared) == 4, "pages"
    # A page of 128 rows takes 4 turns.
    assert all(later - earlier >= 4 for earlier, later in pairwise(alone[:-1]))
    assert shared[-1] - shared[0] > alone[-1] - alone[0]


class _UnitsByHand(BackfillUnits):
    """Write units that the test grants."""

    def __init__(self) -> None:
        self.units = 0
        self.waiting: asyncio.Future[None] | None = None

    def take(self, partition_number: int, units: int) -> asyncio.Future[None] | None:  # noqa: ARG002
        if self.units >= units:
            self.units -= units
            return None
        self.waiting = asyncio.get_running_loop().create_future()
        return self.waiting

    async def give(self, units: int) -> None:
        """Grant units, and wait until they are used."""
        self.units += units
        waiting = self.waiting
        assert waiting is not None
        waiting.set_result(None)
        while self.waiting is waiting:
            await asyncio.sleep(0)


async def test_progress_counts_written_entries():
    async with memory_store() as store, running_database(store) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        for number in range(300):
            await table.write(put(thread(f"f{number}", "s", posts=number)))
        units, writer = _UnitsByHand(), _Writer(Turns())
        backfill = _scan(table, store, writer, units)
        running = asyncio.ensure_future(backfill.run())
        while units.waiting is None:
            await asyncio.sleep(0)
        fractions = [backfill.fraction_done]
        for _ in range(29):
            await units.give(10)
            fractions.append(backfill.fraction_done)
        units.units = 10
        units.waiting.set_result(None)
        await running
    assert fractions == pytest.approx([number / 30 for number in range(30)], abs=0.1)
    assert all(later > earlier for earlier, later in pairwise(fractions))
    assert backfill.fraction_done == 1


async def test_a_backfill_detects_whether_its_table_is_in_use():
    async with running_database() as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        pacing = Pacing(lambda: table.throttle.consumed_units)
        assert not pacing.is_needed()
        await table.write(put(thread("EC2", "a", posts=1)))
        assert pacing.is_needed()
        assert not pacing.is_needed()
        await read_item(table, thread("EC2", "a"), consistent=False)
        assert pacing.is_needed()
