"""Charging of capacity units when writes are repeated, refused, moved in an index or canceled."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Sequence
from itertools import pairwise

import pytest
from msgspec import structs

from dynactor.actors.database.database import Database
from dynactor.actors.partition.charges import Charges
from dynactor.actors.partition.table_partition import TableEffects
from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.table.messages import CreateTable, UpdateTable
from dynactor.actors.table.pages import ReadRange, read_page
from dynactor.actors.table.table import Table
from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import GlobalIndex, TableDefinition, Throughput
from dynactor.model.errors import InternalServerError, ProvisionedThroughputExceededException
from dynactor.model.expressions.condition import Condition
from dynactor.model.expressions.condition_binding import parse_condition
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.key_conditions import key_range
from dynactor.model.keys import key as keys
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.reads.page import PageRules
from dynactor.model.tables.global_index_rules import NewGlobalIndex
from dynactor.model.tables.schema_rules import KeyElement
from dynactor.model.tables.table_edits import TableEdit
from dynactor.storage import key_layout
from dynactor.storage.partition_map import PartitionMap
from dynactor.storage.store import Conflict, Damaged, Full, Group
from tests.support.databases.databases import (
    HeldStore,
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.stored_items import read_item
from tests.support.databases.transacting import stepped, transact
from tests.support.stores.store import memory_store

BY_POSTS = "by_posts"
PARTITION_HEADS = key_layout.partition_head(0)[:1]


def charges_of(table: Table) -> Charges:
    """The record of the units that were charged to writes of the table's only partition."""
    (partition,) = table.partitions._actors.values()
    assert isinstance(partition._effects, TableEffects)
    return partition._effects._charges


class Poison(Message[None], frozen=True):
    """A message that no partition knows."""


class RacedStore(HeldStore):
    """A store that refuses some commits of partitions, as after another owner's commit."""

    lost_races = 0

    async def commit(self, groups: Sequence[Group]) -> asyncio.Future[None]:
        if self.lost_races and groups[0].head_key.startswith(PARTITION_HEADS):
            self.lost_races -= 1
            raise Conflict
        return await super().commit(groups)


def provisioned(write_units: int, *, index_units: int = 0) -> TableDefinition:
    """A provisioned table of threads, optionally with a provisioned index on posts."""
    definition = structs.replace(
        table_definition(), billing_mode="PROVISIONED", throughput=Throughput(5, write_units)
    )
    if not index_units:
        return definition
    posts = KeyAttribute("posts", "N")
    index = IndexDefinition(1, BY_POSTS, KeySchema((posts,)), Projection("ALL"))
    return structs.replace(
        definition,
        attribute_definitions=(*definition.attribute_definitions, posts),
        global_indexes=(GlobalIndex(index, throughput=Throughput(5, index_units)),),
        next_index_id=2,
    )


async def accepted(table: Table, writes: int) -> int:
    """Write this many times; return the number of accepted writes."""
    count = 0
    for number in range(writes):
        try:
            await table.write(put(thread("EC2", f"{number}")))
        except ProvisionedThroughputExceededException:
            continue
        count += 1
    return count


async def test_a_write_that_is_decided_again_is_charged_once():
    async with memory_store() as inner:
        store = RacedStore(inner)
        async with running_database(
            store, SetClock(), throttling="auto", initial_burst_seconds=1
        ) as database:
            await database.ask(CreateTable(provisioned(5)))
            table = database.table("Thread")
            store.lost_races = 3
            await table.write(put(thread("EC2", "a")))
            assert not store.lost_races
            assert table.throttle.consumed.write_units == 1
            assert await accepted(table, 9) == 4


async def test_a_write_that_is_refused_stays_refused_when_its_batch_is_decided_again():
    clock = SetClock()
    async with memory_store() as inner:
        store = RacedStore(inner)
        async with running_database(
            store, clock, throttling="auto", initial_burst_seconds=1
        ) as database:
            await database.ask(CreateTable(provisioned(1)))
            table = database.table("Thread")
            store.lost_races = 3
            replies = [table.submit(put(thread("EC2", f"{number}"))) for number in range(4)]
            results = await asyncio.gather(*replies, return_exceptions=True)
            assert [isinstance(each, Exception) for each in results] == [False, True, True, True]
            assert table.throttle.throttle_events.total() == 3
            # The refusal was kept only for that batch.
            assert not charges_of(table)._in_progress
            clock.step(1)
            assert await accepted(table, 3) == 1


