"""Bugs that the checkers must catch: each is the slow store with one promise broken.

A checker that finds nothing in the histories of these proves nothing with the others.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections import deque
from collections.abc import Sequence
from random import Random
from typing import Final, Literal, TypeAlias

from storage.store import Group, Store, View
from tests.support.history_store import DelayedStore, DelayedView, Delays

Bug: TypeAlias = Literal[
    "stale read", "lost update", "answer before its decision", "half a transaction", "unsynced read"
]

# How many states of the store ago a stale read is.
_STALE_STATES: Final = 5
_STALE_SHARE: Final = 0.02


class StaleReads(DelayedStore):
    """Now and then a read sees what was durable some syncs ago."""

    def __init__(self, inner: Store, delays: Delays) -> None:
        super().__init__(inner, delays)
        self._draw = Random(1)
        self._older: deque[View] = deque(maxlen=_STALE_STATES)

    def durable(self) -> View:
        if self._older and self._draw.random() < _STALE_SHARE:
            return DelayedView(self._older[0], self._delays)
        return super().durable()

    def show(self, view: View) -> None:
        self._older.append(self._shown)
        super().show(view)


class LostUpdates(DelayedStore):
    """Whoever writes decides on what is durable, not on what was accepted last."""

    @property
    def latest(self) -> View:
        return self.durable()


class EarlyAnswers(DelayedStore):
    """A commit is told to be durable before anybody sees it."""

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        await super().commit(groups)
        told: Future[None] = asyncio.get_running_loop().create_future()
        told.set_result(None)
        return told


class HalfTransactions(DelayedStore):
    """The groups of one commit are written one by one."""

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        for group in groups[:-1]:
            await (await super().commit([group]))
        return await super().commit(groups[-1:])


class UnsyncedReads(DelayedStore):
    """Reads see what was accepted, durable or not."""

    def durable(self) -> View:
        return super().latest


STORES: Final[dict[Bug, type[DelayedStore]]] = {
    "stale read": StaleReads,
    "lost update": LostUpdates,
    "answer before its decision": EarlyAnswers,
    "half a transaction": HalfTransactions,
    "unsynced read": UnsyncedReads,
}
