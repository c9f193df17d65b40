"""Partitions are split automatically: by size, by load, and by provisioned throughput."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from msgspec import structs

from dynactor.actors.database.database import Database
from dynactor.actors.phases.splits import Splitter
from dynactor.actors.splitting.messages import SplitPartition
from dynactor.actors.splitting.split_settings import SplitSettings
from dynactor.actors.table.messages import CreateTable, UpdateTable
from dynactor.actors.table.pages import ReadRange, read_page
from dynactor.actors.table.table import Table
from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import GlobalIndex, TableDefinition, Throughput
from dynactor.model.errors import Throttled
from dynactor.model.key_conditions import key_range
from dynactor.model.key_conditions.split_point import divides_collection
from dynactor.model.keys import key as keys_of
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.reads.page import PageRules
from dynactor.model.tables.table_edits import TableEdit
from dynactor.model.values.item import Item
from dynactor.storage.partition_map import PartitionMap
from tests.support.databases.databases import (
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.stored_items import read_item

OFTEN = SplitSettings(check_seconds=0.01)
SMALL = structs.replace(OFTEN, size_limit_bytes=20_000)
# The split watch checks only when the test calls it.
ASKED = structs.replace(SMALL, check_seconds=1_000)
TITLE = KeyAttribute("title", "S")
BY_TITLE = IndexDefinition(1, "by_title", KeySchema((TITLE,), ()), Projection("ALL"))


def starts(table: Table, index_id: int = 0) -> list[bytes]:
    return [partition.start for partition in table.record.ranges(index_id)]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


async def fill(table: Table, forum: Callable[[int], str], items: int) -> int:
    """Put items of about 1,000 bytes; return their total size."""
    total_bytes = 0
    for at in range(items):
        item = thread(forum(at), f"{at:04}")
        item["title"] = {"S": f"t{at % 50}" + "x" * 950}
        write = put(item)
        total_bytes += write.size_bytes
        await table.write(write)
    return total_bytes


def sizes_bytes(table: Table, index_id: int = 0) -> dict[int, int]:
    """The size that each partition counts; 0 for a partition that is starting."""
    heads = {
        number: table.head(number, index_id)
        for number in PartitionMap(table.record.ranges(index_id)).numbers
    }
    return {
        number: sum(head.sizes_bytes.values()) for number, head in heads.items() if head is not None
    }


def is_settled(database: Database, total_bytes: int, index_id: int = 0) -> bool:
    """Whether the watch would split no partition, and all partitions together have this size.

    A partition may count more bytes than it has, because after a split during writes both children
    start with estimates. The watch measures such a partition before a split, and lets it grow by
    some bytes before it measures again.
    """
    (table,) = database.tables
    watch = database.split_watch
    limit_bytes = watch._settings.size_limit_bytes
    sizes = sizes_bytes(table, index_id)
    return sum(sizes.values()) == total_bytes and all(
        size_bytes <= max(limit_bytes, watch._measured.get(number, 0))
        for number, size_bytes in sizes.items()
    )


async def split_until_settled(database: Database, index_id: int = 0) -> None:
    """Let the watch check until no partition has to be split."""
    (table,) = database.tables
    assert len(starts(table, index_id)) == 1
    total_bytes = sum(sizes_bytes(table, index_id).values())
    async with asyncio.timeout(60):
        while not is_settled(database, total_bytes, index_id):
            await database.split_watch.check()
            await asyncio.sleep(0)


async def test_a_partition_is_split_until_no_part_is_too_large():
    async with running_database(partitions_per_table=1, splits=ASKED) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await fill(table, str, 150)
        await split_until_settled(database)
        # No item was written since the splits, so the counts are exact.
        assert max(sizes_bytes(table).values()) <= 20_000
        assert 8 <= len(starts(table)) <= 16
        # The partitions were split between item collections, because no collection is large.
        assert not any(map(divides_collection, starts(table)))
        heads = await table.heads()
        assert sum(head.item_counts[0] for head in heads) == 150
        assert database.part(Splitter).splits == {"size": len(starts(table)) - 1}


async def test_a_partition_is_split_by_size_during_writes():
    async with running_database(partitions_per_table=1, splits=SMALL) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        total_bytes = await fill(table, str, 150)
        await until(lambda: is_settled(database, total_bytes))
        # A partition may be larger than the limit by the growth that the watch allows.
        assert 4 <= len(starts(table)) <= 16
        heads = await table.heads()
        assert sum(head.item_counts[0] for head in heads) == 150
        assert database.part(Splitter).splits == {"size": len(starts(table)) - 1}


async def test_a_large_table_does_not_delay_the_splits_of_other_tables():
    async with running_database(partitions_per_table=1, splits=ASKED) as database:
        tables: list[Table] = []
        # The watch checks the table Large first, whose partitions are still too large after one
        # split.
        for name, items in (("Large", 200), ("Small", 30)):
            await database.ask(CreateTable(structs.replace(table_definition(), name=name)))
            tables.append(database.table(name))
            await fill(tables[-1], str, items)
        await database.split_watch.check()
        await until(lambda: all(len(starts(table)) == 2 for table in tables))
        assert [len(starts(table)) for table in tables] == [2, 2]


async def test_a_collection_that_is_too_large_is_split_by_sort_key():
    async with running_database(partitions_per_table=1, splits=ASKED) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await fill(table, lambda _: "one", 100)
        await split_until_settled(database)
        assert len(starts(table)) >= 6
        assert all(map(divides_collection, starts(table)[1:]))


async def test_a_large_collection_of_a_table_with_local_indexes_is_not_split():
    async with running_database(partitions_per_table=1, splits=ASKED) as database:
        await database.ask(CreateTable(table_definition(local_sort_keys=["posts"])))
        table = database.table("Thread")
        await fill(table, lambda at: "one" if at % 2 else f"f{at}", 100)
        await split_until_settled(database)
        assert len(starts(table)) >= 4
        # The watch measured the partition and did not split it.
        assert database.split_watch._measured
        assert max(sizes_bytes(table).values()) > 20_000
        assert not any(map(divides_collection, starts(table)))


async def test_the_partitions_of_an_index_are_split_by_size():
    definition = structs.replace(table_definition(), global_indexes=(GlobalIndex(BY_TITLE),))
    large = structs.replace(ASKED, size_limit_bytes=40_000)
    async with running_database(partitions_per_table=1, splits=large) as database:
        await database.ask(CreateTable(definition))
        table = database.table("Thread")
        await fill(table, str, 150)
        actors = table.followers.indexes.get(1)
        assert actors is not None
        await actors.wait_caught_up()
        await split_until_settled(database, index_id=1)
        assert len(starts(table, 1)) >= 4
        heads = await table.heads()
        assert sum(head.item_counts.get(1, 0) for head in heads) == 150


def on_demand(**members: object) -> TableDefinition:
    return structs.replace(table_definition(), **members)


async def check_once(database: Database) -> None:
    """Let the watch check once, and wait until the database's actor has made the splits."""
    await database.split_watch.check()
    # The actor answers this message after the splits.
    await database.actor.keep_streams()


