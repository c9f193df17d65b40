"""The port of a message broker: the operations that publishing changes needs.

Topics consist of partitions. Records are appended to a partition in order, and acknowledged once
they are replicated. A transaction makes records of several partitions visible together, or none of
them. No other module knows the client library.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from dynactor.streams.kafka.message import KafkaMessage

SecurityProtocol: TypeAlias = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


class BrokerError(Exception):
    """The base class of a broker's errors; the message describes the error."""


class Unreachable(BrokerError):
    """The broker sent no answer, or sent it too late. The caller should retry."""


class Refused(BrokerError):
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


class TooLarge(DeliveryFailed):
    """The broker refuses a batch as too large: the ``count`` records after the delivered ones."""

    def __init__(self, message: str, delivered: int, count: int) -> None:
        super().__init__(message, delivered)
        self.count = count


class Fenced(DeliveryFailed):
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
        so the caller sets a deadline.

        Raises:
            DeliveryFailed: or one of its subclasses.
        """
        ...

    async def begin(self) -> None:
        """Begin a transaction; only valid on a publisher with a transactional id.

        Raises:
            DeliveryFailed: the transaction did not begin.
        """
        ...

    async def commit(self) -> None:
        """Commit the transaction; its records are visible when this returns.

        Raises:
            DeliveryFailed: whether it was committed is unknown; ``Fenced``: it was not.
        """
        ...

    async def close(self) -> None:
        """Abandon unacknowledged records and disconnect, within seconds."""
        ...


class Broker(Protocol):
    """A message broker."""

    async def check(self) -> None:
        """Connect to the broker once.

        Raises:
            Unreachable, Refused: the broker gave no answer.
        """
        ...

    async def ensure_topic(self, topic: Topic) -> FoundTopic:
        """Create a topic if it does not exist.

        Raises:
            Unreachable, Refused: the topic may not exist.
        """
        ...

    async def is_empty(self, topic: str, partition_count: int) -> bool:
        """Whether a topic with this number of partitions has never received a record.

        Raises:
            Unreachable, Refused: the broker gave no answer.
        """
        ...

    async def open_publisher(self, transactional_id: str | None = None) -> Publisher:
        """Open a publisher; one with an id publishes in transactions.

        An earlier publisher with this transactional id is fenced, and its open transaction is
        aborted.

        Raises:
            Unreachable, Refused: no publisher was opened.
        """
        ...

    async def read_last(self, topic: str, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """The last committed value of each of these keys in a topic of one partition.

        Raises:
            Unreachable, Refused: the topic can't be read.
        """
        ...


class BrokerSettings(Struct, frozen=True):
    """How to connect to a broker. ``bootstrap_servers`` are ``host:port``; files are paths.

    Invariant: its string forms never contain the password.
    """

    bootstrap_servers: tuple[str, ...]
    security_protocol: SecurityProtocol = "PLAINTEXT"
    sasl_mechanism: SaslMechanism = "PLAIN"
    sasl_username: str | None = None
    sasl_password: str | None = None
    ssl_ca_file: str | None = None
    ssl_certificate_file: str | None = None
    ssl_key_file: str | None = None
    # The time-out of one request to the broker.
    request_timeout_seconds: float = 15.0

    def __repr__(self) -> str:
        names = (name for name in self.__struct_fields__ if name != "sasl_password")
        return f"BrokerSettings({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"
