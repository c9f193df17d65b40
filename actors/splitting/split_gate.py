"""Between transactions and splits: what a transaction holds in a partition must not move.

Transactions enter for as long as they ask partitions, all at once if they like. A split waits
until those inside have left, and holds up those who come meanwhile, some milliseconds. Only the
database's actor splits, one partition after the other: two gates are never closed at a time, so
transactions over several tables and a split never wait for each other in a circle.
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
        """Begin a transaction, as soon as the gate is open; whoever has entered leaves."""
        while self._opened is not None:
            await self._opened.wait()
        self._inside += 1

    def leave(self) -> None:
        """Nothing of the transaction is held any more, or all that is to be done was said."""
        self._inside -= 1
        if self._emptied is not None and not self._inside:
            self._emptied.set()

    @asynccontextmanager
    async def closed(self) -> AsyncIterator[None]:
        """While nobody is inside."""
        assert self._opened is None, "one split after the other"
        self._opened, self._emptied = asyncio.Event(), asyncio.Event()
        try:
            if self._inside:
                await self._emptied.wait()
            yield
        finally:
            self._opened.set()
            self._opened = self._emptied = None