async def test_a_write_does_not_reach_a_partition_without_units():
    async with running_database(
        clock=SetClock(), throttling="auto", initial_burst_seconds=1
    ) as database:
        await database.ask(CreateTable(provisioned(1)))
        table = database.table("Thread")
        await table.write(put(thread("EC2", "a")))
        with pytest.raises(ProvisionedThroughputExceededException):
            table.submit(put(thread("EC2", "b")))
        assert not any(len(each._mailbox) for each in table.partitions.values())
        assert table.throttle.throttle_events.total() == 1


async def test_an_entry_whose_key_changes_takes_units_in_both_index_partitions():
    async with running_database(
        clock=SetClock(), partitions_per_table=2, throttling="auto", initial_burst_seconds=1
    ) as database:
        await database.ask(CreateTable(provisioned(1_000, index_units=1_000)))
        table = database.table("Thread")
        limits = table.throttle._limits.indexes[1]
        now = database.clock.now_epoch_seconds()
        taken = []
        for posts in range(20):
            await table.write(put(thread("EC2", "a", posts=posts)))
            readings = limits.writes.readings(now)
            taken.append([readings[number].taken_units for number in sorted(readings)])
    steps = [
        (one - before_one, other - before_other)
        for (before_one, before_other), (one, other) in pairwise(taken)
    ]
    assert {sum(step) for step in steps} == {2}
    assert (1, 1) in steps
    assert {(2, 0), (0, 2)} & set(steps)


async def test_writes_are_sampled_by_their_keys_in_the_partitions_of_indexes():
    async with running_database(
        clock=SetClock(), partitions_per_table=2, throttling="observe"
    ) as database:
        await database.ask(CreateTable(provisioned(1_000, index_units=1_000)))
        table = database.table("Thread")
        schema = table.definition.global_indexes[0].definition.key_schema
        items = [thread("EC2", f"{posts}", posts=posts) for posts in range(200)]
        for item in items:
            await table.write(put(item))
        ranges = PartitionMap(table.record.index_partitions[1])
        sampled = {
            number: set(table.throttle.write_positions.positions(number))
            for number in ranges.numbers
        }
        assert all(sampled.values())
        for number, positions in sampled.items():
            assert positions < {keys.encode(schema, item) for item in items}
            assert {ranges.number_at(position) for position in positions} == {number}


async def test_a_read_of_an_index_deleted_meanwhile_takes_no_units():
    async with running_database(
        clock=SetClock(), throttling="auto", initial_burst_seconds=1
    ) as database:
        await database.ask(CreateTable(provisioned(5, index_units=5)))
        table = database.table("Thread")
        index = table.definition.global_indexes[0].definition
        number = table.record.index_partitions[1][0].number
        table.throttle.take_page(number, 0.5, index)
        await delete_index(database)
        table.throttle.take_page(number, 0.5, index)
        assert table.throttle.consumed_by_index == {}


async def test_a_recreated_index_has_new_units():
    async with running_database(
        clock=SetClock(), throttling="auto", initial_burst_seconds=1, index_allocation_seconds=0
    ) as database:
        await database.ask(CreateTable(provisioned(5, index_units=1)))
        table = database.table("Thread")
        await table.write(put(thread("EC2", "a", posts=1)))
        with pytest.raises(ProvisionedThroughputExceededException):
            await table.write(put(thread("EC2", "b", posts=1)))
        await delete_index(database)
        await table.write(put(thread("EC2", "b", posts=1)))
        index = NewGlobalIndex(
            BY_POSTS, (KeyElement("posts", "HASH"),), "ALL", throughput=Throughput(5, 3)
        )
        edit = TableEdit(
            index_creates=(index,), attribute_definitions=(KeyAttribute("posts", "N"),)
        )
        await database.ask(UpdateTable("Thread", edit))
        while table.definition.global_indexes[0].status != "ACTIVE":
            await asyncio.sleep(0.001)
        # The backfill of existing items used 2 of the 3 units of the index.
        await table.write(put(thread("EC2", "c", posts=1)))
        with pytest.raises(ProvisionedThroughputExceededException) as refused:
            await table.write(put(thread("EC2", "d", posts=1)))
    assert [reason.resource.rpartition("/")[2] for reason in refused.value.reasons] == [BY_POSTS]


