"""Counts of requests by key: which requests are counted, when, and how many keys are kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import structs

from dynactor.actors.database.database import Database
from dynactor.actors.limits.key_counts import Window
from dynactor.actors.phases.contributor_insights import UpdateContributorInsights
from dynactor.actors.table.batch_reads import BatchPart, read_items
from dynactor.actors.table.item_sample import collection_start, largest_collections, sample_items
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.pages import ReadRange, read_page
from dynactor.actors.table.table import Table
from dynactor.model.advice.key_traffic import EVERY, KEPT_KEYS, WHOLE_REQUESTS, Kind
from dynactor.model.capacity import Receipt
from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import GlobalIndex, TableDefinition, Throughput
from dynactor.model.errors import (
    ConditionalCheckFailedException,
    ProvisionedThroughputExceededException,
    ResourceNotFoundException,
)
from dynactor.model.expressions.condition_binding import parse_condition
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.expressions.projection import projector_of_names
from dynactor.model.key_conditions import key_range
from dynactor.model.key_conditions.key_condition import KeyCondition
from dynactor.model.key_conditions.key_range import KeyRange
from dynactor.model.keys import key as keys
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.keys.key_decoding import key_values, partition_values
from dynactor.model.reads.batch_get_budget import BatchGetBudget
from dynactor.model.reads.page import PageRules
from dynactor.model.values.item import Item
from tests.support.databases.databases import (
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.stored_items import read_item

BY_POSTS = "by_posts"
ALL = "ACCESSED_AND_THROTTLED_KEYS"
MINUTE = 60


def indexed(**members: Any) -> TableDefinition:
    """The table of threads with a global index on posts."""
    posts = KeyAttribute("posts", "N")
    index = IndexDefinition(1, BY_POSTS, KeySchema((posts,)), Projection("ALL"))
    definition = structs.replace(
        table_definition(),
        global_indexes=(GlobalIndex(index, throughput=Throughput(5, 2)),),
        next_index_id=2,
    )
    return structs.replace(
        definition, attribute_definitions=(*definition.attribute_definitions, posts), **members
    )


@asynccontextmanager
async def counting(
    definition: TableDefinition | None = None, **settings: Any
) -> AsyncIterator[tuple[Table, SetClock, Database]]:
    """A table whose clock is at the start of a minute; it has a burst of one second."""
    clock = SetClock(1_800_000_000)
    async with running_database(clock=clock, initial_burst_seconds=1, **settings) as database:
        await database.ask(CreateTable(definition or table_definition()))
        yield database.table("Thread"), clock, database


async def switch(
    database: Database, index: str | None = None, mode: Any = ALL, *, enabled: bool = True
) -> str:
    message = UpdateContributorInsights("Thread", index, enabled, mode)
    return (await database.ask(message)).status


def found(
    table: Table, kind: Kind, window: Window | None = None, *, whole: bool = False
) -> dict[str, float]:
    """The counts of the table's keys in a minute, by the key's values."""
    window = window or windows(table)[-1]
    counted = window.items if whole else window.partitions
    values = key_values if whole else partition_values
    schema = table.definition.key_schema
    return {
        "/".join(str(*value.values()) for value in values(schema, key).values()): weight
        for key, weight in counted[kind].keys
    }


def windows(table: Table, index_id: int = 0) -> list[Window]:
    assert table.throttle.traffic is not None
    return table.throttle.traffic.windows(index_id)


def key(forum: str, subject: str) -> Item:
    return thread(forum, subject)


def of_forum(forum: str) -> KeyRange:
    return key_range.selected_range(KeyCondition(({"S": forum},), ()))


async def test_reads_and_writes_count_for_the_partition_key_and_for_the_item():
    async with counting() as (table, _, _):
        await table.write(put(thread("EC2", "a")))
        await table.write(put(thread("EC2", "b")))
        await table.write(put({**thread("S3", "a"), "text": {"S": "x" * 3_000}}))
        await read_item(table, key("EC2", "a"))
        schema = table.definition.key_schema
        positions = [keys.encode(schema, key("EC2", "a")), keys.encode(schema, key("S3", "z"))]
        await read_items([BatchPart(table, positions, consistent=False)], BatchGetBudget())

        assert found(table, "writes") == {"S3": 3, "EC2": 2}
        assert found(table, "writes", whole=True) == {"S3/a": 3, "EC2/a": 1, "EC2/b": 1}
        assert found(table, "reads") == {"EC2": 1.5, "S3": 0.5}
        assert found(table, "reads", whole=True) == {"EC2/a": 1.5, "S3/z": 0.5}


async def test_a_query_counts_for_its_partition_key_and_a_scan_for_no_key():
    async with counting() as (table, _, _):
        for subject in "abc":
            await table.write(put(thread("EC2", subject)))
        rules = PageRules()
        await read_page(table, ReadRange(of_forum("EC2"), rules, consistent=True))
        await read_page(table, ReadRange(of_forum("none"), rules, reverse=True))
        await read_page(table, ReadRange(key_range.WHOLE, rules, by_partition=True))

        assert found(table, "reads") == {"EC2": 1, "none": 0.5}
        assert "reads" not in windows(table)[-1].items


async def test_a_condition_that_is_false_counts_for_its_key():
    async with counting() as (table, _, _):
        await table.write(put(thread("EC2", "a")))
        condition = parse_condition(
            "attribute_not_exists(forum)", Placeholders(None, None), kind="ConditionExpression"
        )
        failing = structs.replace(put(thread("EC2", "a")), condition=condition)
        with pytest.raises(ConditionalCheckFailedException):
            await table.write(failing)
        assert found(table, "writes") == {"EC2": 2}
        assert table.throttle.traffic is not None
        assert len(table.throttle.traffic.recent_writes) == 1


async def test_a_global_index_has_keys_of_its_own():
    async with counting(indexed()) as (table, _, _):
        await table.write(put(thread("EC2", "a", posts=1)))
        await table.write(put(thread("S3", "a", posts=1)))
        await table.write(put(thread("EC2", "b")))
        # An update that changes the index key of an item counts as a write of both keys.
        await table.write(put(thread("S3", "a", posts=2)))
        definition = table.definition.global_indexes[0].definition
        one = key_range.selected_range(KeyCondition(({"N": "1"},), ()))
        await read_page(table, ReadRange(one, PageRules(), index=definition))

        window = windows(table, 1)[-1]
        schema = definition.key_schema
        assert {
            partition_values(schema, key)["posts"]["N"]: weight
            for key, weight in window.partitions["writes"].keys
        } == {"1": 3, "2": 1}
        assert window.partitions["reads"].total == 0.5
        # An index without a sort key has no counts of single items.
        assert window.items == {}
        assert found(table, "writes") == {"EC2": 2, "S3": 2}


async def test_a_page_of_an_index_deleted_meanwhile_is_not_counted():
    async with counting(indexed()) as (table, _, _):
        definition = table.definition.global_indexes[0].definition
        position = keys.encode(definition.key_schema, {"posts": {"N": "1"}})
        gone = structs.replace(table.definition, global_indexes=())
        table.record = structs.replace(table.record, definition=gone, index_partitions={})
        traffic = table.throttle.traffic
        assert traffic is not None
        traffic.read_page(1, position, Receipt(0.5), PageRules(), 1)
        traffic.refuse_page(1, position)

        assert windows(table) == []


async def test_each_minute_is_separate_and_the_last_hour_is_kept():
    async with counting() as (table, clock, _):
        for minute in range(70):
            for _ in range(2):
                await table.write(put(thread(f"{minute}", "a")))
                clock.step(MINUTE / 2)
        told = windows(table)

        assert [found(table, "writes", window) for window in told] == [
            {f"{minute}": 2} for minute in range(11, 70)
        ]
        assert told[0].start_epoch_seconds == 1_800_000_000 + 11 * MINUTE
        assert list(told[0].seconds["writes"]) == [1, *[0] * 29, 1, *[0] * 29]
        clock.step(60 * MINUTE)
        assert windows(table) == []


async def test_only_the_busiest_keys_of_a_minute_are_kept():
    async with counting() as (table, _, _):
        for number in range(100):
            await read_item(table, key(f"{number}", "a"), consistent=False)
        await read_item(table, key("busy", "a"))
        (window,) = windows(table)

        assert len(window.partitions["reads"].keys) == KEPT_KEYS
        assert found(table, "reads")["busy"] == 1
        assert window.partitions["reads"].total == 51
        assert window.partitions["reads"].unlisted == 0.5


async def test_a_sample_of_many_requests_is_counted_and_extrapolated():
    requests = 20_000
    async with counting() as (table, clock, _):
        throttle = table.throttle
        position = keys.encode(table.definition.key_schema, key("EC2", "a"))
        for _ in range(requests):
            throttle.take_read(table.record.partitions[0].number, position, 0.5)
        (window,) = windows(table)
        assert window.partitions["reads"].total == pytest.approx(requests / 2, rel=0.1)
        assert window.partitions["reads"].total != requests / 2
        # In the next minute the first requests are all counted again.
        clock.step(MINUTE)
        for _ in range(WHOLE_REQUESTS // 2):
            throttle.take_read(table.record.partitions[0].number, position, 0.5)
        assert windows(table)[-1].partitions["reads"].total == pytest.approx(
            WHOLE_REQUESTS / 4, abs=EVERY * 2
        )


async def test_the_total_of_each_second_includes_requests_that_are_not_sampled():
    """If only sampled requests counted, the busiest second would vary at random by half."""
    async with counting() as (table, clock, _):
        number = table.record.partitions[0].number
        position = keys.encode(table.definition.key_schema, key("EC2", "a"))
        for _ in range(30_000):
            table.throttle.take_read(number, position, 1.0)
            clock.step(1 / 500)
        table.throttle.take_read(number, position, 1.0)
        told = windows(table)[0].seconds["reads"]

        assert min(told) >= 500 - 2 * EVERY
        assert max(told) <= 500 + 2 * EVERY
        assert sum(told) == pytest.approx(30_000, abs=2 * EVERY)


async def test_contributor_insights_counts_every_request():
    requests = 20_000
    async with counting() as (table, _, database):
        assert await switch(database) == "ENABLING"
        position = keys.encode(table.definition.key_schema, key("EC2", "a"))
        for _ in range(requests):
            table.throttle.take_read(table.record.partitions[0].number, position, 0.5)
        assert windows(table)[-1].partitions["reads"].total == requests / 2


async def test_with_sampling_disabled_only_enabled_insights_are_counted():
    async with counting(indexed(), key_traffic=False) as (table, _, database):
        assert table.throttle.traffic is None
        await table.write(put(thread("EC2", "a", posts=1)))
        await switch(database, BY_POSTS)
        await table.write(put(thread("EC2", "a", posts=2)))

        assert windows(table) == []
        assert windows(table, 1)[-1].partitions["writes"].total == 2
        assert await switch(database, BY_POSTS, enabled=False) == "DISABLING"
        assert table.throttle.traffic is None


async def test_counting_can_be_limited_to_throttled_keys():
    units = {"billing_mode": "PROVISIONED", "throughput": Throughput(1, 2)}
    definition = structs.replace(table_definition(), **units)
    async with counting(definition, key_traffic=False, throttling="auto") as (table, _, database):
        await switch(database, mode="THROTTLED_KEYS")
        assert await refused(table, 5) == 3
        for _ in range(2):
            await read_item(table, key("EC2", "a"), consistent=False)
        with pytest.raises(ProvisionedThroughputExceededException):
            await read_item(table, key("EC2", "a"), consistent=False)
        with pytest.raises(ProvisionedThroughputExceededException):
            await read_page(table, ReadRange(of_forum("S3"), PageRules()))

        assert windows(table)[-1].partitions.keys() == {"throttled_writes", "throttled_reads"}
        assert found(table, "throttled_writes") == {"EC2": 3}
        assert found(table, "throttled_reads") == {"EC2": 1, "S3": 1}
        assert found(table, "throttled_writes", whole=True) == {f"EC2/{n}": 1 for n in (2, 3, 4)}


async def refused(table: Table, writes: int, **numbers: int) -> int:
    """Write this many times; return the number of refused writes."""
    count = 0
    for number in range(writes):
        try:
            await table.write(put(thread("EC2", f"{number}", **numbers)))
        except ProvisionedThroughputExceededException:
            count += 1
    return count


async def test_a_write_that_an_index_refuses_counts_for_the_indexs_key():
    units = {"billing_mode": "PROVISIONED", "throughput": Throughput(50, 50)}
    async with counting(indexed(**units), throttling="auto") as (table, _, _):
        assert await refused(table, 5, posts=7) == 3

        (window,) = windows(table, 1)
        ((hot, weight),) = window.partitions["throttled_writes"].keys
        schema = table.definition.global_indexes[0].definition.key_schema
        assert (partition_values(schema, hot), weight) == ({"posts": {"N": "7"}}, 3)
        assert "throttled_writes" not in windows(table)[-1].partitions


async def test_in_observe_mode_a_throttled_request_counts_as_throttled_and_as_accepted():
    units = {"billing_mode": "PROVISIONED", "throughput": Throughput(1, 2)}
    definition = structs.replace(table_definition(), **units)
    async with counting(definition, throttling="observe") as (table, _, _):
        assert await refused(table, 5) == 0
        for _ in range(3):
            await read_item(table, key("EC2", "a"), consistent=False)
        await read_page(table, ReadRange(of_forum("EC2"), PageRules()))

        assert found(table, "writes") == {"EC2": 5}
        assert found(table, "throttled_writes") == {"EC2": 3}
        assert found(table, "reads") == {"EC2": 2}
        assert found(table, "throttled_reads") == {"EC2": 2}


async def test_insights_of_a_missing_table_or_index_cannot_be_switched():
    async with counting() as (_, _, database):
        with pytest.raises(ResourceNotFoundException, match="Index: by_posts of table: Thread"):
            await switch(database, BY_POSTS)
        message = UpdateContributorInsights("Nowhere", None, True)
        with pytest.raises(ResourceNotFoundException, match="Table: Nowhere not found"):
            await database.ask(message)


# -- figures for advice ---------------------------------------------------------------------


async def test_the_attributes_that_queries_of_an_index_use_are_counted():
    async with counting(table_definition(local_sort_keys=["posts"])) as (table, _, _):
        for number in range(3):
            await table.write(put(thread("EC2", f"{number}", posts=number)))
        (index,) = table.definition.local_indexes
        asked = PageRules(projector=projector_of_names(["subject", "posts"]))
        await read_page(table, ReadRange(of_forum("EC2"), asked, index=index))
        await read_page(table, ReadRange(of_forum("EC2"), PageRules(count_only=True), index=index))
        await read_page(table, ReadRange(of_forum("EC2"), PageRules(), index=index))
        await read_page(
            table, ReadRange(key_range.WHOLE, PageRules(), index=index, by_partition=True)
        )

        assert table.throttle.traffic is not None
        use = table.throttle.traffic.use(index.index_id)
        assert (use.queries, use.scans, use.entries) == (3, 1, 12)
        assert use.asked_names == {"subject": 1, "posts": 1}
        assert use.asked_all == 2
        assert use.write_units == 3
        assert use.scan_units == use.read_units - 1.5


async def test_the_largest_collections_and_their_growth_are_recorded():
    definition = table_definition(local_sort_keys=["posts"])
    async with counting(definition) as (table, clock, _):
        for number in range(3):
            for _ in range(number + 1):
                await table.write(put(thread(f"{number}", f"{clock.now_epoch_seconds()}", posts=1)))
                clock.step(10)
        largest = await largest_collections(table, 2)
        schema = table.definition.key_schema
        assert [partition_values(schema, each.partition_key) for each in largest] == [
            {"forum": {"S": "2"}},
            {"forum": {"S": "1"}},
        ]
        assert largest[0].size_bytes > largest[1].size_bytes
        assert table.throttle.traffic is not None
        growth = table.throttle.traffic.growth(largest[0].partition_key)
        assert growth is not None
        assert growth.last_bytes == largest[0].size_bytes == growth.first_bytes * 3
        assert clock.now_epoch_seconds() - growth.first_epoch_seconds == 30


async def test_a_sample_has_items_of_the_whole_table():
    async with counting() as (table, _, database):
        for number in range(300):
            await table.write(put(thread(f"{number % 30}", f"{number}")))
        item_count = (await database.describe("Thread")).item_count
        everything = await sample_items(table, item_count, 1_000)
        some = await sample_items(table, item_count, 60)

        assert len(everything) == 300
        assert len(some) == 60
        assert len({item["forum"]["S"] for item in some}) > 20
        # The read of the sample used no capacity of the table.
        assert table.throttle.consumed.read_units == 0


async def test_a_sample_of_a_large_table_is_spread_over_the_table(monkeypatch):
    monkeypatch.setattr("dynactor.actors.table.item_sample._LOOKED_AT", 100)
    monkeypatch.setattr("dynactor.actors.table.item_sample._POINTS", 10)
    async with counting() as (table, _, _):
        for number in range(400):
            await table.write(put(thread(f"{number}", "a")))
        some = await sample_items(table, 400, 50)

        schema = table.definition.key_schema
        hashes = sorted(keys.encode(schema, item)[0] for item in some)
        assert 40 <= len(some) <= 50
        assert len({one * 10 // 256 for one in hashes}) == 10
        assert len({item["forum"]["S"] for item in some}) == len(some)


async def test_a_sample_has_items_from_all_positions_of_collections(monkeypatch):
    monkeypatch.setattr("dynactor.actors.table.item_sample._LOOKED_AT", 100)
    monkeypatch.setattr("dynactor.actors.table.item_sample._POINTS", 10)
    async with counting() as (table, _, _):
        for number in range(400):
            await table.write(put(thread(f"{number // 5}", f"{number % 5}")))
        some = await sample_items(table, 400, 20)

        assert {item["subject"]["S"] for item in some} == set("01234")


async def test_no_item_is_twice_in_a_sample(monkeypatch):
    """The reads that start at two random positions may overlap."""
    monkeypatch.setattr("dynactor.actors.table.item_sample._LOOKED_AT", 100)
    monkeypatch.setattr("dynactor.actors.table.item_sample._POINTS", 10)
    async with counting() as (table, _, _):
        for number in range(30):
            await table.write(put(thread(f"{number}", "a")))
        some = await sample_items(table, 101, 1_000)

        assert sorted(int(item["forum"]["S"]) for item in some) == list(range(30))


async def test_the_items_of_a_key_are_counted_up_to_a_limit():
    async with counting() as (table, _, _):
        for number in range(30):
            await table.write(put(thread("EC2", f"{number:02}")))
        await table.write(put(thread("EC3", "a")))
        partition_key = keys.encode_partition(table.definition.key_schema, key("EC2", ""))
        whole = await collection_start(table, partition_key, 100_000)
        part = await collection_start(table, partition_key, 100)

        assert whole.is_whole
        assert not part.is_whole
        assert 100 <= part.size_bytes < whole.size_bytes
        assert whole.size_bytes % 30 == 0
