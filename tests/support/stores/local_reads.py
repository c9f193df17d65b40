"""A common base of fakes of the storage port: all reads use ``durable``, locks lock nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from asyncio import Future
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

from dynactor.storage.store import Group, Locked, View

T = TypeVar("T")


class LocalReads(ABC):
    """The common base of fakes that wrap a store of one node."""

    @property
    @abstractmethod
    def latest(self) -> View:
        """See Store."""

    @abstractmethod
    def durable(self) -> View:
        """See Store."""

    @abstractmethod
    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        """See Store."""

    def commit_nowait(self, _groups: Sequence[Group]) -> Future[None] | None:
        """Wait for every commit, so that a fake changes ``commit`` alone."""
        return None

    def eventual(self) -> View:
        return self.durable()

    async def in_snapshot(
        self,
        read: Callable[[View], Awaitable[T]],
        *,
        calls_once: bool,  # noqa: ARG002 - of the port
        eventual: bool = False,  # noqa: ARG002 - of the port
    ) -> T:
        return await read(self.durable())

    def locked(self, heads: Sequence[bytes]) -> AbstractAsyncContextManager[Locked]:  # noqa: ARG002 - of the port
        return _loosely_locked(self)


class _LooseLocks:
    def __init__(self, store: LocalReads) -> None:
        self._store = store

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return await self._store.latest.load(keys)

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        return await self._store.commit(groups)


@asynccontextmanager
async def _loosely_locked(store: LocalReads) -> AsyncIterator[Locked]:
    yield _LooseLocks(store)