class Load:
    """Offers writes in seconds of virtual time; the watch checks in each second."""

    def __init__(self, database: Database, table: Table, clock: SetClock) -> None:
        self._database = database
        self._table = table
        self._clock = clock
        self._items = 0

    async def second(self, offered: int, key: Callable[[int], Item]) -> int:
        replies = []
        refused = 0
        for _ in range(offered):
            self._items += 1
            try:
                replies.append(self._table.submit(put(key(self._items))))
            except Throttled:
                refused += 1
            if len(replies) % 100 == 0:
                await asyncio.sleep(0)
        results = await asyncio.gather(*replies, return_exceptions=True)
        accepted = sum(not isinstance(result, Throttled) for result in results)
        assert accepted <= offered - refused
        self._clock.step(1)
        await check_once(self._database)
        return accepted


HEAT = SplitSettings(check_seconds=1_000, heat_seconds=5.0)


async def heated(
    database: Database, clock: SetClock, key: Callable[[int], Item], seconds: int = 20
) -> tuple[Table, list[int]]:
    table = database.table("Thread")
    load = Load(database, table, clock)
    accepted = [await load.second(1_200, key) for _ in range(seconds)]
    return table, accepted


async def test_a_busy_collection_is_split_by_sort_key_and_then_accepts_more_writes():
    clock = SetClock()
    async with running_database(
        clock=clock, partitions_per_table=1, splits=HEAT, throttling="enforce"
    ) as database:
        await database.ask(CreateTable(on_demand()))
        table, accepted = await heated(
            database, clock, lambda at: thread("hot", f"{at * 7919 % 1000:03}")
        )
        assert accepted[0] == 1_000
        assert accepted[-1] == 1_200
        assert len(starts(table)) == 2
        assert divides_collection(starts(table)[1])


async def test_a_busy_collection_of_a_table_with_local_indexes_stays_throttled():
    clock = SetClock()
    async with running_database(
        clock=clock, partitions_per_table=1, splits=HEAT, throttling="enforce"
    ) as database:
        await database.ask(CreateTable(table_definition(local_sort_keys=["posts"])))
        table, accepted = await heated(
            database, clock, lambda at: thread("hot", f"{at * 7919 % 1000:03}"), 12
        )
        assert set(accepted) == {1_000}
        assert starts(table) == [b""]


