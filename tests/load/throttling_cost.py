"""The cost of accounting and throttling: ``python -m tests.load.throttling_cost --help``.

It measures gets on one table with each mode of its limits, and refusals of an exhausted table. It
also compares a table of 4 partitions with one of 64 on two servers, and counts keys on a third.
Rounds alternate and medians are shown, because a machine's speed drifts by more than the
differences. The result is the server's processor time per request; each line is compared with the
first, round by round.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Literal, NamedTuple

from tests.load.generator import Generator, Plan
from tests.load.items import create_table, table_item
from tests.load.servers import Server, cpu_seconds, directory_on
from tests.support.clients.wire import Connection, encode, request_bytes
from tests.support.servers.server import running_server

_KEYS = 10_000
_BATCH_ITEMS = 25
_FEW, _MANY = 4, 64
_ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/"
_MODES = ("off", "observe", "enforce")
# The warm throughput of an on-demand table whose partitions are its only limit.
_WARM = {"ReadUnitsPerSecond": 40_000, "WriteUnitsPerSecond": 40_000}


class Case(NamedTuple):
    """One table of one server with this mode of limits, under one kind of load."""

    name: str
    server: Server
    table: str
    mode: str
    operation: Literal["GetItem", "PutItem"] = "GetItem"
    insights: Literal["ENABLE", "DISABLE"] = "DISABLE"


class Sample(NamedTuple):
    """One round: requests per second, µs of processor time each, and the refused ones."""

    requests_per_second: float
    cpu_per_request: float
    refused: float


class Servers(NamedTuple):
    """The servers of tables with 4 and with 64 partitions, and one that counts keys."""

    few: Server
    many: Server
    counting: Server


@contextmanager
def servers(directory: Path, *arguments: str) -> Iterator[Servers]:
    """Start the three servers; ``arguments`` are further options of each server."""
    wanted = (
        ("few", _FEW, "--no-key-traffic"),
        ("many", _MANY, "--no-key-traffic"),
        ("counting", _FEW, "--key-traffic"),
    )
    with ExitStack() as stack:
        made = []
        for name, partitions, keys in wanted:
            options = ("--throttling", "off", "--partitions-per-table", str(partitions), keys)
            running = stack.enter_context(
                running_server(*options, *arguments, data_dir=directory / name)
            )
            port = int(running.endpoint.rpartition(":")[2])
            made.append(Server(name, "127.0.0.1", port, running.process.pid))
        yield Servers(*made)


async def call(connection: Connection, operation: str, body: dict[str, Any]) -> None:
    """A request that must succeed."""
    answer = await connection.send(request_bytes(operation, encode(body)))
    if answer.status != 200:
        raise RuntimeError(f"{operation}: {answer}")


async def make_table(server: Server, name: str, **members: Any) -> None:
    """A filled table, without limits during the fill."""
    connection = await Connection.open(server.host, server.port)
    await call(connection, "CreateTable", create_table(name, indexed=False) | members)
    for start in range(0, _KEYS, _BATCH_ITEMS):
        numbers = range(start, start + _BATCH_ITEMS)
        requests = [{"PutRequest": {"Item": table_item(number)}} for number in numbers]
        await call(connection, "BatchWriteItem", {"RequestItems": {name: requests}})
    await connection.close()


async def keep_limits(case: Case) -> None:
    """Set the mode of limits and the counting of keys for a case."""
    connection = await Connection.open(case.server.host, case.server.port)
    tag = {"Key": "dynactor:throttling", "Value": case.mode}
    await call(connection, "TagResource", {"ResourceArn": _ARN + case.table, "Tags": [tag]})
    insights = {"TableName": case.table, "ContributorInsightsAction": case.insights}
    await call(connection, "UpdateContributorInsights", insights)
    await connection.close()


async def sample(case: Case, connections: int, seconds: float) -> Sample:
    """Measure one round of one case."""
    server = case.server
    await keep_limits(case)
    # A get takes half a unit, so four partitions allow 24,000 gets a second.
    plan = Plan(
        server.host,
        server.port,
        case.table,
        case.operation,
        connections,
        seconds,
        keys=_KEYS,
        consistent=False,
    )
    generator = await Generator.start(plan)
    cpu_before = cpu_seconds(server.pid)
    report = await generator.measure()
    cpu = cpu_seconds(server.pid) - cpu_before
    requests = max(1, report.requests)
    return Sample(requests / report.seconds, cpu / requests * 1e6, report.errors / requests)


async def compare(
    title: str, cases: Sequence[Case], rounds: int, connections: int, seconds: float
) -> None:
    """Measure the cases in alternating rounds, and print a line for each case."""
    samples: dict[str, list[Sample]] = {case.name: [] for case in cases}
    for turn in range(rounds):
        # Reverse every other round, so that each case is first as often as last.
        for case in cases if turn % 2 else reversed(cases):
            samples[case.name].append(await sample(case, connections, seconds))
    print(f"\n{title:36}{'requests/s':>12}{'CPU µs/request':>16}{'more':>8}{'refused':>9}")
    first = samples[cases[0].name]
    for case in cases:
        of_case = samples[case.name]
        more = median(
            each.cpu_per_request / other.cpu_per_request - 1
            for each, other in zip(of_case, first, strict=True)
        )
        print(
            f"{case.name:36}{median(each.requests_per_second for each in of_case):12,.0f}"
            f"{median(each.cpu_per_request for each in of_case):16.1f}{more:8.1%}"
            f"{max(each.refused for each in of_case):9.1%}",
            flush=True,
        )


async def run(options: argparse.Namespace, made: Servers) -> None:
    """Create the tables, measure all cases, and print the results."""
    few = made.few
    for server in made:
        await make_table(server, "gets", WarmThroughput=_WARM)
    empty = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    provisioned = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": empty}
    await make_table(few, "empty", **provisioned)

    async def measure(title: str, cases: Sequence[Case]) -> None:
        await compare(title, cases, options.rounds, options.connections, options.seconds)

    await measure("GetItem, 4 partitions", [Case(mode, few, "gets", mode) for mode in _MODES])
    await measure(
        "Refused at once",
        [
            Case("GetItem, answered", few, "gets", "enforce"),
            Case("GetItem, throttled", few, "empty", "enforce"),
            Case("PutItem, throttled", few, "empty", "enforce", "PutItem"),
        ],
    )
    await measure(
        "GetItem, enforced",
        [
            Case("4 partitions", few, "gets", "enforce"),
            Case("64 partitions", made.many, "gets", "enforce"),
        ],
    )
    await measure(
        "GetItem, enforced",
        [
            Case("no keys counted", few, "gets", "enforce"),
            Case("some keys counted", made.counting, "gets", "enforce"),
            Case("all keys counted", made.counting, "gets", "enforce", insights="ENABLE"),
        ],
    )


def main() -> None:
    """Parse the options and run."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.load.throttling_cost", description=__doc__
    )
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=3, help="of each round")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--directory", type=Path, help="on the disk to measure; else temporary")
    parser.add_argument("serve", nargs="*", help="further options of the server, behind --")
    options = parser.parse_args()
    with (
        directory_on(options.directory) as temporary,
        servers(temporary, *options.serve) as made,
    ):
        asyncio.run(run(options, made))


if __name__ == "__main__":
    main()
