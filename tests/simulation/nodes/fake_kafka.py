"""The connections of all nodes to one fake Kafka cluster, with faults of the network.

A request is executed at a moment between its start and its answer. It may be lost, its answer may
be lost, or it is executed after the node has given up. A killed node's requests on their way are
still executed. The messages of a node that is cut off wait until the cut ends.

The broker fences: once a publisher is opened with a transactional id, the broker refuses records
and commits of earlier publishers with that id. Their open transactions are never committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import Context, copy_context
from random import Random
from typing import Any, Final, TypeVar

from dynactor.streams.kafka.broker import (
    BrokerError,
    DeliveryFailed,
    FoundTopic,
    Topic,
    Unreachable,
)
from dynactor.streams.kafka.message import KafkaMessage
from tests.support.kafka.fake_broker import FakeBroker, FakePublisher

T = TypeVar("T")

_MOST_LATE_SECONDS: Final = 4.0


class KafkaNetwork:
    """The links between nodes and the broker.

    ``breaks`` is the probability that a request fails, and ``slow`` that a message takes long.
    """

    def __init__(self, draw: Random) -> None:
        self.broker = FakeBroker()
        self.breaks = self.slow = 0.0
        self.trace: Callable[[str], None] = lambda _: None
        # The nodes that are cut off, and the messages that wait for the end of the cut.
        self._cut: dict[str, list[Callable[[], None]]] = {}
        self._draw = draw
        self._context = Context()

    def cut_off(self, node: str) -> None:
        """Hold all messages to and from a node."""
        self._cut.setdefault(node, [])

    def heal(self, node: str | None = None) -> None:
        """Deliver the messages of a node again, or those of all nodes."""
        for name in [node] if node is not None else list(self._cut):
            for send in self._cut.pop(name, ()):
                send()

    async def call(
        self, node: str, operation: Callable[..., Awaitable[T]], *arguments: Any, lost: BrokerError
    ) -> T:
        """Execute an operation at the broker; raises ``lost`` if the node gets no answer."""
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[T] = loop.create_future()
        of_node = copy_context()
        fate = self._draw.randrange(3) if self._draw.random() < self.breaks else None

        def answer(outcome: asyncio.Task[T]) -> None:
            error = outcome.exception()
            self.trace(f"{node} kafka {operation.__name__} {error!r:.100}")
            if fate is None:
                self._send(node, of_node, _settle, reply, outcome)

        def arrive() -> None:
            loop.create_task(_run(operation, arguments), context=self._context).add_done_callback(
                answer, context=self._context
            )

        if fate is not None:
            loop.call_later(self._delay(), _fail, reply, lost, context=of_node)
        if fate != 0:
            late = self._draw.random() * _MOST_LATE_SECONDS if fate == 1 else 0.0
            self._send(node, self._context, arrive, late=late)
        return await reply

    def _send(
        self,
        node: str,
        context: Context,
        work: Callable[..., None],
        *parts: Any,
        late: float = 0.0,
    ) -> None:
        """Do something at the other end after the time of a message."""
        loop = asyncio.get_running_loop()

        def send() -> None:
            loop.call_later(self._delay() + late, arrive, context=context)

        def arrive() -> None:
            held = self._cut.get(node)
            if held is None:
                work(*parts)
            else:
                held.append(send)

        send()

    def _delay(self) -> float:
        if self._draw.random() < self.slow:
            return self._draw.random() * 2
        return 0.0005 + self._draw.random() / 500


class NodesBroker:
    """The broker as one node reaches it (``Broker``)."""

    def __init__(self, network: KafkaNetwork, node: str) -> None:
        self._network = network
        self._node = node

    async def check(self) -> None:
        await self._call(self._network.broker.check)

    async def ensure_topic(self, topic: Topic) -> FoundTopic:
        return await self._call(self._network.broker.ensure_topic, topic)

    async def is_empty(self, topic: str, partition_count: int) -> bool:
        return await self._call(self._network.broker.is_empty, topic, partition_count)

    async def open_publisher(self, transactional_id: str | None = None) -> NodesPublisher:
        opened = await self._call(self._network.broker.open_publisher, transactional_id)
        return NodesPublisher(self._network, self._node, opened)

    async def read_last(self, topic: str, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        return await self._call(self._network.broker.read_last, topic, list(keys))

    async def _call(self, operation: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        lost = Unreachable("no answer")
        return await self._network.call(self._node, operation, *arguments, lost=lost)


class NodesPublisher:
    """A publisher of a node (``Publisher``). Its end does not end the requests on their way."""

    def __init__(self, network: KafkaNetwork, node: str, publisher: FakePublisher) -> None:
        self._network = network
        self._node = node
        self._publisher = publisher
        self._is_closed = False

    async def publish(
        self, topic: str, partition: int, messages: Sequence[KafkaMessage], max_batch_bytes: int
    ) -> None:
        await self._call(
            self._publisher.publish, topic, partition, tuple(messages), max_batch_bytes
        )

    async def begin(self) -> None:
        await self._call(self._publisher.begin)

    async def commit(self) -> None:
        await self._call(self._publisher.commit)

    async def close(self) -> None:
        self._is_closed = True

    async def _call(self, operation: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        if self._is_closed:
            raise DeliveryFailed("the publisher was discarded")
        lost = DeliveryFailed("the connection was lost")
        await self._network.call(self._node, operation, *arguments, lost=lost)


async def _run(operation: Callable[..., Awaitable[T]], arguments: Sequence[Any]) -> T:
    return await operation(*arguments)


def _settle(reply: asyncio.Future[T], outcome: asyncio.Task[T]) -> None:
    if reply.done():
        return
    error = outcome.exception()
    if error is None:
        reply.set_result(outcome.result())
    else:
        reply.set_exception(error)


def _fail(reply: asyncio.Future[Any], error: BrokerError) -> None:
    if not reply.done():
        reply.set_exception(error)
