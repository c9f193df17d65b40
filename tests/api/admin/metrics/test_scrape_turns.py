"""A scrape yields the event loop between groups of tables."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from msgspec import structs

from dynactor.actors.database.database import Database
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.table import Table
from dynactor.api.admin.metrics.tables import TABLES_A_TURN, table_figures
from tests.support.databases.databases import running_database, table_definition

PIECES = 3


class Turns:
    """Counts the event loop's turns, and records the tables that are read in each turn."""

    def __init__(self) -> None:
        self.turn = 0
        self._ended = False
        self._looks: set[tuple[int, str]] = set()

    def look(self, name: str) -> None:
        self._looks.add((self.turn, name))

    def end(self) -> None:
        self._ended = True

    async def count(self) -> None:
        while not self._ended:
            self.turn += 1
            await asyncio.sleep(0)

    def tables_by_turn(self) -> list[set[str]]:
        turns = {turn for turn, _ in self._looks}
        return [{name for at, name in self._looks if at == turn} for turn in sorted(turns)]


class NotedTable:
    """A table that records each access to its attributes."""

    def __init__(self, table: Table, turns: Turns) -> None:
        self._table = table
        self._turns = turns

    def __getattr__(self, name: str) -> Any:
        self._turns.look(self._table.record.definition.name)
        return getattr(self._table, name)


class NotedDatabase:
    """A database whose tables are ``NotedTable``s."""

    def __init__(self, database: Database, turns: Turns) -> None:
        self._database = database
        self.tables = [NotedTable(table, turns) for table in database.tables]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


async def test_a_scrape_reads_few_tables_in_one_turn_of_the_loop():
    turns = Turns()
    async with running_database() as database, asyncio.TaskGroup() as group:
        for number in range(PIECES * TABLES_A_TURN):
            definition = structs.replace(table_definition(), name=f"Thread{number}")
            await database.ask(CreateTable(definition))
        group.create_task(turns.count())
        await asyncio.sleep(0)
        noted = NotedDatabase(database, turns)
        figures = await table_figures(cast("Database", noted))
        turns.end()
    assert len(figures.names) == len(figures.expiry) == PIECES * TABLES_A_TURN
    assert [len(names) for names in turns.tables_by_turn()] == [TABLES_A_TURN] * PIECES
