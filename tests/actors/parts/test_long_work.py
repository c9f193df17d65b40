"""Long work of the database's actor goes in pieces, and a table is held only while it moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Final

import anyio
import pytest

from dynactor.actors.catalog.homes import MoveTables
from dynactor.actors.database.database import Database
from dynactor.actors.runtime.mailbox import MailboxClosed
from dynactor.actors.table.messages import CreateTable, DeleteTable, KeepStreams, UpdateTable
from dynactor.model.tables.table_edits import TableEdit
from dynactor.model.tables.table_rules import StreamChange
from dynactor.storage import key_layout
from dynactor.storage.catalog import load_claims
from dynactor.storage.store import Conflict, Store
from tests.support.databases.databases import put, table_definition, thread
from tests.support.databases.homes import EPOCH, sharing
from tests.support.stores.stepped_store import (
    Gate,
    SteppedStore,
    loads_of,
    pages_of,
    stepped_database,
)
from tests.support.stores.store import memory_store

NAMES: Final = ("one", "two")
STREAMED: Final = TableEdit(stream=StreamChange(enabled=True, view_type="KEYS_ONLY"))


async def streamed(database: Database, *names: str) -> None:
    """Create tables with a stream and one change each."""
    for name in names:
        await database.ask(CreateTable(table_definition(name)))
        await database.ask(UpdateTable(name, STREAMED))
        await database.table(name).write(put(thread("EC2", "a")))


def trim_gate(store: SteppedStore, database: Database, name: str) -> Gate:
    """A gate at which the trimming of a table's log waits."""
    table = database.table(name)
    (number, *_) = table.record.log_numbers
    return store.gate_before(loads_of(key_layout.trim(table.definition.table_id, number)))


async def test_other_messages_are_handled_between_two_tables_that_are_trimmed():
    async with stepped_database() as (store, database):
        await streamed(database, *NAMES)
        first, second = (trim_gate(store, database, name) for name in NAMES)
        keeping = database.actor.ref.ask(KeepStreams())
        await first.reached()
        creating = asyncio.ensure_future(database.ask(CreateTable(table_definition("three"))))
        await asyncio.sleep(0)
        first.open()
        await second.reached()
        assert database.runs("three")
        second.open()
        await keeping
        await creating


async def test_a_table_that_is_deleted_between_two_pieces_is_not_trimmed():
    async with stepped_database() as (store, database):
        await streamed(database, *NAMES)
        first, second = (trim_gate(store, database, name) for name in NAMES)
        keeping = database.actor.ref.ask(KeepStreams())
        await first.reached()
        deleting = asyncio.ensure_future(database.ask(DeleteTable("two")))
        await asyncio.sleep(0)
        first.open()
        await deleting
        await keeping
        assert not second.is_reached


async def test_long_work_starts_again_after_a_conflict():
    async with stepped_database() as (store, database):
        await streamed(database, *NAMES)
        second = trim_gate(store, database, "two")
        keeping = database.actor.ref.ask(KeepStreams())
        await second.reached()
        loading = store.gate_before(pages_of(*key_layout.TABLE_RECORDS))
        second.fail(Conflict("another node has changed the table"))
        await loading.reached()
        assert not keeping.done()
        second.open()
        loading.open()
        await keeping


async def test_long_work_ends_with_the_database():
    async with stepped_database() as (store, database):
        await streamed(database, *NAMES)
        first = trim_gate(store, database, "one")
        keeping = database.actor.ref.ask(KeepStreams())
        await first.reached()
        database.actor.mailbox.close()
        first.open()
        with pytest.raises(MailboxClosed):
            await keeping


class Guard:
    """A node that may give tables as often as ``gives`` says, and notes what it holds."""

    def __init__(self, gives: int = 2, *, are_idle: bool = True) -> None:
        self.held: list[str] = []
        self.was_held = False
        self._gives = gives
        self._are_idle = are_idle

    def may_give(self, epoch: int) -> bool:
        assert epoch == EPOCH
        self._gives -= 1
        return self._gives >= 0

    @asynccontextmanager
    async def holding(self, names: Collection[str]) -> AsyncIterator[bool]:
        self.held, self.was_held = list(names), True
        yield self._are_idle
        self.held = []

    def opened(self) -> None:
        """No request waits."""


@asynccontextmanager
async def guarded(store: Store, guard: Guard) -> AsyncIterator[Database]:
    """A leader with the table Thread."""
    async with sharing(store) as (leader, _):
        await leader.ask(CreateTable(table_definition()))
        leader.guard_moves(guard)
        yield leader


async def test_a_table_is_held_only_while_the_actor_moves_it():
    guard = Guard()
    async with memory_store() as inner:
        store = SteppedStore(inner)
        async with guarded(store, guard) as leader:
            await streamed(leader, "one")
            trimming = trim_gate(store, leader, "one")
            claims = store.gate_before(loads_of(key_layout.claim("Thread")))
            keeping = leader.actor.ref.ask(KeepStreams())
            await trimming.reached()
            async with anyio.create_task_group() as group:
                group.start_soon(leader.ask, MoveTables(("Thread",), EPOCH))
                await asyncio.sleep(0)
                assert not guard.was_held
                trimming.open()
                await claims.reached()
                assert guard.held == ["Thread"]
                claims.open()
            assert guard.held == []
            assert leader.tables_elsewhere == {"Thread": EPOCH}
            await keeping


async def test_a_table_stays_open_if_its_new_home_ends_before_the_claim():
    async with memory_store() as store, guarded(store, Guard(gives=1)) as leader:
        await leader.ask(MoveTables(("Thread",), EPOCH))
        assert leader.runs("Thread")
        assert await load_claims(store.latest) == {}
        await leader.table("Thread").write(put(thread("EC2", "a")))


async def test_a_table_with_a_long_request_stays_open():
    async with memory_store() as store, guarded(store, Guard(are_idle=False)) as leader:
        table = leader.table("Thread")
        await leader.ask(MoveTables(("Thread",), EPOCH))
        assert leader.table("Thread") is table
