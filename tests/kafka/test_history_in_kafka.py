"""Many clients write, items expire, the server is killed and the broker stopped: all is published.

A consumer rebuilds every table exactly, each change that it was told is one that a client made or
time to live, in the order of the item's answers, and it can tell which of the two it was. Exactly
once nothing comes twice. ``--rounds N`` runs N rounds at full size.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.crashes import address, connected
from tests.support.expiring_crowd import EXPIRES, ExpiringCrowd, table_definition
from tests.support.history import Item
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_consumer import (
    Consumed,
    Isolation,
    Replica,
    as_dynamodb,
    by_key,
    read_topic,
)
from tests.support.kafka_history import changes_of, violations
from tests.support.kafka_server import kafka_options, lag_records
from tests.support.server import Server, running_server
from tests.support.tables import unique_name
from tests.support.whole_database import scan
from tests.support.wire import Connection

PATIENCE_SECONDS = 300
VISIBLE_SECONDS = 30
POLL_SECONDS = 0.1


class Size(NamedTuple):
    """How much is written in all, and how long the broker is away."""

    writes: int
    kills: int
    outage_seconds: float


SHORT = Size(writes=2_000, kills=2, outage_seconds=1)
FULL = Size(writes=50_000, kills=5, outage_seconds=60)


class Serving:
    """One data directory, and the servers on it that follow each other."""

    def __init__(self, stack: ExitStack, options: tuple[str, ...], directory: Path) -> None:
        self._stack = stack
        self._options = options
        self._directory = directory
        self.server = self._start()

    def _start(self) -> Server:
        running = running_server(*self._options, data_dir=self._directory)
        return self._stack.enter_context(running)

    async def kill_and_start(self, crowd: ExpiringCrowd) -> None:
        crowd.turn_to(None)
        self.server.kill()
        self.server = await asyncio.to_thread(self._start)
        crowd.turn_to(address(self.server))


class Outcome(NamedTuple):
    """What came of a round, table by table."""

    crowd: ExpiringCrowd
    replicas: list[Replica]
    records: list[list[Consumed]]
    found: list[str]


async def make_tables(connection: Connection) -> list[str]:
    tables = [unique_name("history") for _ in range(3)]
    for table in tables:
        answer = await connection.call("CreateTable", table_definition(table))
        assert answer.status == 200, answer
        specification = {"AttributeName": EXPIRES, "Enabled": True}
        body = {"TableName": table, "TimeToLiveSpecification": specification}
        answer = await connection.call("UpdateTimeToLive", body)
        assert answer.status == 200, answer
        await active(connection, table)
    return tables


async def active(connection: Connection, table: str) -> None:
    """Wait until the table's topic is there."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            body = {"TableName": table}
            answer = await connection.call("DescribeKinesisStreamingDestination", body)
            (destination,) = answer.body["KinesisDataStreamDestinations"]
            if destination["DestinationStatus"] == "ACTIVE":
                return
            await asyncio.sleep(POLL_SECONDS)


@asynccontextmanager
async def writing(crowd: ExpiringCrowd, server: Server) -> AsyncIterator[None]:
    """The crowd writes within the context."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(crowd.run())
        crowd.turn_to(address(server))
        yield
        crowd.stop()


async def wait_for(holds: Callable[[], object], what: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS) as limit:
        while not await asyncio.to_thread(holds):
            await asyncio.sleep(POLL_SECONDS)
    assert not limit.expired(), what


async def write_through_trouble(
    crowd: ExpiringCrowd, serving: Serving, broker: KafkaBroker, size: Size
) -> None:
    """Kills and the outage, spread over the writes.

    Half of the kills come before the outage, one or more in it, and one as soon as it ends: while
    what has gathered is published.
    """
    async with writing(crowd, serving.server):
        pause = size.writes // (size.kills + 3)
        before = size.kills // 2
        for _ in range(before):
            await crowd.wait_writes(pause)
            await serving.kill_and_start(crowd)
        await crowd.wait_writes(pause)
        await asyncio.to_thread(broker.stop)
        ends_at = time.monotonic() + size.outage_seconds
        for _ in range(size.kills - before - 1):
            await crowd.wait_writes(pause)
            await serving.kill_and_start(crowd)
        await crowd.wait_writes(pause)
        await wait_for(lambda: time.monotonic() >= ends_at, "the outage is over")
        await asyncio.to_thread(broker.start)
        topics = set(crowd.tables)
        gathered = await asyncio.to_thread(lag_records, serving.server)
        assert topics <= gathered.keys(), gathered
        if size.kills:
            await serving.kill_and_start(crowd)
        await crowd.wait_writes(max(pause, size.writes - crowd.writes))


async def all_swept(connection: Connection, tables: list[str]) -> list[dict[str, Item]]:
    """The tables, once there is nothing in them that expires."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            shown = [await scan(connection, table) for table in tables]
            if not any(EXPIRES in item for items in shown for item in items):
                return [by_key(items, "pk", "sk") for items in shown]
            await asyncio.sleep(POLL_SECONDS)


