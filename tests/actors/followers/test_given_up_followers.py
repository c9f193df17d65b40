"""An index or the expiry rows don't count as caught up if a follower was abandoned."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from dynactor.actors.derived.expiry.time_to_live import TimeToLiveActors, subscriber_id
from dynactor.actors.table.messages import CreateTable, UpdateTable
from dynactor.actors.table.table import Table
from dynactor.model.keys.key import KeyAttribute
from dynactor.model.tables.global_index_rules import NewGlobalIndex
from dynactor.model.tables.schema_rules import KeyElement
from dynactor.model.tables.table_edits import TableEdit
from dynactor.storage import key_layout
from dynactor.storage.store import Damaged
from dynactor.storage.subscriber_names import index_subscriber
from tests.support.databases.databases import put, table_definition, thread
from tests.support.databases.expiry import switch
from tests.support.stores.stepped_store import SteppedStore, loads_of, soon, stepped_database

BY_POSTS = TableEdit(
    index_creates=(NewGlobalIndex("by_posts", (KeyElement("posts", "HASH"),), "ALL"),),
    attribute_definitions=(KeyAttribute("posts", "N"),),
)
ITEM = thread("EC2", "a", posts=1)


@pytest.fixture(autouse=True)
def _sooner_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynactor.actors.runtime.supervisor.RESTARTS", 1)


def damage_checkpoint(store: SteppedStore, table: Table, subscriber: bytes) -> None:
    """Damage the checkpoint of the only follower, so it crashes until its supervisor gives up."""
    [number] = table.partitions.map.numbers
    gate = store.gate_before(loads_of(key_layout.checkpoint(subscriber, number)))
    gate.fail(Damaged("a damaged checkpoint: played by a test"))


async def test_an_index_with_an_abandoned_follower_does_not_catch_up() -> None:
    settings = {"partitions_per_table": 1, "index_allocation_seconds": 0.0}
    async with stepped_database(**settings) as (store, database):
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await table.write(put(ITEM))
        subscriber = index_subscriber(table.definition.table_id, 1)
        damage_checkpoint(store, table, subscriber)
        with capture_logs() as logs:
            await database.ask(UpdateTable("Thread", BY_POSTS))
            await soon(lambda: any(each["event"] == "actor_abandoned" for each in logs))

        actors = table.followers.indexes[1]
        await actors.wait_caught_up()
        assert not actors.follows_all
        # Because the index is stuck, a table whose restore waits for it can be deleted.
        assert actors.is_stuck


async def test_time_to_live_with_an_abandoned_expirer_does_not_catch_up() -> None:
    async with stepped_database(partitions_per_table=1) as (store, database):
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await table.write(put(ITEM))
        damage_checkpoint(store, table, subscriber_id(table))
        with capture_logs() as logs:
            await switch(database, "Thread", "at", enabled=True)
            await soon(lambda: any(each["event"] == "actor_abandoned" for each in logs))

        actors = table.followers.following(subscriber_id(table))
        assert isinstance(actors, TimeToLiveActors)
        assert not await actors.wait_caught_up()
