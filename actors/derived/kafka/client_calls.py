"""Calls of the broker's client library, which may cancel the futures that it returned.

Awaiting such a future raises ``CancelledError``, as if the awaiting task were canceled. This error
counts as a failed delivery: records that were sent may still arrive, and another publisher sends
them again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import anyio

from dynactor.actors.runtime.cancellation import is_cancellation
from dynactor.streams.kafka.broker import BrokerError, DeliveryFailed, Publisher
from dynactor.streams.kafka.message import KafkaMessage


@contextmanager
def failing_if_cancelled() -> Iterator[None]:
    """Wraps calls of a broker or publisher, in the task that makes them.

    Raises ``DeliveryFailed`` if the library has canceled a future. A cancellation of the task
    itself passes through.
    """
    try:
        yield
    except asyncio.CancelledError as error:
        if is_cancellation(error):
            raise
        raise DeliveryFailed("the client library has canceled the call") from error


async def publish_to_each(
    publisher: Publisher,
    topic: str,
    messages: Mapping[int, Sequence[KafkaMessage]],
    max_batch_bytes: int,
) -> dict[int, BrokerError | None]:
    """Publish to partitions of a topic at the same time; return the error of each, or None."""
    outcomes: dict[int, BrokerError | None] = dict.fromkeys(messages)

    async def publish(partition: int) -> None:
        try:
            with failing_if_cancelled():
                await publisher.publish(topic, partition, messages[partition], max_batch_bytes)
        except BrokerError as error:
            outcomes[partition] = error

    async with anyio.create_task_group() as group:
        for partition in messages:
            group.start_soon(publish, partition)
    return outcomes
