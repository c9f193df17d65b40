"""The databases of a server that separates regions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dynactor.actors.database.database import Database
from dynactor.actors.database.databases import MOST_NAMESPACES, Databases, open_databases
from dynactor.actors.derived.kafka.relay_settings import Delivery
from dynactor.actors.parts.database_settings import DatabaseSettings
from dynactor.actors.phases.destination_messages import EnableDestination
from dynactor.actors.runtime.clock import SystemClock
from dynactor.actors.table.messages import CreateTable
from dynactor.api.requests.destination_arn import described, find_topic
from dynactor.model.errors import LimitExceededException, ValidationException
from dynactor.storage import key_layout
from dynactor.storage.namespaces import Namespace, Separation, StoreSlice
from dynactor.storage.store import Damaged, Group, Store
from dynactor.streams.kafka.broker import Broker
from tests.support.databases.databases import table_definition
from tests.support.databases.published import relay_settings, write_threads
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.kafka.fake_broker import FakeBroker
from tests.support.stores.store import memory_store

HOME, WEST = Namespace("us-east-1"), Namespace("us-west-2")


@asynccontextmanager
async def running(
    store: Store,
    *,
    separation: Separation = "region",
    broker: Broker | None = None,
    delivery: Delivery = "at-least-once",
    most_namespaces: int = MOST_NAMESPACES,
) -> AsyncIterator[Databases]:
    settings = DatabaseSettings(relays=relay_settings(delivery=delivery))
    async with open_databases(
        store,
        settings,
        SystemClock(),
        broker,
        separation=separation,
        most_namespaces=most_namespaces,
    ) as databases:
        yield databases


async def test_concurrent_requests_open_one_database() -> None:
    async with memory_store() as store, running(store) as databases:
        assert databases.find(WEST) is None
        opened = await asyncio.gather(*(databases.open(WEST) for _ in range(5)))
        assert set(opened) == {databases.find(WEST)}
        assert databases.find(HOME) is databases.main
        assert opened[0].settings.region == "us-west-2"


async def test_the_server_keeps_a_bounded_number_of_namespaces() -> None:
    async with (
        memory_store() as store,
        running(store, separation="access key", most_namespaces=3) as databases,
    ):
        for number in range(3):
            await databases.open(databases.namespace("us-east-1", f"key{number}"))
        with pytest.raises(LimitExceededException):
            await databases.open(Namespace("us-east-1", "one more"))
        assert len(databases.by_namespace) == 3


async def test_a_damaged_catalog_of_a_region_ends_the_start() -> None:
    async with memory_store() as store:
        slice_ = StoreSlice(store, WEST)
        await (await slice_.commit([Group(key_layout.CATALOG_HEAD, None, b"\xc1")]))
        with pytest.raises(Damaged):
            async with running(store):
                pass


async def test_a_damaged_catalog_ends_the_start_if_another_region_is_open() -> None:
    async with memory_store() as store:
        async with running(store) as databases:
            first = await databases.open(Namespace("ap-east-1"))
            await first.ask(CreateTable(table_definition()))
        slice_ = StoreSlice(store, WEST)
        await (await slice_.commit([Group(key_layout.CATALOG_HEAD, None, b"\xc1")]))
        async with asyncio.timeout(HANG_SECONDS):
            with pytest.raises(Damaged):
                async with running(store):
                    pass


async def test_a_region_with_tables_is_opened_with_the_server() -> None:
    async with memory_store() as store:
        async with running(store) as databases:
            west = await databases.open(WEST)
            await west.ask(CreateTable(table_definition()))
            await databases.open(Namespace("eu-west-1"))
        async with running(store) as databases:
            west = databases.by_namespace[WEST]
            assert set(databases.by_namespace) == {HOME, WEST}
            assert west.table_names() == ["Thread"]
            assert databases.main.table_names() == []


def stream_arn(database: Database) -> str:
    return f"arn:aws:kinesis:{database.settings.region}:000000000000:stream/threads"


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
async def test_streams_with_the_same_name_have_a_topic_in_each_region(delivery: Delivery) -> None:
    broker = FakeBroker()
    async with (
        memory_store() as store,
        running(store, broker=broker, delivery=delivery) as databases,
    ):
        for count, namespace in enumerate((HOME, WEST), 2):
            database = await databases.open(namespace)
            await database.ask(CreateTable(table_definition()))
            arn = stream_arn(database)
            topic = find_topic(database, arn)
            await database.ask(EnableDestination("Thread", topic))
            table = database.table("Thread")
            await write_threads(table, range(count))
            assert described(database, table, table.definition.destinations[0])["StreamArn"] == arn
        await broker.wait_messages("threads", 2)
        await broker.wait_messages("region.us-west-2.threads", 3)
        assert len(broker.messages("threads")) == 2
        if delivery == "exactly-once":
            assert {"dynactor.__positions", "region.us-west-2.dynactor.__positions"} < set(
                broker.topics
            )


async def test_with_all_tables_published_each_table_has_a_topic_per_region() -> None:
    broker = FakeBroker()
    settings = DatabaseSettings(relays=relay_settings(all_tables=True))
    async with (
        memory_store() as store,
        open_databases(store, settings, SystemClock(), broker, separation="region") as databases,
    ):
        for namespace in (HOME, WEST):
            database = await databases.open(namespace)
            await database.ask(CreateTable(table_definition()))
            await write_threads(database.table("Thread"), range(2))
        await broker.wait_messages("dynactor.Thread", 2)
        await broker.wait_messages("region.us-west-2.dynactor.Thread", 2)
        assert len(broker.messages("dynactor.Thread")) == 2


async def test_the_home_region_publishes_to_no_topic_of_another_region() -> None:
    async with memory_store() as store, running(store) as databases:
        arn = "arn:aws:kinesis:us-east-1:000000000000:stream/region.us-west-2.threads"
        with pytest.raises(ValidationException, match="those of other regions"):
            find_topic(databases.main, arn)
    async with memory_store() as store, running(store, separation="shared") as databases:
        assert find_topic(databases.main, arn) == "region.us-west-2.threads"
