"""A slow store: a fake at the storage port that delays the answers of a real one.

Every load, page and commit is delayed, and a commit becomes durable some time after its sync. The
order and content of commits and the content of the two views stay the real store's.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TypeVar

from dynactor.storage.store import (
    NOT_CACHED,
    Group,
    NotCached,
    Row,
    Store,
    StoreError,
    View,
)
from dynactor.storage.store_figures import StoreFigures
from tests.support.stores.local_reads import LocalReads

T = TypeVar("T")


class Delays:
    """Random delays from zero to ``most_seconds``, most of them short."""

    def __init__(self, seed: int, most_seconds: float) -> None:
        self._draw = Random(seed)
        self._most_seconds = most_seconds

    async def wait(self) -> None:
        """Wait for a random time."""
        await asyncio.sleep(self._most_seconds * self._draw.random() ** 3)


class DelayedView:
    """A view whose reads are delayed."""

    def __init__(self, inner: View, delays: Delays) -> None:
        self._inner = inner
        self._delays = delays

    def cached(self, key: bytes) -> NotCached:  # noqa: ARG002 - the port
        """Report the value as not cached, so that every read takes time."""
        return NOT_CACHED

    def page_nowait(self, *_: object, **__: object) -> NotCached:
        return NOT_CACHED

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        await self._delays.wait()
        return await self._inner.load(keys)

    async def page(
        self, start: bytes, end: bytes, *, reverse: bool = False, max_rows: int, max_bytes: int
    ) -> list[Row]:
        await self._delays.wait()
        return await self._inner.page(
            start, end, reverse=reverse, max_rows=max_rows, max_bytes=max_bytes
        )

    async def first_rows(
        self, ranges: Sequence[tuple[bytes, bytes]], *, max_rows: int, reverse: bool = False
    ) -> list[list[Row]]:
        await self._delays.wait()
        return await self._inner.first_rows(ranges, max_rows=max_rows, reverse=reverse)

    async def load_with_page(
        self, keys: Sequence[bytes], start: bytes, end: bytes, *, max_rows: int, max_bytes: int
    ) -> tuple[list[bytes | None], list[Row]]:
        await self._delays.wait()
        return await self._inner.load_with_page(
            keys, start, end, max_rows=max_rows, max_bytes=max_bytes
        )


class DelayedStore(LocalReads):
    """A ``Store`` that wraps another one. ``durable()`` never waits, as the port requires."""

    def __init__(self, inner: Store, delays: Delays) -> None:
        self._inner = inner
        self._delays = delays
        self._shown = inner.durable()
        # For each pending commit: the future of the caller, and the future of the inner store.
        self._waiting: deque[tuple[Future[None], Future[None]]] = deque()
        self._publisher: asyncio.Task[None] | None = None

    @property
    def latest(self) -> View:
        return DelayedView(self._inner.latest, self._delays)

    def durable(self) -> View:
        return DelayedView(self._shown, self._delays)

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        await self._delays.wait()
        synced = await self._inner.commit(groups)
        answered: Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((answered, synced))
        if self._publisher is None or self._publisher.done():
            self._publisher = asyncio.create_task(self._publish())
        return answered

    async def reclaim(self, start: bytes, end: bytes) -> None:
        await self._inner.reclaim(start, end)

    async def checkpoint(self, directory: Path) -> None:
        await self._inner.checkpoint(directory)

    def figures(self) -> StoreFigures:
        return self._inner.figures()

    async def close(self) -> None:
        if self._publisher is not None:
            await self._publisher
        await self._inner.close()

    def show(self, view: View) -> None:
        """Let durable views show this state from now on."""
        self._shown = view

    async def _publish(self) -> None:
        """Show the durable state and complete its commits, with one delay for all commits of a
        sync.
        """
        while self._waiting:
            await asyncio.wait([self._waiting[0][1]])
            await self._delays.wait()
            self.show(self._inner.durable())
            while self._waiting and self._waiting[0][1].done():
                answered, synced = self._waiting.popleft()
                failure = synced.exception()
                if answered.done():
                    continue
                if failure is None:
                    answered.set_result(None)
                else:
                    assert isinstance(failure, StoreError)
                    answered.set_exception(failure)
