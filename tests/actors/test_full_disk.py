"""What a full disk keeps the database from is done when there is space again."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from actors.database import Database
from model.global_index_rules import NewGlobalIndex
from model.key import KeyAttribute
from model.schema_rules import KeyElement
from model.table_rules import TableEdit
from storage.store import Full
from tests.support.databases import running_database, table_definition
from tests.support.faulty_store import FaultyStore
from tests.support.store import memory_store
from tests.support.transacting import until


def status(database: Database) -> str:
    [index] = database.table("Thread").definition.global_indexes
    return index.status


async def test_an_index_goes_on_to_its_next_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.database_actor._AGAIN_SECONDS", 0.01)
    async with memory_store() as inner:
        store = FaultyStore(inner)
        async with running_database(store, index_allocation_seconds=3_600) as database:
            await database.create_table(table_definition())
            index = NewGlobalIndex("by_posts", (KeyElement("posts", "HASH"),), "ALL")
            attributes = (KeyAttribute("posts", "N"),)
            edit = TableEdit(index_creates=(index,), attribute_definitions=attributes)
            await database.update_table("Thread", edit)
        # Partitions that have made no commit yet tell in their own words that the disk is full.
        async with running_database(store, index_allocation_seconds=0.01) as database:
            store.refuse_commits(Full("the disk is full"))
            with capture_logs() as logs:
                await until(lambda: any(each["event"] == "tried_again_later" for each in logs))
            assert status(database) == "CREATING"
            store.allow_commits()
            await until(lambda: status(database) == "ACTIVE")