async def delete_index(database: Database) -> None:
    await database.ask(UpdateTable("Thread", TableEdit(index_deletes=(BY_POSTS,))))
    while database.table("Thread").definition.global_indexes:
        await asyncio.sleep(0.001)


async def test_an_unused_table_has_no_limits():
    async with running_database(throttling="auto") as database:
        await database.ask(CreateTable(provisioned(5, index_units=5)))
        table = database.table("Thread")
        await database.ask(UpdateTable("Thread", TableEdit(deletion_protection=True)))
        assert table.throttle._made is None
        await table.write(put(thread("EC2", "a")))
        assert table.throttle._made is not None


def write_balances(table: Table) -> list[float]:
    """The remaining write units of the table and of each index, over all partitions."""
    limits = table.throttle._limits
    now = table.throttle._clock.now_epoch_seconds()
    resources = (limits.table, *limits.indexes.values())
    return [
        sum(reading.balance_units for reading in resource.writes.readings(now).values())
        for resource in resources
    ]


@pytest.mark.parametrize("refusal", [Full("no space"), Damaged("a bad block")])
async def test_a_write_that_the_store_refuses_gets_its_units_back(refusal):
    async with memory_store() as inner:
        store = HeldStore(inner)
        async with running_database(
            store, SetClock(), throttling="auto", initial_burst_seconds=1
        ) as database:
            await database.ask(CreateTable(provisioned(5, index_units=5)))
            table = database.table("Thread")
            await table.write(put(thread("EC2", "a", posts=1)))
            before = write_balances(table)
            store.refusal = refusal
            for number in range(9):
                with pytest.raises(InternalServerError):
                    await table.write(put(thread("EC2", f"{number}", posts=2)))
            store.refusal = None
            assert write_balances(table) == before == [4, 4]
            assert table.throttle.consumed.write_units == 1
            assert table.throttle.consumed_by_index[BY_POSTS].write_units == 1
            assert await accepted(table, 9) == 4
            assert table.throttle.consumed.write_units == 5


async def test_a_failed_condition_in_a_batch_that_the_store_refuses_gets_its_units_back():
    async with memory_store() as inner:
        store = HeldStore(inner)
        async with running_database(
            store, SetClock(), throttling="auto", initial_burst_seconds=1
        ) as database:
            await database.ask(CreateTable(provisioned(5)))
            table = database.table("Thread")
            store.refusal = Full("no space")
            failing = structs.replace(put(thread("EC2", "a")), condition=never())
            replies = [table.submit(write) for write in (failing, put(thread("EC2", "b")))]
            await asyncio.gather(*replies, return_exceptions=True)
            assert write_balances(table) == [5]
            assert table.throttle.consumed.write_units == 0


def never() -> Condition:
    """A condition that is always false for a missing item."""
    return parse_condition(
        "attribute_exists(forum)", Placeholders(None, None), kind="ConditionExpression"
    )


async def test_a_throttled_write_in_observe_mode_gets_no_units_back():
    async with memory_store() as inner:
        store = HeldStore(inner)
        async with running_database(
            store, SetClock(), throttling="observe", initial_burst_seconds=1
        ) as database:
            await database.ask(CreateTable(provisioned(1)))
            table = database.table("Thread")
            await table.write(put(thread("EC2", "a")))
            store.refusal = Full("no space")
            with pytest.raises(InternalServerError):
                await table.write(put(thread("EC2", "b")))
            assert table.throttle.observed_events.total() == 1
            assert write_balances(table) == [0]


