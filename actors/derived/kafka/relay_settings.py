"""The settings of publishing to Kafka, shared by all destinations."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from dynactor.model.limits import MIB
from dynactor.model.tables.destination_rules import POSITIONS
from dynactor.streams.kafka.broker import Topic
from dynactor.streams.kafka.message import KafkaForm

Delivery: TypeAlias = Literal["at-least-once", "exactly-once"]
# The first records of a new destination: none, or every item that its table has.
SnapshotMode: TypeAlias = Literal["never", "initial"]

_GIB: Final = 1024 * MIB
# Two images of 400 KB can take 4.8 MB as JSON, and the broker's own limit is 1 MB.
_MAX_MESSAGE_BYTES: Final = 8 * MIB
_POSITIONS_SEGMENT_BYTES: Final = 16 * MIB


class RelaySettings(Struct, frozen=True):
    """The settings of publishing; ``version`` is dynactor's own, shown to consumers.

    A destination is cut off if it lags by more than ``retention_bytes`` of records, or by more than
    ``retention_seconds``.
    """

    topic_prefix: str = "dynactor"
    partition_count: int = 6
    replication_factor: int = 1
    form: KafkaForm = KafkaForm()
    delivery: Delivery = "at-least-once"
    # Whether a table may have had another home, whose records must not follow those of this one.
    fences_former_homes: bool = False
    all_tables: bool = False
    retention_bytes: int = 10 * _GIB
    retention_seconds: float | None = None
    snapshot: SnapshotMode = "never"
    version: str = "unknown"
    # The time until a silent broker is reported, and the interval of the checks after that.
    silent_seconds: float = 3.0
    probe_seconds: float = 10.0
    # The pause between two attempts to reach the broker.
    first_pause_seconds: float = 0.2
    longest_pause_seconds: float = 10.0
    # Deadline for records in flight when a relay is stopped, switched off or deleted.
    closing_seconds: float = 2.0
    draining_seconds: float = 5.0
    # The interval of checks whether to cut off a destination.
    check_seconds: float = 1.0

    def topic(self, name: str) -> Topic:
        """A topic for changes, as it is created."""
        settings = {"max.message.bytes": str(_MAX_MESSAGE_BYTES)}
        return Topic(name, self.partition_count, self.replication_factor, settings)

    @property
    def positions_topic(self) -> Topic:
        """The topic with the published position of each log, for exactly-once delivery.

        Small segments, because the topic is read from its beginning, and the last segment is never
        compacted.
        """
        settings = {
            "cleanup.policy": "compact",
            "segment.bytes": str(_POSITIONS_SEGMENT_BYTES),
            "min.cleanable.dirty.ratio": "0.1",
        }
        return Topic(self.topic_prefix + POSITIONS, 1, self.replication_factor, settings)
