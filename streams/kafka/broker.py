"""The port of a message broker: the operations that publishing changes needs.

Topics consist of partitions. Records are appended to a partition in order, and acknowledged once
they are replicated. A transaction makes records of several partitions visible together, or none of
them. No other module knows the client library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from dynactor.model.configuration_error import ConfigurationError
from dynactor.model.option import Option, OptionGroup, listed
from dynactor.model.secret_fields import SecretFields
from dynactor.streams.kafka.message import KafkaMessage

SecurityProtocol: TypeAlias = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


_MOST_PORTS: Final = 1 << 16


class BrokerError(Exception):
    """The base class of a broker's errors; the message describes the error."""


class Unreachable(BrokerError):
    """The broker sent no answer, or sent it too late. The caller should retry."""


class BrokerRefused(BrokerError):
    """The broker refuses: authentication, authorization, or too few replicas.

    A retry helps only after the broker's operator has changed the configuration.
    """


class DeliveryFailed(BrokerError):
    """Not all records were acknowledged; the outcome of the others is unknown.

    The publisher can't be used any more, because the broker could accept later records without
    these. The first ``delivered`` of the pending records were acknowledged.
    """

    def __init__(self, message: str, delivered: int = 0) -> None:
        super().__init__(message)
        self.delivered = delivered


class BatchTooLarge(DeliveryFailed):
    """The broker refuses a batch as too large: the ``count`` records after the delivered ones."""

    def __init__(self, message: str, delivered: int, count: int) -> None:
        super().__init__(message, delivered)
        self.count = count


class PublisherFenced(DeliveryFailed):
    """Another publisher has started with the same transactional id."""


class Topic(Struct, frozen=True):
    """A topic to create if it is missing; ``settings`` are Kafka's own."""

    name: str
    partition_count: int
    replication_factor: int
    settings: Mapping[str, str] = {}


class FoundTopic(NamedTuple):
    """An existing topic; ``is_new`` if it was just created."""

    partition_count: int
    is_new: bool


class Publisher(Protocol):
    """A producer of records. The caller that opened it closes it, also after a failed delivery."""

    async def publish(
        self, topic: str, partition: int, messages: Sequence[KafkaMessage], max_batch_bytes: int
    ) -> None:
        """Append records to a partition in order; return when all of them are acknowledged.

        Records are sent in batches of about ``max_batch_bytes``; a larger record is a batch of its
        own. Each record gets the time of sending. The call waits while the broker is unreachable,
        so the caller sets a deadline. Raises ``DeliveryFailed``.
        """

    async def begin(self) -> None:
        """Begin a transaction on a publisher with an id; raises ``DeliveryFailed``."""

    async def commit(self) -> None:
        """Commit the transaction; its records are visible when this returns.

        After ``DeliveryFailed`` the outcome is unknown, except after ``PublisherFenced``.
        """

    async def close(self) -> None:
        """Abandon unacknowledged records and disconnect, within seconds."""


class Broker(Protocol):
    """A message broker."""

    async def check(self) -> None:
        """Connect to the broker once; raises ``Unreachable`` or ``Refused``."""

    async def ensure_topic(self, topic: Topic) -> FoundTopic:
        """Create a topic if it does not exist; raises ``Unreachable`` or ``Refused``."""

    async def is_empty(self, topic: str, partition_count: int) -> bool:
        """Whether a topic with this number of partitions has never received a record.

        Raises ``Unreachable`` or ``Refused``.
        """

    async def open_publisher(self, transactional_id: str | None = None) -> Publisher:
        """Open a publisher; one with an id publishes in transactions.

        An earlier publisher with this transactional id is fenced, and its open transaction is
        aborted. Raises ``Unreachable`` or ``Refused``.
        """

    async def read_last(self, topic: str, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """The last committed value of each of these keys in a topic of one partition.

        Raises ``Unreachable`` or ``Refused`` if the topic can't be read.
        """


def _servers(texts: Iterable[str]) -> tuple[str, ...]:
    servers = listed(texts)
    for server in servers:
        host, _, port = server.rpartition(":")
        if not host or "/" in host or not port.isdigit() or int(port) >= _MOST_PORTS:
            raise ConfigurationError(
                f"--kafka-bootstrap-servers {server} is not understood: give host:port"
            )
    return servers


def _expanded(path: Path | None) -> Path | None:
    return None if path is None else path.expanduser()


class BrokerSettings(SecretFields, frozen=True):
    """How to connect to a broker, if any. Invariant: string forms never contain the password."""

    secret_fields = frozenset({"sasl_password"})

    bootstrap_servers: Annotated[
        tuple[str, ...], Option("--kafka-bootstrap-servers", OptionGroup.KAFKA, _servers)
    ] = ()
    """Addresses of brokers, as HOST:PORT. The brokers may be down when the server starts."""

    security_protocol: Annotated[
        SecurityProtocol, Option("--kafka-security-protocol", OptionGroup.KAFKA_SECURITY)
    ] = "PLAINTEXT"
    """Protocol of connections to brokers. SSL encrypts, SASL authenticates."""

    sasl_mechanism: Annotated[
        SaslMechanism, Option("--kafka-sasl-mechanism", OptionGroup.KAFKA_SECURITY)
    ] = "PLAIN"
    """Mechanism of SASL authentication."""

    sasl_username: Annotated[
        str | None, Option("--kafka-sasl-username", OptionGroup.KAFKA_SECURITY)
    ] = None
    """User name for SASL."""

    sasl_password: Annotated[
        str | None, Option("--kafka-sasl-password", OptionGroup.KAFKA_SECURITY)
    ] = None
    """Password for SASL. Other users of the machine can see it, so prefer a file."""

    sasl_password_file: Annotated[
        Path | None, Option("--kafka-sasl-password-file", OptionGroup.KAFKA_SECURITY)
    ] = None
    """File with the password for SASL."""

    ssl_ca_file: Annotated[
        Path | None, Option("--kafka-ssl-cafile", OptionGroup.KAFKA_SECURITY, _expanded)
    ] = None
    """File with the certificates of authorities that sign brokers. Default: those of the system."""

    ssl_certificate_file: Annotated[
        Path | None, Option("--kafka-ssl-certfile", OptionGroup.KAFKA_SECURITY, _expanded)
    ] = None
    """File with the server's own certificate, for SSL."""

    ssl_key_file: Annotated[
        Path | None, Option("--kafka-ssl-keyfile", OptionGroup.KAFKA_SECURITY, _expanded)
    ] = None
    """File with the private key of that certificate, if the certificate's file does not have it."""

    # The time-out of one request to the broker.
    request_timeout_seconds: float = 15.0
