"""Clients that disconnect at random moments cause no partial write and no leak."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
import structlog

from dynactor.actors.database.database import Database
from dynactor.actors.feeds.index_lag import IndexLag
from dynactor.actors.partition.participant import Participant
from dynactor.actors.partition.table_core import TableCore
from dynactor.actors.partition.table_partition import TableEffects
from dynactor.actors.table.table import Table
from dynactor.api.admin_port.listener import Administered, serving_admin
from dynactor.api.http.aiohttp_lane import full_server
from dynactor.api.http.body_memory import RequestMemory
from dynactor.api.http.browser_access import Access
from dynactor.api.http.fast_lane import FastLanes
from dynactor.api.http.pipelining import Turns
from dynactor.api.http.protocol import Protocol
from dynactor.api.http.server import listen, url
from dynactor.api.http.settings import HttpSettings
from dynactor.api.registry import NOT_IMPLEMENTED, OPERATIONS
from dynactor.model.limits import KIB
from dynactor.storage.directory_backups import Backups
from dynactor.storage.store import Store
from tests.support.clients.raw_http import TO_FULL_LANE, raw_connection
from tests.support.clients.vanishing_clients import (
    INDEXES,
    TABLES,
    ClientLog,
    VanishingClient,
    table_definitions,
)
from tests.support.databases.databases import running_database
from tests.support.databases.splitting import splitting
from tests.support.servers.in_process import InProcessClient
from tests.support.stores.history_store import DelayedStore, Delays
from tests.support.stores.store import memory_store

CLIENTS = 24
REQUESTS = 20
STOPS = 5
TURNS_OF_AN_ACCEPT = 8
PARTITIONS = 7
DEADLINE_SECONDS = 60
MOST_DELAY_SECONDS = 0.02


class Served:
    """A server in the test's own process, and the objects that it keeps for clients."""

    def __init__(self, database: Database, settings: HttpSettings, admin_endpoint: str) -> None:
        self.admin_endpoint = admin_endpoint
        self.protocol = Protocol(database, OPERATIONS.values(), NOT_IMPLEMENTED)
        self.memory = RequestMemory(
            settings.large_requests_bytes,
            grace_seconds=settings.grace_seconds,
            least_bytes_per_second=settings.least_bytes_per_second,
        )
        turns = Turns()
        self.full = full_server(self.protocol, settings, self.memory, turns)
        self.lanes = FastLanes(self.protocol, settings, self.full, self.memory, turns)
        self.endpoint = ""

    def in_progress(self) -> dict[str, Any]:
        """The objects that the server keeps for connected and disconnected clients."""
        return {
            "tasks": [task for task in asyncio.all_tasks() if _is_of_connection(task)],
            "connections": self.lanes._connections,
            "connections in the full lane": self.full.connections,
            "reserved bytes": self.memory._taken_bytes,
            "requests with a reservation": self.memory._granted,
            "requests that wait for memory": self.memory._waiting,
        }


def _is_of_connection(task: asyncio.Task[Any]) -> bool:
    return task.get_name().endswith("FastLanes._serve") or "RequestHandler" in repr(task.get_coro())


@asynccontextmanager
async def serving(database: Database, admin_endpoint: str) -> AsyncIterator[Served]:
    """Serve the database with memory for a few large requests."""
    settings = HttpSettings(
        "local", large_requests_bytes=256 * KIB, transfer_seconds=20, drain_seconds=0.01
    )
    served = Served(database, settings, admin_endpoint)
    with listen("127.0.0.1", 0) as listener:
        served.endpoint = url(listener)
        async with served.lanes as lanes:
            server = await asyncio.get_running_loop().create_server(lanes.connection, sock=listener)
            try:
                yield served
            finally:
                server.close()
                lanes.end()
                served.full.pre_shutdown()
                await served.full.shutdown(settings.drain_seconds)


