"""Relays continue after the last record of an earlier version, with a fake broker."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import json

from dynactor.actors.database.database import Database
from dynactor.storage.rocks.store import open_rocks
from dynactor.streams.kafka.message import KafkaMessage
from tests.support.databases.databases import SetClock, running_database
from tests.support.databases.published import relay_settings
from tests.support.kafka.fake_broker import FakeBroker
from tests.support.servers.in_process import InProcessClient
from tests.support.servers.upgraded import Written, in_order

# The partition count of the existing topics, and another default for new topics.
PARTITIONS, OTHER_PARTITIONS = 3, 5
# Events that the earlier version recorded and did not publish.
PENDING = 15
DEADLINE_SECONDS = 60


@asynccontextmanager
async def publishing(
    written: Written, directory: Path, broker: FakeBroker
) -> AsyncIterator[Database]:
    """A database on the directory that publishes to a broker without any topic."""
    store = await open_rocks(directory)
    clock = SetClock(written.now_epoch_seconds)
    relays = relay_settings(partition_count=OTHER_PARTITIONS)
    try:
        async with (
            asyncio.timeout(DEADLINE_SECONDS),
            running_database(store, clock, broker, relays=relays) as database,
        ):
            yield database
    finally:
        await store.close()


def values(messages: list[KafkaMessage]) -> list[dict[str, Any]]:
    return [json.decode(message.value) for message in messages if message.value is not None]


def numbers_in(messages: list[KafkaMessage]) -> list[int]:
    """The numbers of the events."""
    return [int(value["dynamodb"]["NewImage"]["n"]["N"]) for value in values(messages)]


async def test_a_topic_gets_the_missing_changes(written: Written, directory: Path):
    broker = FakeBroker()
    async with publishing(written, directory, broker):
        messages = await broker.wait_messages("events", PENDING)
    first = written.published["Events"]
    assert sorted(numbers_in(messages)) == list(range(first, first + PENDING))
    by_key: defaultdict[bytes, list[int]] = defaultdict(list)
    for message, number in zip(messages, numbers_in(messages), strict=True):
        by_key[message.key].append(number)
    assert all(each == sorted(each) for each in by_key.values())


async def test_keys_keep_their_partitions_of_the_topic(written: Written, directory: Path):
    broker = FakeBroker()
    async with publishing(written, directory, broker):
        await broker.wait_messages("events", PENDING)
    found = [len(broker.partition("events", number)) for number in range(OTHER_PARTITIONS)]
    assert sum(found[:PARTITIONS]) == PENDING
    assert sum(map(bool, found)) > 1


async def test_published_changes_are_not_published_again(written: Written, directory: Path):
    broker = FakeBroker()
    async with publishing(written, directory, broker):
        await broker.wait_messages("events", PENDING)
    again = FakeBroker()
    async with publishing(written, directory, again) as database:
        item = {"id": {"S": "event-0"}, "n": {"N": "99"}}
        await InProcessClient(database)("PutItem", {"TableName": "Events", "Item": item})
        messages = await again.wait_messages("events", 1)
    assert numbers_in(messages) == [99]


async def test_a_topic_that_was_cut_off_gets_a_gap_and_every_item(
    written: Written, directory: Path
):
    items = written.items["CutOff"]
    broker = FakeBroker()
    async with publishing(written, directory, broker):
        messages = await broker.wait_messages("cutoff", PARTITIONS + len(items))
    for number in range(PARTITIONS):
        gap, *following = [
            value["eventName"] for value in values(broker.partition("cutoff", number))
        ]
        assert gap == "GAP"
        assert "GAP" not in following
    inserts = [value for value in values(messages) if value["eventName"] == "INSERT"]
    assert all(value["snapshot"] for value in inserts)
    assert in_order([value["dynamodb"]["NewImage"] for value in inserts]) == in_order(items)
