"""If the store refuses a change of a table, the table continues in its old state."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from dynactor.actors.backups.messages import CreateTableBackup
from dynactor.actors.backups.table_backups import TableBackups
from dynactor.actors.derived.expiry.time_to_live import subscriber_id
from dynactor.actors.derived.expiry.time_to_live_settings import TimeToLiveSettings
from dynactor.actors.phases.destination_messages import DisableDestination
from dynactor.actors.table.messages import CreateTable, UpdateTable
from dynactor.actors.table.table import Table
from dynactor.model.errors import InternalServerError
from dynactor.model.tables.table_edits import TableEdit
from dynactor.storage import key_layout
from dynactor.storage.store import Full
from tests.support.databases.databases import put, running_database, table_definition, thread
from tests.support.databases.expiry import switch, until_status
from tests.support.databases.published import TOPIC, published_table, relay_of, relay_settings
from tests.support.kafka.fake_broker import FakeBroker
from tests.support.stores.losing_store import LosingStore
from tests.support.stores.stepped_store import (
    Gate,
    SteppedStore,
    commits_of,
    commits_that_put,
    soon,
    stepped_database,
    turns,
)
from tests.support.stores.store import memory_store

FULL = Full("the disk is full: played by a test")


def refuse_changes(store: SteppedStore) -> Gate:
    """Refuse commits of the catalog; writes of items succeed."""
    gate = store.gate_before(commits_that_put(key_layout.table_record("Thread")))
    gate.fail(FULL)
    return gate


async def recorded(table: Table) -> int:
    """The number of changes in the table's only log."""
    [feed] = await table.followers.feeds()
    return len(await feed.read(0, max_records=99, max_bytes=1 << 20))


async def test_a_destination_whose_disabling_was_refused_misses_no_change() -> None:
    settings = {"partitions_per_table": 1, "relays": relay_settings()}
    async with stepped_database(broker=FakeBroker(), **settings) as (store, database):
        table = await published_table(database)
        await soon(lambda: table.definition.destinations[0].status == "ACTIVE")
        refuse_changes(store)
        with pytest.raises(InternalServerError, match="the disk is full"):
            await database.ask(DisableDestination("Thread", TOPIC))
        assert table.definition.destinations[0].status == "ACTIVE"
        await table.write(put(thread("EC2", "a")))
        assert await recorded(table) == 1


async def test_a_destination_whose_cut_off_was_refused_continues() -> None:
    broker = FakeBroker()
    settings = {"partitions_per_table": 1, "relays": relay_settings(retention_bytes=1)}
    async with stepped_database(broker=broker, **settings) as (store, database):
        table = await published_table(database)
        await soon(lambda: table.definition.destinations[0].status == "ACTIVE")
        refused = refuse_changes(store)
        with broker.silent():
            await table.write(put(thread("EC2", "a")))
            await refused.reached()
            # The actor answers this message after it has handled the refused change.
            await database.actor.keep_streams()
            assert table.definition.destinations[0].status == "ACTIVE"
            assert relay_of(database, table).lag_records == 1


async def test_time_to_live_whose_disabling_was_refused_is_shown_as_enabled() -> None:
    settings = TimeToLiveSettings(change_interval_seconds=0.0)
    async with stepped_database(time_to_live=settings) as (store, database):
        await database.ask(CreateTable(table_definition()))
        await switch(database, "Thread", "at", enabled=True)
        table = database.table("Thread")
        await until_status(table, "ENABLED")
        before = table.definition
        refuse_changes(store)
        with pytest.raises(InternalServerError, match="the disk is full"):
            await switch(database, "Thread", "at", enabled=False)
        assert table.definition == before
        assert table.followers.following(subscriber_id(table)) is not None


async def test_a_setting_whose_change_was_refused_is_shown_as_before() -> None:
    async with stepped_database() as (store, database):
        await database.ask(CreateTable(table_definition()))
        refuse_changes(store)
        with pytest.raises(InternalServerError, match="the disk is full"):
            await database.ask(UpdateTable("Thread", TableEdit(deletion_protection=True)))
        assert not database.table("Thread").definition.deletion_protection


async def test_the_catalog_can_be_changed_after_a_change_was_lost() -> None:
    async with memory_store() as inner:
        store = LosingStore(inner)
        async with running_database(store) as database:
            await database.ask(CreateTable(table_definition("Kept")))
            synced = store.gate_durable(commits_of(key_layout.CATALOG_WRITER))
            store.remember()
            lost = asyncio.create_task(database.ask(CreateTable(table_definition("Lost"))))
            await synced.reached()
            await store.lose()
            synced.fail(FULL)
            with pytest.raises(InternalServerError, match="the disk is full"):
                await lost
            synced.open()
            with capture_logs() as logs:
                await database.ask(CreateTable(table_definition("Next")))
            assert database.table_names() == ["Kept", "Next"]
            assert logs == [], "the catalog is the one that is known"


async def test_no_row_is_copied_for_a_backup_whose_record_was_refused() -> None:
    async with stepped_database() as (store, database):
        await database.ask(CreateTable(table_definition()))
        await database.table("Thread").write(put(thread("EC2", "a")))
        rows_id = database.table("Thread").definition.table_id + 1
        copying = store.gate_before(commits_of(key_layout.filling_cursor(rows_id)))
        storing = store.gate_before(commits_of(key_layout.CATALOG_WRITER))
        refused = asyncio.create_task(database.ask(CreateTableBackup("Thread", "backup")))
        await storing.reached()
        await turns()
        storing.fail(FULL)
        with pytest.raises(InternalServerError, match="the disk is full"):
            await refused
        assert not copying.is_reached
        assert database.part(TableBackups).backups == []
