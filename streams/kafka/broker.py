"""The broker's port: what those who publish changes may ask of a message broker.

Topics of partitions; records are appended to a partition in order and acknowledged once they are
replicated. A transaction makes records of several partitions visible together, or none of them.
Nobody else knows which client library talks to the broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from dynactor.streams.kafka.message import KafkaMessage

SecurityProtocol: TypeAlias = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


class BrokerError(Exception):
    """The root of the errors that a broker raises; the message says what happened."""


class Unreachable(BrokerError):
    """Nobody answered, or not in time. Try again."""


class Refused(BrokerError):
    """The broker does not want this: authentication, authorisation, replicas that it hasn't.

    Trying again helps when its operator has changed something.
    """


class DeliveryFailed(BrokerError):
    """Not all records were acknowledged, and what became of the others is unknown.

    The publisher is of no use any more: later records could be taken although these were not.
    ``delivered`` of the records in hand were acknowledged, the first ones.
    """

    def __init__(self, message: str, delivered: int = 0) -> None:
        super().__init__(message)
        self.delivered = delivered


class TooLarge(DeliveryFailed):
    """The broker takes no batch of this size: ``count`` records behind the delivered ones."""

    def __init__(self, message: str, delivered: int, count: int) -> None:
        super().__init__(message, delivered)
        self.count = count


class Fenced(DeliveryFailed):
    """Another publisher has begun under the same transactional id."""


class Topic(Struct, frozen=True):
    """A topic as it is to be created where it is missing; ``settings`` are Kafka's own."""

    name: str
    partition_count: int
    replication_factor: int
    settings: Mapping[str, str] = {}


class FoundTopic(NamedTuple):
    """A topic that is there; ``is_new`` if it was not there a moment ago."""

    partition_count: int
    is_new: bool


class Publisher(Protocol):
    """A producer of records. Whoever opened it closes it, after every error of delivery too."""

    async def publish(
        self, topic: str, partition: int, messages: Sequence[KafkaMessage], max_batch_bytes: int
    ) -> None:
        """Append records to a partition in order; return when all of them are acknowledged.

        They go in batches of about ``max_batch_bytes``, large records alone; each gets the time at
        which it is sent. While the broker is away this waits: a bound is the caller's to set.

        Raises:
            DeliveryFailed: as it says, with its sub-classes.
        """
        ...

    async def begin(self) -> None:
        """Begin a transaction; only of a publisher with a transactional id.

        Raises:
            DeliveryFailed: as it says.
        """
        ...

    async def commit(self) -> None:
        """Commit the transaction; what was published in it is visible when this returns.

        Raises:
            DeliveryFailed: whether it was committed is unknown; ``Fenced``: it was not.
        """
        ...

    async def close(self) -> None:
        """Give up what is not acknowledged and let go of the broker, within seconds."""
        ...


class Broker(Protocol):
    """A message broker."""

    async def ensure_topic(self, topic: Topic) -> FoundTopic:
        """Create a topic unless it is there.

        Raises:
            Unreachable, Refused: the topic may not be there.
        """
        ...

    async def is_empty(self, topic: str, partition_count: int) -> bool:
        """Whether nothing was ever appended to a topic of so many partitions.

        Raises:
            Unreachable, Refused: nobody knows.
        """
        ...

    async def open_publisher(self, transactional_id: str | None = None) -> Publisher:
        """A publisher; with an id, one that publishes in transactions.

        Whoever had this transactional id is fenced, and what he had not committed is given up.

        Raises:
            Unreachable, Refused: there is none.
        """
        ...

    async def read_last(self, topic: str, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """The last committed value under each of these keys that a topic of one partition has.

        Raises:
            Unreachable, Refused: it can't be read.
        """
        ...


class BrokerSettings(Struct, frozen=True):
    """How a broker is reached. ``bootstrap_servers`` are ``host:port``; files are paths.

    Invariant: its password is in no text that is made of it.
    """

    bootstrap_servers: tuple[str, ...]
    security_protocol: SecurityProtocol = "PLAINTEXT"
    sasl_mechanism: SaslMechanism = "PLAIN"
    sasl_username: str | None = None
    sasl_password: str | None = None
    ssl_ca_file: str | None = None
    ssl_certificate_file: str | None = None
    ssl_key_file: str | None = None
    # How long the broker may take for one answer.
    request_timeout_seconds: float = 15.0

    def __repr__(self) -> str:
        names = (name for name in self.__struct_fields__ if name != "sasl_password")
        return f"BrokerSettings({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"
