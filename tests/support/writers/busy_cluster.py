"""Tables with indexes, streams, time to live, transactions and Kafka, under load over all nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from random import Random
from time import perf_counter, time
from typing import Any, Final, NamedTuple

from tests.support.clients.clients import STREAMS_TARGET_PREFIX, WireClient
from tests.support.clients.wire import Connection
from tests.support.histories.history import TOKEN, Item, State, index_violations
from tests.support.kafka.kafka_broker import KafkaBroker
from tests.support.kafka.kafka_history import Change, changes_of, violations
from tests.support.kafka.kafka_rounds import active, all_swept, read_until_equal
from tests.support.kafka.kafka_server import lag_records, partition_counts, stream_arn
from tests.support.servers.cluster import Cluster
from tests.support.streams.streams import records_of
from tests.support.tables.tables import global_index, unique_name
from tests.support.writers.expiring_writers import EXPIRES, ExpiringWriters, table_definition
from tests.support.writers.transacting_writers import TransactingWriters
from tests.support.writers.whole_database import scan

TABLES: Final = ("ta1", "tb1", "tc1", "td1", "te1", "tf1")
_OPTIONS: Final = ("--ttl-delay-seconds", "0.1", "--throttling", "observe")
_WRITERS: Final = 12
_PUBLISHED_TABLES: Final = 3
_PAUSE_SECONDS: Final = 0.03
_POLL_SECONDS: Final = 0.02
_TIMEOUT_SECONDS: Final = 60
_NAMES: Final = ("pk", "sk")


class _Index(NamedTuple):
    name: str
    attribute: str
    is_whole: bool

    def project(self, item: Item) -> State:
        """The entry of an item; None without an entry."""
        if self.attribute not in item:
            return None
        names = item.keys() if self.is_whole else {*_NAMES, self.attribute}
        return {name: item[name] for name in names}


_INDEXES: Final = (
    _Index("ByToken", TOKEN, is_whole=True),
    _Index("ByExpiry", EXPIRES, is_whole=False),
)


class CaughtUp(NamedTuple):
    """The seconds from a fault until all tables took writes, and their followers caught up."""

    writes: float
    indexes: float
    expiry: float


def cluster_options(broker: KafkaBroker | None) -> tuple[str, ...]:
    """The options of the nodes."""
    if broker is None:
        return _OPTIONS
    kafka = ("--kafka-bootstrap-servers", broker.bootstrap_servers, "--kafka-partitions", "3")
    return (*_OPTIONS, *kafka, "--kafka-delivery", "exactly-once")


class BusyCluster:
    """One database of a cluster over many faults, and what clients know of it."""

    def __init__(self, cluster: Cluster, draw: Random, broker: KafkaBroker | None = None) -> None:
        self.cluster = cluster
        # The tables with topics, which no other database has.
        count = 0 if broker is None else _PUBLISHED_TABLES
        self._published = tuple(unique_name("published") for _ in range(count))
        self.tables = (*TABLES, *self._published)
        self.expiring = ExpiringWriters(
            self.tables, draw, _WRITERS, pause_seconds=_PAUSE_SECONDS, mixes_tables=False
        )
        self.transacting = TransactingWriters(draw)
        self._draw = draw
        self._broker = broker
        self._probes = 0

    async def make(self) -> None:
        """Create the tables, and wait until each node has some of them."""
        async with self.connected(0) as connection:
            for table in self.tables:
                await self._make_table(connection, table)
            for table in self._published:
                body = {"TableName": table, "StreamArn": stream_arn(f"dynactor.{table}")}
                await _expect(connection, "EnableKinesisStreamingDestination", body)
                await active(connection, table)
            await self.transacting.make_tables(connection)
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            while not all([await self.tables_of(number) for number in self.cluster.servers]):
                await asyncio.sleep(_POLL_SECONDS)

    async def _make_table(self, connection: Connection, table: str) -> None:
        definition = table_definition(table)
        definition["AttributeDefinitions"] += [
            {"AttributeName": TOKEN, "AttributeType": "S"},
            {"AttributeName": EXPIRES, "AttributeType": "N"},
        ]
        definition["GlobalSecondaryIndexes"] = [
            global_index(
                index.name, index.attribute, projection="ALL" if index.is_whole else "KEYS_ONLY"
            )
            for index in _INDEXES
        ]
        definition["StreamSpecification"] = {
            "StreamEnabled": True,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        }
        await _expect(connection, "CreateTable", definition)
        specification = {"AttributeName": EXPIRES, "Enabled": True}
        body = {"TableName": table, "TimeToLiveSpecification": specification}
        await _expect(connection, "UpdateTimeToLive", body)

    @asynccontextmanager
    async def connected(self, number: int) -> AsyncIterator[Connection]:
        """A connection to a node."""
        connection = await Connection.open(*self._address(number))
        try:
            yield connection
        finally:
            await connection.close()

    async def tables_of(self, number: int) -> set[str]:
        """The tables whose home is a node."""
        counts = await asyncio.to_thread(partition_counts, self.cluster.servers[number])
        return counts.keys() & {*self.tables}

    def use_nodes(self, *, without: int | None = None) -> None:
        """Let clients connect to all running nodes but one."""
        numbers = [number for number in self.cluster.servers if number != without]
        self.expiring.use_servers(*map(self._address, numbers))

    def _address(self, number: int) -> tuple[str, int]:
        return "127.0.0.1", self.cluster.ports[number]

    @asynccontextmanager
    async def loading(self) -> AsyncIterator[None]:
        """Let clients write within the context."""
        self.use_nodes()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.expiring.run())
            tasks.create_task(self.transacting.run_on(self._next_address))
            yield
            self.expiring.stop()

    async def _next_address(self) -> tuple[str, int] | None:
        await asyncio.sleep(self._draw.uniform(0, _PAUSE_SECONDS * 10))
        return await self.expiring.wait_server()

    # -- the time until a fault is over ---------------------------------------------------------

    async def catch_up(self, began: float, through: int, tables: Sequence[str]) -> CaughtUp:
        """Wait until these tables take writes through a node, and their followers apply them.

        ``began`` is a time of ``perf_counter``.
        """
        probed = await asyncio.gather(*(self._probe(table, began, through) for table in tables))
        return CaughtUp(*(max(seconds) for seconds in zip(*probed, strict=True)))

    async def _probe(self, table: str, began: float, through: int) -> CaughtUp:
        self._probes += 1
        client = self.expiring.client(_WRITERS + self._probes)
        async with asyncio.timeout(_TIMEOUT_SECONDS), self.connected(through) as connection:
            while (kept := await client.put_new(connection, table, expires=None)) is None:
                await asyncio.sleep(_POLL_SECONDS)
            writes = perf_counter() - began
            past = {"N": str(int(time()) - 1)}
            while (expired := await client.put_new(connection, table, expires=past)) is None:
                await asyncio.sleep(_POLL_SECONDS)
            query = {
                "TableName": table,
                "IndexName": "ByToken",
                "KeyConditionExpression": "#token = :token",
                "ExpressionAttributeNames": {"#token": TOKEN},
                "ExpressionAttributeValues": {":token": kept[TOKEN]},
            }
            while not (await connection.call("Query", query)).body.get("Items"):
                await asyncio.sleep(_POLL_SECONDS)
            indexes = perf_counter() - began
            key = {name: expired[name] for name in _NAMES}
            get = {"TableName": table, "Key": key, "ConsistentRead": True}
            while (await connection.call("GetItem", get))[:2] != (200, {}):
                await asyncio.sleep(_POLL_SECONDS)
            return CaughtUp(writes, indexes, perf_counter() - began)

    async def wait_published(self) -> float:
        """Wait until Kafka has all changes; return the seconds."""
        began = perf_counter()
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            while await self._lags() != {table: [0] for table in self._published}:
                await asyncio.sleep(_POLL_SECONDS)
        return perf_counter() - began

    async def _lags(self) -> dict[str, list[int]]:
        """The unpublished changes of each published table, at each node that is its home."""
        shown = [
            await asyncio.to_thread(lag_records, each) for each in self.cluster.servers.values()
        ]
        return {
            table: [lags[table] for lags in shown if table in lags] for table in self._published
        }

    # -- the audit ------------------------------------------------------------------------------

    async def violations(self) -> list[str]:
        """The differences between the data and the answers to clients. No writes meanwhile."""
        number = self._draw.choice(list(self.cluster.servers))
        found = []
        async with self.connected(number) as connection:
            shown = await all_swept(connection, list(self.tables))
            for table, items in zip(self.tables, shown, strict=True):
                found += await self._index_faults(connection, table, list(items.values()))
                changes = await asyncio.to_thread(self._stream, number, table)
                history = violations(self.expiring.history, table, changes, items)
                found += [f"stream of {each}" for each in history]
            await self.transacting.complete(connection)
            found += await self.transacting.violations(connection)
        if self._broker is not None:
            for table in self._published:
                items = shown[self.tables.index(table)]
                found += await self._topic_faults(self._broker, table, items)
        if "Traceback" in self.cluster.log:
            found.append(self.cluster.log)
        return found

    async def _index_faults(
        self, connection: Connection, table: str, items: Sequence[Item]
    ) -> list[str]:
        ends_at = perf_counter() + _TIMEOUT_SECONDS
        while True:
            found = []
            for index in _INDEXES:
                rows = await scan(connection, table, index.name, consistent=False)
                found += index_violations(f"{table}/{index.name}", items, rows, index.project)
            if not found or perf_counter() > ends_at:
                return found
            await asyncio.sleep(_POLL_SECONDS)

    def _stream(self, number: int, table: str) -> list[Change]:
        with closing(WireClient(self.cluster.endpoints[number], STREAMS_TARGET_PREFIX)) as streams:
            (stream,) = streams("ListStreams", {"TableName": table})["Streams"]
            return [_change(record) for record in records_of(streams, stream["StreamArn"])]

    async def _topic_faults(
        self, broker: KafkaBroker, table: str, items: dict[str, Item]
    ) -> list[str]:
        read, replica = await read_until_equal(broker, table, items, "read_committed")
        found = violations(self.expiring.history, table, changes_of(read), items)
        if replica.duplicates or replica.gaps:
            found.append(f"{replica.duplicates} duplicates and {replica.gaps} gaps")
        return [f"topic of {each}" for each in found]


def _change(record: dict[str, Any]) -> Change:
    images = record["dynamodb"]
    return Change(
        images["Keys"],
        int(images["SequenceNumber"]),
        images.get("OldImage"),
        images.get("NewImage"),
        "userIdentity" in record,
        int(images["ApproximateCreationDateTime"] * 1000),
    )


async def _expect(connection: Connection, operation: str, body: dict[str, Any]) -> None:
    answer = await connection.call(operation, body)
    assert answer.status == 200, answer
