"""Eventually consistent reads from a hot standby, which lags, dies, hangs and comes back."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import pytest
import structlog

from dynactor.storage.store import Group, Store, View
from dynactor.storage.store_figures import ReadStoreFigures
from tests.support.databases.databases import running_database
from tests.support.servers.in_process import InProcessClient
from tests.support.servers.postgresql import Pair, Postgresql, running_pair
from tests.support.stores.store import postgresql_store

Read: TypeAlias = tuple[str, dict[str, Any]]

HEAD = b"\x02head"
ROW = b"\x03row"


@pytest.fixture(scope="module")
def servers() -> Iterator[Pair]:
    with running_pair() as pair:
        # The primary does not wait for a standby that a test stops.
        pair.primary.sql("ALTER SYSTEM SET synchronous_standby_names = ''")
        pair.primary.sql("SELECT pg_reload_conf()")
        yield pair


def urls(servers: Pair, schema: str) -> tuple[str, str]:
    return url(servers.primary, schema), url(servers.standby, schema)


def url(server: Postgresql, schema: str) -> str:
    return f"postgresql://postgres@127.0.0.1:{server.port}/postgres?schema={schema}"


@asynccontextmanager
async def reading(servers: Pair, schema: str) -> AsyncIterator[Store]:
    """A store whose standby is used, with a row that the standby has."""
    async with postgresql_store(*urls(servers, schema)) as store:
        await until(lambda: figures(store).is_used)
        await (await store.commit([Group(HEAD, None, b"1", puts=[(ROW, b"1")])]))
        await until_shown(store, b"1")
        yield store


def figures(store: Store) -> ReadStoreFigures:
    found = store.figures().read_store
    assert found is not None
    return found


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_so():
            await asyncio.sleep(0.01)


async def until_shown(store: Store, value: bytes) -> None:
    async with asyncio.timeout(60):
        while await store.eventual().load([ROW]) != [value]:
            await asyncio.sleep(0.01)


async def test_only_eventually_consistent_reads_go_to_the_standby(servers: Pair) -> None:
    async with (
        postgresql_store(*urls(servers, "reads")) as store,
        running_database(store) as database,
    ):
        await until(lambda: figures(store).is_used)
        asked = InProcessClient(database)
        await make_table(asked)
        await asked("PutItem", {"TableName": "Music", "Item": item("old")})
        for read in READS:
            await until_titled(asked, read, "old")
        servers.standby.sql("SELECT pg_wal_replay_pause()")
        try:
            await asked("PutItem", {"TableName": "Music", "Item": item("new")})
            for read in READS:
                assert await titles(asked, read, consistent=False) == ["old"]
                if "IndexName" not in read[1]:
                    assert await titles(asked, read, consistent=True) == ["new"]
            _, body = await asked(
                "TransactGetItems", {"TransactItems": [{"Get": {"TableName": "Music", "Key": KEY}}]}
            )
            assert body["Responses"][0]["Item"]["Title"] == {"S": "new"}
        finally:
            servers.standby.sql("SELECT pg_wal_replay_resume()")
        for read in READS:
            await until_titled(asked, read, "new")
        assert figures(store).is_used


KEY = {"Id": {"S": "1"}}
OF_KEY = {"KeyConditionExpression": "Id = :id", "ExpressionAttributeValues": {":id": {"S": "1"}}}
READS: list[Read] = [
    ("GetItem", {"TableName": "Music", "Key": KEY}),
    ("Query", {"TableName": "Music", **OF_KEY}),
    ("Query", {"TableName": "Music", "IndexName": "Again", **OF_KEY}),
    ("Scan", {"TableName": "Music"}),
    ("BatchGetItem", {"RequestItems": {"Music": {"Keys": [KEY]}}}),
]


def item(title: str) -> dict[str, Any]:
    return {**KEY, "Title": {"S": title}}


async def make_table(asked: InProcessClient) -> None:
    schema = [{"AttributeName": "Id", "KeyType": "HASH"}]
    index = {
        "IndexName": "Again",
        "KeySchema": schema,
        "Projection": {"ProjectionType": "ALL"},
    }
    status, body = await asked(
        "CreateTable",
        {
            "TableName": "Music",
            "AttributeDefinitions": [{"AttributeName": "Id", "AttributeType": "S"}],
            "KeySchema": schema,
            "BillingMode": "PAY_PER_REQUEST",
            "GlobalSecondaryIndexes": [index],
        },
    )
    assert status == 200, body


async def titles(asked: InProcessClient, read: Read, *, consistent: bool) -> list[str]:
    operation, request = read
    if operation == "BatchGetItem":
        of_table = {**request["RequestItems"]["Music"], "ConsistentRead": consistent}
        request = {"RequestItems": {"Music": of_table}}
    else:
        request = {**request, "ConsistentRead": consistent}
    status, body = await asked(operation, request)
    assert status == 200, body
    found = body.get("Items") or body.get("Responses", {}).get("Music") or [body.get("Item")]
    return [each["Title"]["S"] for each in found if each]


async def until_titled(asked: InProcessClient, read: Read, title: str) -> None:
    async with asyncio.timeout(60):
        while await titles(asked, read, consistent=False) != [title]:
            await asyncio.sleep(0.01)


READ_CALLS: list[Callable[[Store], Awaitable[Any]]] = [
    lambda store: store.eventual().load([ROW]),
    lambda store: store.eventual().page(b"\x03", b"\x04", max_rows=9, max_bytes=99),
    lambda store: store.eventual().load_with_page(
        [HEAD], b"\x03", b"\x04", max_rows=9, max_bytes=99
    ),
    lambda store: store.in_snapshot(twice, calls_once=True, eventual=True),
    lambda store: store.in_snapshot(twice, calls_once=False, eventual=True),
]


async def twice(view: View) -> list[bytes | None]:
    return [*await view.load([ROW]), *await view.load([HEAD])]


@pytest.mark.parametrize("fault", ["kill", "pause"])
async def test_the_primary_answers_while_the_standby_does_not(servers: Pair, fault: str) -> None:
    async with reading(servers, f"fault_{fault}") as store:
        expected = [await read(store) for read in READ_CALLS]
        assert figures(store) == ReadStoreFigures(is_used=True, fallbacks=figures(store).fallbacks)
        before = figures(store).fallbacks
        with structlog.testing.capture_logs() as logs:
            servers.standby.kill() if fault == "kill" else servers.standby.pause()
            for _ in range(3):
                many = await asyncio.gather(*(read(store) for read in READ_CALLS * 20))
                assert many == expected * 20
            assert not figures(store).is_used
            assert figures(store).fallbacks >= before + 200
            servers.standby.start() if fault == "kill" else servers.standby.resume()
            await until(lambda: figures(store).is_used)
        events = [line["event"] for line in logs if line["event"].startswith("read_store")]
        assert events == ["read_store_bypassed", "read_store_used"]
        assert [await read(store) for read in READ_CALLS] == expected


async def test_a_standby_that_lags_behind_the_start_is_not_used(servers: Pair) -> None:
    schema = "late"
    async with reading(servers, schema):
        pass
    servers.standby.sql("SELECT pg_wal_replay_pause()")
    try:
        async with postgresql_store(*urls(servers, schema)) as store:
            await (await store.commit([Group(HEAD, b"1", b"2", puts=[(ROW, b"2")])]))
            assert await store.eventual().load([ROW]) == [b"2"]
            assert figures(store) == ReadStoreFigures(is_used=False, fallbacks=1)
            servers.standby.sql("SELECT pg_wal_replay_resume()")
            await until(lambda: figures(store).is_used)
    finally:
        servers.standby.sql("SELECT pg_wal_replay_resume()")


async def test_a_server_starts_without_its_standby(servers: Pair) -> None:
    primary, standby = urls(servers, "alone")
    servers.standby.stop(signal.SIGINT)
    try:
        async with postgresql_store(primary, standby) as store:
            await (await store.commit([Group(HEAD, None, b"1", puts=[(ROW, b"1")])]))
            assert await store.eventual().load([ROW]) == [b"1"]
    finally:
        servers.standby.start()