async def test_a_busy_item_stays_throttled():
    clock = SetClock()
    async with running_database(
        clock=clock, partitions_per_table=1, splits=HEAT, throttling="enforce"
    ) as database:
        await database.ask(CreateTable(on_demand()))
        table, accepted = await heated(database, clock, lambda _: thread("hot", "one"), 12)
        assert set(accepted) == {1_000}
        assert starts(table) == [b""]


async def test_a_busy_collection_with_rising_sort_keys_stays_throttled():
    clock = SetClock()
    async with running_database(
        clock=clock, partitions_per_table=1, splits=HEAT, throttling="enforce"
    ) as database:
        await database.ask(CreateTable(on_demand()))
        table, accepted = await heated(database, clock, lambda at: thread("hot", f"{at:08}"), 12)
        assert set(accepted) == {1_000}
        assert starts(table) == [b""]


async def test_tables_are_split_by_load_if_limits_are_observed_but_not_if_they_are_off():
    for setting, partitions in (("observe", 2), ("off", 1)):
        clock = SetClock()
        async with running_database(
            clock=clock, partitions_per_table=1, splits=HEAT, throttling=setting
        ) as database:
            await database.ask(CreateTable(on_demand()))
            table, accepted = await heated(database, clock, lambda at: thread(f"{at}", "a"), 9)
            assert set(accepted) == {1_200}
            assert len(starts(table)) == partitions
            assert not any(map(divides_collection, starts(table)))


async def test_a_partition_is_split_by_the_load_of_reads():
    clock = SetClock()
    async with running_database(
        clock=clock, partitions_per_table=1, splits=HEAT, throttling="enforce"
    ) as database:
        await database.ask(CreateTable(on_demand()))
        table = database.table("Thread")
        for _ in range(9):
            for at in range(3_000):
                await read_item(table, thread(f"{at % 64}", "a"))
            clock.step(1)
            await check_once(database)
        assert len(starts(table)) == 2


async def test_a_partition_is_split_by_the_load_of_pages_that_start_in_it():
    """Pages start only in the second of the collection's two partitions."""
    clock = SetClock()
    async with running_database(
        clock=clock, partitions_per_table=1, splits=HEAT, throttling="observe"
    ) as database:
        await database.ask(CreateTable(on_demand()))
        table = database.table("Thread")
        schema = table.definition.key_schema
        positions = [keys_of.encode(schema, thread("f", f"{at:02}")) for at in range(64)]
        for at in range(64):
            await table.write(put(thread("f", f"{at:02}")))
        await database.ask(
            SplitPartition("Thread", table.record.partitions[0].number, positions[16])
        )
        whole = key_range.beginning_with(keys_of.encode_partition(schema, thread("f", "")))
        for _ in range(9):
            for at in range(4_000):
                after = positions[20 + at * 37 % 40]
                request = ReadRange(whole, PageRules(limit=1), after=after, consistent=True)
                await read_page(table, request)
            clock.step(1)
            await check_once(database)
        assert len(starts(table)) == 3
        assert starts(table)[2] > positions[20]


async def test_a_short_burst_splits_nothing():
    clock = SetClock()
    async with running_database(
        clock=clock, partitions_per_table=1, splits=HEAT, throttling="enforce"
    ) as database:
        await database.ask(CreateTable(on_demand()))
        table = database.table("Thread")
        load = Load(database, table, clock)
        for at in range(12):
            await load.second(1_200 if at % 3 == 0 else 100, lambda at: thread(f"{at}", "a"))
        assert starts(table) == [b""]


async def test_a_busy_partition_of_an_index_is_split_only_between_keys():
    for titles, partitions in ((1, 1), (40, 2)):
        clock = SetClock()
        async with running_database(
            clock=clock, partitions_per_table=1, splits=HEAT, throttling="observe"
        ) as database:
            await database.ask(CreateTable(on_demand(global_indexes=(GlobalIndex(BY_TITLE),))))

            def titled(at: int, titles: int = titles) -> Item:
                return {**thread(f"{at}", "a"), "title": {"S": f"t{at % titles}"}}

            table, _ = await heated(database, clock, titled, 9)
            assert len(starts(table, 1)) == partitions
            assert not any(map(divides_collection, starts(table, 1)))


