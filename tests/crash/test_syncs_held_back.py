"""While a sync runs, the writes that it covers are unanswered and invisible to all readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.support.clients.wire import Answer, Connection
from tests.support.histories.history import Item
from tests.support.stores.power_loss import PowerLoss
from tests.support.writers.crashes import CrashingDatabase, address, connected
from tests.support.writers.whole_database import scan
from tests.support.writers.writers import INDEXES, Writers

TABLE = "crash-a"
INDEX_NAMES = [index.name for index in INDEXES if index.table == TABLE]
# Much longer than a request takes that waits for no sync.
TIMEOUT_SECONDS = 1.0


def item(sk: str, token: str) -> Item:
    return {
        "pk": {"S": "p"},
        "sk": {"S": sk},
        "token": {"S": token},
        "rank": {"N": "1" if token == "old" else "2"},
        "title": {"S": token},
    }


def key(sk: str) -> Item:
    return {"pk": {"S": "p"}, "sk": {"S": sk}}


OLD = [item(sk, "old") for sk in ("deleted", "kept", "replaced", "updated")]
NEW = [
    item("batched", "new"),
    item("kept", "old"),
    item("made", "new"),
    item("replaced", "new"),
    item("updated", "new"),
]

SET_NEW: dict[str, Any] = {
    "UpdateExpression": "SET #token = :new, #rank = :rank, #title = :new",
    "ExpressionAttributeNames": {"#token": "token", "#rank": "rank", "#title": "title"},
    "ExpressionAttributeValues": {":new": {"S": "new"}, ":rank": {"N": "2"}},
}
# Every kind of write, each on a different item.
WRITES: list[tuple[str, dict[str, Any]]] = [
    ("PutItem", {"TableName": TABLE, "Item": item("made", "new")}),
    ("PutItem", {"TableName": TABLE, "Item": item("replaced", "new"), "ReturnValues": "ALL_OLD"}),
    ("UpdateItem", {"TableName": TABLE, "Key": key("updated"), **SET_NEW}),
    ("DeleteItem", {"TableName": TABLE, "Key": key("deleted")}),
    (
        "BatchWriteItem",
        {"RequestItems": {TABLE: [{"PutRequest": {"Item": item("batched", "new")}}]}},
    ),
]
# Writes whose answer would show an image that is not durable yet.
TELLTALES: list[tuple[str, dict[str, Any]]] = [
    (
        "PutItem",
        {
            "TableName": TABLE,
            "Item": item("made", "second"),
            "ConditionExpression": "attribute_not_exists(pk)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        },
    ),
    ("DeleteItem", {"TableName": TABLE, "Key": key("deleted"), "ReturnValues": "ALL_OLD"}),
]
FAILING: dict[str, Any] = {
    "TableName": TABLE,
    "Item": item("kept", "new"),
    "ConditionExpression": "attribute_not_exists(pk)",
    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
}


class Scene(NamedTuple):
    """A server with items, a connection for reads, and more for requests that block."""

    database: CrashingDatabase
    power: PowerLoss
    reader: Connection
    connections: list[Connection]

    def send(self, tasks: asyncio.TaskGroup, *requests: tuple[str, Any]) -> list[Answering]:
        """Send each request on its own connection, because answers may take long."""
        return [
            tasks.create_task(self.connections.pop().call(operation, body))
            for operation, body in requests
        ]


Answering = asyncio.Task[Answer]


@asynccontextmanager
async def scene(directory: Path) -> AsyncIterator[Scene]:
    database = CrashingDatabase(directory, Random(5), power=True)
    await database.make()
    power = database.power
    assert power is not None
    async with AsyncExitStack() as stack:
        server = stack.enter_context(database.running())
        reader, *connections = [
            await stack.enter_async_context(connected(server)) for _ in range(12)
        ]
        for old in OLD:
            answer = await reader.call("PutItem", {"TableName": TABLE, "Item": old})
            assert answer.status == 200, answer
        yield Scene(database, power, reader, connections)
        power.release_syncs()


async def everything_shown(reader: Connection) -> list[list[Item]]:
    """The results of every kind of read, each sorted by sort key."""
    views = []
    for consistent in (True, False):
        gets = []
        for sk in ("batched", "deleted", "kept", "made", "replaced", "updated"):
            body = {"TableName": TABLE, "Key": key(sk), "ConsistentRead": consistent}
            gets.append((await reader.call("GetItem", body)).body.get("Item"))
        views.append([each for each in gets if each is not None])
        keys = {"Keys": [key(sk) for sk in ("made", "replaced", "updated", "deleted", "batched")]}
        batch = {TABLE: {**keys, "ConsistentRead": consistent}}
        answer = await reader.call("BatchGetItem", {"RequestItems": batch})
        kept = [each for each in views[-1] if each["sk"]["S"] == "kept"]
        views.append(answer.body["Responses"][TABLE] + kept)
        for index in (None, *INDEX_NAMES):
            query: dict[str, Any] = {
                "TableName": TABLE,
                "KeyConditionExpression": "pk = :p",
                "ExpressionAttributeValues": {":p": {"S": "p"}},
                "ConsistentRead": consistent,
                "Select": "ALL_ATTRIBUTES",
            }
            if index is not None:
                query["IndexName"] = index
            views.append((await reader.call("Query", query)).body["Items"])
    views.append(await scan(reader, TABLE))
    views.append(await scan(reader, TABLE, "by_rank"))
    return [sorted(view, key=lambda each: each["sk"]["S"]) for view in views]


def assert_all(views: list[list[Item]], expected: list[Item]) -> None:
    for view in views:
        assert view == expected


async def test_no_write_is_answered_and_every_read_shows_the_old_value(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, asyncio.TaskGroup() as tasks:
        here.power.hold_syncs()
        writes = here.send(tasks, *WRITES)
        while not here.power.is_holding():
            assert_all(await everything_shown(here.reader), OLD)
        telltales = here.send(tasks, *TELLTALES)
        (failing,) = here.send(tasks, ("PutItem", FAILING))

        answered, _ = await asyncio.wait([*writes, *telltales, failing], timeout=TIMEOUT_SECONDS)

        assert answered <= {failing}, [task.result() for task in answered]
        assert_all(await everything_shown(here.reader), OLD)

        here.power.release_syncs()
        statuses = [(await write).status for write in writes]
        assert statuses == [200] * len(WRITES)
        refused, deleted = [await telltale for telltale in telltales]
        assert refused.error == "ConditionalCheckFailedException"
        assert refused.body["Item"] == item("made", "new")
        assert deleted.status == 200
        assert "Attributes" not in deleted.body
        failed = await failing
        assert failed.error == "ConditionalCheckFailedException"
        assert failed.body["Item"] == item("kept", "old")
        assert_all(await everything_shown(here.reader), NEW)


async def test_an_unsynced_write_was_never_shown(tmp_path: Path) -> None:
    """Syncs are blocked while clients write and others read; then the power is cut."""
    database = CrashingDatabase(tmp_path, Random(6), power=True)
    await database.make()
    power = database.power
    assert power is not None
    with database.running() as server:
        writers = Writers(database.history, Random(7))
        readers = Writers(database.history, Random(8), size=4, reads_only=True)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(writers.run(*address(server)))
            await writers.wait_answers(500)
            power.hold_syncs()
            tasks.create_task(readers.run(*address(server)))
            await readers.wait_answers(1_000)
            assert power.is_holding()
            server.kill()
    power.release_syncs()
    power.cut()

    assert await database.compare() == []


async def test_a_table_is_not_shown_before_it_is_durable(tmp_path: Path) -> None:
    async with scene(tmp_path) as here, asyncio.TaskGroup() as tasks:
        here.power.hold_syncs()
        body = {
            "TableName": "crash-new",
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        }
        (creating,) = here.send(tasks, ("CreateTable", body))
        while not here.power.is_holding():
            names = (await here.reader.call("ListTables", {})).body["TableNames"]
            assert names == ["crash-a", "crash-b"]
        answered, _ = await asyncio.wait([creating], timeout=TIMEOUT_SECONDS)

        assert not answered
        names = (await here.reader.call("ListTables", {})).body["TableNames"]
        assert names == ["crash-a", "crash-b"]

        here.power.release_syncs()
        assert (await creating).status == 200
        names = (await here.reader.call("ListTables", {})).body["TableNames"]
        assert names == ["crash-a", "crash-b", "crash-new"]
