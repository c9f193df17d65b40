"""An expired item that a transaction has locked is deleted soon after the transaction."""

from __future__ import annotations

import asyncio

import pytest

from dynactor.actors.derived.expiry.expiry_times import ExpiryTimes
from dynactor.actors.derived.expiry.sweeper import SweepEnvironment, Sweeper, SweptRange
from dynactor.actors.derived.expiry.time_to_live_settings import TimeToLiveSettings
from dynactor.actors.feeds.change_feed import ChangeFeed, RecentChanges
from dynactor.actors.partition.messages import Expired
from dynactor.actors.table.messages import CreateTable
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.throttling.steady_rate import SteadyRate
from dynactor.storage.store import Group
from tests.support.databases.databases import (
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.expiry import (
    expirer_of,
    switch,
    until_expired,
    until_items,
    until_listed,
    until_status,
)
from tests.support.databases.transacting import check, stepped, transact
from tests.support.environment.stepped_time import on_stepped_time, pass_seconds
from tests.support.stores.store import memory_store

NOW = 1_571_827_560
SETTINGS = TimeToLiveSettings(delay_seconds=0.0, change_interval_seconds=0.0)


async def test_a_locked_expired_item_is_deleted_after_the_transaction():
    clock = SetClock(NOW)
    async with running_database(clock=clock, time_to_live=SETTINGS) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await switch(database, "Thread", "at", enabled=True)
        await until_status(table, "ENABLED")
        held = thread("f", "held")
        for key in (held, thread("f", "free")):
            await table.write(put(key | {"at": {"N": str(NOW + 1)}}))
        await until_listed(table)

        async def come_due(step: int) -> None:
            if step == 0:
                clock.set(NOW + 2)
                # One sweep processes both items, and skips the locked one.
                await until_items(database, "Thread", 1)

        stepped(database, come_due)
        others = [put(thread(f"g{number}", "s")) for number in range(9)]
        await transact(database, (table, check(held)), *((table, each) for each in others))
        await until_items(database, "Thread", len(others))
        await until_expired(table, 2)
        assert table.expired_items == 2


@pytest.mark.embedded_store("stepped time does not wait for PostgreSQL")
@on_stepped_time
async def test_the_sweeper_retries_a_locked_item_a_few_times_a_second():
    asked: list[tuple[bytes, ...]] = []
    is_held = True

    async def expire(positions: tuple[bytes, ...]) -> Expired:
        asked.append(positions)
        return Expired(0, 0, positions) if is_held else Expired(1, 0)

    async with memory_store() as store:
        rows = ExpiryTimes(1, KeySchema((KeyAttribute("pk", "S"),)), "at")
        listed = rows.row((NOW - 1) * 1_000_000, b"position")
        durable = await store.commit([Group(b"head", None, b"", [(listed, b"")], [])])
        await durable
        expirer = expirer_of(rows, ChangeFeed(1, store, RecentChanges()))
        means = SweepEnvironment(store, SetClock(NOW), SteadyRate(1_000.0), 0.0)
        sweeper = Sweeper(SweptRange(1, b"", None), expirer, expire, means)
        running = asyncio.create_task(sweeper.run())
        await pass_seconds(10)
        while_held = len(asked)
        is_held = False
        await pass_seconds(10)
        sweeper.mailbox.close()
        await running
    assert 10 < while_held < 100
    # There is one more attempt after the lock is released, and none after that.
    assert len(asked) == while_held + 1
    assert set(asked) == {(b"position",)}
