"""Servers that publish to a real broker, clients that write, and the state of a consumer."""

from __future__ import annotations

import http.client
import re
import time
from collections.abc import Callable
from contextlib import closing
from random import Random
from threading import Thread
from typing import Any

from tests.support.clients.clients import WireClient
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.kafka.kafka_broker import BrokerAddress
from tests.support.kafka.kafka_consumer import Isolation, Replica, by_key, read_topic
from tests.support.servers.server import Server

_METRICS = re.compile(r"Metrics on http://([^:/]+):([0-9]+)(\S+)")
_TIMEOUT_SECONDS = 120
_ITEMS = 40


def kafka_options(broker: BrokerAddress, *options: str) -> tuple[str, ...]:
    """Options of ``serve`` that publish all tables, with metrics enabled."""
    return (
        "--kafka-bootstrap-servers",
        broker.bootstrap_servers,
        "--kafka-all-tables",
        "--kafka-partitions",
        "3",
        "--admin-port",
        "0",
        *options,
    )


def stream_arn(topic: str) -> str:
    """The StreamArn of a topic."""
    return f"arn:aws:kinesis:us-east-1:000000000000:stream/{topic}"


def lag_records(server: Server) -> dict[str, int]:
    """The number of unpublished changes of each table, from the metrics."""
    return _by_table(server, "dynactor_destination_lag_records")


def partition_counts(server: Server) -> dict[str, int]:
    """The number of partitions of each table, from the metrics."""
    return _by_table(server, "dynactor_partitions")


def _by_table(server: Server, metric: str) -> dict[str, int]:
    found = _METRICS.search(server.announcement)
    assert found is not None, "the server was started without metrics"
    with closing(http.client.HTTPConnection(found[1], int(found[2]), timeout=60)) as connection:
        connection.request("GET", found[3])
        text = connection.getresponse().read().decode()
    pattern = rf'^{metric}{{.*table="([^"]+)".*}} ([0-9.e+]+)$'
    return {name: int(float(value)) for name, value in re.findall(pattern, text, re.MULTILINE)}


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Poll until the condition holds.

    Raises:
        AssertionError: the condition did not hold in time.
    """
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"still waiting until {what}"


def wait_published(server: Server, table: str) -> None:
    """Wait until a table's topic has all of its changes."""
    wait_until(lambda: lag_records(server).get(table) == 0, f"{table} is published")


def scanned(call: WireClient, table: str) -> list[dict[str, Any]]:
    """All items of a table."""
    items: list[dict[str, Any]] = []
    request: dict[str, Any] = {"TableName": table, "ConsistentRead": True}
    while True:
        page = call("Scan", request)
        items += page["Items"]
        if "LastEvaluatedKey" not in page:
            return items
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


async def replica_of(
    broker: BrokerAddress, topic: str, server: Server, table: str, isolation: Isolation
) -> Replica:
    """Read the whole topic until the consumer's state equals the table, and return the state.

    Kafka acknowledges a commit before readers see its records, so this polls.

    Raises:
        AssertionError: the state and the table still differ after 10 s.
    """
    with closing(WireClient(server.endpoint)) as call:
        items = by_key(scanned(call, table), "pk")
    deadline = time.monotonic() + HANG_SECONDS
    while True:
        replica = Replica.of(await read_topic(broker, topic, isolation))
        if replica.items == items:
            return replica
        assert time.monotonic() < deadline, (replica.items, items)


class Writer(Thread):
    """A client that puts, updates and deletes the same few items repeatedly.

    It continues after the server was killed and restarted, because it calls ``endpoint`` for each
    connection. ``errors`` has all answers except successful ones.
    """

    def __init__(self, endpoint: Callable[[], str], table: str, seed: int) -> None:
        super().__init__(daemon=True, name=f"writer {seed}")
        self.written = 0
        self.slowest_seconds = 0.0
        self.errors: list[str] = []
        self._endpoint = endpoint
        self._table = table
        self._draw = Random(seed)
        self._ended = False

    def end(self) -> None:
        """Stop writing, and wait until the thread has ended."""
        self._ended = True
        self.join()

    def run(self) -> None:
        """Write until ``end`` is called."""
        while not self._ended:
            try:
                with closing(WireClient(self._endpoint())) as call:
                    while not self._ended:
                        self._write(call)
            except (OSError, http.client.HTTPException):
                # The server was killed. The outcome of the write is unknown, which doesn't matter
                # here.
                continue

    def _write(self, call: WireClient) -> None:
        key: dict[str, Any] = {"pk": {"S": f"item {self._draw.randrange(_ITEMS)}"}}
        number = {"N": str(self._draw.randrange(1_000_000))}
        kind = self._draw.random()
        operation: str
        members: dict[str, Any]
        began = time.monotonic()
        if kind < 0.5:
            operation, members = "PutItem", {"Item": {**key, "n": number}}
        elif kind < 0.8:
            operation = "UpdateItem"
            members = {
                "Key": key,
                "UpdateExpression": "SET n = :n ADD times :one",
                "ExpressionAttributeValues": {":n": number, ":one": {"N": "1"}},
            }
        else:
            operation, members = "DeleteItem", {"Key": key}
        answer = call.send(operation, {"TableName": self._table, **members})
        self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - began)
        if answer.status != http.client.OK:
            self.errors.append(f"{operation}: {answer.status} {answer.body!r}")
        self.written += 1
