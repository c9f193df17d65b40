"""The reset of a server that publishes changes to Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from dynactor.actors.database.database import Database
from dynactor.actors.derived.kafka.relay_settings import Delivery
from dynactor.actors.parts.database_settings import DatabaseSettings
from dynactor.actors.runtime.clock import SystemClock
from dynactor.api.hosting.database_host import Opening, hosting_database
from dynactor.streams.kafka.broker import Broker
from tests.support.databases.published import (
    TOPIC,
    published_table,
    relay_settings,
    write_threads,
)
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.kafka.fake_broker import FakeBroker
from tests.support.stores.store import memory_store

DELIVERIES = pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])


def opening(broker: Broker, delivery: Delivery) -> Opening:
    settings = DatabaseSettings(relays=relay_settings(delivery=delivery))
    return Opening(settings, SystemClock, broker)


async def publish(database: Database, count: int) -> None:
    table = await published_table(database)
    await write_threads(table, range(count))


@DELIVERIES
async def test_a_reset_stops_relays_and_closes_their_publishers(delivery: Delivery) -> None:
    broker = FakeBroker()
    async with (
        memory_store() as store,
        hosting_database(store, opening(broker, delivery)) as host,
    ):
        idle_tasks = len(asyncio.all_tasks())
        await publish(host.database, 20)
        await broker.wait_messages(TOPIC, 1)
        assert len(asyncio.all_tasks()) > idle_tasks
        await host.reset()
        assert not broker.open_publishers
        assert len(asyncio.all_tasks()) == idle_tasks
        before = len(broker.messages(TOPIC))
        # A new table of the same name publishes after the topic's present records.
        await publish(host.database, 3)
        await broker.wait_messages(TOPIC, before + 3)
    assert not broker.open_publishers


@DELIVERIES
@pytest.mark.parametrize("fault", [FakeBroker.unreachable, FakeBroker.silent])
async def test_a_reset_does_not_wait_for_a_broker(
    delivery: Delivery, fault: Callable[[FakeBroker], AbstractContextManager[None]]
) -> None:
    broker = FakeBroker()
    async with (
        memory_store() as store,
        hosting_database(store, opening(broker, delivery)) as host,
    ):
        await publish(host.database, 5)
        await broker.wait_messages(TOPIC, 5)
        with fault(broker):
            await write_threads(host.database.table("Thread"), range(5))
            async with asyncio.timeout(HANG_SECONDS):
                await host.reset()
            assert host.database.table_names() == []
        assert not broker.open_publishers
        published = len(broker.messages(TOPIC))
        await publish(host.database, 2)
        await broker.wait_messages(TOPIC, published + 2)
