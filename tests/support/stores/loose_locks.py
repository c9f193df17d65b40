"""Locked heads of a fake: they lock nothing, and use the fake's own loads and commits."""

from __future__ import annotations

from asyncio import Future
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from dynactor.storage.store import Group, Locked, Store


class LooseLocks:
    """The view and the commits of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return await self._store.latest.load(keys)

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        return await self._store.commit(groups)


@asynccontextmanager
async def loosely_locked(store: Store) -> AsyncIterator[Locked]:
    """Locked heads of a store whose commits are a fake's."""
    yield LooseLocks(store)
