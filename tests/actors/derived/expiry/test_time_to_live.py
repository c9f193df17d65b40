"""Expired items are listed and deleted, and others are kept; in one process, on a test clock."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Sequence

import pytest
from msgspec import structs

from dynactor.actors.derived.expiry.expiry_times import ExpiryTimes, Listed
from dynactor.actors.derived.expiry.sweeper import (
    MOST_BEHIND_SECONDS,
    SweepEnvironment,
    Sweeper,
    SweptRange,
)
from dynactor.actors.derived.expiry.time_to_live_settings import TimeToLiveSettings
from dynactor.actors.feeds.change_feed import ChangeFeed, RecentChanges
from dynactor.actors.partition.messages import Expired
from dynactor.actors.partition.partition import Partition
from dynactor.actors.table.messages import CreateTable, DeleteTable, UpdateTable
from dynactor.actors.table.table import Table
from dynactor.model.errors import ConditionalCheckFailedException, ThrottlingException
from dynactor.model.expressions.condition_binding import parse_condition
from dynactor.model.expressions.placeholders import Placeholders
from dynactor.model.expressions.update import parse_update
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.tables.table_edits import TableEdit
from dynactor.model.throttling.steady_rate import SteadyRate
from dynactor.model.values.item import Item
from dynactor.model.writes.write import Delete, Update
from dynactor.storage import codec, key_layout
from dynactor.storage.store import Full, Group, Store
from dynactor.storage.subscriber_names import expiry_subscriber
from tests.support.databases.databases import (
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.expiry import (
    expirer_of,
    listed,
    rebuilt,
    rows_of,
    switch,
    until_items,
    until_listed,
    until_nothing_is_listed,
    until_status,
)
from tests.support.databases.stored_items import items
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

NOW = 1_571_827_560
FIVE_YEARS = 5 * 365 * 24 * 60 * 60
SETTINGS = TimeToLiveSettings(delay_seconds=0.0, change_interval_seconds=0.0)


FAST = structs.replace(SETTINGS, deletes_per_second=100_000.0)


async def write_something(table: Table, source: random.Random, *, latest: int = 200) -> None:
    """Put or delete one of 400 items; the attribute is an expiry time, another value or missing."""
    key = thread(f"f{source.randrange(20)}", f"s{source.randrange(20)}")
    choice = source.randrange(6)
    if choice == 0:
        await table.write(Delete(key))
    elif choice == 1:
        await table.write(put(key | {"other": {"N": str(source.randrange(100))}}))
    elif choice == 2:
        await table.write(put(key | {"at": {"S": str(NOW - 50)}}))
    else:
        at = f"{NOW + source.randrange(1, latest)}{source.choice(['', '.5', '.0000001'])}"
        await table.write(put(key | {"at": {"N": at}}))


async def test_the_expiry_rows_match_the_items_after_random_writes():
    async with memory_store() as store, running_database(store, SetClock(NOW)) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        source = random.Random(1)
        for _ in range(300):
            await write_something(table, source)
        await switch(database, "Thread", "at", enabled=True)
        for _ in range(500):
            await write_something(table, source)
        await until_status(table, "ENABLED")
        for _ in range(300):
            await write_something(table, source)
        await until_listed(table)
        rows = await listed(store, table.definition.table_id)
        assert rows == await rebuilt(store, table.definition, "at")
        assert len(rows) > 100


async def test_only_expired_items_are_deleted():
    clock = SetClock(NOW)
    async with (
        memory_store() as store,
        running_database(store, clock, time_to_live=SETTINGS) as database,
    ):
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await switch(database, "Thread", "at", enabled=True)
        source = random.Random(2)
        for _ in range(400):
            await write_something(table, source)
        await until_listed(table)
        before = await items_of(store, table)
        for at in (NOW + 40, NOW + 90, NOW + 300):
            clock.set(at)
            stay = [
                item
                for item in before
                if "N" not in item.get("at", {}) or float(item["at"]["N"]) >= at
            ]
            assert len(stay) < len(before)
            await until_items(database, "Thread", len(stay))
            assert await items_of(store, table) == stay
            before = stay
        await until_nothing_is_listed(store, table.definition.table_id)
        assert table.expired_items > 100


async def items_of(store, table: Table) -> list[Item]:
    prefix = key_layout.row_prefix(table.definition.table_id)
    rows = rows_of(store, prefix, key_layout.prefix_end(prefix))
    return [codec.decode(row.value).item async for row in rows]


@pytest.mark.parametrize("partitions", [1, 3, 40])
async def test_every_partition_is_swept(partitions: int):
    clock = SetClock(NOW)
    settings = {"time_to_live": SETTINGS, "partitions_per_table": partitions}
    async with running_database(clock=clock, **settings) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await switch(database, "Thread", "at", enabled=True)
        for number in range(300):
            await table.write(put(thread(f"f{number}", "s", at=NOW + 1 + number % 2)))
        clock.set(NOW + 2)
        await until_items(database, "Thread", 150)
        clock.set(NOW + 3)
        await until_items(database, "Thread", 0)
        # Every partition has deleted its own items.
        assert {head.item_counts.get(0, 0) for head in await table.heads()} == {0}
        # An item that is written long after its expiry time is deleted, too.
        await table.write(put(thread("f", "late", at=NOW - 1_000)))
        await until_items(database, "Thread", 0)


def test_a_partition_has_the_slices_that_overlap_its_range():
    hashed = {
        (b"", None): range(16),
        (b"", b"\x40" + bytes(7)): range(4),
        (b"\x40" + bytes(7), b"\x80" + bytes(7)): range(4, 8),
        (b"\xc0" + bytes(7), None): range(12, 16),
        (b"\x10" + bytes(7), b"\x19\x99"): range(1, 2),
        (b"\x19\x99", b"\x33\x33"): range(1, 4),
        # This partition was split by sort key at a position whose hash is the start of a slice.
        (b"\x20" + bytes(7), b"\x30" + bytes(7) + b"a"): range(2, 4),
    }
    for (start, end), slices in hashed.items():
        assert SweptRange(1, start, end).slices == slices


async def test_deletions_are_spread_evenly_over_time():
    rate = SteadyRate(1_000, most_behind_seconds=MOST_BEHIND_SECONDS)
    waits = [rate.take(50, 7.0) for _ in range(5)]
    # The rate allows a burst of up to 100 ms of unused time.
    assert waits == pytest.approx([0, 0, 0, 0.05, 0.1])


async def test_changes_applied_twice_leave_the_same_expiry_rows():
    async with memory_store() as store:
        async with running_database(store, SetClock(NOW)) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            await switch(database, "Thread", "at", enabled=True)
            source = random.Random(3)
            for _ in range(400):
                await write_something(table, source)
            await until_listed(table)
            numbers = [partition.number for partition in table.record.partitions]
            table_id = table.definition.table_id
        # Restore the earlier checkpoints, as if a crash had lost the last ones.
        for number in numbers:
            key = key_layout.checkpoint(expiry_subscriber(table_id), number)
            (stored,) = await store.latest.load([key])
            await (await store.commit([Group(key, stored, bytes(8))]))
        async with running_database(store, SetClock(NOW)) as database:
            table = database.table("Thread")
            await until_listed(table)
            assert await listed(store, table_id) == await rebuilt(store, table.definition, "at")


async def test_enabling_time_to_live_continues_after_a_restart():
    async with memory_store() as store:
        source = random.Random(4)
        async with running_database(store, SetClock(NOW)) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            for _ in range(700):
                await write_something(table, source)
            await switch(database, "Thread", "at", enabled=True)
            for _ in range(50):
                await write_something(table, source)
        async with running_database(store, SetClock(NOW)) as database:
            table = database.table("Thread")
            for _ in range(50):
                await write_something(table, source)
            await until_status(table, "ENABLED")
            await until_listed(table)
            rows = await listed(store, table.definition.table_id)
            assert rows == await rebuilt(store, table.definition, "at")


async def test_items_that_expire_while_the_server_is_down_are_deleted_at_its_start():
    async with memory_store() as store:
        async with running_database(store, SetClock(NOW), time_to_live=SETTINGS) as database:
            await database.ask(CreateTable(table_definition()))
            await switch(database, "Thread", "at", enabled=True)
            await until_status(database.table("Thread"), "ENABLED")
            await database.table("Thread").write(put(thread("a", "goes", at=NOW + 10)))
            await database.table("Thread").write(put(thread("a", "stays", at=NOW + 30)))
        async with running_database(store, SetClock(NOW + 20), time_to_live=SETTINGS) as database:
            await until_items(database, "Thread", 1)
            assert await items_of(store, database.table("Thread")) == [
                thread("a", "stays", at=NOW + 30)
            ]


async def test_disabling_time_to_live_deletes_its_rows_even_over_a_restart():
    slow = structs.replace(SETTINGS, transition_seconds=60.0)
    async with memory_store() as store:
        async with running_database(store, SetClock(NOW), time_to_live=SETTINGS) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            table_id = table.definition.table_id
            await switch(database, "Thread", "at", enabled=True)
            await until_status(table, "ENABLED")
            await table.write(put(thread("a", "b", at=NOW + 10)))
            await until_listed(table)
        async with running_database(store, SetClock(NOW), time_to_live=slow) as database:
            await switch(database, "Thread", "at", enabled=False)
            assert database.table("Thread").followers.following(expiry_subscriber(1)) is None
            assert await listed(store, table_id)
        async with running_database(store, SetClock(NOW + 20), time_to_live=SETTINGS) as database:
            table = database.table("Thread")
            await until_status(table, "DISABLED")
            assert not table.definition.records_changes
            assert await nothing_left(store, table_id)
            assert (await database.describe("Thread")).item_count == 1
            # If time to live is enabled again, the table is scanned again.
            await switch(database, "Thread", "at", enabled=True)
            await until_items(database, "Thread", 0)


async def test_time_to_live_can_be_switched_before_the_previous_change_is_complete():
    async with (
        memory_store() as store,
        running_database(store, SetClock(NOW), time_to_live=SETTINGS) as database,
    ):
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        for number in range(300):
            await table.write(put(thread(f"f{number}", "s", at=NOW + 1_000, other=NOW - 1)))
        await switch(database, "Thread", "at", enabled=True)
        assert status_of(table) == "ENABLING"
        await switch(database, "Thread", "at", enabled=False)
        assert status_of(table) == "DISABLING"
        await switch(database, "Thread", "other", enabled=True)
        assert status_of(table) == "ENABLING"
        await until_items(database, "Thread", 0)
        assert status_of(table) == "ENABLED"
        await until_nothing_is_listed(store, table.definition.table_id)


def status_of(table: Table) -> str:
    assert table.definition.time_to_live is not None
    return table.definition.time_to_live.status


async def nothing_left(store: Store, table_id: int) -> bool:
    """Whether a table has no expiry rows and no checkpoints of expirers."""
    ranges = (key_layout.expiry_range(table_id), key_layout.checkpoint_range(table_id))
    return not [row for each in ranges async for row in rows_of(store, *each)]


async def test_time_to_live_can_be_disabled_during_a_sweep():
    clock = SetClock(NOW)
    settings = structs.replace(SETTINGS, deletes_per_second=2_000.0)
    async with (
        memory_store() as store,
        running_database(store, clock, time_to_live=settings) as database,
    ):
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await switch(database, "Thread", "at", enabled=True)
        await asyncio.gather(
            *(table.submit(put(thread(f"f{n}", "s", at=NOW + 1))) for n in range(2_000))
        )
        await until_status(table, "ENABLED")
        await until_listed(table)
        clock.set(NOW + 2)
        while not table.expired_items:
            await asyncio.sleep(0)
        await switch(database, "Thread", "at", enabled=False)
        left = (await database.describe("Thread")).item_count
        assert 0 < left < 2_000
        await until_status(table, "DISABLED")
        assert (await database.describe("Thread")).item_count == left
        assert await nothing_left(store, table.definition.table_id)


async def test_a_deleted_table_leaves_no_rows():
    async with memory_store() as store, running_database(store) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        table_id = table.definition.table_id
        await switch(database, "Thread", "at", enabled=True)
        await until_status(table, "ENABLED")
        for number in range(50):
            await table.write(put(thread(f"f{number}", "s", at=int(time.time()) + 1_000)))
        await until_listed(table)
        assert await listed(store, table_id)
        await database.ask(DeleteTable("Thread"))
        # PostgreSQL deletes the rows of a table in pieces, after the answer.
        async with asyncio.timeout(60):
            while not await nothing_left(store, table_id):
                await asyncio.sleep(0.001)


async def test_items_that_never_expire_wake_no_sweeper():
    async def expire(_: tuple[bytes, ...]) -> Expired:
        raise AssertionError

    async with memory_store() as store:
        rows = ExpiryTimes(1, KeySchema((KeyAttribute("pk", "S"),)), "at")
        feed = ChangeFeed(1, store, RecentChanges())
        means = SweepEnvironment(store, SetClock(NOW), SteadyRate(1.0), 0.0)
        sweeper = Sweeper(SweptRange(1, b"", None), expirer_of(rows, feed), expire, means)
        never = (0, 1, -5, NOW - FIVE_YEARS)
        sweeper.notice([Listed(at * 1_000_000, b"position") for at in never])
        assert not sweeper._noticed.done()
        assert sweeper.lag_seconds == 0
        # The entry that never expires must not hide the one with a time.
        sweeper.notice([Listed(0, b"never"), Listed((NOW + 1) * 1_000_000, b"soon")])
        assert sweeper._noticed.done()
        assert sweeper._earliest_us == (NOW + 1) * 1_000_000


async def test_late_items_are_deleted_even_if_more_than_the_sweeper_remembers(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("dynactor.actors.derived.expiry.sweeper._MOST_LATE", 3)
    async with running_database(clock=SetClock(NOW), time_to_live=SETTINGS) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await switch(database, "Thread", "at", enabled=True)
        await until_status(table, "ENABLED")
        for first in range(3):
            late = [put(thread(f"f{n}", "s", at=NOW - 1 - n - first)) for n in range(100)]
            await asyncio.gather(*map(table.submit, late))
            await until_items(database, "Thread", 0)
        assert await items(table, {"forum": {"S": "f0"}, "subject": {"S": "s"}}) == [None]


class RefusingStore(FaultyStore):
    """A store that refuses commits of followers while the test says so."""

    is_refusing = False
    refused = 0

    async def commit(self, groups: Sequence[Group]) -> asyncio.Future[None]:
        if self.is_refusing and groups[0].head_key.startswith(key_layout.checkpoint(b"", 0)[:1]):
            self.refused += 1
            raise Full("the disk is full: played by a test")
        return await super().commit(groups)


async def test_no_expiry_time_is_lost_while_the_store_refuses_commits():
    async with memory_store() as inner:
        store = RefusingStore(inner)
        async with running_database(store, SetClock(NOW)) as database:
            await database.ask(CreateTable(table_definition()))
            table = database.table("Thread")
            source = random.Random(5)
            await switch(database, "Thread", "at", enabled=True)
            await until_status(table, "ENABLED")
            writes = [write_something(table, source) for _ in range(200)]
            await asyncio.gather(*writes)
            store.is_refusing = True
            for _ in range(100):
                await write_something(table, source)
            while store.refused < 4:
                await asyncio.sleep(0.001)
            store.is_refusing = False
            for _ in range(100):
                await write_something(table, source)
            await until_listed(table)
            rows = await listed(store, table.definition.table_id)
            assert rows == await rebuilt(store, table.definition, "at")


async def test_an_unreadable_item_does_not_prevent_deleting_others(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("dynactor.actors.derived.expiry.sweeper.DAMAGED_ITEM_SECONDS", 0.05)
    clock = SetClock(NOW)
    async with (
        memory_store() as store,
        running_database(store, clock, time_to_live=SETTINGS) as database,
    ):
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await switch(database, "Thread", "at", enabled=True)
        await until_status(table, "ENABLED")
        for number in range(60):
            await table.write(put(thread("f", f"s{number:02}", at=NOW + 1)))
        await until_listed(table)
        row = key_layout.item_row(table.definition, thread("f", "s30"))
        (whole,) = await store.latest.load([row])
        assert whole is not None
        await (await store.commit([Group(b"\xff", None, b"1", puts=[(row, b"damaged")])]))
        clock.set(NOW + 2)
        while table.expired_items < 59:
            await asyncio.sleep(0.001)
        assert (await database.describe("Thread")).item_count == 1
        # After the row is repaired, the next attempt deletes the item.
        await (await store.commit([Group(b"\xff", b"1", b"2", puts=[(row, whole)])]))
        await until_items(database, "Thread", 0)


async def test_an_overloaded_partition_deletes_expired_items_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dynactor.actors.partition.partition.MAILBOX_MESSAGES", 2)
    # Only messages that wait fill a mailbox.
    monkeypatch.setattr(Partition, "_carry_out_at_once", lambda *_: False)
    clock = SetClock(NOW)
    async with running_database(clock=clock, time_to_live=SETTINGS) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await switch(database, "Thread", "at", enabled=True)
        await until_status(table, "ENABLED")
        for number in range(20):
            await table.write(put(thread(f"f{number}", "s", at=NOW + 1)))
        await until_listed(table)
        busy = put(thread("busy", "s"))
        clock.set(NOW + 2)
        throttled = 0
        while table.expired_items < 20:
            try:
                while True:
                    table.submit(busy)
            except ThrottlingException:
                throttled += 1
            await asyncio.sleep(0)
        assert throttled


async def test_other_changes_of_the_table_do_not_affect_the_states_of_time_to_live():
    """Each of these changes restarts all followers of the table."""
    settings = structs.replace(SETTINGS, transition_seconds=0.05)
    async with (
        memory_store() as store,
        running_database(store, SetClock(NOW), time_to_live=settings) as database,
    ):
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        source = random.Random(8)
        for enabled in (True, False, True):
            for _ in range(200):
                await write_something(table, source)
            await switch(database, "Thread", "at", enabled=enabled)
            for protected in (True, False):
                await database.ask(UpdateTable("Thread", TableEdit(deletion_protection=protected)))
            await until_status(table, "ENABLED" if enabled else "DISABLED")
        await until_listed(table)
        rows = await listed(store, table.definition.table_id)
        assert rows == await rebuilt(store, table.definition, "at")
        assert len(rows) > 100


async def test_a_log_is_kept_until_its_expiry_times_are_listed():
    async with memory_store() as store, running_database(store, SetClock(NOW)) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await switch(database, "Thread", "at", enabled=True)
        await until_status(table, "ENABLED")
        for number in range(20):
            await table.write(put(thread(f"f{number}", "s", at=NOW + 1_000)))
        await until_listed(table)
        feeds = await table.followers.feeds()
        tails = {feed.partition_number: feed.tail for feed in feeds}
        assert await table.followers.floors() == tails
        assert any(tails.values())
        await database.actor.keep_streams()
        logs = [key_layout.change_range(feed.partition_number) for feed in feeds]
        # PostgreSQL deletes the records a moment later.
        async with asyncio.timeout(10):
            while [row for each in logs async for row in rows_of(store, *each)]:
                await asyncio.sleep(0)


RACES = int(os.environ.get("DYNACTOR_TEST_TTL_RACES", "1000"))
AT_ONCE = 200
EXTEND = parse_update("SET #at = :at", Placeholders({"#at": "at"}, {":at": {"N": "9000000000"}}))
EXISTS = parse_condition(
    "attribute_exists(forum)", Placeholders(None, None), kind="ConditionExpression"
)


async def test_an_update_before_the_deletion_always_keeps_the_item():
    """DYNACTOR_TEST_TTL_RACES is the number of races."""
    clock = SetClock(NOW)
    source = random.Random(6)
    won = lost = 0

    async def extend(table: Table, key: Item) -> bool:
        # Half of the updates come within the first milliseconds, when the sweep deletes.
        await asyncio.sleep(0.2 * source.random() ** 3)
        update = Update(key, EXTEND, EXISTS)
        try:
            await table.write(update)
        except ConditionalCheckFailedException:
            return False
        return True

    async with running_database(clock=clock, time_to_live=FAST) as database:
        await database.ask(CreateTable(table_definition(local_sort_keys=("at",))))
        table = database.table("Thread")
        await switch(database, "Thread", "at", enabled=True)
        await until_status(table, "ENABLED")
        for first in range(0, RACES, AT_ONCE):
            due = int(clock.now_epoch_seconds()) + 1
            raced = [thread(f"f{n}", "s") for n in range(first, first + AT_ONCE)]
            await asyncio.gather(
                *(table.submit(put(key | {"at": {"N": str(due)}})) for key in raced)
            )
            await until_listed(table)
            clock.set(due + 1)
            first_was_update = await asyncio.gather(*(extend(table, key) for key in raced))
            won += sum(first_was_update)
            lost += AT_ONCE - sum(first_was_update)
            # Exactly the items that were not extended are deleted.
            await until_items(database, "Thread", won)
            kept = await items(table, *raced)
            assert [item is not None for item in kept] == first_was_update
        assert table.expired_items == lost
    assert min(won, lost) > RACES / 20
