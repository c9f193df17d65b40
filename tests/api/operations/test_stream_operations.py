"""Operations on streams while shards roll, iterators expire, and records are trimmed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import convert, json, structs

from dynactor.actors.database.database import Database
from dynactor.actors.table.messages import CreateTable, DeleteTable, KeepStreams, UpdateTable
from dynactor.api.registry import OPERATIONS
from dynactor.api.requests.call import Call
from dynactor.model.definitions import table
from dynactor.model.errors import (
    ExpiredIteratorException,
    InternalServerError,
    ResourceNotFoundException,
    TrimmedDataAccessException,
    ValidationException,
)
from dynactor.model.limits import MIB
from dynactor.model.tables.stream_rules import StreamChange
from dynactor.model.tables.table_edits import TableEdit
from dynactor.storage import key_layout
from dynactor.storage.store import Full, Store
from dynactor.streams.shard import ShardSettings
from tests.support.databases.databases import (
    HeldStore,
    SetClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

ROLL_SECONDS = 600.0
DAY_SECONDS = 86_400.0


class Reader:
    """Calls operations on the stream of the table ``Thread``, which has one partition."""

    def __init__(self, database: Database, clock: SetClock) -> None:
        self.database = database
        self.clock = clock
        stream = database.table("Thread").definition.stream
        assert stream is not None
        self.arn = f"arn:aws:dynamodb:us-east-1:000000000000:table/Thread/stream/{stream.label}"

    async def call(self, name: str, **members: Any) -> Any:
        operation = OPERATIONS[name]
        call = Call(self.database, convert(members, operation.input), "localhost")
        return json.decode(await operation.handle(call))

    async def write(self, *subjects: str) -> None:
        for subject in subjects:
            await self.database.table("Thread").write(put(thread("EC2", subject)))

    async def keep(self, seconds: float) -> None:
        """Advance the clock, and run the database's periodic work."""
        self.clock.step(seconds)
        await self.database.actor.mailbox.put_nowait(KeepStreams(), always=True)

    async def shards(self, **members: Any) -> list[dict[str, Any]]:
        answer = await self.call("DescribeStream", StreamArn=self.arn, **members)
        return answer["StreamDescription"]["Shards"]

    async def iterator(self, shard_id: str, kind: str = "TRIM_HORIZON", **members: Any) -> str:
        answer = await self.call(
            "GetShardIterator",
            StreamArn=self.arn,
            ShardId=shard_id,
            ShardIteratorType=kind,
            **members,
        )
        return answer["ShardIterator"]

    async def records(self, iterator: str, **members: Any) -> tuple[list[str], str | None]:
        """The subjects of the next records, and the next iterator."""
        answer = await self.call("GetRecords", ShardIterator=iterator, **members)
        subjects = [record["dynamodb"]["Keys"]["subject"]["S"] for record in answer["Records"]]
        return subjects, answer.get("NextShardIterator")


@asynccontextmanager
async def running_reader(
    store: Store | None = None, clock: SetClock | None = None, **settings: Any
) -> AsyncIterator[Reader]:
    clock = clock or SetClock()
    settings = {"partitions_per_table": 1, "keep_streams_seconds": DAY_SECONDS, **settings}
    async with running_database(store, clock, **settings) as database:
        stream = table.StreamSettings("", "NEW_AND_OLD_IMAGES")
        await database.ask(CreateTable(structs.replace(table_definition(), stream=stream)))
        yield Reader(database, clock)


async def test_a_rolled_shard_is_read_to_its_end_before_its_child():
    async with running_reader(streams=ShardSettings(shard_roll_seconds=ROLL_SECONDS)) as reader:
        await reader.write("a", "b")
        (parent,) = await reader.shards()
        subjects, following = await reader.records(await reader.iterator(parent["ShardId"]))
        assert subjects == ["a", "b"]
        assert following is not None
        await reader.write("c")
        await reader.keep(ROLL_SECONDS)
        await reader.write("d")
        # The reader gets the last records of the closed shard, and no next iterator.
        assert await reader.records(following) == (["c"], None)
        closed, child = await reader.shards()
        assert closed["ShardId"] == parent["ShardId"]
        assert child["ParentShardId"] == parent["ShardId"]
        ending = closed["SequenceNumberRange"]["EndingSequenceNumber"]
        assert ending < child["SequenceNumberRange"]["StartingSequenceNumber"]
        assert "EndingSequenceNumber" not in child["SequenceNumberRange"]
        assert await reader.shards(
            ShardFilter={"Type": "CHILD_SHARDS", "ShardId": parent["ShardId"]}
        ) == [child]
        subjects, following = await reader.records(await reader.iterator(child["ShardId"]))
        assert subjects == ["d"]
        assert following is not None


