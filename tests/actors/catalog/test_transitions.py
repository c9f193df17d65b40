"""A transition of a table or index takes its full time, regardless of other changes."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from dynactor.actors.database.database import Database
from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.table.messages import CreateTable, DeleteTable, UpdateTable
from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import GlobalIndex, TableDefinition, Throughput
from dynactor.model.errors import InternalServerError, ResourceInUseException
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.tables.global_index_rules import GlobalIndexUpdate, NewGlobalIndex
from dynactor.model.tables.schema_rules import KeyElement
from dynactor.model.tables.table_edits import TableEdit
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
    await database.ask(UpdateTable("Thread", TableEdit(tags_to_add=(("a", "b"),))))


async def change_units(database: Database, units: int) -> None:
    await database.ask(UpdateTable("Thread", TableEdit(throughput=Throughput(units, units))))


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
    await database.ask(CreateTable(indexed()))
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
        await database.ask(UpdateTable("Thread", TableEdit(index_updates=(update,))))
        await pass_seconds(SECONDS - 1)
        await tag(database)
        await last_second(database)
        assert (await shown(database)).global_indexes[0].status == "ACTIVE"
        await database.ask(UpdateTable("Thread", TableEdit(index_deletes=("by_posts",))))
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


@on_stepped_time
async def test_changes_of_two_kinds_end_together_with_the_later_one():
    async with running_database(table_transition_seconds=SECONDS) as database:
        await make(database)
        await change_units(database, 6)
        await pass_seconds(SECONDS - 1)
        changed = await database.ask(
            UpdateTable("Thread", TableEdit(sse_specification={"Enabled": True}))
        )
        assert changed.definition.changing == ("THROUGHPUT", "SSE")
        await pass_seconds(SECONDS - 1)
        table = await shown(database)
        assert (table.status, table.throughput.read_units) == ("UPDATING", 5)
        await last_second(database)
        assert (await shown(database)).throughput.read_units == 6
        assert (await shown(database)).changing == ()


@on_stepped_time
async def test_a_table_warms_up_while_it_is_active():
    async with running_database(table_transition_seconds=SECONDS) as database:
        await make(database)
        warm = {"ReadUnitsPerSecond": 7, "WriteUnitsPerSecond": 7}
        answer = await database.ask(UpdateTable("Thread", TableEdit(warm_throughput=warm)))
        for table in (answer.definition, await shown(database)):
            assert (table.status, table.warm_throughput) == ("ACTIVE", None)
            assert table.changing == ("WARM_THROUGHPUT",)
        await pass_seconds(SECONDS - 1)
        assert (await shown(database)).changing
        await pass_seconds(1)
        while (await shown(database)).changing:
            await asyncio.sleep(0)
        assert (await shown(database)).warm_throughput == warm


@on_stepped_time
async def test_a_class_that_the_table_has_already_ends_with_the_answer():
    async with running_database(table_transition_seconds=SECONDS) as database:
        await make(database)
        answer = await database.ask(UpdateTable("Thread", TableEdit(table_class="STANDARD")))
        assert answer.definition.status == "UPDATING"
        assert (await shown(database)).status == "ACTIVE"


@on_stepped_time
async def test_an_added_index_of_an_empty_table_is_shown_in_each_phase():
    async with running_database(
        table_transition_seconds=SECONDS, index_allocation_seconds=SECONDS
    ) as database:
        await make(database)
        added = NewGlobalIndex(
            "added", (KeyElement("posts", "HASH"),), "ALL", throughput=Throughput(1, 1)
        )
        edit = TableEdit(
            index_creates=(added,), attribute_definitions=(KeyAttribute("posts", "N"),)
        )
        await database.ask(UpdateTable("Thread", edit))
        assert await phase_of_added(database) == ("UPDATING", "CREATING", False)
        await pass_seconds(SECONDS - 1)
        assert await phase_of_added(database) == ("UPDATING", "CREATING", False)
        await pass_seconds(1)
        while (await phase_of_added(database))[2] is False:
            await asyncio.sleep(0)
        assert await phase_of_added(database) == ("ACTIVE", "CREATING", True)
        await pass_seconds(SECONDS - 1)
        assert await phase_of_added(database) == ("ACTIVE", "CREATING", True)
        await last_second(database)
        assert await phase_of_added(database) == ("ACTIVE", "ACTIVE", None)


async def phase_of_added(database: Database) -> tuple[str, str, bool | None]:
    table = await shown(database)
    index = table.global_index("added")
    assert index is not None
    return table.status, index.status, index.backfilling


@on_stepped_time
async def test_a_change_of_settings_outlasts_the_allocation_of_an_index():
    async with running_database(
        table_transition_seconds=SECONDS, index_allocation_seconds=SECONDS / 2
    ) as database:
        await make(database)
        added = NewGlobalIndex(
            "added", (KeyElement("posts", "HASH"),), "ALL", throughput=Throughput(1, 1)
        )
        edit = TableEdit(
            index_creates=(added,), attribute_definitions=(KeyAttribute("posts", "N"),)
        )
        await database.ask(UpdateTable("Thread", edit))
        await database.ask(UpdateTable("Thread", TableEdit(sse_specification={"Enabled": True})))
        await pass_seconds(SECONDS - 1)
        assert await phase_of_added(database) == ("UPDATING", "CREATING", True)
        assert (await shown(database)).changing == ("SSE",)


@on_stepped_time
async def test_the_name_of_a_table_in_creation_or_deletion_is_in_use():
    async with running_database(table_transition_seconds=SECONDS) as database:
        await database.ask(CreateTable(indexed()))
        with pytest.raises(ResourceInUseException, match=r"Table is being created: Thread$"):
            await database.ask(CreateTable(indexed()))
        await pass_seconds(SECONDS - 1)
        await last_second(database)
        with pytest.raises(ResourceInUseException, match=r"^Table already exists: Thread$"):
            await database.ask(CreateTable(indexed()))
        await database.ask(DeleteTable("Thread"))
        with pytest.raises(ResourceInUseException, match=r"Table is being deleted: Thread$"):
            await database.ask(CreateTable(indexed()))
