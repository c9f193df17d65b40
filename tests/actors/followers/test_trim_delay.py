"""A blocked sink delays the trimming of logs up to its contract's limit, and then gets a gap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest

from dynactor.actors.database.database import Database
from dynactor.actors.feeds.change_feed import ChangeFeed, RecentChanges
from dynactor.actors.followers.follower_group import FollowerGroup
from dynactor.actors.followers.partition_follower import PartitionFollower
from dynactor.actors.followers.sink import ChangeOrder, Contract, Delivery, Gap, MessageSink
from dynactor.actors.followers.stored_checkpoint import first_checkpoints
from dynactor.actors.runtime.supervisor import Supervisor
from dynactor.actors.table.followers import Subscription
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.table import Table
from dynactor.storage import key_layout
from dynactor.storage.store import Group, Store
from dynactor.storage.subscriber_names import index_subscriber
from dynactor.streams.change_record import ChangeRecord
from tests.support.databases.databases import running_database, table_definition
from tests.support.databases.expiry import rows_of
from tests.support.databases.published import relay_settings, write_threads
from tests.support.databases.replays import SNAPSHOT, replay, wait_state
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.kafka.fake_broker import FakeBroker
from tests.support.stores.stepped_store import soon
from tests.support.stores.store import memory_store

LIMIT_BYTES = 5_000
# An id that no index of a table has.
SUBSCRIBER_ID = 0x7000_0000


class Gate(MessageSink):
    """A sink that accepts records while its gate is open, and may miss changes."""

    contract = Contract(ChangeOrder.ITEM, Gap.MISSING, trim_delay_bytes=LIMIT_BYTES)

    def __init__(self, gate: asyncio.Event) -> None:
        self.counters: list[int] = []
        self._gate = gate

    def send(self, records: list[ChangeRecord]) -> Sequence[Awaitable[object]]:
        self.counters += [record.sequence_number.counter for record in records]
        return [self._gate.wait()]


class GatedTable:
    """The follower that sends the changes of a table's only partition to a gated sink."""

    subscription = Subscription.ALL
    contract = Gate.contract

    def __init__(self, supervisor: Supervisor, subscriber_id: bytes) -> None:
        self.gate = asyncio.Event()
        self.sink = Gate(self.gate)
        self.followers = FollowerGroup("gate", subscriber_id, lambda _: self.sink, supervisor)

    def split(self, parent: int, children: Sequence[ChangeFeed]) -> None:
        self.followers.split(parent, children)

    async def close(self) -> None:
        self.gate.set()
        await self.followers.close()


@asynccontextmanager
async def gated(store: Store) -> AsyncIterator[tuple[Database, Table, GatedTable]]:
    relays = relay_settings()
    settings = {"relays": relays, "partitions_per_table": 1, "keep_streams_seconds": 600}
    async with running_database(store, broker=FakeBroker(), **settings) as database:
        is_new = not database.table_names()
        if is_new:
            await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        # The replay makes the table record changes, and stores a checkpoint after each round.
        started = await replay(database, SNAPSHOT, follows=True)
        await wait_state(database, started.replay_id, "FOLLOWING")
        subscriber = index_subscriber(table.definition.table_id, SUBSCRIBER_ID)
        feeds = await table.followers.feeds()
        if is_new:
            rows = first_checkpoints(subscriber, {feed.partition_number: 0 for feed in feeds})
            await (await store.commit([Group(b"\x7f", None, b"", puts=rows)]))
        async with anyio.create_task_group() as tasks:
            gated_table = GatedTable(Supervisor(tasks), subscriber)
            table.followers.attach(subscriber, gated_table)
            gated_table.followers.follow(feeds)
            try:
                yield database, table, gated_table
            finally:
                await table.followers.detach(subscriber)


async def first_counter(store: Store, table: Table) -> int | None:
    """The counter of the first change in the log; None if the log is empty."""
    (number,) = [partition.number for partition in table.record.partitions]
    rows = [row async for row in rows_of(store, *key_layout.change_range(number))]
    return key_layout.change_number(rows[0].key)[1] if rows else None


async def test_a_log_is_trimmed_although_a_sink_that_may_miss_changes_is_blocked() -> None:
    async with memory_store() as store, gated(store) as (database, table, gated_table):
        await write_threads(table, range(5))
        await soon(lambda: bool(gated_table.sink.counters))
        await database.actor.keep_streams()
        assert await first_counter(store, table) == 1

        await write_threads(table, range(5, 200))
        async with asyncio.timeout(HANG_SECONDS):
            while min((await table.followers.floors()).values()) < 200:
                await asyncio.sleep(0)
        await database.actor.keep_streams()
        # PostgreSQL deletes the records a moment later.
        async with asyncio.timeout(10):
            while await first_counter(store, table) is not None:
                await asyncio.sleep(0)

        gated_table.gate.set()
        assert await gated_table.followers.wait_caught_up()
        # The sink still gets trimmed changes that are in memory.
        assert gated_table.sink.counters[-1] == 200


async def test_a_sink_continues_after_the_trimmed_records() -> None:
    async with memory_store() as store:
        async with gated(store) as (database, table, gated_table):
            await write_threads(table, range(200))
            await soon(lambda: bool(gated_table.sink.counters))
            async with asyncio.timeout(HANG_SECONDS):
                while min((await table.followers.floors()).values()) < 200:
                    await asyncio.sleep(0)
            await database.actor.keep_streams()
            # The gate is closed, so the sink has only the first batch of changes.
            taken = len(gated_table.sink.counters)
        async with gated(store) as (_, table, gated_table):
            gated_table.gate.set()
            await write_threads(table, range(200, 210))
            assert await gated_table.followers.wait_caught_up()
            assert gated_table.sink.counters == list(range(201, 211))
            assert taken < 200


class Needing(Gate):
    """A sink whose contract says both that it must not miss changes and that its log may be
    trimmed.
    """

    contract = Contract(ChangeOrder.ITEM, Gap.REBUILD, trim_delay_bytes=LIMIT_BYTES)


class Promising(Gate):
    """A sink of messages whose contract says that each message is sent once."""

    contract = Contract(ChangeOrder.ITEM, Gap.REBUILD, None, Delivery.WITH_CHECKPOINT)


@pytest.mark.parametrize("kind", [Needing, Promising])
async def test_a_contract_that_no_follower_implements_is_refused(kind: type[Gate]) -> None:
    async with memory_store() as store:
        feed = ChangeFeed(1, store, RecentChanges())
        with pytest.raises(AssertionError):
            PartitionFollower("gate", b"subscriber", feed, kind(asyncio.Event()))