def held(database: Database) -> dict[str, Any]:
    """The objects that actors keep for requests."""
    transactions = database.transactions
    found: dict[str, Any] = {
        "items being written": transactions._writing,
        "claimed items": transactions._claimed,
        "tokens": transactions.tokens._running,
        "transactions that are ready": transactions._rounds._ready,
        "leader": transactions._rounds._leader,
        "preparing": transactions._rounds.preparing,
    }
    for table in database.tables:
        name = table.definition.name
        found |= {f"split of {each} of {name}": True for each in table.partitions._splitting}
        for partition in table.partitions._actors.values():
            core, effects, participant = partition._core, partition._effects, partition._committer
            assert isinstance(core, TableCore)
            assert isinstance(effects, TableEffects)
            assert isinstance(participant, Participant)
            charges = effects._charges
            place = f"of {partition.name} of {name}"
            found |= {
                f"messages {place}": len(partition.mailbox) + len(partition.in_progress),
                f"commit {place}": _is_under_way(partition._last_commit),
                f"held positions {place}": core.locks.positions,
                f"paid {place}": charges._in_progress or charges._prepared,
                f"round {place}": participant._joining,
            }
    return found


def _is_under_way(commit: asyncio.Future[None] | None) -> bool:
    return commit is not None and not commit.done()


async def assert_nothing_is_left(database: Database, served: Served) -> None:
    """Wait until no object is kept for a client; the last tasks take some turns of the loop."""

    def left() -> dict[str, Any]:
        return {what: of for what, of in (held(database) | served.in_progress()).items() if of}

    try:
        async with asyncio.timeout(DEADLINE_SECONDS / 4):
            while left():
                await asyncio.sleep(0)
    except TimeoutError:
        assert left() == {}


@asynccontextmanager
async def slow_database(real: Store, seed: int) -> AsyncIterator[tuple[Store, Database]]:
    """A database with a slow store, so that requests are always in flight."""
    store = DelayedStore(real, Delays(seed, MOST_DELAY_SECONDS))
    between_steps = IndexLag(0, MOST_DELAY_SECONDS, seed)
    async with running_database(store, transaction_delay=between_steps) as database:
        yield store, database


class Clients:
    """Runs all clients on a server."""

    def __init__(self, served: Served, iterators: list[str], log: ClientLog, draw: Random) -> None:
        self._clients = [
            VanishingClient(
                f"{draw.random()}",
                served.endpoint,
                served.admin_endpoint,
                iterators,
                log=log,
                draw=Random(draw.random()),
            )
            for _ in range(CLIENTS)
        ]

    async def run(self, requests: int) -> None:
        async with asyncio.TaskGroup() as group:
            for client in self._clients:
                group.create_task(client.run(requests))


async def make_tables(ask: InProcessClient) -> list[str]:
    """Create the tables; return iterators of their streams."""
    iterators = []
    for definition in table_definitions():
        status, body = await ask("CreateTable", definition)
        assert status == 200, body
        arn = body["TableDescription"]["LatestStreamArn"]
        streams = InProcessClient(ask.database, "DynamoDBStreams")
        _, described = await streams("DescribeStream", {"StreamArn": arn})
        for shard in described["StreamDescription"]["Shards"]:
            wanted = {"StreamArn": arn, "ShardId": shard["ShardId"]}
            _, body = await streams(
                "GetShardIterator", wanted | {"ShardIteratorType": "TRIM_HORIZON"}
            )
            iterators.append(body["ShardIterator"])
    return iterators


async def rows(ask: InProcessClient, **members: Any) -> list[dict[str, Any]]:
    """All rows of a table or index, by key."""
    found: list[dict[str, Any]] = []
    more: dict[str, Any] = {}
    while True:
        status, body = await ask("Scan", members | more)
        assert status == 200, body
        found += body["Items"]
        if "LastEvaluatedKey" not in body:
            return sorted(found, key=lambda item: str(item["pk"]["S"]))
        more = {"ExclusiveStartKey": body["LastEvaluatedKey"]}


