"""Reads of a table as it was at a time, compared with a model of its states."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

import pytest
from msgspec import structs

from dynactor.actors.database.database import Database
from dynactor.actors.followers import log_positions
from dynactor.actors.table.messages import CreateTable, DeleteTable
from dynactor.model.definitions.index import IndexDefinition, Projection
from dynactor.model.definitions.table import PointInTimeRecovery
from dynactor.model.errors import ResourceNotFoundException, ValidationException
from dynactor.model.keys.key import KeyAttribute, KeySchema
from dynactor.model.values.item import Item
from dynactor.model.writes.write import Delete
from dynactor.storage import codec, key_layout
from dynactor.storage.rocks.view import RocksView
from dynactor.storage.store import Row
from tests.support.databases.databases import (
    SetClock,
    TickingClock,
    put,
    running_database,
    table_definition,
    thread,
)
from tests.support.databases.recovered import (
    NAME,
    History,
    enable_recovery,
    recoverable_table,
    transactions_apart,
    trim,
    wait_held,
    write_in_flight,
)
from tests.support.databases.splitting import halve
from tests.support.servers.in_process import InProcessClient
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import memory_store

_DAY: Final = 24 * 60 * 60
_STEPS = 60
_FEW_ROUNDS = 2
_TIMES = 3
_FORUMS: Final = [f"f{number}" for number in range(8)]
_SUBJECTS: Final = [f"s{number}" for number in range(12)]


def header(epoch_seconds: float) -> dict[str, str]:
    time = datetime.fromtimestamp(epoch_seconds, tz=UTC)
    return {"x-dynactor-as-of": time.isoformat(timespec="microseconds").replace("+00:00", "Z")}


class PastClient:
    """Reads the table Thread as it was at a time."""

    def __init__(self, database: Database, epoch_seconds: float) -> None:
        self._client = InProcessClient(database)
        self._headers = header(epoch_seconds)

    async def __call__(self, operation: str, **members: Any) -> dict[str, Any]:
        request = members if operation == "BatchGetItem" else {"TableName": NAME, **members}
        status, answer = await self._client(operation, request, self._headers)
        assert status == 200, answer
        return answer

    async def refused(self, operation: str, **members: Any) -> str:
        """The message of the error of an operation."""
        status, answer = await self._client(
            operation, {"TableName": NAME, **members}, self._headers
        )
        assert (status, answer["__type"].partition("#")[2]) == (400, "ValidationException")
        message: str = answer["message"]
        return message

    async def get(self, forum: str, subject: str) -> Item | None:
        return (await self("GetItem", Key=thread(forum, subject))).get("Item")

    async def pages(self, operation: str, **members: Any) -> list[list[Item]]:
        """All pages of a Query or Scan."""
        pages = []
        answer = await self(operation, **members)
        pages.append(answer["Items"])
        while "LastEvaluatedKey" in answer:
            answer = await self(operation, **members, ExclusiveStartKey=answer["LastEvaluatedKey"])
            pages.append(answer["Items"])
        return pages

    async def items(self, operation: str, **members: Any) -> list[Item]:
        return [item for page in await self.pages(operation, **members) for item in page]

    async def query(self, forum: str, condition: str = "", **members: Any) -> list[Item]:
        values = members.pop("values", {})
        return await self.items(
            "Query",
            KeyConditionExpression=f"forum = :f{condition}",
            ExpressionAttributeValues={":f": {"S": forum}, **values},
            **members,
        )


def by_name(found: list[Item]) -> dict[str, Item]:
    named = {f"{item['forum']} {item['subject']}": item for item in found}
    assert len(named) == len(found), "no item is read twice"
    return named


def of_forum(state: Mapping[str, Item], forum: str) -> list[Item]:
    found = [item for item in state.values() if item["forum"]["S"] == forum]
    return sorted(found, key=lambda item: item["subject"]["S"])


def lists_no_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enable recovery from now on as earlier versions did."""

    def recovery(*arguments: Any, lists_changes: bool) -> PointInTimeRecovery:
        assert lists_changes
        return PointInTimeRecovery(*arguments)

    monkeypatch.setattr("dynactor.actors.backups.point_in_time.PointInTimeRecovery", recovery)


