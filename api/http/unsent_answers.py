"""A limit on the memory of answers that clients do not read, over all connections.

An answer stays in memory until its client has read it. A client that reads nothing is closed after
a timeout, but many such clients would fill the memory before that. Above the limit, the connections
that have waited longest are aborted.
"""

from __future__ import annotations

import asyncio


class UnsentAnswers:
    """The connections whose clients are behind with reading, longest first.

    Invariant: ``_unsent_bytes`` is the sum over ``_waiting``. Both are upper bounds, because
    clients go on reading.
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

    def stopped(self, transport: asyncio.Transport) -> None:
        """Note that a client is behind with reading."""
        self.went_on(transport)
        self._waiting[transport] = transport.get_write_buffer_size()
        self._unsent_bytes += self._waiting[transport]
        if self._unsent_bytes > self._most_bytes:
            self._make_room()

    def went_on(self, transport: asyncio.Transport) -> None:
        """Note that a client has caught up with reading, or has left."""
        self._unsent_bytes -= self._waiting.pop(transport, 0)

    def _make_room(self) -> None:
        self._waiting = {each: each.get_write_buffer_size() for each in self._waiting}
        self._unsent_bytes = sum(self._waiting.values())
        # The last one may be larger than the limit: it has just started.
        while self._unsent_bytes > self._most_bytes and len(self._waiting) > 1:
            longest = next(iter(self._waiting))
            self.went_on(longest)
            longest.abort()
