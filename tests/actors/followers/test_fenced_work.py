"""An actor whose rows another owner has taken over stops at its first fenced commit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
from structlog.testing import capture_logs

from dynactor.actors.backups.messages import CreateTableBackup
from dynactor.actors.database.database import Database
from dynactor.actors.derived.expiry.time_to_live_settings import TimeToLiveSettings
from dynactor.actors.phases.replays import Replays
from dynactor.actors.table.messages import CreateTable, UpdateTable
from dynactor.actors.table.table import Table
from dynactor.model.errors import InternalServerError
from dynactor.model.keys.key import KeyAttribute
from dynactor.model.tables.global_index_rules import NewGlobalIndex
from dynactor.model.tables.schema_rules import KeyElement
from dynactor.model.tables.table_edits import TableEdit
from dynactor.model.values.item import Item
from dynactor.storage import key_layout
from dynactor.storage.subscriber_names import index_subscriber
from tests.support.databases.backed_up import back_up, begin_restore, filled_table, wait_followed
from tests.support.databases.databases import (
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.expiry import switch, until_status
from tests.support.databases.published import (
    TOPIC,
    published_table,
    relay_of,
    relay_settings,
    write_threads,
)
from tests.support.databases.replays import COPY, SNAPSHOT, replay, wait_state
from tests.support.databases.transacting import actions, transact
from tests.support.kafka.fake_broker import FakeBroker
from tests.support.stores.claimed_store import ClaimedStore
from tests.support.stores.stepped_store import soon
from tests.support.stores.store import memory_store

BY_POSTS = TableEdit(
    index_creates=(NewGlobalIndex("by_posts", (KeyElement("posts", "HASH"),), "ALL"),),
    attribute_definitions=(KeyAttribute("posts", "N"),),
)
ITEM = thread("EC2", "a", posts=1)
_OTHER_OWNER = "the data have another owner now, try again"


class Claimed(NamedTuple):
    """A database whose rows another owner can claim, and the database's log events."""

    store: ClaimedStore
    database: Database
    logs: list[MutableMapping[str, Any]]

    @property
    def fenced(self) -> list[str]:
        """The names of the actors that logged that they were fenced, in order."""
        return [each["actor"] for each in self.logs if each["event"] == "actor_fenced"]

    async def wait_fenced(self, name: str) -> None:
        await soon(lambda: any(name in actor for actor in self.fenced))

    async def table(self) -> Table:
        """Create a table with an item."""
        await self.database.ask(CreateTable(table_definition()))
        table = self.database.table("Thread")
        await table.write(put(ITEM))
        return table


@asynccontextmanager
async def claimed(**settings: Any) -> AsyncIterator[Claimed]:
    settings = {"partitions_per_table": 1, "index_allocation_seconds": 0.0} | settings
    async with memory_store() as inner:
        store = ClaimedStore(inner)
        with capture_logs() as logs:
            async with running_database(store, **settings) as database:
                yield Claimed(store, database, logs)
    assert not any(each["event"] == "actor_crashed" for each in logs)


async def test_the_backfill_of_an_index_stops_when_it_is_fenced() -> None:
    async with claimed() as it:
        table = await it.table()
        cursor = key_layout.backfill_cursor(table.definition.table_id, 1)
        await it.store.take_over(lambda head: head == cursor)
        await it.database.ask(UpdateTable("Thread", BY_POSTS))
        await it.wait_fenced("backfill of index by_posts")
        assert it.store.refused == 1
        assert table.followers.indexes[1].is_stuck


async def test_the_follower_of_an_index_stops_when_it_is_fenced() -> None:
    async with claimed() as it:
        table = await it.table()
        await it.database.ask(UpdateTable("Thread", BY_POSTS))
        await soon(lambda: table.definition.global_indexes[0].status == "ACTIVE")
        await table.write(put(thread("EC2", "b", posts=2)))
        await wait_followed(table)
        [number] = table.partitions.map.numbers
        subscriber = index_subscriber(table.definition.table_id, 1)
        checkpoint = key_layout.checkpoint(subscriber, number)
        await it.store.take_over(lambda head: head == checkpoint)
        # A follower stores its checkpoint when it stops.
        await table.followers.stop_index(1)
        assert it.fenced == [f"maintainer of index by_posts of partition {number}"]
        assert it.store.refused == 1


async def test_a_partition_of_an_index_and_its_writer_stop_when_they_are_fenced() -> None:
    async with claimed() as it:
        table = await it.table()
        await it.database.ask(UpdateTable("Thread", BY_POSTS))
        await soon(lambda: table.definition.global_indexes[0].status == "ACTIVE")
        [number] = table.followers.indexes[1].partitions.map.numbers
        head = key_layout.partition_head(number)
        await it.store.take_over(lambda key: key == head)
        await table.write(put(thread("EC2", "b", posts=2)))
        await it.wait_fenced("maintainer of index by_posts")
        assert len(it.fenced) == 2
        assert it.store.refused == 1


async def test_a_partition_of_a_table_stops_when_it_is_fenced() -> None:
    async with claimed() as it:
        table = await it.table()
        [number] = table.partitions.map.numbers
        head = key_layout.partition_head(number)
        await it.store.take_over(lambda key: key == head)
        outcomes = await asyncio.gather(
            table.write(put(ITEM)), table.write(put(ITEM)), return_exceptions=True
        )
        assert [str(each) for each in outcomes] == [
            "Nothing was written: the data have another owner now"
        ] * 2
        assert it.store.refused == 1
        with pytest.raises(InternalServerError):
            await table.write(put(ITEM))


