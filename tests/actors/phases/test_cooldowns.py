"""Changes that follow too soon on another one are refused, if the server is asked to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dynactor.actors.database.database import Database
from dynactor.actors.runtime.clock import VirtualClock
from dynactor.actors.table.messages import CreateTable, DeleteTable, UpdateTable
from dynactor.model.errors import (
    DynamoDBError,
    LimitExceededException,
    ResourceInUseException,
    ThrottlingException,
)
from dynactor.model.tables.policy_rules import PolicyChange
from dynactor.model.tables.table_edits import TableEdit
from tests.support.databases.databases import running_database, table_definition

START = 1_800_000_000.0
PENDING = (
    "Attempt to change a resource which is still in use: Table: Thread has a pending "
    "resource-based policy update"
)


@asynccontextmanager
async def cooling(*, is_on: bool = True) -> AsyncIterator[tuple[Database, VirtualClock]]:
    clock = VirtualClock(START)
    async with running_database(clock=clock, control_plane_cooldowns=is_on) as database:
        await database.ask(CreateTable(table_definition()))
        yield database, clock


async def refusal(database: Database, edit: TableEdit) -> DynamoDBError:
    with pytest.raises(DynamoDBError) as caught:
        await database.ask(UpdateTable("Thread", edit))
    return caught.value


def policy(text: str) -> TableEdit:
    return TableEdit(policy=PolicyChange("Thread", "", text))


TAG = TableEdit(tags_to_add=(("a", "b"),))


async def test_deletion_protection_is_changed_once_in_15_seconds():
    async with cooling() as (database, clock):
        await database.ask(UpdateTable("Thread", TableEdit(deletion_protection=True)))
        clock.step(14.0)
        refused = await refusal(database, TableEdit(deletion_protection=False))
        assert isinstance(refused, ThrottlingException)
        assert refused.message == (
            "Deletion protection setting for table Thread modified within the previous 15000 "
            "milliseconds. Please try again after 1000 milliseconds"
        )
        clock.step(1.0)
        await database.ask(UpdateTable("Thread", TableEdit(deletion_protection=False)))


async def test_a_policy_is_pending_at_first_and_then_throttled():
    async with cooling() as (database, clock):
        await database.ask(UpdateTable("Thread", policy("{}")))
        refused = await refusal(database, policy("[]"))
        assert (type(refused), refused.message) == (ResourceInUseException, PENDING)
        with pytest.raises(ResourceInUseException) as caught:
            await database.ask(DeleteTable("Thread"))
        assert caught.value.message == PENDING
        clock.step(4.0)
        assert isinstance(await refusal(database, policy("[]")), ThrottlingException)
        await database.ask(DeleteTable("Thread"))
        await database.ask(CreateTable(table_definition()))
        await database.ask(UpdateTable("Thread", policy("{}")))


async def test_tags_are_changed_once_in_1_5_seconds():
    async with cooling() as (database, clock):
        await database.ask(UpdateTable("Thread", TAG))
        refused = await refusal(database, TableEdit(tag_keys_to_remove=("a",)))
        assert isinstance(refused, LimitExceededException)
        assert refused.message == "Table tags are being updated: Thread"
        clock.step(1.5)
        await database.ask(UpdateTable("Thread", TableEdit(tag_keys_to_remove=("a",))))


async def test_a_refused_change_begins_no_cooldown():
    async with cooling() as (database, _):
        change = PolicyChange("Thread", "", "{}", expected_revision_id="7")
        await refusal(database, TableEdit(policy=change))
        await database.ask(UpdateTable("Thread", policy("{}")))


async def test_by_default_changes_follow_at_once():
    async with cooling(is_on=False) as (database, _):
        for is_protected in (True, False):
            await database.ask(UpdateTable("Thread", TableEdit(deletion_protection=is_protected)))
            await database.ask(UpdateTable("Thread", TAG))
            await database.ask(UpdateTable("Thread", policy("{}" if is_protected else "[]")))
        await database.ask(DeleteTable("Thread"))
        assert database.table_names() == []
