"""Locks on heads within this process, for engines that have no locks of their own."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

import anyio

from dynactor.storage.store import LOCK_SECONDS, Conflict, Group, View


class HeadLocks:
    """The locks. ``held`` has a future for each locked head, which completes with its release."""

    def __init__(self) -> None:
        self.held: dict[bytes, Future[None]] = {}

    async def wait_free(self, keys: Iterable[bytes]) -> None:
        """Wait until nobody holds the locks of these heads."""
        wanted = list(keys)
        # A commit that waits is not canceled: the caller could not tell whether it was written.
        with anyio.CancelScope(shield=True):
            while held := [self.held[key] for key in wanted if key in self.held]:
                await asyncio.wait(held)

    @asynccontextmanager
    async def locked(
        self,
        heads: Iterable[bytes],
        view: View,
        commit: Callable[[Sequence[Group]], Awaitable[Future[None]]],
    ) -> AsyncIterator[HeldLocks]:
        """Hold the locks of heads; see the port. ``commit`` does not wait for locks."""
        taken: list[bytes] = []
        held = HeldLocks(view, commit, lambda: self._release(taken))
        try:
            # All callers take the locks in one order, so they cannot block each other forever.
            for key in sorted(set(heads)):
                await self.wait_free([key])
                self.held[key] = asyncio.get_running_loop().create_future()
                taken.append(key)
            held.begin()
            yield held
        finally:
            held.end()

    def _release(self, keys: list[bytes]) -> None:
        for key in keys:
            self.held.pop(key).set_result(None)
        keys.clear()


class HeldLocks:
    """The locks of one caller. They end with its commit, or when it did nothing for a while."""

    def __init__(
        self,
        view: View,
        commit: Callable[[Sequence[Group]], Awaitable[Future[None]]],
        release: Callable[[], None],
    ) -> None:
        self._view = view
        self._commit = commit
        self._release = release
        self._timer: asyncio.TimerHandle | None = None
        self._has_ended = False

    def begin(self) -> None:
        """Start the time limit."""
        self._timer = asyncio.get_running_loop().call_later(LOCK_SECONDS, self.end)

    def end(self) -> None:
        """Release the locks; may be repeated."""
        self._has_ended = True
        if self._timer is not None:
            self._timer.cancel()
        self._release()

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """See the port."""
        self._renew()
        return await self._view.load(keys)

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        """See the port."""
        self._renew()
        try:
            return await self._commit(groups)
        finally:
            self.end()

    def _renew(self) -> None:
        if self._has_ended:
            raise Conflict("the locks on the heads have ended")
        assert self._timer is not None
        self._timer.cancel()
        self.begin()
