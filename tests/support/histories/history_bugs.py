"""Bugs that the checkers must detect: each breaks one promise of the store or the coordinator.

If a checker finds no violation in these histories, its silence about other histories proves
nothing.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections import deque
from collections.abc import Sequence
from contextvars import ContextVar
from itertools import count
from typing import Any, Final, Literal, TypeAlias

from dynactor.actors.partition.item_locks import Accepted
from dynactor.actors.transactions import coordinator
from dynactor.actors.transactions.coordinator import Transactions
from dynactor.storage.store import Group, Store, View
from tests.support.stores.history_store import DelayedStore, DelayedView, Delays

Bug: TypeAlias = Literal[
    "stale read",
    "lost update",
    "answer before it is durable",
    "answer before its decision",
    "half a transaction",
    "unsynced read",
]

# A stale read shows the state of this many syncs ago.
_STALE_STATES: Final = 5
# Every 7th read is stale. The number is prime, so in a repeated sequence of reads every one is
# stale at some time.
_STALE_READS: Final = 7
_BETWEEN_GROUPS_SECONDS: Final = 0.1


class StaleReads(DelayedStore):
    """Every 7th read shows the durable state of some syncs ago."""

    def __init__(self, inner: Store, delays: Delays) -> None:
        super().__init__(inner, delays)
        self._reads = count(1)
        self._older: deque[View] = deque(maxlen=_STALE_STATES)

    def durable(self) -> View:
        if self._older and next(self._reads) % _STALE_READS == 0:
            return DelayedView(self._older[0], self._delays)
        return super().durable()

    def show(self, view: View) -> None:
        self._older.append(self._shown)
        super().show(view)


class LostUpdates(DelayedStore):
    """Writers decide on the durable state instead of the last accepted one."""

    @property
    def latest(self) -> View:
        return self.durable()


class EarlyAnswers(DelayedStore):
    """A commit is reported as durable before it is visible."""

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        await super().commit(groups)
        answered: Future[None] = asyncio.get_running_loop().create_future()
        answered.set_result(None)
        return answered


class HalfTransactions(DelayedStore):
    """The groups of one commit are written separately."""

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        for group in groups[:-1]:
            await (await super().commit([group]))
            await asyncio.sleep(_BETWEEN_GROUPS_SECONDS)
        return await super().commit(groups[-1:])


class UnsyncedReads(DelayedStore):
    """Reads show accepted rows that may not be durable."""

    def durable(self) -> View:
        return super().latest


STORES: Final[dict[Bug, type[DelayedStore]]] = {
    "stale read": StaleReads,
    "lost update": LostUpdates,
    "answer before it is durable": EarlyAnswers,
    "half a transaction": HalfTransactions,
    "unsynced read": UnsyncedReads,
}


def answer_before_the_decision() -> None:
    """Answer a transaction when all partitions have accepted it; it is committed later."""
    accept, write = coordinator._accepted, Transactions._write_in_several

    def accepted(*asked: Any) -> list[Accepted]:
        found = accept(*asked)
        prepared = _prepared.get()
        if prepared is not None:
            prepared.set_result(found)
        return found

    async def write_in_several(self: Transactions, *what: Any) -> list[Accepted]:
        prepared: Future[list[Accepted]] = asyncio.get_running_loop().create_future()
        _prepared.set(prepared)
        carried_out = asyncio.create_task(write(self, *what))
        _prepared.set(None)
        _unfinished.add(carried_out)
        carried_out.add_done_callback(_unfinished.discard)
        await asyncio.wait([prepared, carried_out], return_when=asyncio.FIRST_COMPLETED)
        return prepared.result() if prepared.done() else carried_out.result()

    _replace(coordinator, "_accepted", accepted)
    _replace(Transactions, "_write_in_several", write_in_several)


_prepared: ContextVar[Future[list[Accepted]] | None] = ContextVar("prepared", default=None)
# Tasks without a reference may be garbage-collected.
_unfinished: set[asyncio.Task[list[Accepted]]] = set()


def _replace(owner: object, name: str, function: object) -> None:
    assert hasattr(owner, name), f"{owner} has no {name} any more: plant the bug elsewhere"
    setattr(owner, name, function)
