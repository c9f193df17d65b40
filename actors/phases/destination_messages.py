"""The messages about Kafka destinations of tables, handled by the database's actor."""

from __future__ import annotations

from dynactor.actors.runtime.mailbox import Message
from dynactor.model.definitions.table import (
    CreationTimePrecision,
    StreamingDestination,
)


class EnableDestination(Message[StreamingDestination], frozen=True):
    """Publish a table's changes to a topic from now on.

    Raises ``ResourceNotFoundException`` or ``ResourceInUseException``; ``ValidationException`` if
    there is no Kafka, a replay writes to the topic, or as ``destination_rules.enabled``.
    """

    name: str
    topic: str
    precision: CreationTimePrecision = "MILLISECOND"


class DisableDestination(Message[StreamingDestination], frozen=True):
    """Stop publishing a table's changes to a topic.

    Raises the errors of ``EnableDestination`` and ``destination_rules.disabling``.
    """

    name: str
    topic: str


class UpdateDestination(Message[StreamingDestination], frozen=True):
    """Change the precision of published times.

    Raises the errors of ``EnableDestination`` and ``destination_rules.updated``.
    """

    name: str
    topic: str
    precision: CreationTimePrecision
