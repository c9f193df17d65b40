"""A server on a virtual clock that throttles provisioned tables, and its metrics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.support.clients.clients import Answer, WireClient
from tests.support.servers.admin import ServerClock, admin_port, ask, server_with_clock
from tests.support.servers.server import Server
from tests.support.tables.tables import definition, wait_until_indexes_active

START = "2026-03-01T00:00:00Z"
ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/"
PROVISIONED = "ProvisionedThroughputExceededException"
# No burst of the tests' tables has this many units.
_MOST_WRITES = 10_000


def units(read: int, write: int) -> dict[str, Any]:
    """The members of a provisioned table's definition."""
    return {"BillingMode": "PROVISIONED", "ProvisionedThroughput": throughput(read, write)}


def throughput(read: int, write: int) -> dict[str, int]:
    """A ProvisionedThroughput."""
    return {"ReadCapacityUnits": read, "WriteCapacityUnits": write}


def item(pk: str, size_bytes: int = 0, **others: str) -> dict[str, Any]:
    """An item of this size, unless its other attributes leave less than 2 bytes of it."""
    texts = {"pk": pk, **others}
    made = {name: {"S": text} for name, text in texts.items()}
    room = size_bytes - sum(len(name) + len(text) for name, text in texts.items())
    return made | {"x": {"S": "x" * (room - 1)}} if room > 1 else made


class CapacityServer:
    """The server, its clock, and requests to the server that may be throttled."""

    def __init__(self, server: Server, clock: ServerClock, wire: WireClient) -> None:
        self.server = server
        self.clock = clock
        self.wire = wire

    def table(self, *keys: str, **members: Any) -> str:
        """Create a table, and wait until it and its indexes are ACTIVE."""
        request = definition(*(keys or ("pk:S",)), **members)
        name: str = request["TableName"]
        self.wire("CreateTable", request)
        wait_until_indexes_active(self.wire, name)
        return name

    def put(self, name: str, item: dict[str, Any], **members: Any) -> Answer:
        """Put an item; the answer may be a throttling error."""
        return self.wire.send("PutItem", {"TableName": name, "Item": item, **members})

    def puts_until_refused(self, name: str, made: dict[str, Any] | None = None) -> int:
        """Put one item until a put is throttled; return the number of accepted puts."""
        for count in range(_MOST_WRITES):
            if self.put(name, made or item("a")).status != 200:
                return count
        raise AssertionError("nothing was refused")

    def until_refused(self, operation: str, request: dict[str, Any]) -> int:
        """Repeat a request until it is throttled; return the number of accepted requests."""
        for count in range(_MOST_WRITES):
            if self.wire.send(operation, request).status != 200:
                return count
        raise AssertionError("nothing was refused")

    def metrics(self, name: str, table: str) -> dict[tuple[str, ...], float]:
        """The samples of a metric of a table that are not 0.

        The keys are the values of the labels except ``table``, in the order of the labels' names.
        """
        text = ask(admin_port(self.server), "/metrics").body.decode()
        return {
            tuple(value for label, value in sorted(sample.labels.items()) if label != "table"): (
                sample.value
            )
            for family in text_string_to_metric_families(text)
            if family.name == f"dynactor_{name}"
            for sample in family.samples
            if sample.labels["table"] == table and sample.value
        }


@contextmanager
def capacity_server(
    *arguments: str, start: str | float = START, data_dir: Path | None = None
) -> Iterator[CapacityServer]:
    """A server with the default throttling, unless ``arguments`` change it.

    New tables have a burst of one second, so tests reach limits with few requests.
    """
    if "--throttling" not in arguments:
        arguments += ("--throttling", "auto")
    if "--initial-burst-seconds" not in arguments:
        arguments += ("--initial-burst-seconds", "1")
    with (
        server_with_clock(start, "--copy-messages", *arguments, data_dir=data_dir) as served,
        closing(WireClient(served[0].endpoint)) as wire,
    ):
        yield CapacityServer(*served, wire)


def reasons(answer: Answer) -> list[tuple[str, str]]:
    """The reasons of a throttling error: the limit, and the name of the table or index."""
    error = answer.json
    listed = error.get("ThrottlingReasons", error.get("throttlingReasons", []))
    return [(each["reason"], each["resource"].rpartition("/")[2]) for each in listed]
