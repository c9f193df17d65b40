"""Expiry times are listed and expired items deleted during splits of partitions."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence

import pytest

from dynactor.actors.derived.expiry.time_to_live import TimeToLiveActors, subscriber_id
from dynactor.actors.derived.expiry.time_to_live_settings import TimeToLiveSettings
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.table import Table
from dynactor.model.errors import InternalServerError
from dynactor.model.writes.write import Delete
from dynactor.storage import key_layout
from dynactor.storage.store import Full, Group, Store
from dynactor.streams import change_log
from dynactor.streams.change_record import ChangeRecord, Origin
from tests.support.databases.databases import (
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.expiry import (
    listed,
    rebuilt,
    switch,
    until_items,
    until_listed,
    until_nothing_is_listed,
    until_status,
)
from tests.support.databases.splitting import halve, splitting
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

NOW = 1_571_827_560
SETTINGS = TimeToLiveSettings(delay_seconds=0.0, change_interval_seconds=0.0)


async def write_something(table: Table, source: random.Random) -> None:
    """Put or delete one of 400 items; most have an expiry time."""
    key = thread(f"f{source.randrange(20)}", f"s{source.randrange(20)}")
    if source.random() < 0.2:
        await table.write(Delete(key))
    else:
        await table.write(put(key | {"at": {"N": str(NOW + source.randrange(1, 200))}}))


def actors_of(table: Table) -> TimeToLiveActors:
    actors = table.followers.following(subscriber_id(table))
    assert isinstance(actors, TimeToLiveActors)
    return actors


async def assert_rebuilt(store: Store, table: Table) -> None:
    await until_listed(table)
    rows = await listed(store, table.definition.table_id)
    assert rows == await rebuilt(store, table.definition, "at")
    assert len(rows) > 50


async def test_the_expiry_rows_match_the_items_after_random_splits():
    source = random.Random(1)
    async with memory_store() as store:
        async with running_database(store, SetClock(NOW)) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            await switch(database, "Thread", "at", enabled=True)
            await until_status(table, "ENABLED")
            async with splitting(database, table, 20):
                for _ in range(1_500):
                    await write_something(table, source)
            await assert_rebuilt(store, table)
        async with running_database(store, SetClock(NOW)) as database:
            table = database.table("Thread")
            for _ in range(200):
                await write_something(table, source)
            await assert_rebuilt(store, table)
            await database.actor.keep_streams()
            assert table.record.ended_logs == ()


async def test_each_expired_item_is_deleted_once_and_no_other():
    clock = SetClock(NOW)
    async with (
        memory_store() as store,
        # The logs are kept, so that the test can read them at the end.
        running_database(store, clock, time_to_live=SETTINGS, keep_streams_seconds=600) as database,
    ):
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await switch(database, "Thread", "at", enabled=True)
        await until_status(table, "ENABLED")
        keys = [thread(f"f{n}", "s") for n in range(2_000)]
        await asyncio.gather(
            *(
                table.submit(put(key | {"at": {"N": str(NOW + 1 + n % 30)}}))
                for n, key in enumerate(keys)
            )
        )
        await until_listed(table)
        async with splitting(database, table, 16):
            for at in range(1, 11):
                clock.set(NOW + at + 1)
                await until_items(database, "Thread", sum(n % 30 >= at for n in range(2_000)))
        deleted = [
            record.keys for record in await all_records(store, table) if record.origin is Origin.TTL
        ]
        assert len(deleted) == len(set(deleted)) == table.expired_items
        clock.set(NOW + 100)
        await until_items(database, "Thread", 0)
        await until_nothing_is_listed(store, table.definition.table_id)


async def all_records(store: Store, table: Table) -> list[ChangeRecord]:
    return [
        record
        for number in table.record.log_numbers
        for record in await change_log.read(
            store.durable(), number, 0, max_records=10_000, max_bytes=1 << 30
        )
    ]


class RefusingStore(FaultyStore):
    """A store that refuses the commits of splits, after some turns of the event loop."""

    refused = 0

    async def commit(self, groups: Sequence[Group]) -> asyncio.Future[None]:
        if any(group.head is None for group in groups):
            self.refused += 1
            await asyncio.sleep(0.002)
            raise Full("the disk is full: played by a test")
        return await super().commit(groups)


async def test_expired_items_are_deleted_although_all_splits_fail():
    clock = SetClock(NOW)
    async with memory_store() as inner:
        store = RefusingStore(inner)
        async with running_database(store, clock, time_to_live=SETTINGS) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            await switch(database, "Thread", "at", enabled=True)
            await until_status(table, "ENABLED")
            items = [thread(f"f{n}", "s", at=NOW + 1 + n % 30) for n in range(2_000)]
            await asyncio.gather(*(table.submit(put(item)) for item in items))
            await until_listed(table)
            left = len(items)
            while left:
                clock.step(1)
                for partition in table.record.partitions:
                    with pytest.raises(InternalServerError, match="Nothing was changed"):
                        await halve(database, table, partition.number)
                left = sum(item["at"]["N"] >= str(clock.now_epoch_seconds()) for item in items)
            await until_items(database, "Thread", 0)
            # The deletions are counted when their reply arrives, after readers see them.
            while table.expired_items < len(items):
                await asyncio.sleep(0)
            assert table.expired_items == len(items)
            assert store.refused > 100


class HoldingStore(FaultyStore):
    """A store that refuses commits of checkpoints in the logs of ``held``."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.held: frozenset[int] = frozenset()
        # The number of refusals by the log's number.
        self.refused: Counter[int] = Counter()

    async def commit(self, groups: Sequence[Group]) -> asyncio.Future[None]:
        key = groups[0].head_key
        if key[:1] == key_layout.checkpoint(b"", 0)[:1]:
            number = int.from_bytes(key[-8:], "big")
            if number in self.held:
                self.refused[number] += 1
                raise Full("the disk is full: played by a test")
        return await super().commit(groups)

    async def wait_refused(self) -> None:
        """Wait until a checkpoint of each held log was refused several times."""
        self.refused.clear()
        while any(self.refused[number] < 3 for number in self.held):
            await asyncio.sleep(0)