async def read_until_equal(
    broker: KafkaBroker, table: str, items: dict[str, Item], isolation: Isolation
) -> tuple[list[Consumed], Replica]:
    """The topic; Kafka answers a commit before each partition shows it, and that is waited for."""
    deadline = time.monotonic() + VISIBLE_SECONDS
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


def _difference(found: dict[str, object], expected: dict[str, Item]) -> str:
    names = [
        name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name)
    ]
    shown = [f"{name}: {found.get(name)} and not {expected.get(name)}" for name in names[:5]]
    return "\n".join([f"{len(names)} items differ", *shown])


async def run_round(
    broker: KafkaBroker, directory: Path, options: tuple[str, ...], draw: random.Random, size: Size
) -> Outcome:
    """Write through all trouble, wait until all is published, and compare."""
    is_committed = "exactly-once" in options
    isolation: Isolation = "read_committed" if is_committed else "read_uncommitted"
    with ExitStack() as stack:
        serving = Serving(stack, kafka_options(broker, *options), directory)
        async with connected(serving.server) as connection:
            tables = await make_tables(connection)
        crowd = ExpiringCrowd(tables, draw)
        await write_through_trouble(crowd, serving, broker, size)
        async with connected(serving.server) as connection:
            shown = await all_swept(connection, tables)
        server = serving.server
        await wait_for(
            lambda: not any(map(lag_records(server).__getitem__, tables)), "all is published"
        )
        replicas, records, found = [], [], []
        for table, items in zip(tables, shown, strict=True):
            read, replica = await read_until_equal(broker, table, items, isolation)
            found += violations(crowd.history, table, changes_of(read), items)
            replicas.append(replica)
            records.append(read)
        assert server.stop() == 0, server.log
        assert "Traceback" not in server.log, server.log
    return Outcome(crowd, replicas, records, found)


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str], rounds: int | None) -> Callable[[str], None]:
    """Tell the figures of a run at full size as it goes on."""

    def write(text: str) -> None:
        if rounds is not None:
            with capsys.disabled():
                print(text, flush=True)  # noqa: T201 - for who waits for it

    return write


FORMS = [("dynamodb", 1), ("debezium", 3)]


@pytest.mark.parametrize("published_as", FORMS, ids=[form for form, _ in FORMS])
@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
async def test_a_consumer_rebuilds_what_many_clients_wrote(  # noqa: PLR0917 - fixtures
    breakable_broker: KafkaBroker,
    tmp_path: Path,
    delivery: str,
    published_as: tuple[str, int],
    rounds: int | None,
    tell: Callable[[str], None],
):
    form, partitions = published_as
    options = ("--kafka-delivery", delivery, "--kafka-format", form, "--ttl-delay-seconds", "0.1")
    options += ("--partitions-per-table", str(partitions))
    for seed in range(rounds or 1):
        size = FULL if rounds else SHORT
        directory = tmp_path / f"{seed}"
        began = time.monotonic()
        outcome = await run_round(breakable_broker, directory, options, random.Random(seed), size)
        events = sum((replica.events for replica in outcome.replicas), Counter())
        duplicates = sum(replica.duplicates for replica in outcome.replicas)
        tell(
            f"\n{delivery}, {form}, {partitions} partitions: {outcome.crowd.writes} writes, "
            f"{outcome.crowd.unanswered} without an answer, {size.kills} kills, "
            f"{sum(map(len, outcome.records))} records, {duplicates} duplicates, "
            f"{len(outcome.found)} violations, {dict(events)}, "
            f"{time.monotonic() - began:.0f} s"
        )
        assert outcome.found == []
        assert delivery == "at-least-once" or duplicates == 0
        assert {origin for _, origin in events} == {"user", "ttl"}
        assert all(replica.gaps == 0 for replica in outcome.replicas)
