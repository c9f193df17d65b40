"""A store whose calls wait at gates until the test opens them: a fake at the storage port.

With a gate a test decides what happens between two awaits of an actor:

    store = SteppedStore(inner)
    gate = store.gate_behind(pages_of(start, end))
    await gate.reached()     # the page was read, and the actor still waits for it
    ...                      # change something
    gate.open()

``SteppedStore`` is also a ``FaultyStore``. ``stepped_database`` opens a database over one.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from time import process_time
from typing import Any, Final, NamedTuple, TypeAlias

from dynactor.actors.database.database import Database
from dynactor.actors.runtime.clock import Clock
from dynactor.storage.store import NOT_CACHED, Group, NotCached, Row, Store, View
from dynactor.streams.kafka.broker import Broker
from tests.support.databases.databases import running_database
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

# A faulty actor may never do what a test waits for, so waits are limited.
_LONGEST_SECONDS: Final = 2.0


class Load(NamedTuple):
    """``View.load``."""

    keys: Sequence[bytes]


class Page(NamedTuple):
    """``View.page``."""

    start: bytes
    end: bytes
    max_rows: int


class Commit(NamedTuple):
    """``Store.commit``."""

    groups: Sequence[Group]


Call: TypeAlias = Load | Page | Commit
Which: TypeAlias = Callable[[Call], bool]


def loads_of(key: bytes) -> Which:
    """Select loads of this key."""
    return lambda call: isinstance(call, Load) and key in call.keys


def pages_of(start: bytes, end: bytes) -> Which:
    """Select pages that start in this range."""
    return lambda call: isinstance(call, Page) and start <= call.start < end


def commits_that_delete(key: bytes) -> Which:
    """Select commits that delete this key, a row or a head."""
    return lambda call: (
        isinstance(call, Commit)
        and any(
            key in group.deletes or (group.head is None and group.head_key == key)
            for group in call.groups
        )
    )


def commits_of(head_key: bytes) -> Which:
    """Select commits with a group of this head."""
    return lambda call: (
        isinstance(call, Commit) and any(group.head_key == head_key for group in call.groups)
    )


def commits_that_put(key: bytes) -> Which:
    """Select commits that put a row or a head with this key."""
    return lambda call: (
        isinstance(call, Commit)
        and any(
            key in dict(group.puts) or (group.head is not None and group.head_key == key)
            for group in call.groups
        )
    )


class Gate:
    """A gate at which selected calls wait. An open gate is never closed again."""

    def __init__(self, which: Which) -> None:
        self.which = which
        self._reached = asyncio.Event()
        self._opened = asyncio.Event()
        self._error: Exception | None = None
        # The inner futures of commits, and the futures that the actors wait for.
        self._held: list[tuple[Future[None], Future[None]]] = []

    @property
    def is_reached(self) -> bool:
        """Whether a call has arrived."""
        return self._reached.is_set()

    async def reached(self) -> None:
        """Wait until a call has arrived."""
        await soon(self._reached.is_set)

    def open(self) -> None:
        """Let waiting and later calls pass."""
        self._error = None
        self._opened.set()
        held, self._held = self._held, []
        for durable, answered in held:
            durable.add_done_callback(partial(_complete, answered))

    def fail(self, error: Exception) -> None:
        """Raise an error from waiting and later calls, until the gate is opened.

        Futures of commits that wait at the gate complete with the error.
        """
        self._error = error
        self._opened.set()
        held, self._held = self._held, []
        for _, answered in held:
            answered.set_exception(error)

    def hold(self, durable: Future[None]) -> Future[None]:
        """Return another future for a commit, which completes when the gate is open."""
        if self._opened.is_set():
            return durable
        self._reached.set()
        answered: Future[None] = asyncio.get_running_loop().create_future()
        self._held.append((durable, answered))
        return answered

    async def arrive(self) -> None:
        """Wait at the gate, as a call of the store."""
        self._reached.set()
        await self._opened.wait()
        if self._error is not None:
            raise self._error


def _complete(answered: Future[None], durable: Future[None]) -> None:
    if not answered.done():
        answered.set_result(durable.result())


class SteppedStore(FaultyStore):
    """A ``Store`` that wraps another one."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._before: list[Gate] = []
        self._behind: list[Gate] = []
        self._durable_gates: list[Gate] = []

    def gate_before(self, which: Which) -> Gate:
        """Add a gate that calls reach before the store sees them."""
        gate = Gate(which)
        self._before.append(gate)
        return gate

    def remove_gate(self, gate: Gate) -> None:
        """Let later calls pass a gate that ``gate_before`` made; waiting calls still wait."""
        self._before.remove(gate)

    def gate_behind(self, which: Which) -> Gate:
        """Add a gate that calls reach after the store has processed them."""
        gate = Gate(which)
        self._behind.append(gate)
        return gate

    def gate_durable(self, which: Which) -> Gate:
        """Add a gate between the sync of these commits and the completion of their futures.

        Durable views show such a commit before its actor is notified. Futures complete in the order
        of the commits, so ``which`` must also select all later commits.
        """
        gate = Gate(which)
        self._durable_gates.append(gate)
        return gate

    @property
    def latest(self) -> View:
        return _SteppedView(super().latest, self)

    def durable(self) -> View:
        return _SteppedView(super().durable(), self)

    async def commit(self, groups: Sequence[Group]) -> Future[None]:
        call = Commit(groups)
        await self.begin(call)
        durable = await super().commit(groups)
        await self.end(call)
        for gate in self._durable_gates:
            if gate.which(call):
                durable = gate.hold(durable)
        return durable

    async def begin(self, call: Call) -> None:
        """Pass the gates before a call."""
        await _pass(self._before, call)

    async def end(self, call: Call) -> None:
        """Pass the gates after a call."""
        await _pass(self._behind, call)

    def open_all(self) -> None:
        """Open every gate."""
        for gate in (*self._before, *self._behind, *self._durable_gates):
            gate.open()


