"""A bound on the answers that clients do not take, over all connections.

An answer is kept in memory until its client has read it. A client that asks for large answers and
reads none of them is closed after a time-out; many such clients would fill the memory before that.
So beyond the bound, the connections that have waited longest for their clients are aborted.
"""

from __future__ import annotations

import asyncio


class UnsentAnswers:
    """The connections whose clients are behind with reading, in the order since when.

    Invariant: ``_unsent_bytes`` is the sum over ``_waiting``. Both may be more than there is, as
    clients go on reading.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._waiting: dict[asyncio.Transport, int] = {}
        self._unsent_bytes = 0

    @property
    def connection_count(self) -> int:
        """How many clients are behind with reading."""
        return len(self._waiting)

    @property
    def size_bytes(self) -> int:
        """The size of the answers that these clients have not read."""
        return sum(transport.get_write_buffer_size() for transport in self._waiting)

    def stopped(self, transport: asyncio.Transport) -> None:
        """A client is behind with reading."""
        self.went_on(transport)
        self._waiting[transport] = transport.get_write_buffer_size()
        self._unsent_bytes += self._waiting[transport]
        if self._unsent_bytes > self._most_bytes:
            self._make_room()

    def went_on(self, transport: asyncio.Transport) -> None:
        """A client has caught up with reading, or has gone."""
        self._unsent_bytes -= self._waiting.pop(transport, 0)

    def _make_room(self) -> None:
        self._waiting = {each: each.get_write_buffer_size() for each in self._waiting}
        self._unsent_bytes = sum(self._waiting.values())
        # The last one may be larger than the bound: it has just begun.
        while self._unsent_bytes > self._most_bytes and len(self._waiting) > 1:
            longest = next(iter(self._waiting))
            self.went_on(longest)
            longest.abort()
