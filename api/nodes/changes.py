"""Wakes tasks when the state of the cluster has changed."""

from __future__ import annotations

import asyncio

import anyio


class Changes:
    """Tasks wait here for the next change."""

    def __init__(self) -> None:
        self._next: asyncio.Future[None] | None = None

    def notify(self) -> None:
        """Wake all waiting tasks."""
        if self._next is not None and not self._next.done():
            self._next.set_result(None)
        self._next = None

    async def wait(self, seconds: float) -> None:
        """Wait for the next change, at most ``seconds``."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        with anyio.move_on_after(seconds):
            # Shielded, because other tasks may wait for the same future.
            await asyncio.shield(self._next)
