"""Limits as partitions take of them: writes decided again, entries that move, indexes that go."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest
from msgspec import structs

from actors.database import Database
from actors.partition import Partition
from actors.table import Table
from actors.throttle import PartitionRead
from model.errors import ProvisionedThroughputExceededException
from model.global_index_rules import NewGlobalIndex
from model.index import IndexDefinition, Projection
from model.key import KeyAttribute, KeySchema
from model.schema_rules import KeyElement
from model.table import GlobalIndex, TableDefinition, Throughput
from model.table_rules import TableEdit
from storage.store import Conflict, Group
from tests.support.databases import (
    HeldStore,
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.store import memory_store

BY_POSTS = "by_posts"


class RacedStore(HeldStore):
    """A store that refuses so many commits, as if another owner had come before."""

    lost_races = 0

    async def commit(self, groups: Sequence[Group]) -> asyncio.Future[None]:
        if self.lost_races:
            self.lost_races -= 1
            raise Conflict
        return await super().commit(groups)


def provisioned(write_units: int, *, index_units: int = 0) -> TableDefinition:
    """The table of threads, with units of its own and perhaps an index on posts with others."""
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
    """How many of so many writes, one after another, are not refused."""
    count = 0
    for number in range(writes):
        try:
            await table.write(put(thread("EC2", f"{number}")))
        except ProvisionedThroughputExceededException:
            continue
        count += 1
    return count


async def test_a_write_that_is_decided_again_pays_once():
    async with memory_store() as inner:
        store = RacedStore(inner)
        async with running_database(store, SetClock(), throttling="auto") as database:
            await database.create_table(provisioned(5))
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
        async with running_database(store, clock, throttling="auto") as database:
            await database.create_table(provisioned(1))
            table = database.table("Thread")
            store.lost_races = 3
            replies = [table.submit(put(thread("EC2", f"{number}"))) for number in range(4)]
            results = await asyncio.gather(*replies, return_exceptions=True)
            assert [isinstance(each, Exception) for each in results] == [False, True, True, True]
            assert table.throttle.throttle_events.total() == 3
            # It is remembered for that batch alone.
            (partition,) = table._partitions.values()
            assert isinstance(partition, Partition)
            assert not partition._paid
            clock.step(1)
            assert await accepted(table, 3) == 1


async def test_a_write_to_a_partition_that_has_nothing_left_does_not_reach_it():
    async with running_database(clock=SetClock(), throttling="auto") as database:
        await database.create_table(provisioned(1))
        table = database.table("Thread")
        await table.write(put(thread("EC2", "a")))
        with pytest.raises(ProvisionedThroughputExceededException):
            table.submit(put(thread("EC2", "b")))
        assert not any(partition.mailbox for partition in table._partitions.values())
        assert table.throttle.throttle_events.total() == 1


async def test_an_entry_that_moves_takes_units_where_it_leaves_and_where_it_comes():
    async with running_database(
        clock=SetClock(), partitions_per_table=2, throttling="auto"
    ) as database:
        await database.create_table(provisioned(1_000, index_units=1_000))
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


async def test_a_read_of_an_index_that_went_meanwhile_takes_nothing():
    async with running_database(clock=SetClock(), throttling="auto") as database:
        await database.create_table(provisioned(5, index_units=5))
        table = database.table("Thread")
        index = table.definition.global_indexes[0].definition
        number = table.record.index_partitions[1][0].number
        table.throttle.take_page([PartitionRead(number, 0.5)], index)
        await delete_index(database)
        table.throttle.take_page([PartitionRead(number, 0.5)], index)
        assert table.throttle.consumed_by_index == {}


async def test_an_index_that_is_made_again_has_its_own_units():
    async with running_database(
        clock=SetClock(), throttling="auto", index_allocation_seconds=0
    ) as database:
        await database.create_table(provisioned(5, index_units=1))
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
        await database.update_table("Thread", edit)
        while table.definition.global_indexes[0].status != "ACTIVE":
            await asyncio.sleep(0.001)
        # Two of its three units went for what was in the table.
        await table.write(put(thread("EC2", "c", posts=1)))
        with pytest.raises(ProvisionedThroughputExceededException) as refused:
            await table.write(put(thread("EC2", "d", posts=1)))
    assert [reason.resource.rpartition("/")[2] for reason in refused.value.reasons] == [BY_POSTS]


async def delete_index(database: Database) -> None:
    await database.update_table("Thread", TableEdit(index_deletes=(BY_POSTS,)))
    while database.table("Thread").definition.global_indexes:
        await asyncio.sleep(0.001)


async def test_a_table_that_nobody_uses_has_no_limits_made_for_it():
    async with running_database(throttling="auto") as database:
        await database.create_table(provisioned(5, index_units=5))
        table = database.table("Thread")
        await database.update_table("Thread", TableEdit(deletion_protection=True))
        assert table.throttle._made is None
        await table.write(put(thread("EC2", "a")))
        assert table.throttle._made is not None