async def test_a_write_refused_after_conflicts_gets_its_units_back_once():
    async with memory_store() as inner:
        store = RacedStore(inner)
        async with running_database(
            store, SetClock(), throttling="auto", initial_burst_seconds=1
        ) as database:
            await database.ask(CreateTable(provisioned(5)))
            table = database.table("Thread")
            await table.write(put(thread("EC2", "a")))
            store.lost_races = 2
            store.refusal = Full("no space")
            with pytest.raises(InternalServerError):
                await table.write(put(thread("EC2", "b")))
            assert not store.lost_races
            assert write_balances(table) == [4]


class LoneStore(HeldStore):
    """A store that refuses commits with groups of several partitions."""

    async def commit(self, groups: Sequence[Group]) -> asyncio.Future[None]:
        if len(groups) > 1 and groups[0].head_key.startswith(PARTITION_HEADS):
            raise Full("no space")
        return await super().commit(groups)


async def two_tables(database: Database) -> list[Table]:
    """Two tables whose partitions have written before, so they make no first commit later."""
    for name in ("Thread", "Reply"):
        await database.ask(CreateTable(structs.replace(provisioned(9, index_units=9), name=name)))
    tables = [database.table(name) for name in ("Thread", "Reply")]
    await asyncio.gather(*(each.write(put(thread("EC2", "a"))) for each in tables))
    return tables


def spent(tables: Sequence[Table]) -> list[tuple[list[float], float]]:
    """The remaining write units of each table, and the served requests."""
    return [(write_balances(each), each.throttle.consumed.write_units) for each in tables]


async def test_a_transaction_that_the_store_refuses_gets_its_units_back():
    async with memory_store() as inner:
        store = LoneStore(inner)
        async with running_database(
            store, SetClock(), throttling="auto", initial_burst_seconds=1
        ) as database:
            tables = await two_tables(database)
            with pytest.raises(InternalServerError, match="no space"):
                await transact(
                    database, *((each, put(thread("EC2", "b", posts=1))) for each in tables)
                )
            await asyncio.gather(*(each.write(put(thread("EC2", "c"))) for each in tables))
            assert spent(tables) == [([7, 9], 2)] * 2


async def test_a_transaction_gets_its_units_back_if_a_partition_restarts():
    async with running_database(
        clock=SetClock(), throttling="auto", initial_burst_seconds=1
    ) as database:
        tables = await two_tables(database)

        async def die(step: int) -> None:
            if step == 0:
                with pytest.raises(InternalServerError):
                    await tables[1].send(b"", Poison())

        stepped(database, die)
        with pytest.raises(InternalServerError, match="restarted"):
            await transact(database, *((each, put(thread("EC2", "b"))) for each in tables))
        await asyncio.gather(*(each.write(put(thread("EC2", "c"))) for each in tables))
        assert spent(tables) == [([7, 9], 2)] * 2


async def test_a_committed_or_canceled_transaction_gets_no_units_back():
    async with running_database(
        clock=SetClock(), throttling="auto", initial_burst_seconds=1
    ) as database:
        tables = await two_tables(database)
        reached = asyncio.Event()

        async def stay(step: int) -> None:
            if step == 3:
                reached.set()
                await asyncio.Event().wait()

        stepped(database, stay)
        await transact(database, *((each, put(thread("EC2", "b"))) for each in tables))
        given_up = asyncio.create_task(
            transact(database, *((each, put(thread("EC2", "b"))) for each in tables))
        )
        await reached.wait()
        given_up.cancel()
        await asyncio.wait([given_up])
        await asyncio.gather(*(each.write(put(thread("EC2", "b"))) for each in tables))
        assert spent(tables) == [([3, 9], 6)] * 2


async def test_a_transaction_canceled_before_it_is_prepared_gets_no_units_back():
    async with running_database(
        clock=SetClock(), throttling="auto", initial_burst_seconds=1
    ) as database:
        tables = await two_tables(database)
        given_up = asyncio.create_task(
            transact(database, *((each, put(thread("EC2", "b"))) for each in tables))
        )
        # The messages to prepare are in the partitions' mailboxes now; cancel before they are
        # processed.
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.wait([given_up])
        await asyncio.gather(*(each.write(put(thread("EC2", "b"))) for each in tables))
        assert spent(tables) == [([5, 9], 4)] * 2