def quarters(count: int) -> Sequence[bytes]:
    return [b"", *((at << 64 - 4).to_bytes(8, "big") for at in range(16 // count, 16, 16 // count))]


async def test_raising_the_warm_throughput_adds_partitions():
    async with running_database() as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        assert starts(table) == quarters(4)
        edit = TableEdit(
            warm_throughput={"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 16_000}
        )
        await database.ask(UpdateTable("Thread", edit))
        # A description would wait for the partitions, which are many at once in memory.
        assert database.part(Splitter).growing(table) == (0,)
        await until(lambda: len(starts(table)) == 16)
        assert (await database.describe("Thread")).growing == ()
        assert starts(table) == quarters(16)


async def test_a_table_created_with_warm_throughput_has_enough_partitions_at_once():
    async with running_database() as database:
        warm = {"ReadUnitsPerSecond": 24_000, "WriteUnitsPerSecond": 4_000}
        await database.ask(CreateTable(on_demand(warm_throughput=warm)))
        assert len(starts(database.table("Thread"))) == 8


async def test_more_provisioned_units_add_partitions_to_a_table_and_its_indexes():
    provisioned = on_demand(
        billing_mode="PROVISIONED",
        throughput=Throughput(10, 10),
        global_indexes=(GlobalIndex(BY_TITLE, throughput=Throughput(10, 10)),),
    )
    async with running_database() as database:
        await database.ask(CreateTable(provisioned))
        table = database.table("Thread")
        assert (len(starts(table)), len(starts(table, 1))) == (1, 1)
        await database.ask(UpdateTable("Thread", TableEdit(throughput=Throughput(3_000, 3_000))))
        await until(lambda: len(starts(table)) == 4)
        assert len(starts(table, 1)) == 1
        limits = table.throttle.limits()
        await table.write(put(thread("f", "a")))
        limits = table.throttle.limits()
        assert limits is not None
        readings = limits.writes.readings(database.clock.now_epoch_seconds())
        # The units are divided evenly between the partitions (S138).
        assert {reading.units_per_second for reading in readings.values()} == {750}


async def test_an_on_demand_table_grows_with_its_peaks():
    """A table may use 10,000 units a second 30 minutes after a minute at 5,000 units a second."""
    clock = SetClock()
    async with running_database(clock=clock, splits=OFTEN, throttling="observe") as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await table.write(put(thread("f", "a")))
        limits = table.throttle.limits()
        assert limits is not None
        for number in PartitionMap(table.record.partitions).numbers:
            # The write below takes one more unit.
            limits.writes.take(number, (5_000 * 60 - 1) / 4, clock.now_epoch_seconds())
        clock.step(31 * 60)
        await table.write(put(thread("f", "b")))
        await until(lambda: len(starts(table)) == 10)
        assert database.part(Splitter).splits == {"throughput": 6}


async def test_a_split_position_is_within_the_partition_whose_load_was_measured():
    clock = SetClock()
    async with running_database(
        clock=clock, partitions_per_table=1, splits=HEAT, throttling="observe"
    ) as database:
        await database.ask(CreateTable(on_demand()))
        table, _ = await heated(database, clock, lambda at: thread(f"{at}", "a"), 9)
        ranges = PartitionMap(table.record.partitions)
        for number in ranges.numbers:
            for position in table.throttle.write_positions.positions(number):
                assert ranges.number_at(position) == number


async def test_keys_written_in_turn_are_divided_evenly_by_a_split():
    """Clients that shard a key by suffixes often use the suffixes in turn."""
    for keys in (2, 8, 16, 48):
        clock = SetClock()
        async with running_database(
            clock=clock, partitions_per_table=1, splits=HEAT, throttling="observe"
        ) as database:
            await database.ask(CreateTable(on_demand()))
            table, _ = await heated(
                database, clock, lambda at, keys=keys: thread(f"f{at % keys}", "a"), 9
            )
            assert len(starts(table)) == 2, keys


async def test_a_busy_item_at_the_start_of_a_partition_is_split_from_the_others():
    clock = SetClock()
    async with running_database(
        clock=clock, partitions_per_table=1, splits=HEAT, throttling="observe"
    ) as database:
        await database.ask(CreateTable(on_demand()))
        table = database.table("Thread")
        busy = thread("hot", "500")
        position = keys_of.encode(table.definition.key_schema, busy)
        await database.ask(SplitPartition("Thread", table.record.partitions[0].number, position))
        # Most requests are for one item, the others for random items.
        await heated(
            database,
            clock,
            lambda at: thread("hot", f"{501 + at * 7919 % 299}") if at % 3 == 0 else busy,
            20,
        )
        own, others = starts(table)[1:]
        assert own == position
        assert own < others <= keys_of.encode(table.definition.key_schema, thread("hot", "510"))
