"""Waits for the broker of a destination that was cut off.

What the destination missed is gone, so nothing is held for it meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import anyio

from dynactor.actors.derived.kafka.client_calls import failing_if_cancelled
from dynactor.actors.derived.kafka.relay_settings import RelaySettings
from dynactor.actors.partition.change_feed import ChangeFeed
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.streams.kafka.broker import Broker, BrokerError

# More than any log has.
_NOTHING_NEEDED: Final = 1 << 62


class BrokenDestination:
    """The actor; ``reached`` is called once, with the topic's count of partitions."""

    def __init__(
        self, topic: str, broker: Broker, settings: RelaySettings, reached: Callable[[int], None]
    ) -> None:
        self.name = f"wait for topic {topic}"
        self.mailbox = Mailbox(1)
        self.in_hand: list[Envelope] = []
        self._topic = topic
        self._broker = broker
        self._settings = settings
        self._reached = reached

    def floor(self, partition_number: int) -> int:
        """It needs no records of any log."""
        del partition_number
        return _NOTHING_NEEDED

    def split(self, children: Sequence[ChangeFeed]) -> None:
        """It reads no logs."""

    async def run(self) -> None:
        """Try to reach the topic until it is there, or the mailbox is closed."""
        closed = self.mailbox.when_closed()
        async with anyio.create_task_group() as group:
            group.start_soon(self._try, closed)
            await closed
            group.cancel_scope.cancel()

    async def _try(self, closed: asyncio.Future[None]) -> None:
        while not closed.done():
            try:
                with failing_if_cancelled():
                    found = await self._broker.ensure_topic(self._settings.topic(self._topic))
            except BrokerError:
                # It was told when it was cut off, and will be told when it goes on.
                await asyncio.wait([closed], timeout=self._settings.longest_pause_seconds)
            else:
                self._reached(found.partition_count)
                return