async def test_a_crashed_partition_returns_no_units_of_its_writes():
    async with memory_store() as inner:
        store = HeldStore(inner)
        async with running_database(
            store, SetClock(), throttling="auto", initial_burst_seconds=1
        ) as database:
            await database.ask(CreateTable(provisioned(5)))
            table = database.table("Thread")
            store.refusal = RuntimeError("a bug")
            with pytest.raises(InternalServerError):
                await table.write(put(thread("EC2", "a")))
            store.refusal = None
            await table.write(put(thread("EC2", "b")))
            assert not charges_of(table)._in_progress
            # The outcome of the write was unknown to the restarted partition, so its unit stays
            # used.
            assert write_balances(table) == [3]
            assert table.throttle.consumed.write_units == 1


async def test_a_read_of_several_partitions_takes_units_of_each_that_it_reads():
    """The second of 3 partitions has no units left, so no units are taken from the third."""
    async with running_database(
        clock=SetClock(), throttling="auto", initial_burst_seconds=1, partitions_per_table=3
    ) as database:
        definition = structs.replace(provisioned(300), throughput=Throughput(3, 300))
        await database.ask(CreateTable(definition))
        table = database.table("Thread")
        for number in range(30):
            await table.write(put(thread(f"forum {number}", "a")))
        first, second, third = (partition.number for partition in table.record.partitions)
        table.throttle.take_page(second, 1)
        whole = ReadRange(key_range.WHOLE, PageRules(), consistent=True, by_partition=True)

        page = await read_page(table, whole)

        assert page.last is not None
        after = keys.encode(table.definition.key_schema, page.last)
        assert table.number_at(after) == first
        readings = table.throttle._limits.table.reads.readings(table.throttle._since)
        assert {number: each.taken_units for number, each in readings.items()} == {
            first: 1,
            second: 1,
            third: 0,
        }
        # The read continues at the end of this partition, and finds the next item in the next one.
        rest = structs.replace(whole, after=after)
        with pytest.raises(ProvisionedThroughputExceededException):
            await read_page(table, rest)
        database.clock.step(2)
        found = page.items + (await read_page(table, rest)).items
        assert len(found) == 30


async def test_a_page_refused_after_empty_partitions_has_taken_no_units():
    """The first 2 of 3 partitions are empty, and the third has no units left."""
    async with running_database(
        clock=SetClock(), throttling="auto", initial_burst_seconds=1, partitions_per_table=3
    ) as database:
        definition = structs.replace(provisioned(300), throughput=Throughput(3, 300))
        await database.ask(CreateTable(definition))
        table = database.table("Thread")
        first, second, third = (partition.number for partition in table.record.partitions)
        table.throttle.take_page(third, 1)
        whole = ReadRange(key_range.WHOLE, PageRules(), consistent=True, by_partition=True)
        for _ in range(3):
            assert await refused(read_page(table, whole))
        readings = table.throttle._limits.table.reads.readings(table.throttle._since)
        assert {number: each.taken_units for number, each in readings.items()} == {
            first: 0,
            second: 0,
            third: 1,
        }
        assert table.throttle.consumed.read_units == 1
        assert table.throttle.throttle_events.total() == 3
        database.clock.step(1)
        assert (await read_page(table, whole)).receipt.read_units == 3
        assert table.throttle.consumed.read_units == 4


async def test_a_refused_read_creates_no_reference_cycle():
    """If an error is bound in a frame of its own traceback, only the garbage collector frees it."""
    async with running_database(
        clock=SetClock(), throttling="auto", initial_burst_seconds=1
    ) as database:
        await database.ask(CreateTable(provisioned(1)))
        table = database.table("Thread")
        whole = ReadRange(key_range.WHOLE, PageRules(), consistent=True, by_partition=True)
        for _ in range(10):
            await refused(read_item(table, thread("EC2", "a")))
        gc.collect()
        gc.disable()
        try:
            for _ in range(100):
                assert await refused(read_item(table, thread("EC2", "a")))
                assert await refused(read_page(table, whole))
            left = gc.collect()
        finally:
            gc.enable()
    assert left < 100


async def refused(read: Awaitable[object]) -> bool:
    try:
        await read
    except ProvisionedThroughputExceededException:
        return True
    return False