async def test_a_table_is_read_as_it_was_at_any_time(
    rounds: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _histories(range(rounds or _FEW_ROUNDS), monkeypatch)


async def test_a_table_whose_changes_are_not_listed_is_read_as_it_was(
    rounds: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists_no_changes(monkeypatch)
    await _histories(range((rounds or 1) // 4 + 1), monkeypatch)


async def _histories(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynactor.actors.followers.log_positions._RECORDS", 7)
    for seed in seeds:
        # With the lower limits, a page reads the log again.
        limit_bytes = (200, 2_000, 1 << 22)[seed % 3]
        monkeypatch.setattr("dynactor.actors.backups.past_view._REPLACED_BYTES", limit_bytes)
        monkeypatch.setattr("dynactor.actors.backups.past_view._CHANGES", 1 + seed % 3)
        least_rows = 1 + 3 * (seed % 2)
        monkeypatch.setattr("dynactor.actors.backups.past_view._LISTED_ROWS", (least_rows, 10))
        monkeypatch.setattr("dynactor.actors.backups.listed_changes._LEAST_ROWS", least_rows)
        monkeypatch.setattr("dynactor.actors.backups.listed_changes._PROBES", seed % 4)
        monkeypatch.setattr("dynactor.actors.backups.listed_changes._WALKED_ROWS", least_rows)
        monkeypatch.setattr("dynactor.actors.backups.listed_changes._RANGES", 1 + 40 * (seed % 2))
        await _history(seed)


async def _history(seed: int) -> None:
    """A history with restarts, splits and expiry; reads between its writes."""
    clock = SetClock()
    history = History(seed, clock)
    async with memory_store() as store:
        async with running_database(store, clock) as database:
            await history.begin(database)
            await history.run(database, _STEPS)
        for _ in range(2):
            async with running_database(store, clock) as database:
                await history.run(database, _STEPS)
                await history.step(database, 1)
                for _ in range(_TIMES):
                    time = history.time(database)
                    if time < clock.now_epoch_seconds():
                        await _compare(database, history, time)


async def _compare(database: Database, history: History, epoch_seconds: float) -> None:
    state, draw = history.state_at(epoch_seconds), history.draw
    read = PastClient(database, epoch_seconds)
    limit = draw.randrange(1, 20)
    # Writes, splits and trims between the pages change nothing.
    pages: list[Item] = []
    start: dict[str, Any] = {}
    while True:
        answer = await read("Scan", Limit=limit, **start)
        pages += answer["Items"]
        if "LastEvaluatedKey" not in answer:
            break
        start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
        await history.run(database, 1) if draw.randrange(2) else await history.write(database)
        if history.earliest(database) > epoch_seconds:
            # The step may have ended the window.
            return
    assert by_name(pages) == state
    forum = draw.choice(_FORUMS)
    expected = of_forum(state, forum)
    assert await read.query(forum) == expected
    assert await read.query(forum, Limit=limit) == expected
    assert await read.query(forum, Limit=limit, ScanIndexForward=False) == expected[::-1]
    some = await read.query(
        forum,
        " AND subject BETWEEN :a AND :b",
        values={":a": {"S": "s1"}, ":b": {"S": "s3"}},
        ProjectionExpression="subject",
        FilterExpression="attribute_exists(votes)",
    )
    assert some == [
        {"subject": item["subject"]}
        for item in expected
        if "s1" <= item["subject"]["S"] <= "s3" and "votes" in item
    ]
    of_index = [item for item in expected if "posts" in item]
    of_index.sort(key=lambda item: (int(item["posts"]["N"]), item["subject"]["S"]))
    assert await read.query(forum, IndexName="by_posts", Limit=limit) == of_index
    assert await read.query(forum, IndexName="by_posts", ScanIndexForward=False) == of_index[::-1]
    keys = [(forum, subject) for subject in _SUBJECTS]
    for each in keys[:4]:
        assert await read.get(*each) == state.get("{} {}".format(*({"S": x} for x in each)))
    batch = {NAME: {"Keys": [thread(*each) for each in keys]}}
    found = await read("BatchGetItem", RequestItems=batch)
    assert by_name(found["Responses"][NAME]) == by_name(expected)


async def test_transactions_are_read_whole() -> None:
    clock = TickingClock()
    async with memory_store() as store, running_database(store, clock) as database:
        keys, times = await transactions_apart(database, store, clock)
        for time in times:
            read = PastClient(database, time)
            found = await read.items("Scan")
            assert len(found) in (0, 12)
            # The items are deleted, so the logs are searched for each.
            single = [await read.get(key["forum"]["S"], "s") for key in keys]
            assert sorted(map(repr, filter(None, single))) == sorted(map(repr, found))
            assert len({str(item["votes"]) for item in found}) <= 1


async def test_a_local_index_without_all_attributes_is_read_as_it_was() -> None:
    clock = SetClock()
    definition = table_definition(local_sort_keys=("posts",))
    votes = KeyAttribute("votes", "N")
    by_votes = IndexDefinition(
        2, "by_votes", KeySchema(definition.key_schema.partition, (votes,)), Projection("KEYS_ONLY")
    )
    definition = structs.replace(
        definition,
        attribute_definitions=(*definition.attribute_definitions, votes),
        local_indexes=(*definition.local_indexes, by_votes),
        next_index_id=3,
    )
    async with memory_store() as store, running_database(store, clock) as database:
        await database.ask(CreateTable(definition))
        table = database.table(NAME)
        await enable_recovery(database)
        before = [thread("f", f"s{number}", votes=number, posts=9 - number) for number in range(5)]
        for item in before:
            await table.write(put(item))
        read = PastClient(database, clock.now_epoch_seconds())
        clock.step(1)
        # Other attributes, another place, no place, deleted; the last one is unchanged.
        await table.write(put(thread("f", "s0", votes=0, posts=1)))
        await table.write(put(thread("f", "s1", votes=40)))
        await table.write(put(thread("f", "s2", posts=1)))
        await table.write(Delete(thread("f", "s3")))
        await table.write(put(thread("f", "s9", votes=1)))
        assert await read.query("f", IndexName="by_votes", Select="ALL_ATTRIBUTES") == before
        keys = [{name: item[name] for name in ("forum", "subject", "votes")} for item in before]
        assert await read.query("f", IndexName="by_votes") == keys
        assert await read.items("Scan", IndexName="by_votes") == keys


async def test_a_write_in_flight_before_the_time_is_read() -> None:
    clock = SetClock()
    async with memory_store() as inner:
        store = FaultyStore(inner)
        async with running_database(store, clock) as database:
            async with write_in_flight(store, database, clock) as written:
                read = PastClient(database, clock.now_epoch_seconds())
                reading = asyncio.ensure_future(read.get("f", "s"))
                await wait_held(store, 2, unless=reading)
            assert await reading == written


async def test_a_past_read_costs_what_a_read_costs() -> None:
    clock = SetClock()
    async with memory_store() as store, running_database(store, clock) as database:
        table = await recoverable_table(database)
        await table.write(put({**thread("f", "s"), "text": {"S": "x" * 5_000}}))
        read = PastClient(database, clock.now_epoch_seconds())
        clock.step(1)
        await table.write(Delete(thread("f", "s")))
        for operation, members in (
            ("GetItem", {"Key": thread("f", "s")}),
            (
                "Query",
                {
                    "KeyConditionExpression": "forum = :f",
                    "ExpressionAttributeValues": {":f": {"S": "f"}},
                },
            ),
        ):
            answer = await read(operation, ReturnConsumedCapacity="TOTAL", **members)
            assert answer["ConsumedCapacity"]["CapacityUnits"] == 1.0, operation


async def test_reads_outside_of_the_window_are_refused() -> None:
    clock = SetClock()
    async with memory_store() as store, running_database(store, clock) as database:
        await database.ask(CreateTable(table_definition()))
        key = thread("f", "s")
        now = clock.now_epoch_seconds()
        message = await PastClient(database, now).refused("GetItem", Key=key)
        assert message == (
            "A past state can't be read: point in time recovery is not enabled for table 'Thread'"
        )
        await enable_recovery(database, days=1)
        await database.table(NAME).write(put(key))
        for time in (now - 60, now + 60, -6.2e10, 2.5e11):
            message = await PastClient(database, time).refused("Scan")
            assert "the time must be between 2026-11-20T11:45:36.489Z and the present" in message
        clock.step(2 * _DAY)
        await trim(database)
        await PastClient(database, now + 10).refused("GetItem", Key=key)
        assert await PastClient(database, now + 1.5 * _DAY).get("f", "s") == key
        await enable_recovery(database, days=None)
        await PastClient(database, now + 1.5 * _DAY).refused("GetItem", Key=key)


@pytest.mark.parametrize(
    "time",
    ["", "now", "2026-11-22", "2026-11-22T10:00:00", "2026-13-22T10:00:00Z", "1795175136", "2026"],
)
async def test_a_malformed_time_is_refused(time: str) -> None:
    async with memory_store() as store, running_database(store, SetClock()) as database:
        await database.ask(CreateTable(table_definition()))
        client = InProcessClient(database)
        request = {"TableName": NAME, "Key": thread("f", "s")}
        status, answer = await client("GetItem", request, {"x-dynactor-as-of": time})
        assert status == 400
        assert answer["message"].startswith("The header X-Dynactor-As-Of must be a time with")


async def test_other_operations_and_consistent_reads_are_refused() -> None:
    clock = SetClock()
    async with memory_store() as store, running_database(store, clock) as database:
        history = History(1, clock)
        await history.begin(database)
        read = PastClient(database, clock.now_epoch_seconds())
        key = thread("f", "s")
        for operation, members in (
            ("PutItem", {"Item": key}),
            ("DeleteItem", {"Key": key}),
            ("DescribeTable", {}),
        ):
            message = await read.refused(operation, **members)
            assert message.startswith(f"{operation} does not support the header X-Dynactor-As-Of")
        for operation, members in (("GetItem", {"Key": key}), ("Scan", {})):
            message = await read.refused(operation, ConsistentRead=True, **members)
            assert message.startswith("ConsistentRead is not supported")
        message = await read.refused("Scan", IndexName="by_votes_2")
        assert message.startswith("Global secondary indexes are not supported")
        message = await read.refused("Scan", TotalSegments=1)
        assert "Segment" in message, "the request itself is checked first"


async def test_the_log_of_other_partitions_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read of one key reads the log of its partition, and of the parents of the partition."""
    lists_no_changes(monkeypatch)
    clock = SetClock()
    async with memory_store() as store, running_database(store, clock) as database:
        table = await recoverable_table(database)
        draw = Random(1)
        for number in range(60):
            await table.write(put(thread(f"f{number}", "s")))
        read = PastClient(database, clock.now_epoch_seconds())
        # The state at the time is final, so its positions are cached.
        clock.step(60)
        for number in range(60):
            await table.write(Delete(thread(f"f{number}", "s")))
            if number == 30:
                await halve(database, table, draw.choice(table.record.partitions).number)
        logs: list[int] = []
        original = log_positions.read

        async def noting(view: Any, number: int, after: int) -> Any:
            logs.append(number)
            return await original(view, number, after)

        await read.items("Scan")
        monkeypatch.setattr(log_positions, "read", noting)
        assert await read.get("f40", "s") == thread("f40", "s")
        assert len(set(logs)) <= 2 < len(table.record.log_numbers)


async def test_listed_changes_replace_reads_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SetClock()
    async with memory_store() as store, running_database(store, clock) as database:
        table = await recoverable_table(database)
        before = [thread("f", f"s{number}", votes=1) for number in range(9)]
        for item in before:
            await table.write(put(item))
        read = PastClient(database, clock.now_epoch_seconds())
        # The state at the time is final, so its positions are cached.
        clock.step(60)
        for _ in range(3):
            for item in before[::2]:
                await table.write(Delete(thread("f", item["subject"]["S"])))
                await table.write(put({**item, "votes": {"N": "2"}}))
            clock.step(3_600)
        await table.write(Delete(thread("f", "s0")))
        assert await read.get("f", "s0") == before[0]

        async def fail(*_: object) -> None:
            raise AssertionError("the log is read")

        monkeypatch.setattr(log_positions, "read", fail)
        for item in before:
            assert await read.get("f", item["subject"]["S"]) == item
        assert await read.get("f", "s9") is None
        assert await read.query("f") == before
        assert await read.query("f", ScanIndexForward=False, Limit=2) == before[::-1]
        assert await read.items("Scan", Limit=1) == before


async def test_a_busy_item_takes_few_rows_of_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later changes of a period are not read, unless the period began before the time."""
    clock = SetClock()
    async with memory_store() as store, running_database(store, clock) as database:
        table = await recoverable_table(database)
        items = [thread("f", f"s{number}", votes=0) for number in range(3)]
        for item in items:
            await table.write(put(item))
        read = PastClient(database, clock.now_epoch_seconds())
        clock.step(5_400)
        for votes in range(1, 100):
            await table.write(put(thread("f", "s1", votes=votes)))
        rows = 0
        original = RocksView.first_rows

        async def counting(*arguments: Any, **members: Any) -> list[list[Row]]:
            nonlocal rows
            found = await original(*arguments, **members)
            rows += sum(map(len, found))
            return found

        monkeypatch.setattr(RocksView, "first_rows", counting)
        assert await read.query("f") == items
        assert rows <= len(items) + 1


async def test_an_item_that_was_put_and_deleted_many_times_is_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dynactor.actors.backups.past_view._LISTED_ROWS", (2, 2))
    monkeypatch.setattr("dynactor.actors.backups.listed_changes._LEAST_ROWS", 2)
    clock = SetClock()
    async with memory_store() as store, running_database(store, clock) as database:
        table = await recoverable_table(database)
        items = [thread("f", f"s{number}", votes=0) for number in range(5)]
        for item in items:
            await table.write(put(item))
        clock.step(1)
        read = PastClient(database, clock.now_epoch_seconds())
        clock.step(5_400)
        for votes in range(1, 9):
            for number in (1, 2, 4):
                await table.write(Delete(thread("f", f"s{number}")))
                await table.write(put(thread("f", f"s{number}", votes=votes)))
        for limit in (1, 2, 9):
            for is_forward in (True, False):
                found = await read.query("f", Limit=limit, ScanIndexForward=is_forward)
                assert found == items[:: 1 if is_forward else -1], limit


async def test_other_tasks_run_while_the_changes_of_an_item_are_followed_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dynactor.actors.backups.past_view._CHANGES", 100)
    clock = SetClock()
    async with memory_store() as store, running_database(store, clock) as database:
        table = await recoverable_table(database)
        first = thread("f", "s", votes=0)
        await table.write(put(first))
        time = clock.now_epoch_seconds()
        clock.step(1)
        for votes in range(1, 51):
            await table.write(put(thread("f", "s", votes=votes)))
        row = key_layout.item_row(table.definition, first)
        turns = 0
        async with database.past_reads.at(time, [table]) as (past,):
            reading = asyncio.ensure_future(past.load([row]))
            while not reading.done():
                await asyncio.sleep(0)
                turns += 1
        (value,) = await reading
        assert value is not None
        assert codec.decode(value).item == first
        assert turns > 50


async def test_a_read_is_refused_if_its_time_leaves_the_window_meanwhile() -> None:
    clock = SetClock()
    async with memory_store() as store, running_database(store, clock) as database:
        table = await recoverable_table(database, days=1)
        time = clock.now_epoch_seconds()
        clock.step(_DAY - 1)
        with pytest.raises(ValidationException, match="the time must be between"):
            async with database.past_reads.at(time, [table]):
                clock.step(60)


async def test_a_read_is_refused_if_its_table_is_deleted_meanwhile() -> None:
    clock = SetClock()
    async with memory_store() as store, running_database(store, clock) as database:
        table = await recoverable_table(database)
        row = key_layout.item_row(table.definition, thread("f", "s"))

        async def read() -> None:
            async with database.past_reads.at(clock.now_epoch_seconds(), [table]) as (past,):
                await database.ask(DeleteTable(NAME))
                await past.load([row])

        with pytest.raises(ResourceNotFoundException):
            await read()
