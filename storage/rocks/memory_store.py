"""The embedded engine's store in memory.

Nothing is synced, so a commit is durable when it is accepted. A state is pinned only when a reader
asks for it.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Sequence
from typing import Final

from dynactor.storage.changed_keys import ALL_KEYS
from dynactor.storage.group_commit import Commits
from dynactor.storage.immediate_commit import ImmediateCommits
from dynactor.storage.rocks.engine import MemoryEngine
from dynactor.storage.rocks.options import RocksOptions
from dynactor.storage.rocks.store import RocksStore
from dynactor.storage.rocks.view import PinnedView
from dynactor.storage.store import ClearableStore, Group, View

# Opening an engine holds the GIL for milliseconds, and the store is in use right after a `clear`.
_PREPARE_AFTER_SECONDS: Final = 0.005


async def open_rocks_in_memory(options: RocksOptions | None = None) -> ClearableStore:
    """Open an empty store that loses its content when it is closed."""
    options = options or RocksOptions()
    return _MemoryStore(MemoryEngine(options), options)


class _MemoryStore(RocksStore):
    """A store in memory, which can delete all rows quickly."""

    def __init__(self, engine: MemoryEngine, options: RocksOptions) -> None:
        super().__init__(engine, options, changed=ALL_KEYS)
        self._memory = engine
        # The present state; None after a commit, until it is read. An earlier state would keep
        # memory in use.
        self._pinned: PinnedView | None = None
        # The view of a closed store.
        self._durable.close()
        # The future of every commit without an await.
        self._durable_commit: Future[None] = asyncio.get_running_loop().create_future()
        self._durable_commit.set_result(None)
        # Prepares the next ``clear`` a little later, after pending requests are answered.
        self._timer: asyncio.TimerHandle | None = None
        self._preparing: Future[None] | None = None

    def durable(self) -> View:
        if self._pinned is None:
            if self._is_closed:
                return self._durable
            self._pinned = self._pinned_now()
        return self._pinned

    def commit_nowait(self, groups: Sequence[Group]) -> Future[None] | None:
        if self._locks.held:
            return None
        self._write(groups)
        return self._durable_commit

    def _write(self, groups: Sequence[Group]) -> None:
        self._pinned = None
        super()._write(groups)

    async def reclaim(self, start: bytes, end: bytes) -> None:
        self._pinned = None
        await super().reclaim(start, end)

    def _new_synchronizer(self) -> Commits:
        return ImmediateCommits()

    def _show_engine(self) -> None:
        self._heads.clear()
        self._latest.open(self._engine.rows)
        self._pinned = None

    async def clear(self) -> None:
        self._raise_if_closed()
        await self._synchronizer.wait_idle()
        if self._preparing is not None:
            await self._preparing
        self._memory.clear()
        self._show_engine()
        # Don't restart a pending timer: with frequent calls, replaced engines would accumulate.
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_PREPARE_AFTER_SECONDS, self._prepare)

    def _prepare(self) -> None:
        self._timer = None
        if not self._is_closed:
            # The thread that makes checkpoints runs this job, and `close` waits for that thread.
            self._preparing = asyncio.get_running_loop().run_in_executor(
                self._checkpoints, self._memory.prepare_clear
            )
