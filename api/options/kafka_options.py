"""The options of ``dynactor serve`` that concern Kafka."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from cyclopts import Group, Parameter

from dynactor.actors.derived.kafka.relay_settings import Delivery, RelaySettings, SnapshotMode
from dynactor.api.options.configuration_error import ConfigurationError
from dynactor.streams.kafka.broker import BrokerSettings, SaslMechanism, SecurityProtocol
from dynactor.streams.kafka.message import KafkaForm, KafkaFormat, KafkaKey

_KAFKA: Final = Group(
    "Kafka",
    help="Publish the changes of tables. The other options need --kafka-bootstrap-servers.",
    sort_key=5,
)
_KAFKA_RECORDS: Final = Group("Kafka: records", sort_key=6)
_KAFKA_DELIVERY: Final = Group("Kafka: delivery", sort_key=7)
_KAFKA_SECURITY: Final = Group("Kafka: security", sort_key=8)
_Flag: TypeAlias = Annotated[bool, Parameter(negative=())]
_SeveralServers: TypeAlias = Annotated[tuple[str, ...], Parameter(negative=())]
_ImageForm: TypeAlias = Literal["dynamodb", "plain"]

_MOST_PORTS: Final = 1 << 16
_TOPIC_PREFIX: Final = re.compile(r"[a-zA-Z0-9-][a-zA-Z0-9._-]{0,99}\Z")


class KafkaOptionsError(ConfigurationError):
    """Options contradict each other; the message describes the fix."""


@Parameter(name="*", group=_KAFKA)
@dataclass(frozen=True, kw_only=True)
class KafkaOptions:
    """Invariant: the options for Kafka don't contradict each other."""

    kafka_bootstrap_servers: _SeveralServers = ()
    """Addresses of brokers, as HOST:PORT. The brokers may be down when the server starts."""

    kafka_all_tables: _Flag = False
    """Publish every table to the topic PREFIX.TABLE, except tables whose destination was
    disabled."""

    kafka_topic_prefix: str = "dynactor"
    """Prefix of topic names. Letters, digits, '.', '_' and '-', at most 100 characters."""

    kafka_partitions: int = 6
    """Number of partitions of topics that the server creates."""

    kafka_replication: int = 1
    """Number of replicas of topics that the server creates."""

    kafka_format: Annotated[KafkaFormat, Parameter(group=_KAFKA_RECORDS)] = "dynamodb"
    """Format of records: as in Kinesis Data Streams for DynamoDB, or as Debezium's change
    events."""

    kafka_key: Annotated[KafkaKey, Parameter(group=_KAFKA_RECORDS)] = "item"
    """Key of records: the primary key of the item, or the partition key only (collection)."""

    kafka_tombstones: Annotated[bool | None, Parameter(group=_KAFKA_RECORDS)] = None
    """Publish a record without a value after a removal, for compacted topics. Default: with the
    debezium format only."""

    kafka_cloud_events: Annotated[bool, Parameter(group=_KAFKA_RECORDS, negative=())] = False
    """Add the headers of CloudEvents (ce_id, ce_source, …)."""

    kafka_debezium_images: Annotated[_ImageForm, Parameter(group=_KAFKA_RECORDS)] = "dynamodb"
    """Form of items in Debezium's events: DynamoDB's JSON with types, or plain JSON."""

    kafka_debezium_schema: Annotated[bool, Parameter(group=_KAFKA_RECORDS, negative=())] = False
    """Publish Debezium's events with their schema, for Kafka Connect."""

    kafka_delivery: Annotated[Delivery, Parameter(group=_KAFKA_DELIVERY)] = "at-least-once"
    """Delivery guarantee. With at-least-once, a topic may have records twice after a failure.
    exactly-once uses Kafka's transactions."""

    kafka_snapshot: Annotated[SnapshotMode, Parameter(group=_KAFKA_DELIVERY)] = "never"
    """Start of a topic for a table that has data: the next change (never), or every item
    (initial)."""

    kafka_retention_bytes: Annotated[int, Parameter(group=_KAFKA_DELIVERY)] = (
        10 * 1024 * 1024 * 1024
    )
    """Bytes of changes to keep for a topic that does not accept them. Above this limit the topic is
    cut off: the changes are lost for it."""

    kafka_retention_seconds: Annotated[float | None, Parameter(group=_KAFKA_DELIVERY)] = None
    """Seconds to keep changes for a topic that does not accept them. Default: no limit in time."""

    kafka_security_protocol: Annotated[SecurityProtocol, Parameter(group=_KAFKA_SECURITY)] = (
        "PLAINTEXT"
    )
    """Protocol of connections to brokers. SSL encrypts, SASL authenticates."""

    kafka_sasl_mechanism: Annotated[SaslMechanism, Parameter(group=_KAFKA_SECURITY)] = "PLAIN"
    """Mechanism of SASL authentication."""

    kafka_sasl_username: Annotated[str | None, Parameter(group=_KAFKA_SECURITY)] = None
    """User name for SASL."""

    kafka_sasl_password: Annotated[str | None, Parameter(group=_KAFKA_SECURITY)] = field(
        default=None, repr=False
    )
    """Password for SASL. Other users of the machine can see it, so prefer a file."""

    kafka_sasl_password_file: Annotated[Path | None, Parameter(group=_KAFKA_SECURITY)] = None
    """File with the password for SASL."""

    kafka_ssl_cafile: Annotated[Path | None, Parameter(group=_KAFKA_SECURITY)] = None
    """File with the certificates of authorities that sign brokers. Default: those of the system."""

    kafka_ssl_certfile: Annotated[Path | None, Parameter(group=_KAFKA_SECURITY)] = None
    """File with the server's own certificate, for SSL."""

    kafka_ssl_keyfile: Annotated[Path | None, Parameter(group=_KAFKA_SECURITY)] = None
    """File with the private key of that certificate, if the certificate's file does not have it."""

    def __post_init__(self) -> None:
        for server in self._servers:
            host, _, port = server.rpartition(":")
            if not host or "/" in host or not port.isdigit() or int(port) >= _MOST_PORTS:
                raise KafkaOptionsError(
                    f"--kafka-bootstrap-servers {server} is not understood: give host:port"
                )
        if self.kafka_partitions < 1 or self.kafka_replication < 1:
            raise KafkaOptionsError("--kafka-partitions and --kafka-replication are at least 1")
        if _TOPIC_PREFIX.match(self.kafka_topic_prefix) is None:
            raise KafkaOptionsError(
                f"--kafka-topic-prefix {self.kafka_topic_prefix} has other characters than "
                "letters, digits, '.', '_' and '-', or more than 100"
            )
        if self.kafka_retention_bytes < 1:
            raise KafkaOptionsError("--kafka-retention-bytes must be at least 1")
        # The negated comparison also refuses nan.
        if self.kafka_retention_seconds is not None and not self.kafka_retention_seconds > 0:
            raise KafkaOptionsError("--kafka-retention-seconds must be more than 0")
        if self.kafka_tombstones and self.kafka_key == "collection":
            raise KafkaOptionsError(
                "--kafka-tombstones with --kafka-key collection would make compacted topics "
                "delete all items of an item collection with one of them: give one of the options"
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
        self._refuse_ineffective()

    def _refuse_ineffective(self) -> None:
        """Refuse options without effect, such as a password: its user expects a secure connection.

        An option that is given with its default value counts as missing.
        """
        if not self._has_sasl and (self.kafka_sasl_username is not None or self._has_password):
            raise KafkaOptionsError(
                "--kafka-sasl-username and its password are for --kafka-security-protocol "
                "SASL_SSL or SASL_PLAINTEXT"
            )
        files = (self.kafka_ssl_cafile, self.kafka_ssl_certfile, self.kafka_ssl_keyfile)
        if not self.kafka_security_protocol.endswith("SSL") and any(files):
            raise KafkaOptionsError(
                "--kafka-ssl-cafile, --kafka-ssl-certfile and --kafka-ssl-keyfile are for "
                "--kafka-security-protocol SSL or SASL_SSL"
            )
        of_debezium = self.kafka_debezium_schema or self.kafka_debezium_images != "dynamodb"
        if of_debezium and self.kafka_format != "debezium":
            raise KafkaOptionsError(
                "--kafka-debezium-schema and --kafka-debezium-images are for "
                "--kafka-format debezium"
            )
        given = [
            f"--{each.name.replace('_', '-')}"
            for each in fields(self)
            if each.name != "kafka_bootstrap_servers" and getattr(self, each.name) != each.default
        ]
        if given and not self._servers:
            verb = "needs" if len(given) == 1 else "need"
            raise KafkaOptionsError(f"{', '.join(given)} {verb} --kafka-bootstrap-servers")

    def relay_settings(self, version: str, *, has_nodes: bool) -> RelaySettings:
        """The settings of relays, for a server of this version, or for a node of a cluster."""
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
            fences_former_homes=has_nodes,
            all_tables=self.kafka_all_tables,
            snapshot=self.kafka_snapshot,
            retention_bytes=self.kafka_retention_bytes,
            retention_seconds=self.kafka_retention_seconds,
            version=version,
        )

    @property
    def broker_settings(self) -> BrokerSettings | None:
        """The settings of the connection to the broker; None without a broker.

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
        """The addresses, which may be separated by commas too."""
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
            raise KafkaOptionsError(
                f"--kafka-sasl-password-file {self.kafka_sasl_password_file} can't be read: "
                f"{error.strerror}"
            ) from error
        except UnicodeDecodeError as error:
            raise KafkaOptionsError(
                f"--kafka-sasl-password-file {self.kafka_sasl_password_file} is not UTF-8 text"
            ) from error


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path.expanduser())
