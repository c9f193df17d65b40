"""The shared parts of relays and replays."""

from __future__ import annotations

from dynactor.actors.derived.kafka.kafka_environment import KafkaEnvironment
from dynactor.actors.parts.part import Part, Parts
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import ValidationException
from dynactor.model.tables import destination_rules as rules
from dynactor.streams.kafka.message import KafkaSource


class Publishing(Part):
    """The broker, and the description of tables for consumers. ``kafka`` is None without a broker.

    It closes the broker after the tables, because relays publish until their table is closed.
    """

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self.settings = parts.settings.relays
        self.kafka = (
            KafkaEnvironment.of(parts.broker, self.settings, parts.environment)
            if parts.broker
            else None
        )

    def needed_kafka(self) -> KafkaEnvironment:
        """The Kafka environment; raises ``ValidationException`` if there is none."""
        if self.kafka is None:
            raise ValidationException(
                "Changes can't be published: the server was started without "
                "--kafka-bootstrap-servers"
            )
        return self.kafka

    def source(self, definition: TableDefinition) -> KafkaSource:
        """The description of a table for consumers, with its destination's precision of times."""
        destination = rules.in_use(definition)
        return KafkaSource(
            self._settings.region,
            self._settings.account_id,
            definition.name,
            definition.key_schema,
            self.settings.topic_prefix,
            self.settings.version,
            "MILLISECOND" if destination is None else destination.precision,
        )

    async def close(self) -> None:
        """Close the broker; the relays have ended."""
        if self.kafka is not None:
            await self.kafka.shared.close()
