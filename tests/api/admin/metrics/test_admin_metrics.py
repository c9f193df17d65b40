"""The metrics of a database in use."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families

from dynactor.actors.database.database import Database
from dynactor.actors.derived.expiry.time_to_live_settings import TimeToLiveSettings
from dynactor.actors.partition import partition as partitions
from dynactor.actors.partition.item_locks import Prepare, Release, TransactionPart
from dynactor.actors.runtime.mailbox import MailboxFull
from dynactor.actors.splitting.messages import SplitPartition
from dynactor.actors.table.messages import CreateTable, UpdateTable
from dynactor.actors.table.table import Table
from dynactor.api.admin.metrics.exposition import exposition
from dynactor.api.admin.metrics.tables import table_figures
from dynactor.api.http.protocol import Protocol, Request
from dynactor.api.http.request_figures import RequestFigures
from dynactor.api.registry import OPERATIONS
from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import GlobalIndex, TableDefinition
from dynactor.model.errors import (
    ThrottlingException,
    TransactionCanceledException,
    TransactionConflictException,
)
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.tables.global_index_rules import NewGlobalIndex
from dynactor.model.tables.schema_rules import KeyElement
from dynactor.model.tables.table_edits import TableEdit
from tests.support.clients.clients import AUTHORIZATION, JSON_1_0, TARGET_PREFIX
from tests.support.databases.databases import (
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.expiry import switch, until_items, until_listed, until_status
from tests.support.databases.transacting import actions, transact
from tests.support.servers.figures import figures_of
from tests.support.tables.index_lag import index_lag_records

OF_FULL_MAILBOXES = (("index", ""), ("reason", "TooManyWritesWait"), ("table", "Thread"))
OF_INDEX = (("index", "by_posts"), ("table", "Thread"))
Labels = tuple[tuple[str, str], ...]


async def scrape(
    database: Database, requests: RequestFigures | None = None
) -> dict[str, dict[Labels, float]]:
    """The samples by name without the prefix ``dynactor_``, and then by labels."""
    figures = figures_of(requests or RequestFigures())
    body, _ = await exposition(database, figures, "")
    return {
        family.name.removeprefix("dynactor_"): {
            tuple(sorted(sample.labels.items())): sample.value
            for sample in family.samples
            if not sample.name.endswith("_created")
        }
        for family in text_string_to_metric_families(body.decode())
    }


def with_index() -> TableDefinition:
    key_schema = KeySchema((KeyAttribute("posts", "N"),))
    index = IndexDefinition(1, "by_posts", key_schema, Projection("ALL"))
    return structs.replace(table_definition(), global_indexes=(GlobalIndex(index),))


async def add_index(database: Database) -> Table:
    """Add an index to the table, as UpdateTable does."""
    index = NewGlobalIndex("by_posts", (KeyElement("posts", "HASH"),), "ALL")
    posts = (KeyAttribute("posts", "N"),)
    edit = TableEdit(index_creates=(index,), attribute_definitions=posts)
    await database.ask(UpdateTable("Thread", edit))
    return database.table("Thread")


async def until_active(table: Table) -> None:
    while table.definition.global_indexes[0].status != "ACTIVE":
        await asyncio.sleep(0.001)


async def test_a_table_without_indexes_has_no_index_metrics():
    async with running_database() as database:
        await database.ask(CreateTable(table_definition()))
        found = await scrape(database)
    assert found["index_lag_records"] == found["index_lag_seconds"] == {}
    assert found["online_index_percentage_progress"] == {}
    assert found["write_throttle_events"] == {OF_FULL_MAILBOXES: 0}


async def test_a_virtual_clock_has_a_metric_and_real_time_has_none():
    clock = SetClock()
    async with running_database(clock=clock) as database:
        clock.step(60)
        found = await scrape(database)
    assert found["virtual_clock_epoch_seconds"] == {(): clock.now_epoch_seconds()}
    assert found["virtual_clock_speed"] == {(): 0}
    async with running_database() as database:
        assert not any("clock" in name for name in await scrape(database))


async def test_requests_that_conflict_with_a_transaction_are_counted():
    async with running_database() as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        item = thread("EC2", "a")
        ((_, action),) = actions((table, put(item)))
        await table.send(action.position, Prepare(TransactionPart(b"held", 1, (action,))))
        for _ in range(3):
            with pytest.raises(TransactionConflictException):
                await table.write(put(item))
        with pytest.raises(TransactionCanceledException):
            await transact(database, (table, put(item)), (table, put(thread("EC2", "b"))))
        await table.send(action.position, Release(b"held"))
        found = await scrape(database)
    assert found["transaction_conflict"] == {(("table", "Thread"),): 4}


async def test_an_index_that_has_caught_up_has_no_lag():
    async with running_database() as database:
        await database.ask(CreateTable(with_index()))
        table = database.table("Thread")
        await table.write(put(thread("EC2", "a", posts=1)))
        while index_lag_records(table, table.definition.indexes[0]):
            await asyncio.sleep(0)
        found = await scrape(database)
    assert found["index_lag_records"] == {OF_INDEX: 0}
    assert found["index_lag_seconds"] == {OF_INDEX: 0}
    # The index was created with the table, so it has no backfill.
    assert found["online_index_percentage_progress"] == {}


async def test_lag_is_the_number_and_the_age_of_the_changes_not_in_an_index():
    async with running_database() as database:
        await database.ask(CreateTable(with_index()))
        table = database.table("Thread")
        actors = table.followers.indexes.get(1)
        assert actors is not None
        # Stop the followers, as if the index accepted no writes.
        for maintainer in actors._maintainers.values():
            await actors._supervisor.stop(maintainer)
        for number in range(20):
            await table.write(put(thread(f"f{number}", "a", posts=number)))
        records = [
            record
            for feed in await table.followers.feeds()
            for record in await feed.read(0, max_records=99, max_bytes=99_999)
        ]
        assert len(records) == 20
        assert len({record.sequence_number.partition_number for record in records}) > 1
        now = database.clock.now_epoch_seconds()
        found = await scrape(database)
        later = database.clock.now_epoch_seconds()
    assert found["index_lag_records"] == {OF_INDEX: 20}
    oldest = min(record.commit_time_us for record in records) / 1e6
    assert now - oldest <= found["index_lag_seconds"][OF_INDEX] <= later - oldest


async def test_the_progress_of_an_index_in_its_first_phase_is_zero():
    async with running_database(index_allocation_seconds=3600) as database:
        await database.ask(CreateTable(table_definition()))
        await database.table("Thread").write(put(thread("EC2", "a", posts=1)))
        table = await add_index(database)
        assert table.definition.global_indexes[0].backfilling is False
        found = await scrape(database)
    assert found["online_index_percentage_progress"] == {OF_INDEX: 0}
    assert found["online_index_consumed_write_capacity_units"] == {}
    assert found["index_lag_records"] == {}


async def test_the_progress_of_a_backfill_rises_to_its_end():
    async with running_database() as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        for number in range(600):
            await table.write(put(thread(f"f{number}", "s", posts=number)))
        await add_index(database)
        progress = set()
        while table.definition.global_indexes[0].status != "ACTIVE":
            # Read the figures without a scrape, because the backfill might end during a scrape.
            (found_index,) = (await table_figures(database)).indexes
            progress.add(found_index.percentage_progress or 0.0)
            actors = table.followers.indexes.get(1)
            # No follower has started yet, so there is no lag.
            if actors is None or not actors.is_followed:
                assert found_index.lag_seconds is None
            await asyncio.sleep(0)
        await until_active(table)
        found = await scrape(database)
    assert any(0 < percentage < 100 for percentage in progress)
    assert found["online_index_percentage_progress"] == {OF_INDEX: 100}
    assert found["online_index_consumed_write_capacity_units"] == {OF_INDEX: 600}
    assert found["online_index_throttle_events"] == {OF_INDEX: 0}
    assert found["index_lag_records"] == {OF_INDEX: 0}


async def test_a_backfill_takes_a_unit_for_each_kib_of_an_entry():
    async with running_database() as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await table.write(put({**thread("EC2", "a", posts=1), "text": {"S": "x" * 2100}}))
        await table.write(put({**thread("EC2", "b"), "text": {"S": "not in the index"}}))
        await table.write(put({**thread("EC2", "c"), "posts": {"S": "a violation"}}))
        await add_index(database)
        await until_active(table)
        found = await scrape(database)
    assert found["online_index_consumed_write_capacity_units"] == {OF_INDEX: 3}


async def test_a_backfill_that_waits_for_a_mailbox_counts_one_throttle_event_per_message(
    monkeypatch: pytest.MonkeyPatch,
):
    async with running_database(partitions_per_table=1) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await table.write(put(thread("EC2", "a", posts=1)))
        # The limit applies to new partitions, which are those of the index.
        monkeypatch.setattr(partitions, "MAILBOX_MESSAGES", 0)
        await add_index(database)
        while (
            actors := table.followers.indexes.get(1)
        ) is None or not actors.backfill_throttle_events:
            await asyncio.sleep(0)
        (partition,) = actors.partitions.values()
        # Repeated notifications of space in the mailbox count as one event.
        for _ in range(3):
            partition._mailbox.drain()
            await asyncio.sleep(0)
        partition._mailbox._capacity = 10
        partition._mailbox.drain()
        await until_active(table)
        found = await scrape(database)
    assert found["online_index_throttle_events"] == {OF_INDEX: 1}


def request_of(operation: str, body: bytes) -> Request:
    return Request(
        TARGET_PREFIX + operation, JSON_1_0, AUTHORIZATION, "", "localhost", "", "", body
    )


async def test_writes_refused_by_a_full_mailbox_are_counted():
    async with running_database(partitions_per_table=1) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await table.write(put(thread("EC2", "a")))
        (partition,) = table.partitions.values()
        partition._mailbox._capacity = 0
        with pytest.raises(MailboxFull):
            partition.ask(None)
        with pytest.raises(ThrottlingException):
            await table.write(put(thread("EC2", "b")))
        protocol = Protocol(database, OPERATIONS.values())
        item = b'{"forum":{"S":"EC2"},"subject":{"S":"c"}}'
        arn = b"arn:aws:dynamodb:us-east-1:000000000000:table/Thread"
        for name in (b"Thread", arn):
            answer = await protocol.answer(
                request_of("PutItem", b'{"TableName":"%s","Item":%s}' % (name, item))
            )
            assert b"ThrottlingException" in answer.body
        batch = b'{"RequestItems":{"Thread":[{"PutRequest":{"Item":%s}}]}}' % item
        answer = await protocol.answer(request_of("BatchWriteItem", batch))
        assert b"ThrottlingException" in answer.body
        found = await scrape(database, protocol.figures)
    assert found["throttled_requests"] == {
        (("operation", "PutItem"), ("table", "Thread")): 2,
        (("operation", "BatchWriteItem"), ("table", "Thread")): 1,
    }
    assert found["write_throttle_events"] == {OF_FULL_MAILBOXES: 4}


async def test_openmetrics_is_sent_to_clients_that_accept_it():
    async with running_database() as database:
        body, content_type = await exposition(
            database,
            figures_of(RequestFigures()),
            "application/openmetrics-text; version=1.0.0",
        )
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")


async def test_time_to_live_has_metrics_of_deletions_and_delay():
    clock = SetClock(1_700_000_000)
    settings = TimeToLiveSettings(delay_seconds=60.0, change_interval_seconds=0.0)
    of_table = (("table", "Thread"),)
    async with running_database(clock=clock, time_to_live=settings) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        found = await scrape(database)
        assert found["time_to_live_deleted_item_count"] == {}
        assert found["time_to_live_lag_seconds"] == {}

        await switch(database, "Thread", "at", enabled=True)
        await until_status(table, "ENABLED")
        await table.write(put(thread("a", "b", at=1_700_000_010)))
        await until_listed(table)
        clock.step(50)
        found = await scrape(database)
        assert found["time_to_live_deleted_item_count"] == {of_table: 0}
        assert found["time_to_live_lag_seconds"] == {of_table: 40}

        clock.step(20)
        await until_items(database, "Thread", 0)
        await switch(database, "Thread", "at", enabled=False)
        found = await scrape(database)
        assert found["time_to_live_deleted_item_count"] == {of_table: 1}
        assert found["time_to_live_lag_seconds"] == {}


async def test_partitions_and_their_splits_are_counted():
    async with running_database(partitions_per_table=2) as database:
        await database.ask(CreateTable(with_index()))
        await database.ask(SplitPartition("Thread", 1, b"\x10"))
        await database.ask(SplitPartition("Thread", 6, b"\x20"))
        await database.ask(SplitPartition("Thread", 3, b"\x30", index_id=1))
        found = await scrape(database)
        of_table = (("index", ""), ("table", "Thread"))
        assert found["partitions"] == {of_table: 4, OF_INDEX: 3}
        assert found["partition_splits"] == {(("reason", "asked for"),): 3}
