"""What a relay works for, and what it works with."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from msgspec import Struct

from dynactor.actors.derived.kafka.relay_settings import RelaySettings
from dynactor.actors.derived.kafka.shared_publisher import SharedPublisher
from dynactor.actors.runtime.clock import Clock
from dynactor.streams.kafka.broker import Broker
from dynactor.streams.kafka.message import KafkaSource


class RelayTarget(Struct, frozen=True):
    """What a relay works for: a destination of a table.

    ``subscriber`` names its checkpoints, ``publisher_id`` its transactions and positions.
    ``partition_count`` is that of the topic when it was first reached; None before that.
    ``needs_snapshot``: the topic is to be told of a gap, and given every item of the table,
    before the changes that come then. ``began_late``: the table was written to before that.
    """

    table_id: int
    subscriber: bytes
    publisher_id: str
    topic: str
    source: KafkaSource
    partition_count: int | None = None
    needs_snapshot: bool = False
    began_late: bool = False


class RelayEnvironment(NamedTuple):
    """What all relays share. ``at_work`` holds the subscriber ids of the relays that publish."""

    broker: Broker
    shared: SharedPublisher
    settings: RelaySettings
    clock: Clock
    at_work: set[bytes]
    randomness: Random
