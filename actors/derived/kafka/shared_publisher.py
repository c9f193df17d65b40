"""The publisher that all relays share which publish at least once."""

from __future__ import annotations

import asyncio

from dynactor.streams.kafka.broker import Broker, Publisher


class SharedPublisher:
    """Opened when somebody first needs it, and again after it was thrown away.

    Invariant: at most one publisher is open. The next one is opened only when the last one is
    closed, or its late records could stand behind those of the next one.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._publisher: Publisher | None = None
        self._lock = asyncio.Lock()

    async def take(self) -> Publisher:
        """The publisher.

        Raises:
            Unreachable, Refused: there is none.
        """
        async with self._lock:
            if self._publisher is None:
                self._publisher = await self._broker.open_publisher()
            return self._publisher

    async def throw_away(self, publisher: Publisher) -> None:
        """Close a publisher that failed; of several who find that out, the first one does."""
        async with self._lock:
            if publisher is self._publisher:
                self._publisher = None
                await publisher.close()

    async def close(self) -> None:
        """Close what is open."""
        async with self._lock:
            publisher, self._publisher = self._publisher, None
            if publisher is not None:
                await publisher.close()
