"""The Kafka messages for changes and items of a table, and the contracts of relays and replays."""

from __future__ import annotations

from dynactor.actors.derived.kafka.relay_settings import RelaySettings
from dynactor.actors.followers.round_sink import Round, RoundSink
from dynactor.actors.followers.sink import ChangeOrder, Contract, Delivery, Gap
from dynactor.model.values.stored_item import StoredItem
from dynactor.streams.change_record import ChangeRecord
from dynactor.streams.kafka.message import (
    KafkaMessage,
    KafkaSource,
    change_messages,
    gap_message,
    snapshot_message,
    without_images,
)
from dynactor.streams.kafka.partitioner import kafka_partition


class KafkaSink(RoundSink[KafkaMessage]):
    """Makes the messages for one topic.

    ``partition_count`` is the topic's number of partitions at the first connection, and 0 before
    that connection. Partitions that are added later stay empty, because keys must not move between
    partitions.
    """

    def __init__(
        self,
        source: KafkaSource,
        settings: RelaySettings,
        contract: Contract,
        *,
        partition_count: int = 0,
    ) -> None:
        self.contract = contract
        self.partition_count = partition_count
        self._source = source
        self._form = settings.form

    def add_change(self, current: Round[KafkaMessage], record: ChangeRecord) -> None:
        """Add the messages for a change; they have one key."""
        self._add(current, change_messages(record, self._source, self._form))

    def add_item(self, current: Round[KafkaMessage], item: StoredItem, taken_us: int) -> None:
        """Add the message for an item of a snapshot."""
        self._add(current, [snapshot_message(item, self._source, self._form, taken_us=taken_us)])

    def add_gap(self, current: Round[KafkaMessage], now_us: int) -> None:
        """Add the message for a gap to each partition of the topic."""
        message = gap_message(self._source, self._form, time_us=now_us)
        for number in range(self.partition_count):
            current.messages[number].append(message)

    def without_images(self, message: KafkaMessage) -> KafkaMessage:
        """The message without images, for a broker that finds it too large, if it has any."""
        return without_images(message, self._source, self._form)

    def _add(self, current: Round[KafkaMessage], messages: list[KafkaMessage]) -> None:
        number = self.kafka_partition(messages[0])
        current.messages[number] += messages
        for message in messages:
            current.size_bytes += len(message.key) + len(message.value or b"")

    def kafka_partition(self, message: KafkaMessage) -> int:
        """The number of the topic's partition for a message."""
        return kafka_partition(message.key, self.partition_count)


def relay_contract(settings: RelaySettings) -> Contract:
    """The contract of a destination: after a gap, its topic gets all items again."""
    is_transactional = settings.delivery == "exactly-once"
    return Contract(
        ChangeOrder.ITEM,
        Gap.REBUILD,
        settings.retention_bytes,
        Delivery.TRANSACTION if is_transactional else Delivery.AT_LEAST_ONCE,
    )


def replay_contract(settings: RelaySettings) -> Contract:
    """The contract of a replay, which fails rather than omit a change."""
    return Contract(ChangeOrder.ITEM, Gap.END, settings.retention_bytes, Delivery.AT_LEAST_ONCE)
