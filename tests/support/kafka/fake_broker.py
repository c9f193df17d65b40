"""A message broker in memory, with the faults of a real one.

The broker has topics with partitions, and readers see the records of committed transactions. It can
be unreachable, stop answering, refuse requests, lose acknowledgments, reject batches as too large,
and fence publishers.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from dynactor.streams.kafka.broker import (
    BatchTooLarge,
    BrokerError,
    DeliveryFailed,
    FoundTopic,
    PublisherFenced,
    Topic,
    Unreachable,
)
from dynactor.streams.kafka.message import KafkaMessage


class Appended(NamedTuple):
    """A record in a partition; ``transaction`` is None if the record is in no transaction."""

    message: KafkaMessage
    transaction: int | None


class FakeBroker:
    """The broker. A test injects faults by setting its attributes."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        # The error that every request gets.
        self.refusal: BrokerError | None = None
        # While this event is not set, no request is answered.
        self.answers = asyncio.Event()
        self.answers.set()
        # These publishers get no answers either, until the event is set.
        self.stuck: set[FakePublisher] = set()
        self.resumed = asyncio.Event()
        # The number of following publishers that fail to open.
        self.failing_opens = 0
        # The number of following batches that are stored but not acknowledged.
        self.lost_acknowledgments = 0
        # The number of following batches that fail without being stored.
        self.failures = 0
        # The number of following answers that are canceled, as when a client library cancels an
        # internal future.
        self.cancelled_answers = 0
        # The number of following commits that succeed but are not acknowledged.
        self.lost_commits = 0
        self.max_batch_bytes = 1 << 62
        # The number of publishers that wait for an answer.
        self.waiting = 0
        self.opened = 0
        self.open_publishers: set[FakePublisher] = set()
        self.largest_batches: defaultdict[str, int] = defaultdict(int)
        self._partitions: defaultdict[tuple[str, int], list[Appended]] = defaultdict(list)
        self._committed: set[int] = set()
        self._epochs: defaultdict[str, int] = defaultdict(int)
        self._transactions = 0
        self._changed = asyncio.Event()

    # -- for tests --------------------------------------------------------------------------

    def partition(self, topic: str, number: int) -> list[KafkaMessage]:
        """The committed records of a partition."""
        return [
            appended.message
            for appended in self._partitions[topic, number]
            if appended.transaction is None or appended.transaction in self._committed
        ]

    def messages(self, topic: str) -> list[KafkaMessage]:
        """The committed records of a topic, partition by partition."""
        if topic not in self.topics:
            return []
        return [
            message
            for number in range(self.topics[topic].partition_count)
            for message in self.partition(topic, number)
        ]

    async def wait_messages(self, topic: str, count: int) -> list[KafkaMessage]:
        """Wait until a topic has this many committed records, and return them."""
        while len(found := self.messages(topic)) < count:
            self._changed.clear()
            await self._changed.wait()
        return found

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Answer no request within the context."""
        self.answers.clear()
        try:
            yield
        finally:
            self.answers.set()

    @contextmanager
    def unreachable(self, error: BrokerError | None = None) -> Iterator[None]:
        """Refuse and close all connections within the context."""
        self.refusal = error or Unreachable("nobody is there")
        try:
            yield
        finally:
            self.refusal = None

    # -- the port ---------------------------------------------------------------------------

    async def check(self) -> None:
        await self._admit()

    async def ensure_topic(self, topic: Topic) -> FoundTopic:
        await self._admit()
        is_new = topic.name not in self.topics
        return FoundTopic(self.topics.setdefault(topic.name, topic).partition_count, is_new)

    async def is_empty(self, topic: str, partition_count: int) -> bool:
        await self._admit()
        return not any(self._partitions[topic, number] for number in range(partition_count))

    async def open_publisher(self, transactional_id: str | None = None) -> FakePublisher:
        await self._admit()
        if self.failing_opens:
            self.failing_opens -= 1
            raise Unreachable("no coordinator")
        self.opened += 1
        epoch = 0
        if transactional_id is not None:
            self._epochs[transactional_id] += 1
            epoch = self._epochs[transactional_id]
        publisher = FakePublisher(self, transactional_id, epoch)
        self.open_publishers.add(publisher)
        return publisher

    async def read_last(self, topic: str, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        await self._admit()
        wanted = set(keys)
        return {
            message.key: message.value
            for message in self.partition(topic, 0)
            if message.key in wanted and message.value is not None
        }

    async def _admit(self) -> None:
        await self.answers.wait()
        await self.cancel_answer()
        if self.refusal is not None:
            raise self.refusal

    # -- for its publishers -----------------------------------------------------------------

    async def cancel_answer(self) -> None:
        """Cancel the next answer if ``cancelled_answers`` is set; the caller is canceled."""
        if self.cancelled_answers:
            self.cancelled_answers -= 1
            answer = asyncio.get_running_loop().create_future()
            answer.cancel()
            await answer

    def append(
        self, topic: str, partition: int, batch: Sequence[KafkaMessage], transaction: int | None
    ) -> None:
        assert partition < self.topics[topic].partition_count, "no such partition"
        self._partitions[topic, partition] += [Appended(message, transaction) for message in batch]
        self.largest_batches[topic] = max(self.largest_batches[topic], len(batch))
        self._changed.set()

    def begun(self) -> int:
        self._transactions += 1
        return self._transactions

    def committed(self, transaction: int) -> None:
        self._committed.add(transaction)
        self._changed.set()

    def is_fenced(self, transactional_id: str | None, epoch: int) -> bool:
        return transactional_id is not None and self._epochs[transactional_id] != epoch


class FakePublisher:
    """A publisher of the fake broker."""

    def __init__(self, broker: FakeBroker, transactional_id: str | None, epoch: int) -> None:
        self._broker = broker
        self._transactional_id = transactional_id
        self._epoch = epoch
        self._transaction: int | None = None
        self._failed = False
        self._closed = asyncio.Event()

    async def publish(
        self, topic: str, partition: int, messages: Sequence[KafkaMessage], max_batch_bytes: int
    ) -> None:
        assert self._transactional_id is None or self._transaction is not None
        delivered = 0
        while delivered < len(messages):
            batch = _batch(messages, delivered, max_batch_bytes)
            await self._answered(delivered)
            size_bytes = sum(map(_size_bytes, batch))
            if size_bytes > self._broker.max_batch_bytes:
                self._failed = True
                raise BatchTooLarge(f"{size_bytes} bytes", delivered, len(batch))
            if self._broker.failures:
                self._broker.failures -= 1
                self._failed = True
                raise DeliveryFailed("out of order", delivered)
            self._broker.append(topic, partition, batch, self._transaction)
            if self._broker.lost_acknowledgments:
                self._broker.lost_acknowledgments -= 1
                self._failed = True
                raise DeliveryFailed("the connection was lost", delivered)
            delivered += len(batch)

    async def begin(self) -> None:
        await self._answered(0)
        assert self._transactional_id is not None
        assert self._transaction is None
        self._transaction = self._broker.begun()

    async def commit(self) -> None:
        assert self._transaction is not None
        await self._answered(0)
        self._broker.committed(self._transaction)
        self._transaction = None
        if self._broker.lost_commits:
            self._broker.lost_commits -= 1
            self._failed = True
            raise DeliveryFailed("the connection was lost")

    async def close(self) -> None:
        self._closed.set()
        self._broker.open_publishers.discard(self)

    async def _answered(self, delivered: int) -> None:
        """Wait for the broker's answer.

        Raises: DeliveryFailed: the publisher failed before, or the broker has a fault, or a newer
        publisher has fenced this one.
        """
        await asyncio.sleep(0)
        closed = asyncio.ensure_future(self._closed.wait())
        is_stuck = self in self._broker.stuck
        answers = self._broker.resumed if is_stuck else self._broker.answers
        waiting = [closed, asyncio.ensure_future(answers.wait())]
        self._broker.waiting += 1
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._broker.waiting -= 1
            for future in waiting:
                future.cancel()
        if self._closed.is_set():
            raise DeliveryFailed("the publisher was discarded", delivered)
        await self._broker.cancel_answer()
        if self._broker.refusal is not None or self._failed:
            self._failed = True
            raise DeliveryFailed("no connection", delivered)
        if self._broker.is_fenced(self._transactional_id, self._epoch):
            raise PublisherFenced("another one has begun", delivered)


def _batch(
    messages: Sequence[KafkaMessage], start: int, max_batch_bytes: int
) -> list[KafkaMessage]:
    batch: list[KafkaMessage] = []
    size_bytes = 0
    for message in messages[start:]:
        batch.append(message)
        size_bytes += _size_bytes(message)
        if size_bytes >= max_batch_bytes:
            break
    return batch


def _size_bytes(message: KafkaMessage) -> int:
    return len(message.key) + len(message.value or b"")
