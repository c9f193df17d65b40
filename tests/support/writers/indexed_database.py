"""The writers' tables with global indexes and streams, compared with their expected content."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, NamedTuple

from tests.support.clients.wire import Connection, ConnectionLost
from tests.support.histories.history import Done, History, Item, Put, State, index_violations
from tests.support.servers.server import PROJECT, Server, running_server
from tests.support.streams.stream_walk import Ledger, walk
from tests.support.writers.crashes import CrashingDatabase, address, connected
from tests.support.writers.whole_database import scan, violations
from tests.support.writers.writers import PROJECTIONS, TABLES, Place, Writers, create_table

# An index that needs longer than this to apply all changes is stuck.
_CATCH_UP_SECONDS = 30.0
_POLL_SECONDS = 0.01
_BATCH_ITEMS = 25


class GlobalIndex(NamedTuple):
    """A global index as DescribeTable shows it."""

    name: str
    keys: tuple[tuple[str, str], ...]
    projection: dict[str, Any]
    item_count: int
    status: str

    def project(self, item: Item) -> State:
        """The entry of an item in the index by DynamoDB's rules; None without an entry."""
        for name, kind in self.keys:
            if kind not in item.get(name, {}) or item[name][kind] == "":
                return None
        if self.projection["ProjectionType"] == "ALL":
            return item
        held = {name for name, _ in self.keys} | set(self.projection.get("NonKeyAttributes", ()))
        return {name: value for name, value in item.items() if name in held | {"pk", "sk"}}


TYPES = {
    "pk": "S",
    "sk": "S",
    "rank": "N",
    "title": "S",
    "token": "S",
    "n": "N",
    "mixed": "S",
}


def global_index(
    name: str, hashes: tuple[str, ...], ranges: tuple[str, ...], projection: str, *include: str
) -> dict[str, Any]:
    """An index's definition for CreateTable and UpdateTable."""
    held: dict[str, Any] = {"ProjectionType": projection}
    if include:
        held["NonKeyAttributes"] = list(include)
    schema = [{"AttributeName": each, "KeyType": "HASH"} for each in hashes]
    schema += [{"AttributeName": each, "KeyType": "RANGE"} for each in ranges]
    return {"IndexName": name, "KeySchema": schema, "Projection": held}


FIRST_INDEXES: dict[str, list[dict[str, Any]]] = {
    "crash-a": [
        global_index("of_rank", ("rank",), (), "INCLUDE", "token", "n"),
        global_index("of_title", ("title",), ("rank",), "KEYS_ONLY"),
        global_index("of_place", ("sk",), ("token",), "ALL"),
    ],
    "crash-b": [
        global_index("of_title_and_rank", ("title", "rank"), ("n", "token"), "ALL"),
        global_index("of_token", ("token",), (), "KEYS_ONLY"),
    ],
}
# These are added and deleted while clients write.
TEMPORARY_INDEXES = [
    global_index("added_of_title", ("title",), ("token",), "ALL"),
    global_index("added_of_mixed", ("mixed",), ("rank",), "INCLUDE", "n"),
    global_index("added_of_rank", ("rank", "title"), (), "KEYS_ONLY"),
]


def definitions(indexes: list[dict[str, Any]]) -> list[dict[str, str]]:
    """AttributeDefinitions of these indexes and the tables' local indexes."""
    used = {key["AttributeName"] for index in indexes for key in index["KeySchema"]}
    names = used | {"pk", "sk", "rank", "title"}
    return [
        {"AttributeName": name, "AttributeType": kind}
        for name, kind in TYPES.items()
        if name in names
    ]


async def make_indexed_tables(connection: Connection) -> None:
    """Create the writers' tables, with global indexes and streams of both images."""
    for table in TABLES:
        body = create_table(table) | {
            "AttributeDefinitions": definitions(FIRST_INDEXES[table]),
            "GlobalSecondaryIndexes": FIRST_INDEXES[table],
            "StreamSpecification": {
                "StreamEnabled": True,
                "StreamViewType": "NEW_AND_OLD_IMAGES",
            },
        }
        answer = await connection.call("CreateTable", body)
        assert answer.status == 200, answer
    for table in TABLES:
        while (await _described(connection, table))["TableStatus"] != "ACTIVE":
            await asyncio.sleep(_POLL_SECONDS)