async def turned_until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0)


async def test_a_record_that_is_durable_before_its_shard_is_closed_is_shown_once():
    rolls = ShardSettings(shard_roll_seconds=ROLL_SECONDS)
    async with memory_store() as store:
        held = HeldStore(store)
        async with running_reader(held, streams=rolls) as reader:
            await reader.write("a")
            held.hold()
            writing = asyncio.ensure_future(reader.write("b"))
            await turned_until(lambda: held.held == 1)
            keeping = asyncio.ensure_future(reader.keep(ROLL_SECONDS))
            await turned_until(lambda: held.held == 2)
            await held.release_first()
            await writing
            (parent,) = await reader.shards()
            seen, following = await reader.records(await reader.iterator(parent["ShardId"]))
            await held.release()
            await keeping
            if following is not None:
                seen += (await reader.records(following))[0]
            _, child = await reader.shards()
            seen += (await reader.records(await reader.iterator(child["ShardId"])))[0]
            assert seen == ["a", "b"]


async def test_a_write_after_a_stream_begins_to_be_disabled_is_not_shown():
    async with memory_store() as store:
        held = HeldStore(store)
        async with running_reader(held) as reader:
            (shard,) = await reader.shards()
            await reader.write("a")
            held.hold()
            before = asyncio.ensure_future(reader.write("b"))
            await turned_until(lambda: held.held == 1)
            disabling = asyncio.ensure_future(
                reader.database.ask(
                    UpdateTable("Thread", TableEdit(stream=StreamChange(enabled=False)))
                )
            )
            await turned_until(lambda: held.held == 2)
            behind = asyncio.ensure_future(reader.write("c"))
            await turned_until(lambda: held.held == 3)
            await held.release_first()
            await before
            assert not disabling.done()
            seen, _ = await reader.records(await reader.iterator(shard["ShardId"]))
            assert seen == ["a", "b"]
            await held.release()
            await behind
            await disabling
            seen = await reader.records(await reader.iterator(shard["ShardId"]))
            assert seen == (["a", "b"], None)


async def test_a_stream_continues_where_the_disk_was_too_full_to_disable_it():
    async with memory_store() as store:
        held = HeldStore(store)
        async with running_reader(held) as reader:
            held.refusal = Full("full")
            with pytest.raises(InternalServerError):
                await reader.database.ask(
                    UpdateTable("Thread", TableEdit(stream=StreamChange(enabled=False)))
                )
            held.refusal = None
            await reader.write("a")
            (shard,) = await reader.shards()
            subjects, following = await reader.records(await reader.iterator(shard["ShardId"]))
            assert subjects == ["a"]
            assert following is not None


async def test_a_shard_closed_a_day_ago_is_deleted():
    rolls = ShardSettings(shard_roll_seconds=ROLL_SECONDS)
    async with running_reader(streams=rolls) as reader:
        await reader.write("a")
        await reader.keep(ROLL_SECONDS)
        _, child = await reader.shards()
        await reader.keep(DAY_SECONDS - 1)
        assert len(await reader.shards()) == 2
        await reader.keep(2)
        assert await reader.shards() == [child]


async def test_an_iterator_on_the_last_page_of_a_closed_shard_is_missing():
    async with running_reader(streams=ShardSettings(shard_roll_seconds=ROLL_SECONDS)) as reader:
        await reader.write("a", "b", "c")
        await reader.keep(ROLL_SECONDS)
        closed, _ = await reader.shards()
        subjects, following = await reader.records(
            await reader.iterator(closed["ShardId"]), Limit=2
        )
        assert subjects == ["a", "b"]
        assert following is not None
        assert await reader.records(following) == (["c"], None)
        latest = await reader.iterator(closed["ShardId"], "LATEST")
        assert await reader.records(latest) == ([], None)


async def test_an_iterator_expires_after_a_quarter_of_an_hour():
    async with running_reader() as reader:
        (shard,) = await reader.shards()
        iterator = await reader.iterator(shard["ShardId"])
        reader.clock.step(15 * 60)
        _, following = await reader.records(iterator)
        reader.clock.step(1)
        with pytest.raises(ExpiredIteratorException):
            await reader.records(iterator)
        assert following is not None
        assert await reader.records(following) != ([], None)


