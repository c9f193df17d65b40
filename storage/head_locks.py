"""Locks on heads within this process, for engines that have no locks of their own."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

import anyio

from dynactor.storage.store import LOCK_SECONDS, Conflict, Group, View


class HeadLocks:
    """Locks on heads. ``held`` has a future for each, which completes with the release."""

    def __init__(self) -> None:
        self.held: dict[bytes, Future[None]] = {}

    async def wait_free(self, keys: Iterable[bytes]) -> None:
        """Wait until none of these heads is locked."""
        wanted = list(keys)
        # Don't cancel a waiting commit, because its caller would not know whether it was written.
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
        """Lock heads while the context lasts: see ``Store``. ``commit`` does not wait for locks."""
        taken: list[bytes] = []
        held = HeldLocks(view, commit, lambda: self._release(taken))
        try:
            # All callers take locks in the order of the keys, so a deadlock is impossible.
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
    """The locks of one caller, until its commit or ``LOCK_SECONDS`` without a call."""

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
        """Start the timer that ends the locks."""
        self._timer = asyncio.get_running_loop().call_later(LOCK_SECONDS, self.end)

    def end(self) -> None:
        """Release the locks; may be repeated."""
        self._has_ended = True
        if self._timer is not None:
            self._timer.cancel()
        self._release()

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """See ``Locked``."""
        self._renew()
        return await self._view.load(keys)

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        """See ``Locked``."""
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
