"""The actor that publishes a table's changes to a Kafka topic until it is switched off.

With exactly-once delivery a round is a Kafka transaction, which also contains the position of each
log. At the start those positions take precedence over the checkpoints.

With several nodes a round is a transaction, too: the publisher of a table's home fences that of its
former home, whose records would come behind later ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeAlias

import structlog
from msgspec import Struct

from dynactor.actors.derived.kafka.kafka_environment import KafkaEnvironment
from dynactor.actors.derived.kafka.kafka_sender import KafkaSender
from dynactor.actors.derived.kafka.kafka_sink import KafkaSink, relay_contract
from dynactor.actors.derived.kafka.relay_settings import RelaySettings
from dynactor.actors.derived.kafka.topic_session import TopicSession
from dynactor.actors.feeds.change_feed import ChangeFeed
from dynactor.actors.followers.round_follower import RoundFollower, RoundSettings, SnapshotSource
from dynactor.actors.followers.sink import Delivery
from dynactor.actors.followers.table_progress import TableProgress
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.actors.table.followers import Subscription
from dynactor.storage.store import Store
from dynactor.streams.kafka.broker import BatchTooLarge, BrokerError
from dynactor.streams.kafka.message import KafkaMessage, KafkaSource

RelayState: TypeAlias = Literal[
    "IDLE", "CONNECTING", "PUBLISHING", "SNAPSHOT", "WAITING", "FAILING"
]

# Maximum number of records that the relay publishes again after a crash.
_CHECKPOINT_RECORDS: Final = 4_096
_NO_BROKER: Final = "the server was started without --kafka-bootstrap-servers"

_log = structlog.get_logger("kafka")


class RelayTarget(Struct, frozen=True):
    """The parameters of a relay: a destination of a table.

    ``subscriber`` names its checkpoints, ``publisher_id`` its transactions and positions.
    ``partition_count`` is the topic's number of partitions at the first connection; None before
    that connection. ``needs_snapshot``: the topic must get a gap and every item of the table before
    later changes. ``began_late``: the table had writes before the relay.
    """

    table_id: int
    subscriber: bytes
    publisher_id: str
    topic: str
    source: KafkaSource
    partition_count: int | None = None
    needs_snapshot: bool = False
    began_late: bool = False


class KafkaRelay:
    """The relay's actor. Without a broker (no environment) it publishes nothing.

    ``settled`` is called with the topic's number of partitions whenever the topic is connected and
    has the snapshot that it may need.
    """

    def __init__(
        self,
        place: RelayTarget,
        feeds: Sequence[ChangeFeed],
        store: Store,
        environment: KafkaEnvironment | None,
        settings: RelaySettings,
        *,
        settled: Callable[[int], None],
    ) -> None:
        self.name = f"relay of table {place.source.table_name} to topic {place.topic}"
        self.mailbox = Mailbox(1)
        self.in_progress: list[Envelope] = []
        self.contract = relay_contract(settings)
        self._place = place
        self._logs = TableProgress(feeds, store, subscriber_id=place.subscriber, reader=self.name)
        self._has_published = asyncio.Event()
        self._trouble: type[BrokerError] | None = BrokerError
        self._sender: KafkaSender | None = None
        self._follower: RoundFollower[KafkaMessage] | None = None
        if environment is not None:
            self._connect(environment, store, settled)

    def _connect(
        self, environment: KafkaEnvironment, store: Store, settled: Callable[[int], None]
    ) -> None:
        place, settings = self._place, environment.settings
        partition_count = place.partition_count or 0
        sink = KafkaSink(place.source, settings, self.contract, partition_count=partition_count)
        keeps_positions = self.contract.delivery is Delivery.TRANSACTION
        is_transactional = keeps_positions or settings.fences_former_homes
        session = TopicSession(
            environment,
            place.topic,
            place.subscriber,
            transactional_id=place.publisher_id if is_transactional else None,
            keeps_positions=keeps_positions,
            is_shared=not is_transactional,
        )
        self._sender = KafkaSender(
            session, sink, self._changed, is_new=partition_count == 0 and not place.began_late
        )
        self._follower = RoundFollower(
            self.name,
            self._logs,
            sink,
            self._sender,
            SnapshotSource(store, environment.clock, place.source.table_name),
            settings=RoundSettings(_CHECKPOINT_RECORDS, closing_seconds=settings.closing_seconds),
            needs_snapshot=place.needs_snapshot,
            on_progress=self._has_published.set,
            on_current=lambda: settled(sink.partition_count),
        )

    # -- for others -------------------------------------------------------------------------

    @property
    def subscription(self) -> Subscription:
        """Follow all logs of the table."""
        return Subscription.ALL

    @property
    def state(self) -> RelayState:
        """The present state of the relay."""
        if self._sender is None or self._follower is None or not self._follower.is_running:
            return "IDLE"
        if self._sender.state == "SENDING":
            return "SNAPSHOT" if self._follower.needs_snapshot else "PUBLISHING"
        return self._sender.state

    @property
    def problem(self) -> str | None:
        """The reason why the relay can't publish; None while it can."""
        return _NO_BROKER if self._sender is None else self._sender.problem

    @property
    def published_records(self) -> int:
        """Number of changes and items that were acknowledged."""
        return self._follower.records if self._follower else 0

    @property
    def published_bytes(self) -> int:
        """Number of bytes of messages that were acknowledged."""
        return self._follower.size_bytes if self._follower else 0

    @property
    def errors(self) -> int:
        """Number of failed attempts."""
        return self._sender.errors if self._sender else 0

    @property
    def omitted_images(self) -> int:
        """Number of records that were published with their keys only."""
        return self._sender.omitted_images if self._sender else 0

    @property
    def lag_records(self) -> int:
        """Maximum number of changes that are not published."""
        return self._logs.lag_records

    @property
    def lag_bytes(self) -> int:
        """Number of bytes of records that are not published."""
        return self._logs.lag_bytes

    async def oldest_unpublished_us(self) -> int | None:
        """The time of the oldest change that is not published; None if all are published."""
        return await self._logs.oldest_unapplied_us()

    def split(self, children: Sequence[ChangeFeed]) -> None:
        """Publish the logs of a split partition's children, after the parent's log."""
        self._logs.add(children)

    async def load(self) -> None:
        """Load the checkpoints, so that the lag is known before the relay starts."""
        await self._logs.load()

    async def drain(self) -> None:
        """Wait until all durable changes are published, or the broker accepts no more of them."""
        ends = [(log, log.feed.tail) for log in self._logs]
        for log, end in ends:
            while True:
                # Clear before the check, so that a round that is published meanwhile is not missed.
                self._has_published.clear()
                # Without another record the position does not move, because the last changes have
                # no records.
                if log.position.counter >= end or await log.first() is None:
                    break
                if self.state not in ("CONNECTING", "PUBLISHING", "SNAPSHOT"):
                    return
                await self._has_published.wait()

    # -- the actor --------------------------------------------------------------------------

    async def run(self) -> None:
        """Publish until the mailbox is closed; then store the checkpoints."""
        closed = self.mailbox.when_closed()
        if self._follower is None:
            _log.warning("relay_blocked", relay=self.name, reason=_NO_BROKER)
            await closed
            return
        try:
            await self._follower.run(closed)
        finally:
            self._has_published.set()

    def _changed(self, trouble: BrokerError | None) -> None:
        """Log when the broker fails, and when it answers again."""
        self._has_published.set()
        kind = None if trouble is None else type(trouble)
        if kind is self._trouble or kind is BatchTooLarge:
            return
        self._trouble = kind
        if trouble is None:
            _log.info("relay_resumed", relay=self.name, lag_records=self.lag_records)
        else:
            _log.warning("relay_blocked", relay=self.name, reason=str(trouble))
