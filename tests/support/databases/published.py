"""Tables whose changes are published to the fake broker, and a consumer of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from msgspec import json

from dynactor.actors.database.database import Database
from dynactor.actors.derived.kafka.relay import KafkaRelay
from dynactor.actors.derived.kafka.relay_settings import RelaySettings
from dynactor.actors.phases.destination_messages import EnableDestination
from dynactor.actors.phases.destination_phases import DestinationPhases
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.table import Table
from dynactor.model.values.item import Item
from dynactor.streams.kafka.message import KafkaMessage
from tests.support.databases.databases import put, table_definition, thread

TOPIC = "threads"


def relay_settings(**settings: Any) -> RelaySettings:
    """Settings of a relay with short waits."""
    quick = {
        "partition_count": 3,
        "first_pause_seconds": 0.001,
        "longest_pause_seconds": 0.01,
        "closing_seconds": 0.05,
        "check_seconds": 0.01,
    }
    return RelaySettings(**{**quick, **settings})


async def published_table(database: Database, topic: str = TOPIC) -> Table:
    """Create the table Thread and publish its changes to a topic."""
    await database.ask(CreateTable(table_definition()))
    await database.ask(EnableDestination("Thread", topic))
    return database.table("Thread")


def relay_of(database: Database, table: Table) -> KafkaRelay:
    """The relay of the table's latest destination."""
    relay = database.part(DestinationPhases).relay(table, table.definition.destinations[-1])
    assert relay is not None
    return relay


async def write_threads(table: Table, numbers: Iterable[int], *, of_items: int = 7) -> None:
    """Put one item after another, repeatedly the same few; each item contains the put's number."""
    for number in numbers:
        await table.write(put(item_of(number, of_items)))


def item_of(number: int, of_items: int = 7) -> Item:
    """The item that the put with this number writes; ``n`` is the number."""
    return thread(f"forum {number % of_items}", "subject", n=number)


def numbers_by_item(messages: Iterable[KafkaMessage]) -> dict[bytes, list[int]]:
    """The numbers in the new images, in order, by the key of the Kafka record."""
    found: defaultdict[bytes, list[int]] = defaultdict(list)
    for message in messages:
        found[message.key].append(number_in(message))
    return found


def number_in(message: KafkaMessage) -> int:
    """The number in the new image of a record."""
    assert message.value is not None
    return int(json.decode(message.value)["dynamodb"]["NewImage"]["n"]["N"])


def without_duplicates(messages: Iterable[KafkaMessage]) -> list[KafkaMessage]:
    """The records without those that are older than, or equal to, an earlier one of their key."""
    latest: dict[bytes, bytes] = {}
    left = []
    for message in messages:
        sequence_number = dict(message.headers)["sequence-number"]
        if sequence_number > latest.get(message.key, b""):
            latest[message.key] = sequence_number
            left.append(message)
    return left


def in_order(count: int, of_items: int = 7) -> list[list[int]]:
    """The numbers of ``write_threads`` below ``count``, one list for each item."""
    return [list(range(first, count, of_items)) for first in range(min(count, of_items))]