async def soon(is_so: Callable[[], bool]) -> None:
    """Wait until a condition holds.

    Raises:
        TimeoutError: the condition does not hold after 2 s of this process's CPU time, which
            doesn't depend on the load of the machine.
    """
    began = process_time()
    while not is_so():
        if process_time() - began > _LONGEST_SECONDS:
            raise TimeoutError
        await asyncio.sleep(0)


async def turns(count: int = 50) -> None:
    """Let other tasks run for this many turns of the event loop."""
    for _ in range(count):
        await asyncio.sleep(0)


@asynccontextmanager
async def stepped_database(
    clock: Clock | None = None, broker: Broker | None = None, **settings: Any
) -> AsyncIterator[tuple[SteppedStore, Database]]:
    """Open a database with these settings over a stepped store in memory."""
    async with memory_store() as inner:
        store = SteppedStore(inner)
        async with running_database(store, clock, broker, **settings) as database:
            try:
                yield store, database
            finally:
                # After a failed test the actors must be able to stop.
                store.open_all()
                await store.release_syncs()


async def _pass(gates: Sequence[Gate], call: Call) -> None:
    for gate in gates:
        if gate.which(call):
            await gate.arrive()


def stepped_view(view: View, store: SteppedStore) -> View:
    """A view whose calls pass the gates of a store."""
    return _SteppedView(view, store)


class _SteppedView:
    """A view whose calls pass the gates of its store."""

    def __init__(self, view: View, store: SteppedStore) -> None:
        self._view = view
        self._store = store

    def cached(self, key: bytes) -> bytes | NotCached | None:
        return self._view.cached(key)

    def page_nowait(self, *_: object, **__: object) -> NotCached:
        return NOT_CACHED

    async def load(self, keys: Sequence[bytes]) -> list[bytes | None]:
        call = Load(keys)
        await self._store.begin(call)
        values = await self._view.load(keys)
        await self._store.end(call)
        return values

    async def page(
        self, start: bytes, end: bytes, *, reverse: bool = False, max_rows: int, max_bytes: int
    ) -> list[Row]:
        call = Page(start, end, max_rows)
        await self._store.begin(call)
        rows = await self._view.page(
            start, end, reverse=reverse, max_rows=max_rows, max_bytes=max_bytes
        )
        await self._store.end(call)
        return rows

    async def first_rows(
        self, ranges: Sequence[tuple[bytes, bytes]], *, max_rows: int, reverse: bool = False
    ) -> list[list[Row]]:
        calls = [Page(start, end, max_rows) for start, end in ranges]
        for call in calls:
            await self._store.begin(call)
        found = await self._view.first_rows(ranges, max_rows=max_rows, reverse=reverse)
        for call in calls:
            await self._store.end(call)
        return found

    async def load_with_page(
        self, keys: Sequence[bytes], start: bytes, end: bytes, *, max_rows: int, max_bytes: int
    ) -> tuple[list[bytes | None], list[Row]]:
        calls = (Load(keys), Page(start, end, max_rows))
        for call in calls:
            await self._store.begin(call)
        found = await self._view.load_with_page(
            keys, start, end, max_rows=max_rows, max_bytes=max_bytes
        )
        for call in calls:
            await self._store.end(call)
        return found
