"""Changes that arrive while a publisher reads the log or stores its position."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from dynactor.actors.derived.kafka.kafka_environment import KafkaEnvironment
from dynactor.actors.derived.kafka.kafka_sink import KafkaSink, relay_contract
from dynactor.actors.derived.kafka.replay import Replay, ReplayPlace
from dynactor.actors.derived.kafka.replay_progress import ReplayStart
from dynactor.actors.derived.kafka.shared_publisher import SharedPublisher
from dynactor.actors.feeds.change_feed import ChangeFeed
from dynactor.actors.followers.checkpoint import Checkpoint
from dynactor.actors.followers.rounds import RoundMaker
from dynactor.actors.followers.table_progress import TableProgress
from dynactor.actors.followers.table_snapshot import TableSnapshot
from dynactor.actors.phases.destination_messages import EnableDestination
from dynactor.actors.table.messages import CreateTable
from dynactor.storage import key_layout
from dynactor.storage.store import Group
from dynactor.storage.subscriber_names import destination_subscriber
from dynactor.streams.kafka.message import KafkaSource
from tests.support.databases.databases import SetClock, put, table_definition, thread
from tests.support.databases.published import TOPIC, relay_settings
from tests.support.kafka.fake_broker import FakeBroker
from tests.support.stores.stepped_store import (
    SteppedStore,
    commits_of,
    commits_that_put,
    loads_of,
    pages_of,
    soon,
    stepped_database,
    turns,
)
from tests.support.stores.store import memory_store
from tests.support.streams.partition_log import PartitionLog

SOURCE = KafkaSource(
    region="eu-west-1",
    account_id="000000000000",
    table_name="Thread",
    key_schema=table_definition().key_schema,
    prefix="dynactor",
    version="0.1.0",
)
SUBSCRIBER = b"subscriber"
LOG = 1
# The table had no followers before, so these counters have no records.
UNRECORDED = 5


@asynccontextmanager
async def unrecorded_log() -> AsyncIterator[tuple[SteppedStore, PartitionLog]]:
    async with memory_store() as inner:
        store = SteppedStore(inner)
        try:
            yield store, PartitionLog(store, LOG, begins_at=UNRECORDED)
        finally:
            store.open_all()


def relay_logs(store: SteppedStore, log: PartitionLog) -> TableProgress:
    return TableProgress([log.feed], store, subscriber_id=SUBSCRIBER, reader="relay")


async def test_a_relay_publishes_the_last_change_of_a_log_that_ends_while_it_reads() -> None:
    async with unrecorded_log() as (store, log), asyncio.TaskGroup() as tasks:
        settings = relay_settings()
        sink = KafkaSink(SOURCE, settings, relay_contract(settings), partition_count=1)
        rounds = RoundMaker(relay_logs(store, log), sink)
        reading = store.gate_behind(pages_of(*key_layout.change_range(LOG)))
        first = tasks.create_task(rounds.next(1 << 20))
        await reading.reached()
        await log.write(UNRECORDED + 1)
        log.feed.end()
        reading.open()
        taken = [each for each in (await first, await rounds.next(1 << 20)) if each]
        assert [each.records for each in taken] == [1]


async def test_a_relay_stores_its_checkpoint_although_the_store_has_another_one() -> None:
    async with unrecorded_log() as (store, log):
        logs = relay_logs(store, log)
        await logs.load()
        key = key_layout.checkpoint(SUBSCRIBER, LOG)
        # Store an earlier checkpoint, as if the store was reopened after it lost a commit.
        await (await store.commit([Group(key, None, Checkpoint(1, 10).encode())]))
        logs.passed({LOG: Checkpoint(3, 30)}, 3)
        await logs.try_store()
        await logs.try_store()
        assert await store.latest.load([key]) == [Checkpoint(3, 30).encode()]


class Replaying:
    """A replay of one log from its first counter, which continues with new changes."""

    def __init__(self, store: SteppedStore, feed: ChangeFeed) -> None:
        self.broker = FakeBroker()
        place = ReplayPlace(
            replay_id="replay",
            subscriber=SUBSCRIBER,
            source=SOURCE,
            topic=TOPIC,
            start=ReplayStart("beginning"),
            follows=True,
            is_whole=True,
            items=0,
        )
        self.replay = Replay(
            place,
            [feed],
            store,
            KafkaEnvironment(
                self.broker,
                SharedPublisher(self.broker),
                relay_settings(),
                SetClock(),
                set(),
                Random(1),
            ),
            ended=lambda: None,
        )


@asynccontextmanager
async def replaying() -> AsyncIterator[tuple[SteppedStore, PartitionLog, Replaying]]:
    async with unrecorded_log() as (store, log), asyncio.TaskGroup() as tasks:
        it = Replaying(store, log.feed)
        reading = store.gate_behind(pages_of(*key_layout.change_range(LOG)))
        tasks.create_task(it.replay.run())
        await reading.reached()
        try:
            yield store, log, it
        finally:
            store.open_all()
            it.replay.mailbox.close()


async def test_a_replay_publishes_the_last_change_of_a_log_that_ends_while_it_reads() -> None:
    async with replaying() as (store, log, it):
        await log.write(UNRECORDED + 1)
        log.feed.end()
        store.open_all()
        await soon(lambda: it.replay.progress.missing_changes > 0)
        assert len(it.broker.messages(TOPIC)) == 1


async def test_a_replay_publishes_a_change_that_is_recorded_while_it_reads() -> None:
    async with replaying() as (store, log, it):
        await log.write(UNRECORDED + 1)
        store.open_all()
        await soon(lambda: bool(it.broker.messages(TOPIC)))
        assert len(it.broker.messages(TOPIC)) == 1


@pytest.mark.embedded_store("a page of PostgreSQL shows the state at the moment of its read")
async def test_a_snapshot_has_the_positions_of_the_logs_at_its_reads() -> None:
    async with stepped_database(partitions_per_table=1) as (store, database):
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await table.write(put(thread("EC2", "shown")))
        [number] = table.partitions.map.numbers
        taking = store.gate_behind(loads_of(key_layout.table_record("Thread")))
        taken = asyncio.create_task(TableSnapshot.take(store, "Thread", {number}))
        await taking.reached()
        await table.write(put(thread("EC2", "behind")))
        taking.open()
        snapshot = await taken
        assert sum([len(page) async for page in snapshot.pages()]) == 1
        assert snapshot.positions.by_number[number].counter == 1


async def test_a_destination_is_active_once_the_positions_of_its_snapshot_are_stored() -> None:
    broker = FakeBroker()
    settings = {"partitions_per_table": 1, "relays": relay_settings(snapshot="initial")}
    async with stepped_database(broker=broker, **settings) as (store, database):
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await table.write(put(thread("EC2", "a")))
        with broker.silent():
            await database.ask(EnableDestination("Thread", TOPIC))
            # The snapshot includes this change, so the relay continues after it.
            await table.write(put(thread("EC2", "b")))
            [number] = table.partitions.map.numbers
            [destination] = table.definition.destinations
            subscriber = destination_subscriber(
                table.definition.table_id, destination.destination_id
            )
            checkpoint = store.gate_before(commits_of(key_layout.checkpoint(subscriber, number)))
            active = store.gate_before(commits_that_put(key_layout.table_record("Thread")))
        await checkpoint.reached()
        await turns()
        assert not active.is_reached

        checkpoint.open()
        await active.reached()


class SlowPublisher:
    """A publisher that closes slowly."""

    def __init__(self) -> None:
        self.closing = asyncio.Event()
        self.is_open = True

    async def close(self) -> None:
        await self.closing.wait()
        self.is_open = False


class SlowBroker(FakeBroker):
    """A broker whose publishers close slowly."""

    def __init__(self) -> None:
        super().__init__()
        self.publishers: list[SlowPublisher] = []

    async def open_publisher(self, transactional_id: str | None = None) -> SlowPublisher:
        del transactional_id
        self.publishers.append(SlowPublisher())
        return self.publishers[-1]


async def test_a_shared_publisher_is_opened_only_when_the_previous_one_is_closed() -> None:
    broker = SlowBroker()
    shared = SharedPublisher(broker)
    async with asyncio.TaskGroup() as tasks:
        failed = await shared.take()
        tasks.create_task(shared.discard(failed))
        next_one = tasks.create_task(shared.take())
        await turns()
        opened = len(broker.publishers)
        broker.publishers[0].closing.set()
        await next_one
    assert opened == 1
    assert [each.is_open for each in broker.publishers] == [False, True]