async def test_expiry_times_of_children_are_listed_after_those_of_their_parents():
    """In the other order, old changes of the parent would overwrite rows of later changes."""
    async with memory_store() as inner:
        store = HoldingStore(inner)
        async with running_database(store, SetClock(NOW)) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            await switch(database, "Thread", "at", enabled=True)
            await until_status(table, "ENABLED")
            parents = [partition.number for partition in table.record.partitions]
            store.held = frozenset(parents)
            for number in range(200):
                await table.write(put(thread(f"f{number}", "s", at=NOW + 100)))
            for parent in parents:
                await halve(database, table, parent)
            for number in range(200):
                await table.write(put(thread(f"f{number}", "s", at=NOW + 200)))
            await store.wait_refused()
            assert not await listed(store, table.definition.table_id)
        # After a restart the children's expirers must wait for the parents', too.
        async with running_database(store, SetClock(NOW)) as database:
            table = database.table("Thread")
            await store.wait_refused()
            assert not await listed(store, table.definition.table_id)
            floors = await table.followers.floors()
            assert [floors[parent] for parent in parents] == [0] * len(parents)
            store.held = frozenset()
            await assert_rebuilt(store, table)
            await database.actor.keep_streams()
            assert table.record.ended_logs == ()


async def test_an_item_listed_late_by_a_parents_expirer_is_swept_by_its_children():
    clock = SetClock(NOW)
    async with memory_store() as inner:
        store = HoldingStore(inner)
        async with running_database(store, clock, time_to_live=SETTINGS) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            await switch(database, "Thread", "at", enabled=True)
            await until_status(table, "ENABLED")
            parents = [partition.number for partition in table.record.partitions]
            store.held = frozenset(parents)
            for number in range(100):
                await table.write(put(thread(f"f{number}", "s", at=NOW + 1)))
            # The sweep passes the expiry time before the item is listed.
            clock.set(NOW + 50)
            for parent in parents:
                for child in await halve(database, table, parent):
                    await halve(database, table, child)
            await store.wait_refused()
            while any(
                sweeper._swept_before_us < (NOW + 50) * 1_000_000
                for sweeper in actors_of(table)._sweepers.values()
            ):
                await asyncio.sleep(0)
            assert table.expired_items == 0
            store.held = frozenset()
            await until_items(database, "Thread", 0)
            await until_nothing_is_listed(store, table.definition.table_id)


async def test_time_to_live_enabled_again_reads_no_log_that_ended_before():
    source = random.Random(2)
    async with memory_store() as store:
        async with running_database(
            store, SetClock(NOW), time_to_live=SETTINGS, keep_streams_seconds=600
        ) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            await switch(database, "Thread", "at", enabled=True)
            await until_status(table, "ENABLED")
            for _ in range(200):
                await write_something(table, source)
            await halve(database, table, table.record.partitions[0].number)
            await switch(database, "Thread", "at", enabled=False)
            await until_status(table, "DISABLED")
            assert table.record.ended_logs
            for _ in range(200):
                await write_something(table, source)
            await switch(database, "Thread", "at", enabled=True)
            await until_status(table, "ENABLED")
            followed = set(actors_of(table)._expirers)
            assert followed == {partition.number for partition in table.record.partitions}
        async with running_database(store, SetClock(NOW), time_to_live=SETTINGS) as database:
            table = database.table("Thread")
            assert set(actors_of(table)._expirers) == followed
            await assert_rebuilt(store, table)