async def fill(connection: Connection, history: History, count: int, draw: Random) -> None:
    """Put items that writers never change, so that a backfill takes time.

    In a third of them, the attribute ``mixed`` is a valid key of type S.
    """
    for table in TABLES:
        for start in range(0, count, _BATCH_ITEMS):
            items = [_filler(number, draw) for number in range(start, start + _BATCH_ITEMS)]
            operations = [
                history.invoke("filler", Place(table, item["pk"]["S"], item["sk"]["S"]).name, put)
                for item in items
                for put in (Put(item),)
            ]
            body = {"RequestItems": {table: [{"PutRequest": {"Item": item}} for item in items]}}
            answer = await connection.call("BatchWriteItem", body)
            assert answer.status == 200, answer
            assert not answer.body["UnprocessedItems"], "it waits for each answer"
            for operation in operations:
                history.answer(operation, Done())


def _filler(number: int, draw: Random) -> Item:
    mixed: list[dict[str, Any]] = [
        {"S": f"m{number % 7}"},
        {"N": str(number)},
        {"S": ""},
        {"S": "m"},
        {"L": []},
        {"BOOL": True},
    ]
    return {
        **Place("", f"filler{number % 50}", f"{number}").key,
        "token": {"S": f"filler{number}"},
        "rank": {"N": str(draw.randrange(50))},
        "title": {"S": draw.choice(("Aurora", "Borealis"))},
        "mixed": draw.choice(mixed),
    }


class ServerFault(Exception):
    """The server answered with 500, because its store can't be used at this moment."""


async def _described(connection: Connection, table: str) -> dict[str, Any]:
    answer = await connection.call("DescribeTable", {"TableName": table})
    if answer.status == 500:
        raise ServerFault(answer)
    assert answer.status == 200, answer
    described: dict[str, Any] = answer.body["Table"]
    return described


async def global_indexes(connection: Connection, table: str) -> list[GlobalIndex]:
    """The global indexes of a table."""
    described = await _described(connection, table)
    return [
        GlobalIndex(
            index["IndexName"],
            tuple(
                (key["AttributeName"], TYPES[key["AttributeName"]]) for key in index["KeySchema"]
            ),
            index["Projection"],
            index["ItemCount"],
            index["IndexStatus"],
        )
        for index in described.get("GlobalSecondaryIndexes", ())
    ]


async def _index_faults(connection: Connection, table: str, items: list[Item]) -> list[str]:
    found: list[str] = []
    for index in await global_indexes(connection, table):
        if index.status != "ACTIVE":
            found.append(f"{table}/{index.name} is {index.status}")
            continue
        rows = await scan(connection, table, index.name, consistent=False)
        found += index_violations(f"{table}/{index.name}", items, rows, index.project)
        if index.item_count != len(rows):
            found.append(f"{table}/{index.name} counts {index.item_count} entries of {len(rows)}")
    return found


async def global_index_violations(
    connection: Connection, timeout_seconds: float = _CATCH_UP_SECONDS
) -> list[str]:
    """The differences between each global index and one computed from the table's items.

    No client may write meanwhile. Global indexes apply changes with a delay, so only differences
    that remain after ``timeout_seconds`` are returned.
    """
    found: list[str] = []
    for table in TABLES:
        items = await scan(connection, table)
        deadline = monotonic() + timeout_seconds
        while faults := await _index_faults(connection, table, items):
            if monotonic() > deadline:
                found += faults
                break
            await asyncio.sleep(_POLL_SECONDS)
    return found


