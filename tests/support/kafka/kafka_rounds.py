"""One test round: many clients write during faults, then every topic is compared with its table."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.clients.wire import Connection
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.histories.history import Item
from tests.support.kafka.kafka_broker import KafkaBroker
from tests.support.kafka.kafka_consumer import (
    Consumed,
    Isolation,
    Replica,
    as_dynamodb,
    by_key,
    read_topic,
)
from tests.support.kafka.kafka_history import changes_of, violations
from tests.support.kafka.kafka_server import kafka_options, lag_records
from tests.support.servers.server import Server, running_server
from tests.support.tables.tables import unique_name
from tests.support.writers.crashes import address, connected
from tests.support.writers.expiring_writers import EXPIRES, ExpiringWriters, table_definition
from tests.support.writers.whole_database import scan

TIMEOUT_SECONDS = 300
POLL_SECONDS = 0.1


class Serving:
    """One data directory, and its servers, one after another."""

    def __init__(self, stack: ExitStack, options: tuple[str, ...], directory: Path) -> None:
        self._stack = stack
        self._options = options
        self._directory = directory
        self.server = self._start()

    def _start(self) -> Server:
        running = running_server(*self._options, data_dir=self._directory)
        return self._stack.enter_context(running)

    async def kill_and_start(self, writers: ExpiringWriters) -> None:
        """Kill the server while clients write, and start the next one."""
        writers.use_servers()
        self.server.kill()
        assert "Traceback" not in self.server.log, self.server.log
        self.server = await asyncio.to_thread(self._start)
        writers.use_servers(address(self.server))


class Outcome(NamedTuple):
    """The result of a round, over all tables; ``found`` are the violations."""

    writes: int
    unanswered: int
    records: int
    duplicates: int
    gaps: int
    events: Counter[tuple[str, str]]
    found: list[str]

    def __str__(self) -> str:
        events = ", ".join(f"{count} {' by '.join(of)}" for of, count in self.events.items())
        return (
            f"{self.writes} writes, {self.unanswered} without an answer, {self.records} records, "
            f"{self.duplicates} duplicates, {self.gaps} gaps, "
            f"{len(self.found)} violations ({events})"
        )


async def make_tables(connection: Connection) -> list[str]:
    """Create three tables with time to live."""
    tables = [unique_name("history") for _ in range(3)]
    for table in tables:
        answer = await connection.call("CreateTable", table_definition(table))
        assert answer.status == 200, answer
        specification = {"AttributeName": EXPIRES, "Enabled": True}
        body = {"TableName": table, "TimeToLiveSpecification": specification}
        answer = await connection.call("UpdateTimeToLive", body)
        assert answer.status == 200, answer
    return tables


async def active(connection: Connection, table: str) -> None:
    """Wait until the table's topic exists."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while True:
            body = {"TableName": table}
            answer = await connection.call("DescribeKinesisStreamingDestination", body)
            (destination,) = answer.body["KinesisDataStreamDestinations"]
            if destination["DestinationStatus"] == "ACTIVE":
                return
            await asyncio.sleep(POLL_SECONDS)


@asynccontextmanager
async def writing(writers: ExpiringWriters, server: Server) -> AsyncIterator[None]:
    """Let the clients write within the context."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(writers.run())
        writers.use_servers(address(server))
        yield
        writers.stop()


async def wait_for(holds: Callable[[], object], what: str) -> None:
    """Poll in a thread until the condition holds."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not await asyncio.to_thread(holds):
        assert time.monotonic() < deadline, f"still waiting until {what}"
        await asyncio.sleep(POLL_SECONDS)


async def all_swept(connection: Connection, tables: list[str]) -> list[dict[str, Item]]:
    """Wait until all expiring items are deleted; return the remaining items of each table."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while True:
            shown = [await scan(connection, table) for table in tables]
            if not any(EXPIRES in item for items in shown for item in items):
                return [by_key(items, "pk", "sk") for items in shown]
            await asyncio.sleep(POLL_SECONDS)


async def read_until_equal(
    broker: KafkaBroker, table: str, items: dict[str, Item], isolation: Isolation
) -> tuple[list[Consumed], Replica]:
    """Read the topic until its result equals the table.

    Kafka acknowledges a commit before readers see its records, so this polls.
    """
    deadline = time.monotonic() + HANG_SECONDS
    while True:
        read = await read_topic(broker, f"dynactor.{table}", isolation)
        records = [_in_one_form(record) for record in read]
        replica = Replica.of(records)
        if replica.items == items:
            return records, replica
        assert time.monotonic() < deadline, _difference(replica.items, items)
        await asyncio.sleep(POLL_SECONDS)


def _in_one_form(record: Consumed) -> Consumed:
    return as_dynamodb(record) if b'"op":' in (record.value or b"") else record


def _difference(found: Mapping[str, object], expected: Mapping[str, Item]) -> str:
    names = [
        name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name)
    ]
    shown = [f"{name}: {found.get(name)} and not {expected.get(name)}" for name in names[:5]]
    return "\n".join([f"{len(names)} items differ", *shown])


async def run_round(
    broker: KafkaBroker,
    directory: Path,
    options: tuple[str, ...],
    draw: random.Random,
    fault: Callable[[ExpiringWriters, Serving], Awaitable[None]],
) -> Outcome:
    """Write during the faults, wait until all changes are published, and compare.

    If the broker runs at the start, the topics exist before the first write.
    """
    is_committed = "exactly-once" in options
    isolation: Isolation = "read_committed" if is_committed else "read_uncommitted"
    with ExitStack() as stack:
        serving = Serving(stack, kafka_options(broker, *options), directory)
        async with connected(serving.server) as connection:
            tables = await make_tables(connection)
            if broker.is_running:
                for table in tables:
                    await active(connection, table)
        writers = ExpiringWriters(tables, draw)
        async with writing(writers, serving.server):
            await fault(writers, serving)
        async with connected(serving.server) as connection:
            shown = await all_swept(connection, tables)
        server = serving.server
        await wait_for(
            lambda: not any(map(lag_records(server).__getitem__, tables)), "all is published"
        )
        replicas: list[Replica] = []
        records, found = 0, list[str]()
        for table, items in zip(tables, shown, strict=True):
            read, replica = await read_until_equal(broker, table, items, isolation)
            found += violations(writers.history, table, changes_of(read), items)
            replicas.append(replica)
            records += len(read)
        assert server.stop() == 0, server.log
        assert "Traceback" not in server.log, server.log
    return Outcome(
        writers.writes,
        writers.unanswered,
        records,
        sum(replica.duplicates for replica in replicas),
        sum(replica.gaps for replica in replicas),
        sum((replica.events for replica in replicas), Counter[tuple[str, str]]()),
        found,
    )
