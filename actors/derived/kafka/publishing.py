"""The shared parts of relays and replays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import Struct

from dynactor.actors.catalog.catalog_owner import CatalogOwner
from dynactor.actors.derived.kafka.kafka_environment import KafkaEnvironment
from dynactor.actors.derived.kafka.relay_settings import RelaySettings
from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.table.environment import TableEnvironment
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import ValidationException
from dynactor.model.tables import destination_rules as rules
from dynactor.streams.kafka.message import KafkaSource


class Origins(Struct, frozen=True):
    """The region and the account that the server names as the source of changes."""

    region: str
    account_id: str


class Publishing(NamedTuple):
    """The parts that relays and replays share. ``tell`` sends to the database's actor."""

    owner: CatalogOwner
    environment: TableEnvironment
    settings: RelaySettings
    origins: Origins
    kafka: KafkaEnvironment | None
    tell: Callable[[Message[Any]], None]

    def needed_kafka(self) -> KafkaEnvironment:
        """The Kafka environment.

        Raises:
            ValidationException: there is no Kafka.
        """
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
            self.origins.region,
            self.origins.account_id,
            definition.name,
            definition.key_schema,
            self.settings.topic_prefix,
            self.settings.version,
            "MILLISECOND" if destination is None else destination.precision,
        )
