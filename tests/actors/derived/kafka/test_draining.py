"""A disabled destination is drained: the changes recorded before are still published."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dynactor.actors.database.database import Database
from dynactor.actors.phases.destination_messages import DisableDestination
from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.table.table import Table
from dynactor.storage import key_layout
from dynactor.streams import change_log
from tests.support.databases.databases import running_database
from tests.support.databases.published import (
    TOPIC,
    published_table,
    relay_of,
    relay_settings,
    write_threads,
)
from tests.support.kafka.fake_broker import FakeBroker
from tests.support.stores.stepped_store import (
    Call,
    Page,
    SteppedStore,
    commits_that_put,
    pages_of,
    soon,
    turns,
)
from tests.support.stores.store import memory_store

RECORDS = 5
DISABLE = DisableDestination("Thread", TOPIC)


@asynccontextmanager
async def with_backlog(broker: FakeBroker) -> AsyncIterator[tuple[SteppedStore, Database, Table]]:
    """A published table whose changes are not in memory. At first the broker does not answer."""
    relays = relay_settings(draining_seconds=60.0)
    settings = {"partitions_per_table": 1, "relays": relays}
    async with memory_store() as inner:
        store = SteppedStore(inner)
        with broker.silent():
            async with running_database(store, broker=broker, **settings) as database:
                await write_threads(await published_table(database), range(RECORDS))
            async with running_database(store, broker=broker, **settings) as database:
                try:
                    yield store, database, database.table("Thread")
                finally:
                    store.open_all()


def is_of_log(call: Call) -> bool:
    """Select reads of the table's only log."""
    return pages_of(*change_log.range_after(1, 0))(call)


def is_first_of_log(call: Call) -> bool:
    """Select reads of the oldest unpublished record."""
    return is_of_log(call) and isinstance(call, Page) and call.max_rows == 1


def is_round_of_log(call: Call) -> bool:
    """Select reads of records to publish."""
    return is_of_log(call) and not is_first_of_log(call)


class Poison(Message[None], frozen=True):
    """A message that the database's actor does not know."""


def status(table: Table) -> str:
    [destination] = table.definition.destinations
    return destination.status


async def test_a_drain_ends_if_the_last_round_is_published_while_it_reads_the_log() -> None:
    broker = FakeBroker()
    async with with_backlog(broker) as (store, database, table):
        relay = relay_of(database, table)
        gate = store.gate_behind(is_first_of_log)
        async with asyncio.TaskGroup() as tasks:
            drained = tasks.create_task(relay.drain())
            await gate.reached()
            broker.answers.set()
            await soon(lambda: not relay.lag_records)
            gate.open()
            await turns()
            assert drained.done()


async def test_a_destination_disabled_while_it_reaches_its_topic_is_drained() -> None:
    broker = FakeBroker()
    async with with_backlog(broker) as (store, database, table):
        reading = store.gate_behind(is_of_log)
        storing = store.gate_before(commits_that_put(key_layout.table_record("Thread")))
        async with asyncio.TaskGroup() as tasks:
            disabled = tasks.create_task(database.ask(DISABLE))
            await storing.reached()
            broker.answers.set()
            # By now the relay has told the database's actor that it reached the topic.
            await soon(lambda: relay_of(database, table).state == "PUBLISHING")
            storing.open()
            await disabled
        await database.actor.keep_streams()
        assert status(table) == "DISABLING"

        reading.open()
        await soon(lambda: status(table) == "DISABLED")
        assert len(broker.messages(TOPIC)) == RECORDS


async def test_a_drain_continues_after_a_crash_of_the_databases_actor() -> None:
    broker = FakeBroker()
    async with with_backlog(broker) as (store, database, table):
        reading = store.gate_behind(is_round_of_log)
        broker.answers.set()
        await reading.reached()
        await database.ask(DISABLE)
        # After a crash the database's actor closes and reopens every table.
        database.actor.tell(Poison())
        await soon(lambda: database.table("Thread") is not table)
        await database.actor.keep_streams()
        reopened = database.table("Thread")
        assert status(reopened) == "DISABLING"

        reading.open()
        await soon(lambda: status(reopened) == "DISABLED")
        assert len(broker.messages(TOPIC)) == RECORDS
