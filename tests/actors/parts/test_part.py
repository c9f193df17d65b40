"""A part of the control plane is one class and one entry in the list of parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from msgspec import structs

from dynactor.actors.catalog import definition_commit
from dynactor.actors.catalog.tables import Tables
from dynactor.actors.database.database import Database
from dynactor.actors.database.parts import PARTS
from dynactor.actors.parts.long_work import Pieces
from dynactor.actors.parts.part import Part, Parts
from dynactor.actors.parts.phase_machine import Phase, PhaseMachine
from dynactor.actors.phases.space_reclaim import SpaceReclaimer
from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.table.messages import CreateTable, DeleteTable
from dynactor.actors.table.table import Table
from dynactor.model.errors import ResourceInUseException
from tests.support.databases.databases import running_database, table_definition
from tests.support.stores.store import memory_store


class MarkTable(Message[None], frozen=True):
    """Mark a table."""

    name: str


class Marks(Part):
    """Marks tables with a tag."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self.handlers = {MarkTable: self._mark}
        self.machines = [
            PhaseMachine(
                "mark",
                {
                    "": Phase(),
                    "MARKING": Phase(("MARKED",), self._start, leave=self._end),
                    "MARKED": Phase(),
                },
                find=parts.find_table,
                stored_phase=mark,
                tell=parts.tell_later,
            )
        ]
        self.endings: list[Callable[[], None]] = []
        self.times_kept: list[float] = []
        # The number of started phases when each stored table was open.
        self.started_before: list[int] = []

    async def _mark(self, message: MarkTable) -> None:
        table = self._tables.settled(message.name)
        await self._put(table, "MARKING")
        await self._parts.resume(table)

    async def _start(self, table: Table, over: Callable[[], None]) -> None:
        del table
        self.endings.append(over)

    async def opened(self, table: Table) -> None:
        del table
        self.started_before.append(len(self.endings))

    async def _end(self, table: Table) -> str:
        await self._put(table, "MARKED")
        return "MARKED"

    async def _put(self, table: Table, phase: str) -> None:
        marked = structs.replace(table.definition, tags=(("mark", phase),))
        await definition_commit.store(self._owner, table, marked)

    def may_move(self, table: Table) -> bool:
        return mark(table) != "MARKING"

    def check_deletable(self, table: Table) -> None:
        if mark(table) == "MARKING":
            raise ResourceInUseException("It is being marked")

    async def keep(self, now_epoch_seconds: float) -> Pieces:
        self.times_kept.append(now_epoch_seconds)
        yield


def mark(table: Table) -> str:
    return dict(table.definition.tags).get("mark", "")


@pytest.fixture(autouse=True)
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the part to the list."""
    monkeypatch.setattr("dynactor.actors.database.database_actor.PARTS", (*PARTS, Marks))


async def marking(database: Database) -> Table:
    await database.ask(CreateTable(table_definition()))
    await database.ask(MarkTable("Thread"))
    return database.table("Thread")


async def test_a_phase_of_a_part_starts_once_and_again_after_a_restart() -> None:
    async with memory_store() as store:
        async with running_database(store) as database:
            table = await marking(database)
            await database.actor.parts.resume(table)
            assert len(database.part(Marks).endings) == 1
        async with running_database(store) as database:
            (over,) = database.part(Marks).endings
            assert database.part(Marks).started_before == [1]
            over()
            # The actor handles this message after the end of the phase.
            await database.actor.keep_streams()
            assert mark(database.table("Thread")) == "MARKED"


async def test_a_part_may_refuse_that_a_table_moves_or_is_deleted() -> None:
    async with running_database() as database:
        await marking(database)
        assert database.movable_tables() == []
        with pytest.raises(ResourceInUseException, match="It is being marked"):
            await database.ask(DeleteTable("Thread"))
        database.part(Marks).endings.pop()()
        await database.actor.keep_streams()
        assert database.movable_tables() == ["Thread"]
        await database.ask(DeleteTable("Thread"))


async def test_a_part_does_its_periodic_work() -> None:
    async with running_database() as database:
        times = database.part(Marks).times_kept
        before = len(times)
        await database.actor.keep_streams()
        assert len(times) > before


async def parts_of_kinds(kinds: Sequence[type[Part]]) -> Parts:
    async with running_database() as database:
        parts = database.actor.parts
    return Parts(
        kinds,
        parts.environment,
        parts.settings,
        Tables(),
        None,
        tell=parts.tell,
        tell_later=parts.tell_later,
    )


async def test_a_message_is_handled_by_one_part() -> None:
    class Others(Part):
        def __init__(self, parts: Parts) -> None:
            super().__init__(parts)
            self.handlers = parts[Marks].handlers

    with pytest.raises(AssertionError, match="one part handles a message"):
        await parts_of_kinds([Marks, Others])


async def test_a_part_that_is_not_listed_is_not_found() -> None:
    parts = await parts_of_kinds([Marks])
    with pytest.raises(AssertionError, match="SpaceReclaimer is not in the list"):
        parts[SpaceReclaimer]


async def test_parts_close_in_the_reverse_order() -> None:
    closed = []

    class First(Part):
        async def close(self) -> None:
            closed.append("first")

    class Second(Part):
        async def close(self) -> None:
            closed.append("second")

    await (await parts_of_kinds([First, Second])).close()
    assert closed == ["second", "first"]
