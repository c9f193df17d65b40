"""The options of ``dynactor serve`` that concern Kafka."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from cyclopts import Group, Parameter

from actors.subscribers.relay_settings import Delivery, RelaySettings
from streams.broker import BrokerSettings, SaslMechanism, SecurityProtocol
from streams.kafka_message import KafkaForm, KafkaFormat, KafkaKey

_KAFKA: Final = Group(
    "Kafka", help="Publish the changes of tables; without a broker none is needed.", sort_key=2
)
_Flag: TypeAlias = Annotated[bool, Parameter(negative=())]
_SeveralServers: TypeAlias = Annotated[tuple[str, ...], Parameter(negative=())]
_ImageForm: TypeAlias = Literal["dynamodb", "plain"]

_MOST_PORTS: Final = 1 << 16
_TOPIC_PREFIX: Final = re.compile(r"[a-zA-Z0-9-][a-zA-Z0-9._-]{0,99}\Z")


class KafkaOptionsError(Exception):
    """Options that do not go together; the message says what to do."""


@Parameter(name="*", group=_KAFKA)
@dataclass(frozen=True, kw_only=True)
class KafkaOptions:
    """Invariant: what is said of Kafka goes together."""

    kafka_bootstrap_servers: _SeveralServers = ()
    """Brokers to begin with, as host:port. They may be down: changes are published later."""

    kafka_all_tables: _Flag = False
    """Publish all tables, each to the topic PREFIX.TABLE, unless it was switched off for one."""

    kafka_topic_prefix: str = "dynactor"
    """What the names of topics begin with that nobody named."""

    kafka_partitions: int = 6
    """Partitions of topics that are created."""

    kafka_replication: int = 1
    """Replicas of topics that are created."""

    kafka_format: KafkaFormat = "dynamodb"
    """What a change looks like: as in Kinesis streams of DynamoDB, or as Debezium's events."""

    kafka_key: KafkaKey = "item"
    """What records have as key: the primary key, or the partition key alone."""

    kafka_tombstones: bool | None = None
    """Follow a removal with a null value, for compacted topics; by default with debezium alone."""

    kafka_cloud_events: _Flag = False
    """Add the headers of CloudEvents (ce_id, ce_source, …)."""

    kafka_debezium_images: _ImageForm = "dynamodb"
    """Items in Debezium's events: as DynamoDB's JSON, with types, or as plain JSON."""

    kafka_debezium_schema: _Flag = False
    """Put Debezium's events into an envelope that brings their schema."""

    kafka_delivery: Delivery = "at-least-once"
    """Whether records may come twice after a failure, or go in Kafka's transactions."""

    kafka_retention_bytes: int = 10 * 1024 * 1024 * 1024
    """How much is kept for a topic that does not take it, before it is cut off."""

    kafka_retention_seconds: float | None = None
    """How long it is kept; without it, as long as there is room."""

    kafka_security_protocol: SecurityProtocol = "PLAINTEXT"
    """How brokers are talked to."""

    kafka_sasl_mechanism: SaslMechanism = "PLAIN"
    """How the server proves who it is."""

    kafka_sasl_username: str | None = None
    """Its name."""

    kafka_sasl_password: str | None = field(default=None, repr=False)
    """Its password, which other users of the machine can see: better give a file."""

    kafka_sasl_password_file: Path | None = None
    """A file with its password."""

    kafka_ssl_cafile: Path | None = None
    """Certificates of authorities that sign brokers; without it, the system's."""

    kafka_ssl_certfile: Path | None = None
    """The server's own certificate."""

    kafka_ssl_keyfile: Path | None = None
    """The key of that certificate, if it stands in a file of its own."""

    def __post_init__(self) -> None:
        for server in self._servers:
            host, _, port = server.rpartition(":")
            if not host or not port.isdigit() or int(port) >= _MOST_PORTS:
                raise KafkaOptionsError(
                    f"--kafka-bootstrap-servers {server} is not understood: give host:port"
                )
        if self.kafka_all_tables and not self._servers:
            raise KafkaOptionsError("--kafka-all-tables needs --kafka-bootstrap-servers")
        if self.kafka_partitions < 1 or self.kafka_replication < 1:
            raise KafkaOptionsError("--kafka-partitions and --kafka-replication are at least 1")
        if _TOPIC_PREFIX.match(self.kafka_topic_prefix) is None:
            raise KafkaOptionsError(
                f"--kafka-topic-prefix {self.kafka_topic_prefix} has other characters than "
                "letters, digits, '.', '_' and '-', or more than 100"
            )
        if self.kafka_retention_bytes < 1:
            raise KafkaOptionsError("--kafka-retention-bytes must be at least 1")
        if self.kafka_retention_seconds is not None and self.kafka_retention_seconds <= 0:
            raise KafkaOptionsError("--kafka-retention-seconds must be more than 0")
        if self.kafka_tombstones and self.kafka_key == "collection":
            raise KafkaOptionsError(
                "--kafka-tombstones with --kafka-key collection would make compacted topics "
                "forget a whole item collection with one item: give one of them"
            )
        if self.kafka_sasl_password is not None and self.kafka_sasl_password_file is not None:
            raise KafkaOptionsError(
                "--kafka-sasl-password and --kafka-sasl-password-file: give one of them"
            )
        if self._has_sasl and (self.kafka_sasl_username is None or not self._has_password):
            raise KafkaOptionsError(
                f"--kafka-security-protocol {self.kafka_security_protocol} needs "
                "--kafka-sasl-username and --kafka-sasl-password-file"
            )

    def relay_settings(self, version: str) -> RelaySettings:
        """How changes are published by a server of this version."""
        return RelaySettings(
            topic_prefix=self.kafka_topic_prefix,
            partition_count=self.kafka_partitions,
            replication_factor=self.kafka_replication,
            form=KafkaForm(
                format=self.kafka_format,
                key=self.kafka_key,
                tombstones=self.kafka_tombstones,
                cloud_events=self.kafka_cloud_events,
                plain_images=self.kafka_debezium_images == "plain",
                schema=self.kafka_debezium_schema,
            ),
            delivery=self.kafka_delivery,
            all_tables=self.kafka_all_tables,
            retention_bytes=self.kafka_retention_bytes,
            retention_seconds=self.kafka_retention_seconds,
            version=version,
        )

    @property
    def broker_settings(self) -> BrokerSettings | None:
        """How the broker is reached; None without one.

        Raises:
            KafkaOptionsError: the password can't be read.
        """
        if not self._servers:
            return None
        return BrokerSettings(
            bootstrap_servers=self._servers,
            security_protocol=self.kafka_security_protocol,
            sasl_mechanism=self.kafka_sasl_mechanism,
            sasl_username=self.kafka_sasl_username,
            sasl_password=self._password,
            ssl_ca_file=_text(self.kafka_ssl_cafile),
            ssl_certificate_file=_text(self.kafka_ssl_certfile),
            ssl_key_file=_text(self.kafka_ssl_keyfile),
        )

    @property
    def _servers(self) -> tuple[str, ...]:
        """They may be given with commas too."""
        given = ",".join(self.kafka_bootstrap_servers).split(",")
        return tuple(server.strip() for server in given if server.strip())

    @property
    def _has_sasl(self) -> bool:
        return self.kafka_security_protocol.startswith("SASL")

    @property
    def _has_password(self) -> bool:
        return self.kafka_sasl_password is not None or self.kafka_sasl_password_file is not None

    @property
    def _password(self) -> str | None:
        if self.kafka_sasl_password_file is None:
            return self.kafka_sasl_password
        try:
            return self.kafka_sasl_password_file.expanduser().read_text().strip()
        except OSError as error:
            raise KafkaOptionsError(f"--kafka-sasl-password-file: {error}") from error


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path.expanduser())
