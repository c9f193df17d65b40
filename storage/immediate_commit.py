"""Commits that are durable as soon as they are accepted, as in memory, where nothing is synced.

Their futures complete in the next turn of the event loop, all those of a turn together. So an
actor that commits in a loop lets other work in between, as with a sync.
"""

from __future__ import annotations

import asyncio
from asyncio import Future


class ImmediateCommits:
    """Completes the futures of commits; see ``group_commit.Commits``."""

    has_failed = False

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Future[None]] = []

    def accepted(self) -> Future[None]:
        """See Commits."""
        future = self._loop.create_future()
        if not self._waiting:
            self._loop.call_soon(self._complete)
        self._waiting.append(future)
        return future

    def behind_accepted(self) -> Future[None]:
        """See Commits."""
        if self._waiting:
            return self.accepted()
        future = self._loop.create_future()
        future.set_result(None)
        return future

    @property
    def waiting_count(self) -> int:
        """See Commits."""
        return len(self._waiting)

    @property
    def is_idle(self) -> bool:
        """See Commits."""
        return not self._waiting

    async def wait_idle(self) -> None:
        """See Commits."""
        if self._waiting:
            await self.accepted()

    def stop(self) -> None:
        """See Commits."""

    def _complete(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
