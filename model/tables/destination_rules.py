"""Rules for a table's destinations: the topics to which its changes are published.

A table has at most one destination that is not disabled, as with Kinesis in DynamoDB. Disabled
destinations are still listed.
Messages: DynamoDB's, as recorded by LocalStack.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

from msgspec.structs import replace

from dynactor.model.definitions.table import (
    CreationTimePrecision,
    StreamingDestination,
    TableDefinition,
)
from dynactor.model.errors import ValidationException

# Kafka's own rule for names.
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}\Z")
_TOPIC_CHARACTERS: Final = 249
_DIGEST_BYTES: Final = 8
_KAFKA_PREFIX: Final = "__"
# Suffix of the topic with each log's published position, for exactly-once delivery.
POSITIONS: Final = ".__positions"
# The most disabled destinations that a table still lists.
_SHOWN_AFTERWARDS: Final = 9
# The prefix of the topics of all regions except the one of ``--region``.
_REGION_PREFIX: Final = "region."
_PLAIN_KEY_ID: Final = re.compile(r"[a-zA-Z0-9-]{1,40}\Z")

_NOT_TO_ENABLE: Final = (
    "Table is not in a valid state to enable Kinesis Streaming Destination:"
    "EnableKinesisStreamingDestination must be DISABLED or ENABLE_FAILED to perform ENABLE "
    "operation."
)
_NOT_TO_DISABLE: Final = (
    "Table is not in a valid state to disable Kinesis Streaming Destination:"
    "DisableKinesisStreamingDestination must be ACTIVE to perform DISABLE operation."
)


def default_topic(prefix: str, table_name: str) -> str:
    """The topic of a table for which none was configured; always a valid name."""
    topic = f"{prefix}.{table_name}"
    if len(topic) <= _TOPIC_CHARACTERS and not topic.endswith(POSITIONS):
        return topic
    digest = blake2b(topic.encode(), digest_size=_DIGEST_BYTES).hexdigest()
    return f"{topic[: _TOPIC_CHARACTERS - len(digest) - 1]}.{digest}"


def topic_namespace(region: str, access_key_id: str = "") -> str:
    """The prefix of a region's topics, if each region has separate tables.

    Regions and access keys never share a namespace, because the name of a region has no dot.
    """
    if not access_key_id:
        return f"{_REGION_PREFIX}{region}."
    if _PLAIN_KEY_ID.match(access_key_id) is None:
        access_key_id = "_" + blake2b(access_key_id.encode(), digest_size=_DIGEST_BYTES).hexdigest()
    return f"{_REGION_PREFIX}{region}.{access_key_id}."


def check_home_topic(name: str) -> None:
    """Check that a topic of ``--region`` is of no other region; raises ``ValidationException``."""
    if name.startswith(_REGION_PREFIX):
        raise ValidationException(
            f"Invalid StreamArn: topics that begin with {_REGION_PREFIX} are those of other regions"
        )


def check_topic(name: str) -> None:
    """Check that a topic may be published to; raises ``ValidationException``."""
    is_taken = name.startswith(_KAFKA_PREFIX) or name.endswith(POSITIONS)
    if _TOPIC.match(name) is None or name in (".", "..") or is_taken:
        raise ValidationException(f"Invalid StreamArn: {name} can't be the name of a Kafka topic")


def in_use(table: TableDefinition) -> StreamingDestination | None:
    """The table's destination whose status is not DISABLED, if any."""
    for destination in table.destinations:
        if destination.status != "DISABLED":
            return destination
    return None


def enabled(
    table: TableDefinition, topic: str, precision: CreationTimePrecision
) -> TableDefinition:
    """The table with a destination that starts to publish; raises ``ValidationException``."""
    check_topic(topic)
    if in_use(table) is not None:
        raise ValidationException(_NOT_TO_ENABLE)
    others = [other for other in table.destinations if other.topic != topic]
    destination = StreamingDestination(
        table.next_destination_id, topic, "ENABLING", precision=precision
    )
    return replace(
        table,
        destinations=(*others[-_SHOWN_AFTERWARDS:], destination),
        next_destination_id=table.next_destination_id + 1,
    )


def disabling(table: TableDefinition, topic: str) -> TableDefinition:
    """The table with a destination that publishes the recorded changes and then ends.

    An unreachable or cut-off destination can be disabled, too. Raises ``ValidationException``.
    """
    destination = in_use(table)
    if destination is None or destination.topic != topic or destination.status == "DISABLING":
        raise ValidationException(_NOT_TO_DISABLE)
    return with_destination(
        table, replace(destination, status="DISABLING", status_description=None)
    )


def updated(
    table: TableDefinition, topic: str, precision: CreationTimePrecision
) -> TableDefinition:
    """The table after a change of the precision of timestamps in a destination's records.

    Raises ``ValidationException`` if there is no such active destination, or nothing to change.
    """
    destination = in_use(table)
    if destination is None or destination.topic != topic or not destination.publishes:
        raise ValidationException(
            "Table is not in a valid state to enable Kinesis Streaming Destination: "
            f"No streaming destination with streamArn: {topic} found for table with tableName: "
            f"{table.name}"
        )
    if destination.precision == precision:
        raise ValidationException(
            f"Invalid Request: Precision is already set to the desired value of {precision} "
            f"for tableId: {table.uuid}, kdsArn: {topic}"
        )
    return with_destination(table, replace(destination, precision=precision))


def with_destination(table: TableDefinition, destination: StreamingDestination) -> TableDefinition:
    """The table with this destination in place of the one with the same id."""
    return replace(
        table,
        destinations=tuple(
            destination if other.destination_id == destination.destination_id else other
            for other in table.destinations
        ),
    )
