"""A gate between transactions and splits: a locked item must not move to another partition.

Transactions enter while they ask partitions, any number at once. A split waits until they have
left, and delays new ones for some milliseconds. Only the database's actor splits, one partition
after another. So at most one gate is closed, and transactions over several tables never deadlock
with a split.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class SplitGate:
    """The gate of one table."""

    def __init__(self) -> None:
        self._inside = 0
        self._opened: asyncio.Event | None = None
        self._emptied: asyncio.Event | None = None

    async def enter(self) -> None:
        """Enter with a transaction as soon as the gate is open; the caller must ``leave`` later."""
        while self._opened is not None:
            await self._opened.wait()
        self._inside += 1

    def leave(self) -> None:
        """Leave, once the transaction has no locks any more, or has sent all its messages."""
        self._inside -= 1
        if self._emptied is not None and not self._inside:
            self._emptied.set()

    @asynccontextmanager
    async def closed(self) -> AsyncIterator[None]:
        """Close the gate, once all transactions have left."""
        assert self._opened is None, "one split after the other"
        self._opened, self._emptied = asyncio.Event(), asyncio.Event()
        try:
            if self._inside:
                await self._emptied.wait()
            yield
        finally:
            self._opened.set()
            self._opened = self._emptied = None
