"""The metrics of destinations."""

from __future__ import annotations

import asyncio

from prometheus_client.parser import text_string_to_metric_families

from dynactor.actors.database.database import Database
from dynactor.api.admin.metrics.exposition import exposition
from dynactor.api.http.request_figures import RequestFigures
from tests.support.databases.databases import SetClock, running_database
from tests.support.databases.published import (
    TOPIC,
    published_table,
    relay_of,
    relay_settings,
    write_threads,
)
from tests.support.kafka.fake_broker import FakeBroker
from tests.support.servers.figures import figures_of
from tests.support.stores.store import memory_store

LABELS = {"table": "Thread", "topic": TOPIC}


async def scrape(database: Database) -> dict[str, float]:
    """The samples of the only destination by name; its state is also a name."""
    body, _ = await exposition(database, figures_of(RequestFigures()), "")
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(body.decode()):
        for sample in family.samples:
            if sample.name.startswith("dynactor_destination_"):
                state = sample.labels.pop("state", "")
                assert sample.labels == LABELS
                found[sample.name.removeprefix("dynactor_destination_") + state] = sample.value
    return found


async def test_the_metrics_of_a_destination_without_a_backlog():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=relay_settings()) as database:
        table = await published_table(database)
        await write_threads(table, range(20))
        messages = await broker.wait_messages(TOPIC, 20)
        while relay_of(database, table).lag_records:
            await asyncio.sleep(0)
        size_bytes = sum(len(message.key) + len(message.value or b"") for message in messages)
        assert await scrape(database) == {
            "statePUBLISHING": 1,
            "lag_records": 0,
            "lag_bytes": 0,
            "lag_seconds": 0,
            "published_records_total": 20,
            "published_bytes_total": size_bytes,
            "errors_total": 0,
            "omitted_images_total": 0,
        }


async def test_the_metrics_of_a_destination_whose_broker_is_unreachable():
    broker, clock = FakeBroker(), SetClock()
    async with running_database(clock=clock, broker=broker, relays=relay_settings()) as database:
        with broker.unreachable():
            table = await published_table(database)
            await write_threads(table, range(4))
            clock.step(90)
            await write_threads(table, range(4, 6))
            while relay_of(database, table).state != "FAILING":
                await asyncio.sleep(0)
            found = await scrape(database)
        assert found["stateFAILING"] == 1
        assert found["lag_records"] == 6
        assert found["lag_seconds"] == 90
        assert found["lag_bytes"] > 6 * 100
        assert found["published_records_total"] == 0
        assert found["errors_total"] > 0


async def test_the_size_of_the_backlog_is_shown_after_a_restart():
    broker = FakeBroker()
    async with memory_store() as store:
        with broker.unreachable():
            async with running_database(store, broker=broker, relays=relay_settings()) as database:
                await write_threads(await published_table(database), range(10))
                before = await scrape(database)
            async with running_database(store, broker=broker, relays=relay_settings()) as database:
                after = await scrape(database)
    assert after["lag_bytes"] == before["lag_bytes"] > 0
    assert after["lag_records"] == before["lag_records"] == 10


async def test_the_metrics_of_a_destination_that_was_cut_off():
    broker = FakeBroker()
    relays = relay_settings(retention_bytes=1_000)
    async with running_database(broker=broker, relays=relays) as database:
        with broker.unreachable():
            table = await published_table(database)
            await write_threads(table, range(20))
            while table.definition.destinations[0].status != "BROKEN":
                await asyncio.sleep(0)
            assert (await scrape(database))["stateBROKEN"] == 1