@pytest.mark.parametrize("refused", ["the cursor", "the items"])
async def test_the_filling_of_a_restored_table_stops_when_it_is_fenced(refused: str) -> None:
    async with claimed() as it:
        await filled_table(it.database, 20, definition=table_definition())
        backup = await back_up(it.database)
        others = set(it.database.table("Thread").partitions.map.numbers)
        heads = {key_layout.partition_head(number) for number in others}
        prefix = key_layout.partition_head(0)[:1]

        def is_guarded(head: bytes) -> bool:
            if refused == "the cursor":
                return head[:1] == key_layout.filling_cursor(0)[:1]
            return head[:1] == prefix and head not in heads

        await it.store.take_over(is_guarded)
        await begin_restore(it.database, backup)
        await it.wait_fenced("filling of Restored")
        assert it.store.refused == 1


async def test_the_copy_of_a_backup_stops_when_it_is_fenced() -> None:
    async with claimed() as it:
        await it.table()
        prefix = key_layout.filling_cursor(0)[:1]
        await it.store.take_over(lambda head: head[:1] == prefix)
        await it.database.ask(CreateTableBackup("Thread", "nightly"))
        await soon(lambda: len(it.fenced) == 1)
        assert it.store.refused == 1


async def test_a_relay_stops_when_it_is_fenced() -> None:
    broker = FakeBroker()
    async with claimed(broker=broker, relays=relay_settings()) as it:
        table = await published_table(it.database)
        await write_threads(table, range(10))
        await broker.wait_messages(TOPIC, 10)
        relay = relay_of(it.database, table)
        await soon(lambda: relay.lag_records == 0)
        prefix = key_layout.checkpoint(b"", 0)[:1]
        await it.store.take_over(lambda head: head[:1] == prefix)
        # A relay stores its checkpoints when it stops.
        await table.close()
        assert it.fenced == [relay.name]
        assert it.store.refused == 1


async def test_a_replay_stops_when_it_is_fenced() -> None:
    broker = FakeBroker()
    async with claimed(broker=broker, relays=relay_settings()) as it:
        table = await it.table()
        started = await replay(it.database, SNAPSHOT, follows=True)
        await wait_state(it.database, started.replay_id, "FOLLOWING")
        prefix = key_layout.checkpoint(b"", 0)[:1]
        await it.store.take_over(lambda head: head[:1] == prefix)
        await write_threads(table, range(10))
        await it.wait_fenced(COPY)
        assert it.store.refused == 1
        assert it.database.part(Replays).find(started.replay_id).state == "FAILED"


async def test_a_sweeper_stops_when_it_is_fenced() -> None:
    clock = SetClock(1_000_000)
    settings = TimeToLiveSettings(delay_seconds=0.0, change_interval_seconds=0.0)
    async with claimed(clock=clock, time_to_live=settings) as it:
        table = await it.table()
        await table.write(put(ITEM | {"at": {"N": "1000010"}}))
        await switch(it.database, "Thread", "at", enabled=True)
        await until_status(table, "ENABLED")
        [number] = table.partitions.map.numbers
        head = key_layout.partition_head(number)
        await it.store.take_over(lambda key: key == head)
        clock.step(20)
        await it.wait_fenced("sweeper")
        assert it.store.refused == 1
        assert not any(each["event"] == "sweep_refused" for each in it.logs)


async def test_a_phase_of_the_database_stops_when_it_is_fenced() -> None:
    async with claimed() as it:
        await it.table()
        await it.store.claim()
        await it.database.ask(UpdateTable("Thread", BY_POSTS))
        # Without an await, because the index could become ACTIVE meanwhile.
        it.store.guard(lambda head: head == key_layout.CATALOG_WRITER)
        await soon(lambda: any(each["event"] == "phase_fenced" for each in it.logs))
        assert not any(each["event"] == "catalog_change_delayed" for each in it.logs)


def by_partition(table: Table) -> list[Item]:
    """An item for each partition of a table."""
    found = {}
    for number in range(60):
        item = thread(f"forum {number}", "a")
        ((_, action),) = actions((table, put(item)))
        found.setdefault(table.number_at(action.position), item)
    return list(found.values())


async def test_a_fenced_transaction_fails() -> None:
    async with claimed(partitions_per_table=4) as it:
        table = await it.table()
        items = by_partition(table)
        writes = [(table, put(item)) for item in items]
        await transact(it.database, *writes)
        heads = [key_layout.partition_head(number) for number in table.partitions.map.numbers]
        await it.store.take_over(lambda head: head in heads)
        with pytest.raises(InternalServerError, match=_OTHER_OWNER):
            await transact(it.database, *writes)
        assert it.store.refused == 1


async def test_a_fenced_transaction_fails_without_the_others_of_its_round() -> None:
    async with claimed(partitions_per_table=4) as it:
        table = await it.table()
        first, second, third, fourth = by_partition(table)
        both = [
            [(table, put(first)), (table, put(second))],
            [(table, put(third)), (table, put(fourth))],
        ]
        await asyncio.gather(*(transact(it.database, *writes) for writes in both))
        ((_, action),) = actions(both[0][0])
        head = key_layout.partition_head(table.number_at(action.position))
        await it.store.take_over(lambda key: key == head)
        refused, done = await asyncio.gather(
            *(transact(it.database, *writes) for writes in both), return_exceptions=True
        )
        assert isinstance(refused, InternalServerError)
        assert not isinstance(done, BaseException)
        # The commit was refused twice: in the round, and when the round was retried one by one.
        assert it.store.refused == 2