async def test_trimmed_records_are_refused_and_the_horizon_moves():
    async with running_reader() as reader:
        await reader.write("a", "b")
        (shard,) = await reader.shards()
        numbers = [
            record["dynamodb"]["SequenceNumber"]
            for record in (
                await reader.call(
                    "GetRecords", ShardIterator=await reader.iterator(shard["ShardId"])
                )
            )["Records"]
        ]
        reader.clock.step(DAY_SECONDS - 60)
        await reader.write("c")
        early = await reader.iterator(shard["ShardId"])
        await reader.keep(61)
        with pytest.raises(TrimmedDataAccessException):
            await reader.records(early)
        for number in numbers:
            with pytest.raises(TrimmedDataAccessException):
                await reader.iterator(shard["ShardId"], "AT_SEQUENCE_NUMBER", SequenceNumber=number)
        # Each of these iterators starts at the first record that is not trimmed.
        for after in (
            await reader.iterator(shard["ShardId"]),
            await reader.iterator(
                shard["ShardId"], "AFTER_SEQUENCE_NUMBER", SequenceNumber=numbers[-1]
            ),
            await reader.iterator(shard["ShardId"], "AT_TIMESTAMP", Timestamp=0.0),
        ):
            subjects, _ = await reader.records(after)
            assert subjects == ["c"]


async def test_records_that_a_full_disk_kept_from_trimming_are_trimmed_later():
    clock = SetClock()
    never = ShardSettings(shard_roll_seconds=2 * DAY_SECONDS)
    async with memory_store() as inner:
        store = FaultyStore(inner)
        async with running_reader(store, clock, streams=never) as reader:
            await reader.write("a")
            (shard,) = await reader.shards()
            iterator = await reader.iterator(shard["ShardId"])
            (record,) = (await reader.call("GetRecords", ShardIterator=iterator))["Records"]
            store.refuse_commits(Full("the disk is full"))
            with pytest.raises(InternalServerError):
                await reader.keep(DAY_SECONDS)
            store.allow_commits()
            await reader.keep(0)
            arn = reader.arn
        async with running_database(store, clock) as database:
            reader = Reader(database, clock)
            assert reader.arn == arn
            with pytest.raises(TrimmedDataAccessException):
                await reader.iterator(
                    shard["ShardId"],
                    "AT_SEQUENCE_NUMBER",
                    SequenceNumber=record["dynamodb"]["SequenceNumber"],
                )


async def test_a_stream_that_a_full_disk_kept_from_ending_ends_later():
    clock = SetClock()
    async with memory_store() as inner:
        store = FaultyStore(inner)
        async with running_reader(store, clock) as reader:
            await reader.write("a")
            await reader.database.ask(DeleteTable("Thread"))
            store.refuse_commits(Full("the disk is full"))
            with pytest.raises(InternalServerError):
                await reader.keep(DAY_SECONDS)
            store.allow_commits()
            await reader.keep(0)
            assert (await reader.call("ListStreams"))["Streams"] == []
            assert await log_rows(store) == 0


async def test_an_iterator_at_a_timestamp_starts_at_the_first_record_of_that_time_or_later():
    async with running_reader() as reader:
        times = []
        for subject in "abcdefg":
            await reader.write(subject)
            times.append(reader.clock.now_epoch_seconds())
            reader.clock.step(10)
        (shard,) = await reader.shards()
        for at, time in enumerate(times):
            for sought, first in ((time - 5, at), (time, at), (time + 5, at + 1)):
                iterator = await reader.iterator(shard["ShardId"], "AT_TIMESTAMP", Timestamp=sought)
                assert (await reader.records(iterator))[0] == list("abcdefg")[first:]
        with pytest.raises(ValidationException):
            await reader.iterator(
                shard["ShardId"],
                "AT_TIMESTAMP",
                Timestamp=reader.clock.now_epoch_seconds() + 1,
            )


async def test_the_stream_of_a_deleted_table_is_read_for_a_day():
    async with running_reader() as reader:
        await reader.write("a")
        await reader.database.ask(DeleteTable("Thread"))
        answer = await reader.call("DescribeStream", StreamArn=reader.arn)
        assert answer["StreamDescription"]["StreamStatus"] == "DISABLED"
        (shard,) = answer["StreamDescription"]["Shards"]
        iterator = await reader.iterator(shard["ShardId"])
        assert await reader.records(iterator) == (["a"], None)
        await reader.keep(DAY_SECONDS - 1)
        assert (await reader.call("ListStreams"))["Streams"] != []
        await reader.keep(2)
        assert (await reader.call("ListStreams"))["Streams"] == []
        with pytest.raises(ResourceNotFoundException):
            await reader.shards()


