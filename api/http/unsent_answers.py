"""A limit on the memory of answers that clients do not read, over all connections.

An answer stays in memory until its client has read it. The connection of a client that reads
nothing is closed after a timeout, but before that, many such clients would fill the memory. Above
the limit, the connections that have been behind longest are aborted.
"""

from __future__ import annotations

import asyncio


class UnsentAnswers:
    """The connections with unread answers, in the order in which their clients fell behind.

    Invariant: ``_unsent_bytes`` is the sum over ``_waiting``. Both are upper bounds, because
    clients may have read more meanwhile.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._waiting: dict[asyncio.Transport, int] = {}
        self._unsent_bytes = 0

    @property
    def connection_count(self) -> int:
        """Number of clients that are behind with reading."""
        return len(self._waiting)

    @property
    def size_bytes(self) -> int:
        """The size of the answers that these clients have not read."""
        return sum(transport.get_write_buffer_size() for transport in self._waiting)

    def add(self, transport: asyncio.Transport) -> None:
        """Add a connection whose client is behind with reading."""
        self.remove(transport)
        self._waiting[transport] = transport.get_write_buffer_size()
        self._unsent_bytes += self._waiting[transport]
        if self._unsent_bytes > self._most_bytes:
            self._abort_slowest()

    def remove(self, transport: asyncio.Transport) -> None:
        """Remove a connection whose client has read its answers, or has disconnected."""
        self._unsent_bytes -= self._waiting.pop(transport, 0)

    def _abort_slowest(self) -> None:
        self._waiting = {each: each.get_write_buffer_size() for each in self._waiting}
        self._unsent_bytes = sum(self._waiting.values())
        # The newest connection may exceed the limit alone: its client has just started to read.
        while self._unsent_bytes > self._most_bytes and len(self._waiting) > 1:
            longest = next(iter(self._waiting))
            self.remove(longest)
            longest.abort()