class Comparison:
    """Compares tables, indexes and streams with the history, again after every restart."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._ledgers = {table: Ledger(PROJECTIONS) for table in TABLES}

    async def violations(
        self, connection: Connection, timeout_seconds: float = _CATCH_UP_SECONDS
    ) -> list[str]:
        """The differences; the history then restarts from the present items.

        No client may write.
        """
        initial, operations = self.history.initial, self.history.operations
        found = await violations(connection, self.history)
        for table, ledger in self._ledgers.items():
            arn = (await _described(connection, table))["LatestStreamArn"]
            records = await walk(
                connection,
                arn,
                lambda key, table=table: Place(table, key["pk"]["S"], key["sk"]["S"]).name,  # type: ignore[misc]
            )
            of_table = f"{table}/"
            found += ledger.violations(
                records,
                initial,
                {name: each for name, each in operations.items() if name.startswith(of_table)},
                {
                    name: item
                    for name, item in self.history.initial.items()
                    if name.startswith(of_table) and item is not None
                },
            )
        return found + await global_index_violations(connection, timeout_seconds)


class IndexMaker:
    """One client that adds indexes and deletes them, sometimes during their backfill.

    With ``keep_indexes`` it never deletes one.
    """

    def __init__(self, connection: Connection, draw: Random, *, keep_indexes: bool = False) -> None:
        self.stopping = False
        self.added = 0
        self._connection = connection
        self._keep_indexes = keep_indexes
        self._draw = Random(draw.random())
        self._filling = asyncio.Event()

    async def run(self) -> None:
        """Add and delete indexes until the server has ended or ``stopping`` is set."""
        try:
            while not self.stopping:
                try:
                    await self._step(self._draw.choice(TABLES))
                except ServerFault:
                    await asyncio.sleep(_POLL_SECONDS)
        except ConnectionLost:
            self._filling.set()

    async def wait_filling(self) -> None:
        """Wait until the backfill of an index starts."""
        self._filling.clear()
        await self._filling.wait()

    async def _step(self, table: str) -> None:
        passing = [
            index.name
            for index in await global_indexes(self._connection, table)
            if index.name.startswith("added")
        ]
        if passing and not self._keep_indexes:
            name = self._draw.choice(passing)
            await self._update(table, {"Delete": {"IndexName": name}})
            while name in [each.name for each in await global_indexes(self._connection, table)]:
                await asyncio.sleep(_POLL_SECONDS)
            return
        index = self._draw.choice(TEMPORARY_INDEXES)
        if index["IndexName"] in passing:
            await asyncio.sleep(_POLL_SECONDS)
        elif await self._update(table, {"Create": index}):
            self.added += 1
            await self._watch(
                table, index["IndexName"], patient=self._keep_indexes or self._draw.random() < 0.7
            )

    async def _update(self, table: str, change: dict[str, Any]) -> bool:
        body: dict[str, Any] = {"TableName": table, "GlobalSecondaryIndexUpdates": [change]}
        if "Create" in change:
            body["AttributeDefinitions"] = definitions([*FIRST_INDEXES[table], change["Create"]])
        answer = await self._connection.call("UpdateTable", body)
        if answer.status == 500:
            raise ServerFault(answer)
        assert answer.status == 200 or answer.error in (
            "ResourceInUseException",
            "LimitExceededException",
        ), answer
        return answer.status == 200

    async def _watch(self, table: str, name: str, *, patient: bool) -> None:
        """Wait until the index is ACTIVE, or without ``patient`` until its backfill starts."""
        while not self.stopping:
            described = await _described(self._connection, table)
            for index in described["GlobalSecondaryIndexes"]:
                if index["IndexName"] != name:
                    continue
                if index["IndexStatus"] == "ACTIVE":
                    return
                if index.get("Backfilling"):
                    self._filling.set()
                    if not patient:
                        return
            await asyncio.sleep(_POLL_SECONDS)


class IndexedDatabase(CrashingDatabase):
    """One data directory with the indexed tables, over many crashes."""

    def __init__(
        self,
        directory: Path,
        draw: Random,
        *options: str,
        power: bool = False,
        project: Path = PROJECT,
    ) -> None:
        super().__init__(directory, draw, power=power, project=project)
        self.answers = 0
        self.added_indexes = 0
        self._options = options
        self._comparison = Comparison(self.history)

    @contextmanager
    def running(self, **changed: str) -> Iterator[Server]:
        """Run a server on the data directory, with some options changed; kill it at the end."""
        options = list(self._options)
        for name, value in changed.items():
            options[options.index(f"--{name.replace('_', '-')}") + 1] = value
        with running_server(
            *options,
            data_dir=self.data_directory,
            environment=self._environment(),
            project=self._project,
        ) as server:
            yield server

    async def make_filled(self, count: int) -> None:
        """Start a server for the first time, create the tables, put ``count`` items, stop."""
        with self.running() as server:
            async with connected(server) as connection:
                await make_indexed_tables(connection)
                await fill(connection, self.history, count, self._draw)
            assert server.stop() == 0, server.log

    async def round(self, most_answers: int = 2_000) -> list[str]:
        """Start a server, compare its data, write, kill it at random; return the differences.

        Half of the kills happen during the backfill of an index.
        """
        with self.running() as server:
            async with connected(server) as connection, connected(server) as making:
                found = await self._comparison.violations(connection)
                writers = Writers(self.history, self._draw)
                maker = IndexMaker(making, self._draw)
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(writers.run(*address(server)))
                    tasks.create_task(maker.run())
                    await writers.wait_answers(self._draw.randrange(1, most_answers))
                    if self._draw.random() < 0.5:
                        await maker.wait_filling()
                        await writers.wait_answers(writers.answers + self._draw.randrange(1, 100))
                    server.kill()
                assert "error" not in server.log, server.log
                self.answers += writers.answers
                self.added_indexes += maker.added
        return found

    async def violations(self, connection: Connection) -> list[str]:
        """The differences between a server's data and the history.

        No client may write meanwhile.
        """
        return await self._comparison.violations(connection)

    async def compare_all(self) -> list[str]:
        """Start a server, compare its data with the history, stop."""
        with self.running() as server:
            async with connected(server) as connection:
                found = await self._comparison.violations(connection)
            assert server.stop() == 0, server.log
        return found
