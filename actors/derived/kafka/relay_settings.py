"""The settings of publishing to Kafka, shared by all destinations."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Struct

from dynactor.model.configuration_error import ConfigurationError
from dynactor.model.limits import MIB
from dynactor.model.option import Option, OptionGroup
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


_TOPIC_PREFIX: Final = re.compile(r"[a-zA-Z0-9-][a-zA-Z0-9._-]{0,99}\Z")


def _topic_prefix(text: str) -> str:
    if _TOPIC_PREFIX.match(text) is None:
        raise ConfigurationError(
            f"--kafka-topic-prefix {text} has other characters than letters, digits, '.', '_' and "
            "'-', or more than 100"
        )
    return text


def _topic_count(count: int) -> int:
    if count < 1:
        raise ConfigurationError("--kafka-partitions and --kafka-replication are at least 1")
    return count


def _retention_bytes(size_bytes: int) -> int:
    if size_bytes < 1:
        raise ConfigurationError("--kafka-retention-bytes must be at least 1")
    return size_bytes


def _retention_seconds(seconds: float | None) -> float | None:
    # The negated comparison also refuses nan.
    if seconds is not None and not seconds > 0:
        raise ConfigurationError("--kafka-retention-seconds must be more than 0")
    return seconds


class RelaySettings(Struct, frozen=True):
    """The settings of publishing; ``version`` is dynactor's own, shown to consumers."""

    all_tables: Annotated[bool, Option("--kafka-all-tables", OptionGroup.KAFKA)] = False
    """Publish every table to the topic PREFIX.TABLE, except tables whose destination was
    disabled."""

    topic_prefix: Annotated[
        str, Option("--kafka-topic-prefix", OptionGroup.KAFKA, _topic_prefix)
    ] = "dynactor"
    """Prefix of topic names. Letters, digits, '.', '_' and '-', at most 100 characters."""

    partition_count: Annotated[
        int, Option("--kafka-partitions", OptionGroup.KAFKA, _topic_count)
    ] = 6
    """Number of partitions of topics that the server creates."""

    replication_factor: Annotated[
        int, Option("--kafka-replication", OptionGroup.KAFKA, _topic_count)
    ] = 1
    """Number of replicas of topics that the server creates."""

    form: KafkaForm = KafkaForm()

    delivery: Annotated[Delivery, Option("--kafka-delivery", OptionGroup.KAFKA_DELIVERY)] = (
        "at-least-once"
    )
    """Delivery guarantee. With at-least-once, a topic may have records twice after a failure.
    exactly-once uses Kafka's transactions."""

    snapshot: Annotated[SnapshotMode, Option("--kafka-snapshot", OptionGroup.KAFKA_DELIVERY)] = (
        "never"
    )
    """Start of a topic for a table that has data: the next change (never), or every item
    (initial)."""

    retention_bytes: Annotated[
        int, Option("--kafka-retention-bytes", OptionGroup.KAFKA_DELIVERY, _retention_bytes)
    ] = 10 * _GIB
    """Bytes of changes to keep for a topic that does not accept them. Above this limit the topic is
    cut off: the changes are lost for it."""

    retention_seconds: Annotated[
        float | None,
        Option("--kafka-retention-seconds", OptionGroup.KAFKA_DELIVERY, _retention_seconds),
    ] = None
    """Seconds to keep changes for a topic that does not accept them. Default: no limit in time."""

    # Whether a table may have had another home, whose records must not follow those of this one.
    fences_former_homes: bool = False
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
