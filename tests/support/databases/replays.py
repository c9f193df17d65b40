"""Replays of tables to the fake broker, and consumers that apply the records."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from msgspec import json

from dynactor.actors.database.database import Database
from dynactor.actors.derived.kafka.replay_progress import ReplayProgress, ReplayStart, ReplayState
from dynactor.actors.phases.replays import Replays, StartReplay
from dynactor.actors.table.pages import ReadRange, read_page
from dynactor.actors.table.table import Table
from dynactor.model.key_conditions import key_range
from dynactor.model.reads.page import PageRules
from dynactor.model.values import item as items
from dynactor.streams.kafka.message import KafkaMessage
from tests.support.kafka.fake_broker import FakeBroker

COPY = "copy"
SNAPSHOT = ReplayStart("snapshot")
BEGINNING = ReplayStart("beginning")


async def replay(
    database: Database,
    start: ReplayStart,
    topic: str = COPY,
    *,
    name: str = "Thread",
    **options: Any,
) -> ReplayProgress:
    """Start a replay of a table."""
    return await database.ask(StartReplay(name, topic, start, **options))


async def wait_state(database: Database, replay_id: str, *states: ReplayState) -> ReplayProgress:
    """Wait until a replay is in one of these states."""
    while (progress := database.part(Replays).find(replay_id)).state not in states:
        assert progress.state != "FAILED", progress
        await asyncio.sleep(0)
    return progress


async def wait_done(database: Database, replay_id: str) -> ReplayProgress:
    """Wait until a replay is DONE."""
    return await wait_state(database, replay_id, "DONE")


async def items_of(table: Table) -> dict[bytes, Any]:
    """A table's items by key, as a consumer sees them."""
    page = await read_page(table, ReadRange(key_range.WHOLE, PageRules()))
    assert page.last is None, "it takes more than a page"
    schema = table.definition.key_schema
    read = map(items.decode, page.items)
    return {items.encode(schema.extract_key(item)): item for item in read}


class ConsumedTable:
    """The items of a table as a consumer of a topic computes them, since the last gaps."""

    def __init__(self) -> None:
        # Sequence numbers by key.
        self.snapshot: dict[bytes, int] = {}
        self.changes: defaultdict[bytes, list[int]] = defaultdict(list)
        self.images: dict[bytes, Any] = {}
        self.gaps = 0

    @classmethod
    def of(cls, broker: FakeBroker, topic: str = COPY) -> ConsumedTable:
        """Apply all records of the topic.

        Raises:
            AssertionError: the snapshot has an item twice, a change is both in it and after it, or
                changes are
            out of order.
        """
        consumed = cls()
        for number in range(broker.topics[topic].partition_count):
            consumed._apply(broker.partition(topic, number))
        return consumed

    def _apply(self, messages: Iterable[KafkaMessage]) -> None:
        of_partition: set[bytes] = set()
        for message in messages:
            assert message.value is not None
            value = json.decode(message.value)
            if value["eventName"] == "GAP":
                self.gaps += 1
                for key in of_partition:
                    self.snapshot.pop(key, None)
                    self.changes.pop(key, None)
                    self.images.pop(key, None)
                continue
            of_partition.add(message.key)
            number = int(value["dynamodb"]["SequenceNumber"])
            if value.get("snapshot"):
                assert message.key not in self.snapshot, "an item is in the snapshot twice"
                assert message.key not in self.changes, "a change came before the item's snapshot"
                self.snapshot[message.key] = number
            else:
                earlier = [self.snapshot.get(message.key, 0), *self.changes[message.key]]
                assert number > earlier[-1], "a change came twice, or out of order"
                self.changes[message.key].append(number)
            self.images[message.key] = value["dynamodb"].get("NewImage")

    @property
    def items(self) -> dict[bytes, Any]:
        """The items that remain after all records."""
        return {key: image for key, image in self.images.items() if image is not None}