async def test_no_row_of_a_deleted_table_remains_when_its_stream_is_deleted():
    async with memory_store() as store, running_reader(store) as reader:
        await reader.write("a", "b")
        await reader.keep(DAY_SECONDS + 1)
        await reader.write("c")
        await reader.database.ask(DeleteTable("Thread"))
        await reader.keep(DAY_SECONDS + 1)
        rows = await store.durable().page(b"", b"\xff", max_rows=100, max_bytes=MIB)
        left = [
            key_layout.CATALOG_HEAD,
            key_layout.VIRTUAL_CLOCK,
            key_layout.CATALOG_VERSION,
            key_layout.CATALOG_WRITER,
        ]
        assert [row.key for row in rows] == left


async def test_a_recreated_table_has_a_stream_of_its_own():
    async with running_reader() as reader:
        await reader.write("a")
        definition = structs.replace(
            table_definition(), stream=table.StreamSettings("", "KEYS_ONLY")
        )
        for _ in range(2):
            await reader.database.ask(DeleteTable("Thread"))
            await reader.database.ask(CreateTable(definition))
        streams = (await reader.call("ListStreams"))["Streams"]
        assert len({stream["StreamArn"] for stream in streams}) == 3
        (shard,) = await reader.shards()
        assert await reader.records(await reader.iterator(shard["ShardId"])) == (["a"], None)


async def log_rows(store: Store) -> int:
    start, end = key_layout.change_range(1)
    return len(await store.durable().page(start, end, max_rows=100, max_bytes=MIB))


@pytest.mark.parametrize("restarted", [False, True])
async def test_the_log_of_a_disabled_stream_is_deleted_with_the_stream(restarted: bool):
    clock = SetClock()
    async with memory_store() as store:
        async with running_reader(store, clock) as reader:
            await reader.write("a", "b")
            await reader.database.ask(
                UpdateTable("Thread", TableEdit(stream=StreamChange(enabled=False)))
            )
            await reader.write("c")
            assert await log_rows(store) == 2
            await reader.keep(DAY_SECONDS - 60)
            assert await log_rows(store) == 2
            if not restarted:
                await reader.keep(120)
                assert await log_rows(store) == 0
        if restarted:
            async with running_database(store, clock) as database:
                clock.step(120)
                await database.actor.mailbox.put_nowait(KeepStreams(), always=True)
                assert await log_rows(store) == 0


async def test_an_iterator_can_start_at_the_starting_number_of_an_empty_shard():
    async with running_reader() as reader:
        (shard,) = await reader.shards()
        starting = shard["SequenceNumberRange"]["StartingSequenceNumber"]
        iterators = [
            await reader.iterator(shard["ShardId"], kind, SequenceNumber=starting)
            for kind in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER")
        ]
        await reader.write("a")
        for iterator in iterators:
            subjects, _ = await reader.records(iterator)
            assert subjects == ["a"]


async def test_a_page_has_at_most_a_megabyte_and_at_least_a_record():
    async with running_reader() as reader:
        text = {"text": {"S": "x" * 300_000}}
        for at in range(8):
            await reader.database.table("Thread").write(put(thread("EC2", f"s{at}") | text))
        (shard,) = await reader.shards()
        iterator = await reader.iterator(shard["ShardId"])
        pages = []
        for _ in range(3):
            answer = await reader.call("GetRecords", ShardIterator=iterator)
            sizes = [record["dynamodb"]["SizeBytes"] for record in answer["Records"]]
            assert sum(sizes) <= 1024 * 1024
            pages.append(len(sizes))
            iterator = answer["NextShardIterator"]
        assert pages == [3, 3, 2]


async def test_a_record_has_the_image_at_the_time_of_the_change():
    async with running_reader() as reader:
        write = reader.database.table("Thread").write
        await write(put(thread("EC2", "s", n=1)))
        await write(put(thread("EC2", "s", n=1)))
        await write(put(thread("EC2", "s", n=2)))
        (shard,) = await reader.shards()
        answer = await reader.call(
            "GetRecords", ShardIterator=await reader.iterator(shard["ShardId"])
        )
        images = [
            (record["eventName"], body.get("OldImage"), body.get("NewImage"))
            for record in answer["Records"]
            for body in [record["dynamodb"]]
        ]
        first, second = thread("EC2", "s", n=1), thread("EC2", "s", n=2)
        assert images == [("INSERT", None, first), ("MODIFY", first, second)]