async def assert_all_is_whole(database: Database, log: ClientLog) -> None:
    """Check that every acknowledged write exists, and that there is no partial or unsent write."""
    ask = InProcessClient(database)
    there = set()
    for name in TABLES:
        items = await rows(ask, TableName=name, ConsistentRead=True)
        there |= {(name, item["pk"]["S"]) for item in items}
        await caught_up(database.table(name))
        for index in INDEXES:
            assert await rows(ask, TableName=name, IndexName=index) == items
    assert log.answered <= there <= log.tried
    for written in log.transactions:
        assert len(there.intersection(written)) in (0, len(written))


async def caught_up(table: Table) -> None:
    for actors in table.followers.indexes.values():
        await actors.wait_caught_up()


async def assert_it_answers(served: Served) -> None:
    async with raw_connection(served.endpoint) as connection:
        assert (await connection.ask("ListTables")).status == 200
        assert (await connection.ask("ListTables", b"{}", TO_FULL_LANE)).status == 200


def assert_backups_are_whole(directory: Path, log: ClientLog) -> None:
    made = {each.name for each in directory.iterdir() if each.name != ".lock"}
    assert made.issuperset(log.backups)
    assert all((directory / name / "rocksdb").is_dir() for name in made)


class ServedDatabase(NamedTuple):
    """A slow database with followers, its store, and the log of the clients."""

    database: Database
    admin_endpoint: str
    iterators: list[str]
    log: ClientLog
    draw: Random

    def clients(self, served: Served) -> Clients:
        return Clients(served, self.iterators, self.log, self.draw)


@asynccontextmanager
async def served_database(directory: Path, seed: int) -> AsyncIterator[ServedDatabase]:
    """Open the database and split partitions; at the end check all data and the server's log."""
    draw, log = Random(seed), ClientLog()
    unseen: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
    with structlog.testing.capture_logs() as logs:
        async with (
            asyncio.timeout(DEADLINE_SECONDS),
            memory_store() as real,
            slow_database(real, seed) as (store, database),
        ):
            iterators = await make_tables(InProcessClient(database))
            protocol = Protocol(database, ())
            administered = Administered(store.figures, protocol, Backups(store, directory))
            with listen("127.0.0.1", 0) as listener:
                async with (
                    serving_admin(administered, Access(), listener) as admin,
                    splitting(database, database.table(TABLES[0]), PARTITIONS),
                ):
                    yield ServedDatabase(database, admin, iterators, log, draw)
            await assert_all_is_whole(database, log)
            assert_backups_are_whole(directory, log)
            assert log.vanished > CLIENTS
    gc.collect()
    assert unseen == []
    assert [entry for entry in logs if entry["log_level"] not in ("info", "debug")] == []


@pytest.mark.parametrize("seed", range(2))
async def test_disconnected_clients_leave_no_partial_writes_and_no_objects(
    tmp_path: Path, seed: int
):
    async with served_database(tmp_path, seed) as given, serving(*given[:2]) as served:
        await given.clients(served).run(REQUESTS)
        await assert_nothing_is_left(given.database, served)
        await assert_it_answers(served)


@pytest.mark.parametrize("seed", range(2))
async def test_requests_canceled_by_the_stop_of_the_server_leave_no_partial_writes_and_no_objects(
    tmp_path: Path, seed: int
):
    async with served_database(tmp_path, seed) as given:
        for _ in range(STOPS):
            async with asyncio.TaskGroup() as group, serving(*given[:2]) as served:
                given.log.may_connect = True
                group.create_task(given.clients(served).run(REQUESTS))
                await given.log.more_answers(given.draw.randrange(1, CLIENTS * 2))
                given.log.may_connect = False
                for _ in range(TURNS_OF_AN_ACCEPT):
                    await asyncio.sleep(0)
            await assert_nothing_is_left(given.database, served)
        async with serving(*given[:2]) as served:
            await assert_it_answers(served)
