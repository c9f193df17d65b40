"""Recovery, publishing to Kafka and insights at the home of a table that moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

import pytest

from dynactor.actors.database.database import Database
from dynactor.actors.derived.kafka.relay_settings import Delivery, RelaySettings
from dynactor.actors.phases.contributor_insights import UpdateContributorInsights
from dynactor.actors.phases.table_homes import TableHomes
from dynactor.actors.runtime.clock import SystemClock
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.table import Table
from dynactor.model.errors import ValidationException
from dynactor.model.values.item import Item
from dynactor.storage.store import Store, TakenOver
from tests.support.databases.databases import put, table_definition, thread
from tests.support.databases.homes import give, give_back, sharing, take_ended
from tests.support.databases.published import (
    TOPIC,
    in_order,
    numbers_by_item,
    published_table,
    relay_of,
    relay_settings,
    write_threads,
)
from tests.support.databases.recovered import (
    NAME,
    History,
    items_of,
    record_times,
    recoverable_table,
    restore_to,
    trim,
    wait_active,
)
from tests.support.databases.replays import SNAPSHOT, replay
from tests.support.kafka.fake_broker import FakeBroker
from tests.support.servers.in_process import InProcessClient
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

_NOW: Final = 1_795_175_136.489
_DAY_SECONDS: Final = 24 * 60 * 60
# The clocks of two nodes may differ by this time.
_APART_SECONDS: Final = 1.0
_MOVES: Final = 6
_STEPS_BETWEEN: Final = 8


class NodeClock(SystemClock):
    """The clock of a node, which only the test advances."""

    def __init__(self, epoch_seconds: float = _NOW) -> None:
        super().__init__()
        self._now = epoch_seconds

    def now_epoch_seconds(self) -> float:
        return self._now

    def step(self, seconds: float) -> None:
        self._now += seconds
        self._sleepers.look()


# -- point-in-time recovery -------------------------------------------------------------------


async def past_items(database: Database, epoch_seconds: float) -> dict[str, Item]:
    """The items of the table at a time, by key."""
    time = datetime.fromtimestamp(epoch_seconds, tz=UTC)
    header = time.isoformat(timespec="microseconds").replace("+00:00", "Z")
    status, answer = await InProcessClient(database)(
        "Scan", {"TableName": NAME}, {"x-dynactor-as-of": header}
    )
    assert status == 200, answer
    return {f"{item['forum']} {item['subject']}": item for item in answer["Items"]}


async def take_back(leader: Database, other: Database) -> None:
    await give_back(other)
    await take_ended(leader)


async def test_a_table_that_moves_is_read_and_restored_as_it_was():
    clock = NodeClock()
    async with memory_store() as store, sharing(store, clocks=(clock, clock)) as (leader, other):
        history = History(1, clock)
        await history.begin(leader)
        for number in range(_MOVES):
            at_leader = number % 2 == 0
            home = leader if at_leader else other
            await history.run(home, _STEPS_BETWEEN)
            time = history.time(home)
            assert await past_items(home, time) == history.state_at(time)
            if at_leader:
                while NAME not in leader.part(TableHomes).movable():
                    await asyncio.sleep(0)
                await give(leader, other)
            else:
                await take_back(leader, other)
        time = history.time(leader)
        await restore_to(leader, time)
        restored = await wait_active(leader, "Restored")
        assert await items_of(store, restored) == history.state_at(time)


async def test_times_of_changes_never_go_back_if_the_clock_of_the_next_home_is_behind():
    clocks = NodeClock(), NodeClock(_NOW - _APART_SECONDS)
    async with memory_store() as store, sharing(store, clocks=clocks) as (leader, other):
        table = await recoverable_table(leader)
        await table.write(put(thread("forum", "subject", n=1)))
        await give(leader, other)
        table = other.table(NAME)
        for number in (2, 3):
            clocks[1].step(_APART_SECONDS * 0.6)
            await table.write(put(thread("forum", "subject", n=number)))
        first, second, third = await record_times(store, table)
        assert (first, second) == (round(_NOW * 1e6), first)
        assert third == pytest.approx((_NOW + _APART_SECONDS * 0.2) * 1e6)


async def test_a_home_keeps_changes_until_they_are_older_than_the_window():
    clock = NodeClock()
    async with memory_store() as store, sharing(store, clocks=(clock, clock)) as (leader, other):
        table = await recoverable_table(leader, days=1)
        await table.write(put(thread("forum", "subject", n=1)))
        await give(leader, other)
        table = other.table(NAME)
        clock.step(_DAY_SECONDS / 2)
        await table.write(put(thread("forum", "subject", n=2)))
        await trim(other)
        assert len(await record_times(store, table)) == 2
        clock.step(_DAY_SECONDS * 0.6)
        await trim(other)
        assert len(await record_times(store, table)) == 1


# -- Kafka ------------------------------------------------------------------------------------


@pytest.fixture(params=["at-least-once", "exactly-once"])
def relays(request: pytest.FixtureRequest) -> RelaySettings:
    """The settings of nodes with each delivery."""
    delivery: Delivery = request.param
    return relay_settings(delivery=delivery, fences_former_homes=True)


@asynccontextmanager
async def publishing(
    store: Store, other_store: Store, broker: FakeBroker, relays: RelaySettings
) -> AsyncIterator[tuple[Database, Database, Table]]:
    """A leader and a share with a published table, which is at the share."""
    async with sharing(store, other_store, broker=broker, relays=relays) as (leader, other):
        await published_table(leader)
        # It stays at the leader until its destination is ACTIVE.
        while NAME not in leader.part(TableHomes).movable():
            await asyncio.sleep(0)
        await give(leader, other)
        yield leader, other, other.table(NAME)


def published(broker: FakeBroker) -> list[int]:
    """The numbers of the puts of one item, as they were published."""
    (numbers,) = numbers_by_item(broker.messages(TOPIC)).values()
    return numbers


async def test_changes_of_a_table_that_moves_are_published_once_and_in_order(relays):
    broker = FakeBroker()
    async with memory_store() as store:
        async with publishing(store, store, broker, relays) as (leader, other, table):
            await write_threads(table, range(20))
            await take_back(leader, other)
            await write_threads(leader.table(NAME), range(20, 40))
            await give(leader, other)
            await write_threads(other.table(NAME), range(40, 60))
            await broker.wait_messages(TOPIC, 60)
            assert leader.tables == []
        assert sorted(numbers_by_item(broker.messages(TOPIC)).values()) == in_order(60)


async def test_a_former_home_that_resumes_publishes_nothing(relays):
    broker = FakeBroker()
    async with memory_store() as store:
        fenced = FaultyStore(store)
        async with publishing(store, fenced, broker, relays) as (leader, other, table):
            await write_threads(table, range(10), of_items=1)
            await broker.wait_messages(TOPIC, 10)
            former = relay_of(other, table)
            # This home is suspended while it publishes a change.
            broker.stuck = set(broker.open_publishers)
            await write_threads(table, range(10, 11), of_items=1)
            while not broker.waiting:
                await asyncio.sleep(0)
            error = TakenOver("another node has taken over the tables")
            fenced.refuse_reads(error)
            fenced.refuse_commits(error)
            await take_ended(leader)
            await write_threads(leader.table(NAME), range(11, 20), of_items=1)
            while published(broker)[-1] < 19:
                await asyncio.sleep(0)
            broker.resumed.set()
            while former.lag_records and not former.mailbox.closed:
                await asyncio.sleep(0)
            await write_threads(leader.table(NAME), range(20, 30), of_items=1)
            while published(broker)[-1] < 29:
                await asyncio.sleep(0)
            later = published(broker)[10:]
            # With at-least-once delivery, the next home continues from the stored checkpoint.
            assert later == list(range(later[0], 30))
            fenced.allow_reads()
            fenced.allow_commits()


async def test_no_replay_writes_to_the_topic_of_a_table_with_another_home():
    relays, broker = relay_settings(fences_former_homes=True), FakeBroker()
    async with memory_store() as store, publishing(store, store, broker, relays) as databases:
        leader, _, _ = databases
        await leader.ask(CreateTable(table_definition("Other")))
        with pytest.raises(ValidationException, match="changes of table Thread are published"):
            await replay(leader, SNAPSHOT, TOPIC, name="Other")


# -- Contributor Insights ---------------------------------------------------------------------


async def test_the_leader_lists_the_contributor_insights_of_tables_with_other_homes():
    async with memory_store() as store, sharing(store) as (leader, other):
        await leader.ask(CreateTable(table_definition()))
        await leader.ask(UpdateContributorInsights(NAME, None, enabled=True))
        await give(leader, other)
        call = InProcessClient(leader)
        for request in ({}, {"TableName": NAME}):
            status, answer = await call("ListContributorInsights", request)
            assert status == 200, answer
            found = [each["TableName"] for each in answer["ContributorInsightsSummaries"]]
            assert found == [NAME]
