"""What a relay works for, and what it works with."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from actors.runtime.clock import Clock
from actors.subscribers.relay_settings import RelaySettings
from actors.subscribers.shared_publisher import SharedPublisher
from streams.broker import Broker
from streams.kafka_message import KafkaSource


class RelayPlace(Struct, frozen=True):
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


class RelaySurroundings(NamedTuple):
    """What all relays share: the broker, the publisher, the clock, and those at work."""

    broker: Broker
    shared: SharedPublisher
    settings: RelaySettings
    clock: Clock
    at_work: set[bytes]
