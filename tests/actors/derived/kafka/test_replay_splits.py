"""A replay reads the logs of split partitions in order: parents before children."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from msgspec import structs

from dynactor.actors.derived.kafka.replay_progress import ReplayStart
from dynactor.actors.followers.table_snapshot import TableSnapshot
from dynactor.actors.phases.replays import Replays
from dynactor.actors.table.messages import CreateTable
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import StreamSettings
from dynactor.model.errors import ValidationException
from dynactor.model.writes.write import Delete
from tests.support.databases.databases import (
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.published import (
    published_table,
    relay_of,
    relay_settings,
    write_threads,
)
from tests.support.databases.replays import (
    BEGINNING,
    COPY,
    SNAPSHOT,
    ConsumedTable,
    items_of,
    replay,
    wait_done,
    wait_state,
)
from tests.support.databases.splitting import halve, splitting
from tests.support.kafka.fake_broker import FakeBroker

RELAYS = relay_settings()
ITEMS = 60


async def streamed_table(database) -> Table:
    """The table Thread with a stream, so that its logs are kept."""
    stream = StreamSettings("", "NEW_AND_OLD_IMAGES")
    await database.ask(CreateTable(structs.replace(table_definition(), stream=stream)))
    return database.table("Thread")


async def write_beside(table: Table, writes: int) -> None:
    """Concurrent puts and deletes on 300 items."""
    draw = Random(5)

    async def write() -> None:
        for _ in range(writes // 8):
            key = thread(f"forum {draw.randrange(300)}", "subject")
            if draw.random() < 0.3:
                await table.write(Delete(key))
            else:
                await table.write(put({**key, "n": {"N": str(draw.randrange(1_000_000))}}))

    await asyncio.gather(*(write() for _ in range(8)))


async def all_followed(database, replay_id: str) -> None:
    await wait_state(database, replay_id, "FOLLOWING")
    while (now := database.part(Replays).find(replay_id)).changes < now.changes_total:
        await asyncio.sleep(0)


async def test_a_snapshot_and_the_later_changes_are_complete_despite_splits():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=RELAYS) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await write_beside(table, 400)
        async with splitting(database, table, 24):
            started = await replay(database, SNAPSHOT, follows=True)
            await write_beside(table, 2_000)
        await write_beside(table, 400)
        await all_followed(database, started.replay_id)
        consumed = ConsumedTable.of(broker)
        assert consumed.items == await items_of(table)
        assert consumed.gaps == 3
        await database.actor.keep_streams()
        assert table.record.ended_logs == ()


async def test_a_split_between_a_snapshot_and_its_positions_loses_no_change(monkeypatch):
    broker = FakeBroker()
    original = TableSnapshot.take
    async with running_database(broker=broker, relays=RELAYS) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await write_threads(table, range(100), of_items=ITEMS)

        async def split_behind(*arguments) -> TableSnapshot:
            taken = await original(*arguments)
            for partition in table.record.partitions:
                await halve(database, table, partition.number)
            await write_threads(table, range(100, 200), of_items=ITEMS)
            return taken

        monkeypatch.setattr(TableSnapshot, "take", split_behind)
        started = await replay(database, SNAPSHOT)
        assert (await wait_done(database, started.replay_id)).changes == 100
        assert ConsumedTable.of(broker).items == await items_of(table)


async def test_a_finished_snapshot_has_all_earlier_changes_despite_splits():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=RELAYS) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await write_beside(table, 400)
        for _ in range(3):
            topic = f"copy-{len(table.record.partitions)}"
            async with splitting(database, table, len(table.record.partitions) + 6):
                started = await replay(database, SNAPSHOT, topic)
                await write_beside(table, 800)
            await wait_done(database, started.replay_id)
            assert ConsumedTable.of(broker, topic).gaps == 3


@pytest.mark.parametrize("follows", [True, False])
async def test_all_changes_are_published_again_parents_before_children(follows: bool):
    broker = FakeBroker()
    settings = {"broker": broker, "relays": RELAYS, "partitions_per_table": 1}
    async with running_database(**settings) as database:
        table = await streamed_table(database)
        # The replay needs several reads for this many changes.
        for _ in range(3):
            await write_threads(table, range(700), of_items=ITEMS)
            for _ in range(2):
                # The second split of the loop ends empty logs.
                for partition in table.record.partitions:
                    await halve(database, table, partition.number)
        await write_threads(table, range(100), of_items=ITEMS)
        started = await replay(database, BEGINNING, follows=follows)
        await (all_followed if follows else wait_done)(database, started.replay_id)
        progress = database.part(Replays).find(started.replay_id)
        assert (progress.changes, progress.is_whole) == (2_200, True)
        assert progress.missing_changes == 0
        consumed = ConsumedTable.of(broker)
        assert consumed.items == await items_of(table)
        assert sum(map(len, consumed.changes.values())) == 2_200


async def test_a_replay_can_start_at_a_time_or_change_before_or_after_a_split():
    broker, clock = FakeBroker(), SetClock()
    begin = clock.now_epoch_seconds()
    # The logs are kept for the relay, and not trimmed during the test.
    settings = {"broker": broker, "relays": RELAYS, "keep_streams_seconds": 600}
    async with running_database(clock=clock, **settings) as database:
        table = await published_table(database)
        while table.definition.destinations[0].status != "ACTIVE":
            await asyncio.sleep(0)
        for number in range(60):
            clock.step(1)
            await write_threads(table, [number], of_items=30)
            if number % 10 == 9:
                await halve(database, table, table.record.partitions[0].number)
        messages = await broker.wait_messages("threads", 60)
        numbers = {
            int(dict(message.headers)["sequence-number"]): message.timestamp_ms
            for message in messages
        }
        for at, (number, made_ms) in enumerate(sorted(numbers.items())):
            if at % 7:
                continue
            expected = {one for one, one_ms in numbers.items() if one_ms >= made_ms}
            time_us = int(begin * 1_000_000) + (made_ms - int(begin * 1_000)) * 1_000
            for start in (
                ReplayStart("sequence-number", number),
                ReplayStart("time", time_us),
            ):
                topic = f"{start.origin}-{at}"
                started = await replay(database, start, topic)
                await wait_done(database, started.replay_id)
                changes = ConsumedTable.of(broker, topic).changes
                assert {one for of_key in changes.values() for one in of_key} == expected


async def test_ended_logs_are_kept_for_a_replay_and_deleted_after_it():
    broker = FakeBroker()
    settings = {"broker": broker, "relays": RELAYS, "keep_streams_seconds": 600}
    async with running_database(**settings) as database:
        table = await published_table(database)
        while table.definition.destinations[0].status != "ACTIVE":
            await asyncio.sleep(0)
        await write_threads(table, range(200), of_items=ITEMS)
        for partition in table.record.partitions:
            await halve(database, table, partition.number)
        await write_threads(table, range(200, 400), of_items=ITEMS)
        while relay_of(database, table).lag_records:
            await asyncio.sleep(0)
        with broker.unreachable():
            started = await replay(database, BEGINNING)
            while database.part(Replays).find(started.replay_id).problem is None:
                await asyncio.sleep(0)
            await database.actor.keep_streams()
            assert len(table.record.ended_logs) == 4
        await wait_done(database, started.replay_id)
        assert sum(map(len, ConsumedTable.of(broker).changes.values())) == 400
        await database.actor.keep_streams()
        assert table.record.ended_logs == ()


async def test_a_replay_with_a_known_end_keeps_no_logs_of_children():
    broker = FakeBroker()
    settings = {"broker": broker, "relays": RELAYS, "keep_streams_seconds": 600}
    async with running_database(**settings) as database:
        table = await streamed_table(database)
        await write_threads(table, range(200), of_items=ITEMS)
        parents = [partition.number for partition in table.record.partitions]
        with broker.silent():
            started = await replay(database, BEGINNING)
            for parent in parents:
                await halve(database, table, parent)
            await write_threads(table, range(200, 400), of_items=ITEMS)
            floors = await table.followers.floors()
            tails = {feed.partition_number: feed.tail for feed in await table.followers.feeds()}
            assert {floors.pop(parent) for parent in parents} == {0}
            assert floors == {number: tails[number] for number in floors}
        assert (await wait_done(database, started.replay_id)).changes == 200


async def test_changes_before_a_split_are_missing_once_the_parents_log_is_deleted():
    broker, clock = FakeBroker(), SetClock()
    settings = {"broker": broker, "relays": RELAYS, "keep_streams_seconds": 600}
    async with running_database(clock=clock, **settings) as database:
        table = await published_table(database)
        while table.definition.destinations[0].status != "ACTIVE":
            await asyncio.sleep(0)
        before_us = int(clock.now_epoch_seconds() * 1_000_000)
        clock.step(1)
        await write_threads(table, range(100), of_items=ITEMS)
        for partition in table.record.partitions:
            await halve(database, table, partition.number)
        # Wait until the relay has stored the end of each log, because only then the log is deleted.
        async with asyncio.timeout(60):
            while table.record.ended_logs:
                await asyncio.sleep(0)
                await database.actor.keep_streams()
        clock.step(1)
        behind_us = int(clock.now_epoch_seconds() * 1_000_000)
        await write_threads(table, range(100, 200), of_items=ITEMS)
        with pytest.raises(ValidationException, match="are kept from"):
            await replay(database, ReplayStart("time", before_us))
        started = await replay(database, BEGINNING)
        assert not started.is_whole
        assert (await wait_done(database, started.replay_id)).changes == 100
        started = await replay(database, ReplayStart("time", behind_us))
        assert (await wait_done(database, started.replay_id)).changes == 100


async def test_the_recorded_changes_of_a_table_split_before_it_had_followers_are_incomplete():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=RELAYS) as database:
        await database.ask(CreateTable(table_definition()))
        table = database.table("Thread")
        await write_threads(table, range(100), of_items=ITEMS)
        for partition in table.record.partitions:
            await halve(database, table, partition.number)
        first = await replay(database, SNAPSHOT, follows=True, topic="first")
        await write_threads(table, range(100, 200), of_items=ITEMS)
        await wait_state(database, first.replay_id, "FOLLOWING")
        started = await replay(database, BEGINNING)
        assert not started.is_whole
        assert (await wait_done(database, started.replay_id)).changes == 100


async def test_a_start_time_in_the_future_is_refused():
    clock = SetClock()
    async with running_database(clock=clock, broker=FakeBroker(), relays=RELAYS) as database:
        table = await published_table(database)
        await write_threads(table, range(5))
        now_us = int(clock.now_epoch_seconds() * 1_000_000)
        with pytest.raises(ValidationException, match="is still to come: by the server's clock"):
            await replay(database, ReplayStart("time", now_us + 1_000_000))
        started = await replay(database, ReplayStart("time", now_us), COPY)
        await wait_done(database, started.replay_id)
