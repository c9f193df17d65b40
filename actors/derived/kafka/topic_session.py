"""A connection of one sink to the broker: the topics that it needs, and a publisher."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from dynactor.actors.derived.kafka.kafka_environment import KafkaEnvironment
from dynactor.actors.derived.kafka.relay_settings import RelaySettings
from dynactor.actors.followers.checkpoint import Checkpoint
from dynactor.actors.runtime.randomness import jittered
from dynactor.model.limits import KIB, MIB
from dynactor.streams.kafka.broker import FoundTopic, Publisher
from dynactor.streams.kafka.message import KafkaMessage

# Memory for the rounds of all sinks together, shared equally.
_ROUNDS_BYTES: Final = 16 * MIB
_LEAST_ROUND_BYTES: Final = 64 * KIB
_MOST_ROUND_BYTES: Final = 2 * MIB
_POSITIONS_BATCH_BYTES: Final = 512 * KIB


class TopicSession:
    """A session, which can be opened again after its publisher has failed.

    With a ``transactional_id`` its publisher publishes in transactions, and fences the publisher
    that had the id before. ``keeps_positions``: the transactions also have the position of each
    log. ``is_shared``: the publisher is the one that all relays share. While it waits for one
    relay, the others wait, too.
    """

    def __init__(
        self,
        environment: KafkaEnvironment,
        topic: str,
        subscriber_id: bytes,
        *,
        transactional_id: str | None = None,
        keeps_positions: bool = False,
        is_shared: bool = False,
    ) -> None:
        assert transactional_id is None or not is_shared
        assert transactional_id is not None or not keeps_positions
        self.topic = topic
        self._environment = environment
        self._subscriber_id = subscriber_id
        self._transactional_id = transactional_id
        self.keeps_positions = keeps_positions
        self._is_shared = is_shared
        self._publisher: Publisher | None = None
        # Whether the topic did not exist before.
        self._made_topic = False

    @property
    def settings(self) -> RelaySettings:
        """The settings of all sinks."""
        return self._environment.settings

    @property
    def is_transactional(self) -> bool:
        """Whether the session publishes in Kafka transactions."""
        return self._transactional_id is not None

    @property
    def is_open(self) -> bool:
        """Whether there is a publisher."""
        return self._publisher is not None

    @property
    def publisher(self) -> Publisher:
        """The publisher of an open session."""
        assert self._publisher is not None
        return self._publisher

    @property
    def round_bytes(self) -> int:
        """Maximum bytes of messages in a round: all sinks share the memory for them."""
        share = _ROUNDS_BYTES // max(1, len(self._environment.running))
        return min(_MOST_ROUND_BYTES, max(_LEAST_ROUND_BYTES, share))

    def jittered(self, pause_seconds: float) -> float:
        """A random pause, so that sinks don't reconnect at the same time."""
        return jittered(pause_seconds, self._environment.randomness)

    async def ensure_topic(self) -> FoundTopic:
        """Create the topic unless it exists; raises ``Unreachable`` or ``Refused``."""
        return await self._environment.broker.ensure_topic(self.settings.topic(self.topic))

    async def open(self) -> FoundTopic:
        """Create the missing topics, and open a publisher; raises ``Unreachable``, ``Refused``."""
        broker = self._environment.broker
        self._environment.running.add(self._subscriber_id)
        found = await self.ensure_topic()
        # A second attempt finds the topics that the first attempt has created.
        self._made_topic |= found.is_new
        if self.keeps_positions:
            await broker.ensure_topic(self.settings.positions_topic)
        if self._is_shared:
            self._publisher = await self._environment.shared.take()
        else:
            self._publisher = await broker.open_publisher(self._transactional_id)
        return found

    async def has_new_topic(self, partition_count: int) -> bool:
        """Whether the topic has no records yet; raises ``Unreachable`` or ``Refused``.

        A server that was killed before it published may have left an empty topic.
        """
        if self._made_topic:
            return True
        return await self._environment.broker.is_empty(self.topic, partition_count)

    async def read_positions(self, partition_numbers: Iterable[int]) -> dict[int, int]:
        """The positions of committed transactions, by log; raises ``Unreachable``, ``Refused``."""
        numbers = {self._position_key(number): number for number in partition_numbers}
        topic = self.settings.positions_topic.name
        found = await self._environment.broker.read_last(topic, numbers)
        return {numbers[key]: int(value) for key, value in found.items()}

    async def publish_positions(self, positions: Mapping[int, Checkpoint]) -> None:
        """Add the positions of the logs to the transaction; raises ``DeliveryFailed``."""
        messages = [
            KafkaMessage(self._position_key(number), b"%d" % position.counter, (), 0)
            for number, position in positions.items()
        ]
        topic = self.settings.positions_topic.name
        await self.publisher.publish(topic, 0, messages, _POSITIONS_BATCH_BYTES)

    async def discard(self) -> None:
        """Close a publisher that failed; the next ``open`` opens another one."""
        publisher, self._publisher = self._publisher, None
        if publisher is None:
            return
        if self._is_shared:
            await self._environment.shared.discard(publisher)
        else:
            await publisher.close()

    async def close(self) -> None:
        """Release the publisher; a shared one stays open."""
        self._environment.running.discard(self._subscriber_id)
        if not self._is_shared:
            await self.discard()
        self._publisher = None

    def _position_key(self, partition_number: int) -> bytes:
        return f"{self._transactional_id}/{partition_number}".encode()
