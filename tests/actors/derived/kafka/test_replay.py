"""A replay publishes recorded changes, or every item and then later changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from dynactor.actors.derived.kafka.kafka_sink import KafkaSink
from dynactor.actors.derived.kafka.replay_progress import ReplayStart
from dynactor.actors.phases.destination_messages import EnableDestination
from dynactor.actors.phases.replays import CancelReplay, Replays
from dynactor.actors.table.messages import CreateTable, DeleteTable
from dynactor.actors.table.table import Table
from dynactor.model.errors import ResourceNotFoundException, ValidationException
from dynactor.model.writes.write import Delete
from dynactor.storage import key_layout
from dynactor.storage.subscriber_names import replay_subscriber
from dynactor.streams import log_bounds
from dynactor.streams.kafka.broker import BrokerRefused
from tests.support.databases.databases import (
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.expiry import rows_of
from tests.support.databases.published import published_table, relay_settings, write_threads
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
from tests.support.databases.splitting import halve
from tests.support.kafka.fake_broker import FakeBroker
from tests.support.stores.store import memory_store

RELAYS = relay_settings()


async def filled_table(database, items: int = 300) -> Table:
    """The table Thread with items that were written before it recorded changes."""
    await database.ask(CreateTable(table_definition()))
    table = database.table("Thread")
    await asyncio.gather(
        *(table.write(put(thread(f"forum {n}", "subject", n=n))) for n in range(items))
    )
    return table


@asynccontextmanager
async def writing(table: Table, items: int = 400) -> AsyncIterator[list[int]]:
    """Put and delete items concurrently within the context; yield the number of writes."""
    draw = Random(5)
    count = [0]
    ended = False

    async def write() -> None:
        while not ended:
            key = thread(f"forum {draw.randrange(items)}", "subject")
            if draw.random() < 0.3:
                await table.write(Delete(key))
            else:
                await table.write(put({**key, "n": {"N": str(draw.randrange(1_000_000))}}))
            count[0] += 1
            # On a disk each write waits for a thread. No replay would catch up with eight writers
            # that wait for nothing.
            await asyncio.to_thread(int)

    async with asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(write())
        try:
            yield count
        finally:
            ended = True


async def wait_written(count: list[int], more: int) -> None:
    enough = count[0] + more
    while count[0] < enough:
        await asyncio.sleep(0)


async def test_a_snapshot_and_the_later_changes_have_no_gap_and_no_overlap():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=RELAYS) as database:
        table = await filled_table(database)
        async with writing(table) as count:
            await wait_written(count, 200)
            started = await replay(database, SNAPSHOT, follows=True)
            await wait_state(database, started.replay_id, "FOLLOWING")
            await wait_written(count, 500)
        await all_published(database, started.replay_id)
        consumed = ConsumedTable.of(broker)
        assert consumed.items == await items_of(table)
        changes = sum(map(len, consumed.changes.values()))
        # The progress is counted when it is stored, after the messages are published.
        async with asyncio.timeout(60):
            while (progress := database.part(Replays).find(started.replay_id)).changes < changes:
                await asyncio.sleep(0.001)
        assert (consumed.gaps, progress.snapshots, progress.missing_changes) == (3, 1, 0)
        assert len(consumed.snapshot) == progress.items
        assert changes == progress.changes == progress.changes_total
        assert changes >= 400
        await database.ask(CancelReplay(started.replay_id))
        await stopped_recording(table)


async def test_a_replay_without_follow_ends_with_the_changes_during_the_snapshot():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=RELAYS) as database:
        table = await filled_table(database)
        async with writing(table) as count:
            started = await replay(database, SNAPSHOT)
            await wait_done(database, started.replay_id)
            consumed = ConsumedTable.of(broker)
            assert len(consumed.snapshot) >= 200
            await wait_written(count, 50)
        assert ConsumedTable.of(broker).changes == consumed.changes
        await stopped_recording(table)


async def test_every_item_is_in_the_snapshot_of_a_table_without_writes():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=RELAYS) as database:
        table = await filled_table(database, items=1_000)
        started = await replay(database, SNAPSHOT)
        progress = await wait_done(database, started.replay_id)
        consumed = ConsumedTable.of(broker)
        assert consumed.items == await items_of(table)
        assert (progress.items, progress.items_total, progress.changes) == (1_000, 1_000, 0)
        assert not consumed.changes
        assert progress.is_whole


async def test_a_snapshot_continues_after_the_broker_was_silent():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=RELAYS) as database:
        table = await filled_table(database)
        async with writing(table) as count:
            started = await replay(database, SNAPSHOT, follows=True)
            while not database.part(Replays).find(started.replay_id).items:
                await asyncio.sleep(0)
            with broker.silent():
                await wait_written(count, 50)
            await wait_state(database, started.replay_id, "FOLLOWING")
        await all_published(database, started.replay_id)
        consumed = ConsumedTable.of(broker)
        assert consumed.items == await items_of(table)
        assert database.part(Replays).find(started.replay_id).snapshots == 1


async def test_a_crash_during_a_snapshot_starts_another_one(monkeypatch):
    broker = FakeBroker()
    crashes = iter([*[False] * 200, True, *[False] * 50, True])
    original = KafkaSink.kafka_partition

    def crash(self, message):
        if next(crashes, False):
            raise RuntimeError("a bug")
        return original(self, message)

    monkeypatch.setattr(KafkaSink, "kafka_partition", crash)
    async with running_database(broker=broker, relays=RELAYS) as database:
        table = await filled_table(database)
        async with writing(table):
            started = await replay(database, SNAPSHOT, follows=True)
            await wait_state(database, started.replay_id, "FOLLOWING")
        await all_published(database, started.replay_id)
        assert database.part(Replays).find(started.replay_id).snapshots == 3
        consumed = ConsumedTable.of(broker)
        assert consumed.items == await items_of(table)
        assert consumed.gaps == 9


async def test_a_replay_that_crashes_repeatedly_fails_and_keeps_no_log(monkeypatch):
    def crash(*_: object) -> int:
        raise RuntimeError("a bug")

    monkeypatch.setattr(KafkaSink, "kafka_partition", crash)
    async with running_database(broker=FakeBroker(), relays=RELAYS) as database:
        table = await filled_table(database, items=5)
        started = await replay(database, SNAPSHOT)
        while database.part(Replays).find(started.replay_id).state != "FAILED":
            await asyncio.sleep(0)
        tails = {feed.partition_number: feed.tail for feed in await table.followers.feeds()}
        assert await table.followers.floors() == tails
        cancelled = await database.ask(CancelReplay(started.replay_id))
        assert cancelled.state == "FAILED"
        assert "the server's log" in (cancelled.problem or "")
        await stopped_recording(table)


async def test_records_that_the_broker_refuses_are_sent_again():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=RELAYS) as database:
        table = await filled_table(database)
        started = await replay(database, SNAPSHOT, follows=True)
        await broker.wait_messages(COPY, 10)
        broker.failures = 5
        await write_threads(table, range(100))
        with broker.unreachable():
            await write_threads(table, range(100, 200))
        await all_published(database, started.replay_id)
        assert ConsumedTable.of(broker).items == await items_of(table)
        assert len(broker.open_publishers) == 1


async def test_records_whose_answer_the_client_library_cancels_are_sent_again():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=RELAYS) as database:
        table = await filled_table(database)
        started = await replay(database, SNAPSHOT, follows=True)
        for first in range(0, 100, 10):
            broker.cancelled_answers = 3
            await write_threads(table, range(first, first + 10))
            while broker.cancelled_answers:
                await asyncio.sleep(0.001)
        await all_published(database, started.replay_id)
        assert ConsumedTable.of(broker).items == await items_of(table)
        (progress,) = database.part(Replays).all()
        assert progress.snapshots == 1


async def test_recorded_changes_are_published_again_in_order():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=RELAYS) as database:
        table = await published_table(database)
        await write_threads(table, range(100))
        started = await replay(database, BEGINNING)
        progress = await wait_done(database, started.replay_id)
        assert (progress.changes, progress.changes_total, progress.is_whole) == (100, 100, True)
        consumed = ConsumedTable.of(broker)
        assert consumed.items == await items_of(table)
        assert sum(map(len, consumed.changes.values())) == 100
        assert consumed.gaps == 0


async def test_a_replay_can_start_at_a_time():
    broker, clock = FakeBroker(), SetClock()
    settings = {"broker": broker, "relays": RELAYS, "keep_streams_seconds": 600}
    async with running_database(clock=clock, **settings) as database:
        table = await published_table(database)
        for number in range(60):
            clock.step(1)
            await write_threads(table, [number])
        from_20_us = int((clock.now_epoch_seconds() - 39) * 1_000_000)
        started = await replay(database, ReplayStart("time", from_20_us))
        progress = await wait_done(database, started.replay_id)
        assert (progress.changes, progress.is_whole) == (40, False)
        images = [image["n"]["N"] for image in ConsumedTable.of(broker).items.values()]
        assert sorted(map(int, images)) == list(range(53, 60))


async def test_a_replay_can_start_at_a_change_of_one_partition_and_its_time_in_others():
    broker, clock = FakeBroker(), SetClock()
    settings = {"broker": broker, "relays": RELAYS, "keep_streams_seconds": 600}
    async with running_database(clock=clock, **settings) as database:
        table = await published_table(database)
        for number in range(60):
            clock.step(1)
            await write_threads(table, [number])
        messages = await broker.wait_messages("threads", 60)
        numbers = {
            int(dict(message.headers)["sequence-number"]): message.timestamp_ms
            for message in messages
        }
        number, at_ms = list(numbers.items())[30]
        started = await replay(database, ReplayStart("sequence-number", number))
        progress = await wait_done(database, started.replay_id)
        expected = {one for one, made_ms in numbers.items() if made_ms >= at_ms}
        replayed = {one for of_key in ConsumedTable.of(broker).changes.values() for one in of_key}
        assert replayed == expected
        assert progress.changes == len(expected)


async def test_start_positions_outside_of_the_logs_are_refused():
    broker, clock = FakeBroker(), SetClock()
    settings = {"keep_streams_seconds": 0.001, "relays": RELAYS}
    async with running_database(clock=clock, broker=broker, **settings) as database:
        table = await published_table(database)
        await write_threads(table, range(50))
        await broker.wait_messages("threads", 50)
        first = int(dict(broker.messages("threads")[0].headers)["sequence-number"])
        while not any((await begins(table)).values()):
            clock.step(0.001)
            await database.actor.keep_streams()
            await write_threads(table, range(4_096))
        await write_threads(table, range(10))
        for start in (ReplayStart("time", 1), ReplayStart("sequence-number", first)):
            with pytest.raises(ValidationException, match=r"are kept from .* --from snapshot"):
                await replay(database, start)
        for number in (0, 1, 1 << 63, first + (1 << 37)):
            with pytest.raises(ValidationException, match="is not the sequence number"):
                await replay(database, ReplayStart("sequence-number", number))
        started = await replay(database, BEGINNING)
        assert not started.is_whole
        await wait_done(database, started.replay_id)


async def test_a_table_without_followers_has_nothing_to_replay():
    async with running_database(broker=FakeBroker(), relays=RELAYS) as database:
        table = await filled_table(database)
        for start in (BEGINNING, ReplayStart("time", 1)):
            with pytest.raises(ValidationException, match="No changes of table Thread are kept"):
                await replay(database, start)
        assert not table.definition.records_changes


async def test_changes_that_were_not_recorded_count_as_missing():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=RELAYS) as database:
        table = await filled_table(database, items=20)
        first = await replay(database, SNAPSHOT, follows=True, topic="first")
        await write_threads(table, range(100, 120))
        await database.ask(CancelReplay(first.replay_id))
        await stopped_recording(table)
        await write_threads(table, range(30))
        await database.ask(EnableDestination("Thread", "threads"))
        await write_threads(table, range(40))
        started = await replay(database, BEGINNING)
        progress = await wait_done(database, started.replay_id)
        assert (progress.changes, progress.missing_changes) == (60, 30)
        assert not progress.is_whole


async def test_the_logs_are_kept_for_a_replay_and_trimmed_after_it():
    broker = FakeBroker()
    settings = {"keep_streams_seconds": 1_000, "relays": RELAYS}
    async with running_database(broker=broker, **settings) as database:
        table = await filled_table(database, items=20)
        with broker.unreachable():
            started = await replay(database, SNAPSHOT, follows=True)
            before = await begins(table)
            await write_threads(table, range(100, 300))
            await database.actor.keep_streams()
            assert await begins(table) == before
        await all_published(database, started.replay_id)
        assert ConsumedTable.of(broker).items == await items_of(table)
        await database.actor.keep_streams()
        assert sum((await begins(table)).values()) == sum(before.values()) + 200
        await database.ask(CancelReplay(started.replay_id))
        await stopped_recording(table)


async def test_a_replay_with_too_large_a_backlog_is_abandoned():
    broker = FakeBroker()
    small = relay_settings(retention_bytes=10_000)
    async with running_database(broker=broker, relays=small) as database:
        table = await filled_table(database, items=20)
        started = await replay(database, SNAPSHOT, follows=True)
        await wait_state(database, started.replay_id, "FOLLOWING")
        with broker.silent():
            while database.part(Replays).find(started.replay_id).state == "FOLLOWING":
                await write_threads(table, range(100))
        progress = database.part(Replays).find(started.replay_id)
        assert progress.state == "FAILED"
        assert "10,000 bytes" in (progress.problem or "")
        await stopped_recording(table)


async def test_a_replay_stores_checkpoints_before_it_starts_and_deletes_them_at_its_end():
    broker = FakeBroker()
    async with (
        memory_store() as store,
        running_database(store, broker=broker, relays=RELAYS) as database,
    ):
        table = await filled_table(database, items=20)
        begin, end = key_layout.checkpoint_range(table.definition.table_id)
        with broker.silent():
            started = await replay(database, SNAPSHOT, follows=True)
            subscriber = replay_subscriber(table.definition.table_id, started.replay_id)
            keys = [key_layout.checkpoint(subscriber, each) for each in table.record.log_numbers]
            assert [row.key async for row in rows_of(store, begin, end)] == keys
            floors = await table.followers.floors()
            await write_threads(table, range(100, 120))
            assert await table.followers.floors() == floors
            # After a split, the replay also stores checkpoints for the children.
            children = await halve(database, table, table.record.partitions[0].number)
            keys += [key_layout.checkpoint(subscriber, each) for each in children]
            assert [row.key async for row in rows_of(store, begin, end)] == keys
        await all_published(database, started.replay_id)
        assert ConsumedTable.of(broker).items == await items_of(table)
        await database.ask(CancelReplay(started.replay_id))
        await stopped_recording(table)
        assert not [row async for row in rows_of(store, begin, end)]


async def test_a_failed_replay_ends_without_a_request(monkeypatch):
    def crash(*_: object) -> int:
        raise RuntimeError("a bug")

    monkeypatch.setattr(KafkaSink, "kafka_partition", crash)
    async with running_database(broker=FakeBroker(), relays=RELAYS) as database:
        table = await filled_table(database, items=5)
        started = await replay(database, SNAPSHOT)
        await stopped_recording(table)
        assert database.part(Replays).find(started.replay_id).state == "FAILED"


async def test_a_topic_that_is_in_use_is_refused():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=RELAYS) as database:
        table = await published_table(database)
        await write_threads(table, range(5))
        with pytest.raises(ValidationException, match="are published to topic threads"):
            await replay(database, BEGINNING, topic="threads")
        with pytest.raises(ValidationException, match="can't be the name of a Kafka topic"):
            await replay(database, BEGINNING, topic="a b")
        started = await replay(database, BEGINNING, follows=True)
        with pytest.raises(ValidationException, match="Another replay"):
            await replay(database, BEGINNING)
        await database.ask(CreateTable(table_definition("Other")))
        with pytest.raises(ValidationException, match="A replay is writing"):
            await database.ask(EnableDestination("Other", COPY))
        progress = await database.ask(CancelReplay(started.replay_id))
        assert progress.state == "CANCELLED"
        again = await replay(database, BEGINNING)
        await wait_done(database, again.replay_id)


async def test_a_replay_ends_with_the_reason_if_the_broker_refuses_it():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=RELAYS) as database:
        table = await filled_table(database, items=5)
        with broker.unreachable(BrokerRefused("who are you")):
            started = await replay(database, SNAPSHOT)
            while database.part(Replays).find(started.replay_id).state != "FAILED":
                await asyncio.sleep(0)
        assert database.part(Replays).find(started.replay_id).problem == "who are you"
        await stopped_recording(table)


async def test_a_replay_reports_an_unreachable_broker_and_waits_for_it():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=RELAYS) as database:
        table = await filled_table(database, items=5)
        with broker.unreachable():
            started = await replay(database, SNAPSHOT)
            while database.part(Replays).find(started.replay_id).problem is None:
                await asyncio.sleep(0)
        progress = await wait_done(database, started.replay_id)
        assert progress.problem is None
        assert ConsumedTable.of(broker).items == await items_of(table)


async def test_a_replay_publishes_a_record_that_is_too_large_without_images():
    broker = FakeBroker()
    broker.max_batch_bytes = 1_000
    async with running_database(broker=broker, relays=RELAYS) as database:
        table = await filled_table(database, items=50)
        large = {**thread("large", "subject"), "text": {"S": "x" * 2_000}}
        await table.write(put(large))
        started = await replay(database, SNAPSHOT)
        progress = await wait_done(database, started.replay_id)
        assert (progress.items, progress.omitted_images) == (51, 1)
        cut = [one for one in broker.messages(COPY) if ("images-omitted", b"true") in one.headers]
        assert len(cut) == 1


async def test_after_a_restart_no_replay_exists_and_no_changes_are_recorded_for_it():
    broker = FakeBroker()
    async with memory_store() as store:
        async with running_database(store, broker=broker, relays=RELAYS) as database:
            table = await filled_table(database, items=5)
            started = await replay(database, SNAPSHOT, follows=True)
            await wait_state(database, started.replay_id, "FOLLOWING")
        async with running_database(store, broker=broker, relays=RELAYS) as database:
            table = database.table("Thread")
            assert not table.definition.records_changes
            checkpoints = key_layout.checkpoint_range(table.definition.table_id)
            assert not [row async for row in rows_of(store, *checkpoints)]
            with pytest.raises(ResourceNotFoundException, match="started again"):
                database.part(Replays).find(started.replay_id)


async def test_a_replay_ends_when_its_table_is_deleted():
    broker = FakeBroker()
    async with running_database(broker=broker, relays=RELAYS) as database:
        await filled_table(database, items=5)
        started = await replay(database, SNAPSHOT, follows=True)
        await wait_state(database, started.replay_id, "FOLLOWING")
        await database.ask(DeleteTable("Thread"))
        assert database.part(Replays).find(started.replay_id).state == "CANCELLED"
        assert not broker.open_publishers


async def test_only_the_latest_ended_replays_are_listed():
    async with running_database(broker=FakeBroker(), relays=RELAYS) as database:
        await filled_table(database, items=1)
        for _ in range(25):
            started = await replay(database, SNAPSHOT)
            await wait_done(database, started.replay_id)
        assert len(database.part(Replays).all()) == 20
        assert database.part(Replays).all()[-1].replay_id == started.replay_id


async def all_published(database, replay_id: str) -> None:
    """Wait until a replay with ``follow`` has published all changes so far."""
    await wait_state(database, replay_id, "FOLLOWING")
    while (now := database.part(Replays).find(replay_id)).changes < now.changes_total:
        await asyncio.sleep(0)


async def stopped_recording(table: Table) -> None:
    while table.definition.records_changes:
        await asyncio.sleep(0)


async def begins(table: Table) -> dict[int, int]:
    """The counter after which each log starts."""
    logs = await log_bounds.reaches(table.durable(), table.record, 0)
    return {log.partition_number: log.after for log in logs}
