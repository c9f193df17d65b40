"""The publisher that all relays with at-least-once delivery share."""

from __future__ import annotations

import asyncio

from dynactor.streams.kafka.broker import Broker, Publisher


class SharedPublisher:
    """A publisher that is opened at its first use, and again after it was closed.

    Invariant: at most one publisher is open. The next one is opened after the last one is closed;
    otherwise late records of the last one could follow those of the next one.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._publisher: Publisher | None = None
        self._lock = asyncio.Lock()

    async def take(self) -> Publisher:
        """Return the publisher, opened if necessary; raises ``Unreachable`` or ``Refused``."""
        async with self._lock:
            if self._publisher is None:
                self._publisher = await self._broker.open_publisher()
            return self._publisher

    async def discard(self, publisher: Publisher) -> None:
        """Close a publisher that failed, unless another user has closed it already."""
        async with self._lock:
            if publisher is self._publisher:
                self._publisher = None
                await publisher.close()

    async def close(self) -> None:
        """Close the open publisher."""
        async with self._lock:
            publisher, self._publisher = self._publisher, None
            if publisher is not None:
                await publisher.close()
