"""Calls of the broker's client library."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anyio

from dynactor.actors.derived.kafka.client_calls import publish_to_each
from dynactor.streams.kafka.message import KafkaMessage
from tests.support.kafka.fake_broker import FakeBroker, FakePublisher

MESSAGES = {number: [KafkaMessage(b"key", b"value", (), 0)] for number in range(2)}


class HalfPublisher(FakePublisher):
    """Waits with partition 0; when partition 1 has its messages, ``then`` is called."""

    then: Callable[[], None]

    async def publish(self, topic: str, partition: int, *rest: Any) -> None:
        del topic, rest
        if partition == 0:
            await anyio.sleep_forever()
        asyncio.get_running_loop().call_soon(self.then)


async def test_a_scope_that_ends_a_publication_ends_nothing_else():
    publisher = HalfPublisher(FakeBroker(), None, 1)
    with anyio.CancelScope() as scope:
        publisher.then = scope.cancel
        await publish_to_each(publisher, "music", MESSAGES, 1)
    assert scope.cancelled_caught
