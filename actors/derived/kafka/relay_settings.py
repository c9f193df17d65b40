"""What may be set for publishing to Kafka, for every destination alike."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from dynactor.model.limits import MIB
from dynactor.model.tables.destination_rules import POSITIONS
from dynactor.streams.kafka.broker import Topic
from dynactor.streams.kafka.message import KafkaForm

Delivery: TypeAlias = Literal["at-least-once", "exactly-once"]
# What a new destination begins with: nothing, or every item that its table has.
SnapshotMode: TypeAlias = Literal["never", "initial"]

_GIB: Final = 1024 * MIB
# Two images of 400 KB can take 4.8 MB as JSON, and the broker's own limit is 1 MB.
_MAX_MESSAGE_BYTES: Final = 8 * MIB
_POSITIONS_SEGMENT_BYTES: Final = 16 * MIB


class RelaySettings(Struct, frozen=True):
    """How changes are published; ``version`` is dynactor's own, shown to consumers.

    A destination is cut off where it has not taken more than ``retention_bytes`` of records, or
    not for more than ``retention_seconds``.
    """

    topic_prefix: str = "dynactor"
    partition_count: int = 6
    replication_factor: int = 1
    form: KafkaForm = KafkaForm()
    delivery: Delivery = "at-least-once"
    all_tables: bool = False
    retention_bytes: int = 10 * _GIB
    retention_seconds: float | None = None
    snapshot: SnapshotMode = "never"
    version: str = "unknown"
    # How long a broker may be silent before that is told, and how often it is then looked after.
    silent_seconds: float = 3.0
    probe_seconds: float = 10.0
    # Between two attempts to reach it.
    first_pause_seconds: float = 0.2
    longest_pause_seconds: float = 10.0
    # What stopping, switching off and deleting wait for records on their way.
    closing_seconds: float = 2.0
    draining_seconds: float = 5.0
    # How long a snapshot may stand still before it is given up: it holds back disk space.
    snapshot_patience_seconds: float = 60.0
    # How often it is looked whether a destination is to be cut off.
    check_seconds: float = 1.0

    def topic(self, name: str) -> Topic:
        """A topic for changes, as it is created."""
        settings = {"max.message.bytes": str(_MAX_MESSAGE_BYTES)}
        return Topic(name, self.partition_count, self.replication_factor, settings)

    @property
    def positions_topic(self) -> Topic:
        """The topic that holds, for exactly-once delivery, how far each log was published.

        Small segments: it is read from its beginning, and the last one is never compacted.
        """
        settings = {
            "cleanup.policy": "compact",
            "segment.bytes": str(_POSITIONS_SEGMENT_BYTES),
            "min.cleanable.dirty.ratio": "0.1",
        }
        return Topic(self.topic_prefix + POSITIONS, 1, self.replication_factor, settings)
