"""Stores the unused capacity units of partitions, for the next start of the server.

A partition with a full balance has no row. Every ten seconds all other rows are updated; a
partition whose balance falls below its row is stored at once (``model/throttling/provisioned.py``).
No request waits for that. If the store accepts no rows, the log reports it, and requests continue.

The rows of a split's children, and of raised units, are in the commit of that change: otherwise a
crash after that commit would fill balances. This actor writes all other rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple, Protocol

import structlog

from dynactor.actors.runtime.clock import Clock
from dynactor.actors.runtime.commit_retry import commit_past_stalls
from dynactor.actors.runtime.mailbox import Envelope, Mailbox, Message
from dynactor.actors.runtime.replies import ignore_result
from dynactor.model.throttling.burst_balance import Balance, StoredBalances
from dynactor.model.throttling.resource import ResourceLimits
from dynactor.storage import burst_balances, key_layout
from dynactor.storage.burst_balances import BalancesHead, LoadedBalances, Resource
from dynactor.storage.store import Conflict, Group, Store, StoreError, Unknown

_KEEP_SECONDS: Final = 10.0
_MAILBOX_MESSAGES: Final = 100
# Number of partitions in one commit. Checking this many takes at most a millisecond.
_BATCH_PARTITIONS: Final = 256

_log = structlog.get_logger("actors")


class LimitsOwner(Protocol):
    """A table's limits."""

    @property
    def resources(self) -> Mapping[Resource, ResourceLimits]:
        """The limits of the table and its indexes that were created so far."""


class KeepBalances(Message[None], frozen=True):
    """Store the balances that fell below their rows; with ``everything``, all balances."""

    everything: bool = False


class _BalancePlace(NamedTuple):
    """A partition, and the limits with its balance; None if the partition was deleted."""

    resource: Resource
    number: int
    limits: ResourceLimits | None


