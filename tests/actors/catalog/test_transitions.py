"""A transition of a table or index takes its full time, regardless of other changes."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from dynactor.actors.catalog.database import Database
from dynactor.actors.runtime.mailbox import Message
from dynactor.model.errors import InternalServerError
from dynactor.model.indexes.global_index_rules import GlobalIndexUpdate
from dynactor.model.indexes.index import IndexDefinition, Projection
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.tables.table import GlobalIndex, TableDefinition, Throughput
from dynactor.model.tables.table_rules import TableEdit
from tests.support.databases.databases import running_database, table_definition
from tests.support.environment.stepped_time import on_stepped_time, pass_seconds

SECONDS = 10.0
TAGS = (("a", "b"),)


def indexed() -> TableDefinition:
    """A table with a global index; both are provisioned."""
    posts = KeyAttribute("posts", "N")
    index = IndexDefinition(1, "by_posts", KeySchema((posts,)), Projection("ALL"))
    definition = table_definition()
    return structs.replace(
        definition,
        billing_mode="PROVISIONED",
        throughput=Throughput(5, 5),
        attribute_definitions=(*definition.attribute_definitions, posts),
        global_indexes=(GlobalIndex(index, throughput=Throughput(5, 5)),),
        next_index_id=2,
    )


class Poison(Message[None], frozen=True):
    """A message that the database's actor does not know."""


async def crash(database: Database) -> None:
    """Crash the database's actor, which restarts from the stored state."""
    with pytest.raises(InternalServerError):
        await database.actor.mailbox.put_nowait(Poison())


async def tag(database: Database) -> None:
    """Change the tags, which is allowed in every status; return after all due work is done."""
    await database.update_table("Thread", TableEdit(tags_to_add=(("a", "b"),)))


async def change_units(database: Database, units: int) -> None:
    await database.update_table("Thread", TableEdit(throughput=Throughput(units, units)))


async def shown(database: Database) -> TableDefinition:
    return (await database.describe("Thread")).definition


def is_active(table: TableDefinition) -> bool:
    return all(each.status == "ACTIVE" for each in (table, *table.global_indexes))


async def last_second(database: Database) -> None:
    await pass_seconds(1)
    # Separate messages end the transitions of a table and an index, so wait for both.
    while not is_active(await shown(database)):
        await asyncio.sleep(0)


async def make(database: Database) -> None:
    await database.create_table(indexed())
    await pass_seconds(SECONDS - 1)
    await last_second(database)


@on_stepped_time
async def test_a_tag_during_a_transition_of_a_table_does_not_end_a_later_transition():
    async with running_database(table_transition_seconds=SECONDS) as database:
        await make(database)
        for units in (6, 7):
            await change_units(database, units)
            await pass_seconds(SECONDS - 1)
            await tag(database)
            assert (await shown(database)).status == "UPDATING"
            await last_second(database)


@on_stepped_time
async def test_a_tag_during_a_transition_of_an_index_does_not_end_a_later_transition():
    async with running_database(table_transition_seconds=SECONDS) as database:
        await make(database)
        update = GlobalIndexUpdate("by_posts", throughput=Throughput(6, 6))
        await database.update_table("Thread", TableEdit(index_updates=(update,)))
        await pass_seconds(SECONDS - 1)
        await tag(database)
        await last_second(database)
        assert (await shown(database)).global_indexes[0].status == "ACTIVE"
        await database.update_table("Thread", TableEdit(index_deletes=("by_posts",)))
        await pass_seconds(SECONDS - 1)
        await tag(database)
        assert [index.status for index in (await shown(database)).global_indexes] == ["DELETING"]
        await last_second(database)
        assert (await shown(database)).global_indexes == ()


@on_stepped_time
async def test_a_transition_during_which_the_actor_crashed_restarts_and_ends_once():
    async with running_database(table_transition_seconds=SECONDS) as database:
        await make(database)
        await change_units(database, 6)
        await pass_seconds(SECONDS / 2)
        await crash(database)
        for units in (7, 8):
            await pass_seconds(SECONDS - 1)
            await tag(database)
            assert (await shown(database)).status == "UPDATING"
            await last_second(database)
            await change_units(database, units)
