"""A database whose items expire, killed many times, and the answers to its clients."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from random import Random
from typing import Any

from dynactor.actors.derived.expiry.time_to_live_settings import TimeToLiveSettings
from dynactor.actors.table.pages import ReadRange, read_page
from dynactor.actors.table.table import Table
from dynactor.model.definitions.index import IndexDefinition
from dynactor.model.key_conditions import key_range
from dynactor.model.reads.page import PageRules
from dynactor.model.values import item as items
from dynactor.model.writes.expiry import is_expired
from dynactor.storage import key_layout
from dynactor.storage.store import Store
from tests.support.clients.wire import Connection, ConnectionLost
from tests.support.databases.databases import SetClock, running_database
from tests.support.databases.expiry import listed, rebuilt, rows_of, until_listed, until_status
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.servers.admin import ClockNotMoved, ServerClock, server_with_clock
from tests.support.servers.server import Server
from tests.support.stores.store import kept_store
from tests.support.tables.index_lag import index_lag_records
from tests.support.tables.tables import definition, global_index, local_index
from tests.support.writers.crashes import connected
from tests.support.writers.whole_database import scan
from tests.support.writers.writers import is_refused

Item = dict[str, Any]

TABLE = "expiring"
START = 1_700_000_000
WRITERS = 16
_OWN_ITEMS = 12
_FILLERS = 2_500
_BATCH_ITEMS = 25
OPTIONS = (
    *("--ttl-delay-seconds", "0", "--ttl-change-interval-seconds", "0"),
    *("--ttl-deletes-per-second", "2000", "--ttl-transition-seconds", "0.2"),
    *("--keep-streams-seconds", "0.5"),
)
_SETTINGS = TimeToLiveSettings(delay_seconds=0.0, deletes_per_second=100_000.0)


class ExpiringDatabase:
    """One data directory.

    Invariant: each key has one of its states in ``possible``, where None is a missing item, or its
    item had one of these states and has expired since.
    """

    def __init__(self, directory: Path, draw: Random) -> None:
        self.possible: defaultdict[str, list[Item | None]] = defaultdict(lambda: [None])
        # The coverage of the test: the number of items that time to live deleted, and how often the
        # server was killed in each status of time to live.
        self.deleted = 0
        self.statuses: Counter[str] = Counter()
        # The number of the table's partitions at the last call of ``verify``.
        self.partitions = 0
        self._directory = directory
        self._draw = draw
        self._answers = 0
        self._goal = 0
        self._reached = asyncio.Event()
        self.stopping = False

    async def make(self) -> None:
        """Start for the first time, create the table, stop."""
        with server_with_clock(START, *OPTIONS, data_dir=self._directory) as (server, _):
            async with connected(server) as connection:
                await self.make_table(connection)
            assert server.stop() == 0, server.log

    async def make_table(self, connection: Connection) -> None:
        """Create the table and fill it."""
        request = definition(
            "pk:S",
            "sk:S",
            "at:N",
            "owner:S",
            name=TABLE,
            indexes=(local_index("by_at", "pk", "at"),),
            GlobalSecondaryIndexes=[global_index("of_owner", "owner", "at")],
        )
        answer = await connection.call("CreateTable", request)
        assert answer.status == 200, answer
        for first in range(0, _FILLERS, _BATCH_ITEMS):
            await self._fill(connection, range(first, first + _BATCH_ITEMS))

    async def _fill(self, connection: Connection, numbers: range) -> None:
        """Put items that never change, so that the first scan takes time."""
        fillers: list[Item] = [
            {
                "pk": {"S": f"filler{number}"},
                "sk": {"S": "only"},
                "at": {"N": f"{START * 2 + number}.5"},
                "owner": {"S": "nobody"},
            }
            for number in numbers
        ]
        requests = {TABLE: [{"PutRequest": {"Item": item}} for item in fillers]}
        answer = await connection.call("BatchWriteItem", {"RequestItems": requests})
        assert answer.body["UnprocessedItems"] == {}, answer
        for item in fillers:
            self.possible[item["pk"]["S"]] = [item]

    async def kill(self, most_answers: int, *options: str) -> None:
        """Write, enable and disable time to live, advance the clock; kill at a random moment."""
        options = (*OPTIONS, *options)
        with server_with_clock(START, *options, data_dir=self._directory) as (server, clock):
            self._answers, self._goal = 0, self._draw.randrange(20, most_answers)
            self._reached.clear()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.run(server, clock))
                await self._reached.wait()
                server.kill()

    async def run(self, server: Server, clock: ServerClock) -> None:
        """Write, switch and move the clock until the server has ended or ``stopping`` is set."""
        self.stopping = False
        async with asyncio.TaskGroup() as tasks:
            for number in range(WRITERS):
                tasks.create_task(self._write(server, number))
            tasks.create_task(self._switch(server))
            tasks.create_task(self._move(clock))

    async def _write(self, server: Server, number: int) -> None:
        draw = Random(self._draw.random())
        with suppress(ConnectionLost):
            async with connected(server) as connection:
                while not self.stopping:
                    await self._write_one(connection, draw, number)
                    self._answers += 1
                    if self._answers >= self._goal:
                        self._reached.set()

    async def _write_one(self, connection: Connection, draw: Random, number: int) -> None:
        name = f"{number}/{draw.randrange(_OWN_ITEMS)}"
        key = {"pk": {"S": name}, "sk": {"S": "only"}}
        at = {"N": str(self._now() + draw.randrange(-20, 60))}
        new: Item | None = {**key, "at": at, "owner": {"S": f"o{number % 3}"}}
        body: dict[str, Any] = {"TableName": TABLE}
        operation = draw.choices(["PutItem", "UpdateItem", "DeleteItem"], [6, 3, 1])[0]
        if operation == "PutItem":
            if draw.random() < 0.1:
                new = {**key, "owner": {"S": f"o{number % 3}"}}
            body["Item"] = new
        elif operation == "DeleteItem":
            body["Key"], new = key, None
        else:
            body |= {
                "Key": key,
                "UpdateExpression": "SET #at = :at, #owner = :owner",
                "ConditionExpression": "attribute_exists(pk)",
                "ExpressionAttributeNames": {"#at": "at", "#owner": "owner"},
                "ExpressionAttributeValues": {":at": at, ":owner": {"S": f"o{number % 3}"}},
            }
        # The server may execute the request even if its answer is lost.
        self.possible[name].append(new)
        answer = await connection.call(operation, body)
        if answer.error == "ConditionalCheckFailedException":
            self.possible[name].pop()
            self._found(name, None)
        elif is_refused(answer):
            self.possible[name].pop()
        elif answer.status == 500:
            assert "unknown" in answer.body["message"], answer
        else:
            assert answer.status == 200, answer
            self.possible[name] = [new]

    async def _switch(self, server: Server) -> None:
        """Enable and disable time to live as often as allowed."""
        enabled = True
        with suppress(ConnectionLost):
            async with connected(server) as connection:
                while not self.stopping:
                    specification = {"Enabled": enabled, "AttributeName": "at"}
                    body = {"TableName": TABLE, "TimeToLiveSpecification": specification}
                    answer = await connection.call("UpdateTimeToLive", body)
                    assert answer.status in (200, 400, 500), answer
                    # After an answer of 500, the switch may be set already.
                    if answer.status == 200 or self._draw.random() < 0.1:
                        enabled = not enabled
                    await asyncio.sleep(self._draw.uniform(0, 0.2))

    async def _move(self, clock: ServerClock) -> None:
        with suppress(OSError, HTTPException):
            while not self.stopping:
                # The virtual clock does not advance while the store refuses its time.
                with suppress(ClockNotMoved):
                    self._at = await asyncio.to_thread(clock.step, self._draw.randrange(1, 5))
                await asyncio.sleep(self._draw.uniform(0, 0.1))

    _at = float(START)

    def _now(self) -> int:
        return int(self._at)

    def _found(self, name: str, item: Item | None, now: float | None = None) -> None:
        """Record the state in which a key was read; fail if that state is impossible."""
        possible = self.possible[name]
        # The server's clock may be ahead of ``_at`` while ``_move`` advances it.
        now = self._at + 10 if now is None else now
        if item is None:
            assert any(state is None or _is_expired(state, now) for state in possible), (
                f"{name} is missing at {now}, of {possible}"
            )
        else:
            assert item in possible, f"{name} is {item}, none of {possible}"
        self.possible[name] = [item]

    async def look(self, connection: Connection) -> None:
        """Check each key against its possible states. No writes meanwhile."""
        items = await scan(connection, TABLE)
        there = {item["pk"]["S"]: item for item in items}
        self._look(there)

    def _look(self, there: dict[str, Item], now: float | None = None) -> None:
        for name in sorted(self.possible.keys() | there.keys()):
            if name not in there and None not in self.possible[name]:
                self.deleted += 1
            self._found(name, there.get(name), now)

    async def verify(self) -> None:
        """Reopen the data, wait until time to live has deleted all expired items, and compare."""
        async with (
            kept_store(self._directory) as store,
            running_database(store, SetClock(START), time_to_live=_SETTINGS) as database,
            asyncio.timeout(HANG_SECONDS),
        ):
            table = database.table(TABLE)
            self.partitions = len(table.record.partitions)
            now = database.clock.now_epoch_seconds()
            settings = table.definition.time_to_live
            is_on = settings is not None and settings.deletes
            self.statuses[settings.status if settings else "never on"] += 1
            if is_on:
                await until_status(table, "ENABLED")
                while any(
                    is_expired(item.get("at", {}).get("N"), now) for item in await _all(table)
                ):
                    await asyncio.sleep(0.001)
            elif settings is not None:
                await until_status(table, "DISABLED")
            await self._compare(table, now)
            await _compare_rows(store, table, is_on=is_on)

    async def _compare(self, table: Table, now: float) -> None:
        there = {item["pk"]["S"]: item for item in await _all(table)}
        self._look(there, now)
        for index in table.definition.indexes:
            while index_lag_records(table, index):
                await asyncio.sleep(0.001)
            entries = await _all(table, index)
            assert entries == [item for item in sorted(there.values(), key=str) if "at" in item]


async def _compare_rows(store: Store, table: Table, *, is_on: bool) -> None:
    table_id = table.definition.table_id
    if is_on:
        await until_listed(table)
        # An item that the sweeper deleted stays listed until the expirers have processed the
        # deletion.
        while await listed(store, table_id) != await rebuilt(store, table.definition, "at"):
            await asyncio.sleep(0.001)
        return
    ranges = (key_layout.expiry_range(table_id), key_layout.expiry_checkpoint_range(table_id))
    assert not [row for each in ranges async for row in rows_of(store, *each)]


def _is_expired(item: Item, now: float) -> bool:
    return is_expired(item.get("at", {}).get("N"), now)


async def _all(table: Table, index: IndexDefinition | None = None) -> list[Item]:
    """All items of a table, or the entries of an index; all fit on one page."""
    page = await read_page(table, ReadRange(key_range.WHOLE, PageRules(), index=index))
    assert page.last is None
    return sorted((items.decode(item) for item in page.items), key=str)