class BalanceWriter:
    """The actor that owns the rows of balances.

    Invariant: ``_rows`` are the durable rows, except rows that other commits wrote and that this
    actor has not written since.
    """

    name = "balances"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        loaded: LoadedBalances,
        owners: Callable[[], Iterable[LimitsOwner]],
        *,
        copy_messages: bool = False,
    ) -> None:
        """``owners`` returns the limits of all tables."""
        self.mailbox = Mailbox(_MAILBOX_MESSAGES, copy_messages=copy_messages)
        self.in_progress: list[Envelope] = []
        self._store = store
        self._clock = clock
        self._owners = owners
        # Whether the stored rows may differ from ``_rows``.
        self._is_behind = False
        # The limits of partitions that are to be stored soon.
        self._due: dict[Resource, ResourceLimits] = {}
        self._take_over(loaded)

    # -- for tables -------------------------------------------------------------------------

    def stored(self, resource: Resource) -> StoredBalances | None:
        """The stored balances of a table or global index; None if all its balances are full."""
        rows = self._rows.get(resource)
        if not rows:
            return None
        now = self._clock.now_epoch_seconds()
        stopped_at = self._head.stopped_at_epoch_seconds
        # After a crash the consumption since the last update is unknown, so it adds no units.
        return StoredBalances(now if stopped_at is None else min(stopped_at, now), dict(rows))

    def note_due(self, resource: Resource, limits: ResourceLimits) -> None:
        """Store the due partitions of a table or global index soon."""
        if not self._due and not self.mailbox.closed:
            self.mailbox.put_nowait(KeepBalances(), always=True).add_done_callback(ignore_result)
        self._due[resource] = limits

    # -- the actor --------------------------------------------------------------------------

    async def start(self) -> None:
        """Store balances before the first request, each less its reserve for a crash.

        This also removes the time of the orderly stop, because the time since then must add units
        to a balance only once.
        """
        if self._rows:
            await self._keep(self._everything())

    async def run(self) -> None:
        """Work through the mailbox until it is closed and drained."""
        # After a crash of this actor the outcome of its last writes is unknown.
        self._take_over(await burst_balances.load(self._store.latest))
        while batch := await self.mailbox.take(_MAILBOX_MESSAGES, 1):
            self.in_progress = batch
            is_all = any(envelope.message == KeepBalances(everything=True) for envelope in batch)
            await self._keep(self._everything() if is_all else self._taken_due())
            for envelope in batch:
                envelope.answer(None)
            self.in_progress = []

    async def keep(self) -> float:
        """Update all rows; returns the seconds until the next update."""
        if not self.mailbox.closed:
            await self.mailbox.put_nowait(KeepBalances(everything=True), always=True)
        return _KEEP_SECONDS

    async def close(self) -> None:
        """Store all balances and the time of the stop, after the last request."""
        if await self._keep(self._everything(), is_last=True) and self._rows:
            try:
                await self._commit({}, BalancesHead(self._clock.now_epoch_seconds()))
            except StoreError as error:
                _log_failure(error)

    # -- parts ------------------------------------------------------------------------------

    def _take_over(self, loaded: LoadedBalances) -> None:
        self._is_behind = False
        self._head, self._head_bytes = loaded.head, loaded.head_bytes
        self._rows = {resource: dict(rows) for resource, rows in loaded.balances.items()}

    def _taken_due(self) -> Iterator[_BalancePlace]:
        due, self._due = self._due, {}
        for resource, limits in due.items():
            for number in limits.take_due():
                yield _BalancePlace(resource, number, limits)

    def _everything(self) -> Iterator[_BalancePlace]:
        """Balances of all present partitions, then of deleted ones that still have rows."""
        self._due = {}
        kept: dict[Resource, ResourceLimits] = {}
        for owner in list(self._owners()):
            for resource, limits in list(owner.resources.items()):
                kept[resource] = limits
                limits.take_due()
                for number in limits.partitions:
                    yield _BalancePlace(resource, number, limits)
        for resource, rows in list(self._rows.items()):
            there = kept[resource].partitions if resource in kept else frozenset()
            for number in rows.keys() - there:
                yield _BalancePlace(resource, number, None)

    async def _keep(self, places: Iterator[_BalancePlace], *, is_last: bool = False) -> bool:
        """Store balances in batches; return whether the store accepted them."""
        try:
            if self._is_behind:
                self._take_over(await burst_balances.load(self._store.latest))
            while batch := list(islice(places, _BATCH_PARTITIONS)):
                await self._keep_batch(batch, is_last=is_last)
        except StoreError as error:
            _log_failure(error)
            # The failed commit may have been written.
            self._is_behind |= isinstance(error, Conflict | Unknown)
            return False
        return True

    async def _keep_batch(self, batch: list[_BalancePlace], *, is_last: bool) -> None:
        now = self._clock.now_epoch_seconds()
        found: dict[_BalancePlace, Balance | None] = {}
        changed: dict[_BalancePlace, Balance | None] = {}
        for place in batch:
            balance = None
            if place.limits is not None:
                balance = place.limits.balance_to_store(place.number, now, is_last=is_last)
            found[place] = balance
            if balance != self._rows.get(place.resource, {}).get(place.number):
                changed[place] = balance
        if changed:
            await self._commit(changed, BalancesHead())
        else:
            # Let other tasks run between batches.
            await asyncio.sleep(0)
        for place, balance in found.items():
            if place.limits is not None:
                place.limits.note_stored(place.number, balance)

    async def _commit(
        self, changed: Mapping[_BalancePlace, Balance | None], head: BalancesHead
    ) -> None:
        head_bytes = burst_balances.encode_head(head)
        puts = [
            burst_balances.row(place.resource, place.number, balance)
            for place, balance in changed.items()
            if balance is not None
        ]
        deletes = [
            burst_balances.key(place.resource, place.number)
            for place, balance in changed.items()
            if balance is None
        ]
        group = Group(key_layout.BALANCES_HEAD, self._head_bytes, head_bytes, puts, deletes)
        durable = await commit_past_stalls(self._store, [group])
        await durable
        # Set these only after the commit is durable: a store that reopens after a full disk has
        # lost the failed commit.
        self._head, self._head_bytes = head, head_bytes
        for place, balance in changed.items():
            rows = self._rows.setdefault(place.resource, {})
            if balance is not None:
                rows[place.number] = balance
                continue
            rows.pop(place.number, None)
            if not rows:
                del self._rows[place.resource]


def _log_failure(error: StoreError) -> None:
    # The next attempt is in ten seconds.
    _log.warning("balances_not_stored", error=str(error))
