"""A store whose syncs wait or fail when the test says so: a fake at the storage port.

It wraps a real store and changes only when its answers come:

    store = FaultyStore(inner)
    store.hold_syncs()       # commits are accepted; none becomes durable, no reader sees one
    await store.release_syncs()
    store.fail_syncs() # pending commits fail with Unknown, later ones with Closed
    store.refuse_commits(Full("the disk is full"))    # or Retry, until allow_commits()
    store.refuse_reads(Closed("the store is closed"))    # until allow_reads()

In a server's own process, ``tests.support.stores.power_loss`` does the same to the disk itself.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from dynactor.storage.store import (
    Closed,
    Group,
    NotCached,
    Row,
    Store,
    StoreError,
    Unknown,
    View,
)
from dynactor.storage.store_figures import StoreFigures
from tests.support.stores.local_reads import LocalReads

T = TypeVar("T")


class UnreadableView:
    """A view whose rows can't be read."""

    def __init__(self, error: StoreError) -> None:
        self._error = error

    def cached(self, *_: object, **__: object) -> bytes | NotCached | None:
        raise self._error

    def page_nowait(self, *_: object, **__: object) -> NotCached:
        raise self._error

    async def load(self, *_: object, **__: object) -> list[bytes | None]:
        raise self._error

    async def page(self, *_: object, **__: object) -> list[Row]:
        raise self._error

    async def first_rows(self, *_: object, **__: object) -> list[list[Row]]:
        raise self._error

    async def load_with_page(
        self, *_: object, **__: object
    ) -> tuple[list[bytes | None], list[Row]]:
        raise self._error


class FaultyStore(LocalReads):
    """A ``Store`` that wraps another one."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self._durable: View | None = None
        self._refusal: StoreError | None = None
        self._unreadable: View | None = None
        self._is_silent = False
        # For each held commit: the future of the caller, and the future of the inner store.
        self._held: list[tuple[Future[None], Future[None]]] = []

    @property
    def latest(self) -> View:
        return self._unreadable or self._inner.latest

    def durable(self) -> View:
        if self._unreadable is not None:
            return self._unreadable
        return self._inner.durable() if self._durable is None else self._durable

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        if self._refusal is not None and (groups or self._is_silent):
            raise self._refusal
        synced = await self._inner.commit(groups)
        if self._durable is None:
            return synced
        answered: Future[None] = asyncio.get_running_loop().create_future()
        self._held.append((answered, synced))
        return answered

    async def reclaim(self, start: bytes, end: bytes) -> None:
        await self._inner.reclaim(start, end)

    async def checkpoint(self, directory: Path) -> None:
        await self._inner.checkpoint(directory)

    def figures(self) -> StoreFigures:
        return self._inner.figures()

    async def close(self) -> None:
        await self.release_syncs()
        await self._inner.close()

    def hold_syncs(self) -> None:
        """Freeze the durable state for all readers. Only while no commit is in flight."""
        if self._durable is None:
            self._durable = self._inner.durable()

    @property
    def held_count(self) -> int:
        """The number of commits that wait for their sync."""
        return len(self._held)

    async def release_syncs(self) -> None:
        """Publish and complete the held commits in order."""
        held, self._held = self._held, []
        for _, synced in held:
            await synced
        if self._refusal is None:
            self._durable = None
        for answered, _ in held:
            if not answered.done():
                answered.set_result(None)

    def fail_syncs(self) -> None:
        """Fail all syncs: held commits stay invisible and fail with Unknown, later ones with
        Closed.
        """
        self.hold_syncs()
        self._is_silent = True
        self._refusal = Closed("a sync of the log failed, restart the server: played by a test")
        held, self._held = self._held, []
        for answered, _ in held:
            if not answered.done():
                answered.set_exception(Unknown("syncing the log failed: played by a test"))

    def refuse_commits(self, error: StoreError, *, is_silent: bool = False) -> None:
        """Raise this error from every commit that has groups.

        With ``is_silent``, also raise it from commits without groups.
        """
        self._refusal = error
        self._is_silent = is_silent

    def refuse_reads(self, error: StoreError) -> None:
        """Raise this error from every read."""
        self._unreadable = UnreadableView(error)

    def allow_reads(self) -> None:
        """Let reads succeed again."""
        self._unreadable = None

    def allow_commits(self) -> None:
        """Accept commits again."""
        self._refusal = None
        self._is_silent = False
