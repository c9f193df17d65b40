"""Throughput and cost of publishing to Kafka: ``python -m tests.load.kafka_relay --help``.

A broker is started with Java. ``drain``: a table is filled while the broker is away, then the
backlog is published. ``lag``: puts at a given rate, and the age of their changes at a consumer.
``writes``: puts in a closed loop to a published table and to another one. ``outage``: puts at a
given rate with the broker up and down.

Processor time is counted until the server is idle, which is stable on a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter

from tests.load.footprint import call, connections, load
from tests.load.generator import Generator, percentile
from tests.load.generator import Plan as ClosedPlan
from tests.load.index_requests import OpenLoop, Plan
from tests.load.index_tables import wait_quiet
from tests.load.items import create_table
from tests.load.kafka_lag import Follower
from tests.load.kafka_lag import Plan as LagPlan
from tests.load.servers import Server, cpu_seconds, directory_on, resident_megabytes
from tests.support.kafka.kafka_broker import KafkaBroker, running_broker
from tests.support.kafka.kafka_consumer import Isolation
from tests.support.kafka.kafka_server import lag_records, stream_arn
from tests.support.servers.server import Server as ServerProcess
from tests.support.servers.server import running_server

DELIVERIES = ("at-least-once", "exactly-once")

_POLL_SECONDS = 0.02
_DEADLINE_SECONDS = 600
_CLIENTS = 64
_WARM_UP_SECONDS = 1.0
_numbers = count(1)


class Published:
    """A server that publishes to a broker, and its tables."""

    def __init__(self, process: ServerProcess, broker: KafkaBroker, delivery: str) -> None:
        self.broker = broker
        self.delivery = delivery
        self.process = process
        port = int(process.endpoint.rpartition(":")[2])
        self.server = Server("dynactor", "127.0.0.1", port, process.process.pid)

    async def table(self, *, published: bool = True) -> str:
        """Create a table, published to the topic of its name or not published."""
        name = f"relay-{next(_numbers)}"
        async with connections(self.server, 1) as (connection,):
            await call(connection, "CreateTable", create_table(name, indexed=False))
            if not published:
                return name
            body = {
                "TableName": name,
                "StreamArn": stream_arn(name),
                "EnableKinesisStreamingConfiguration": {
                    "ApproximateCreationDateTimePrecision": "MICROSECOND"
                },
            }
            await call(connection, "EnableKinesisStreamingDestination", body)
            status = "ENABLING"
            while status != "ACTIVE" and self.broker.is_running:
                await asyncio.sleep(_POLL_SECONDS)
                body = {"TableName": name}
                answer = await call(connection, "DescribeKinesisStreamingDestination", body)
                status = answer["KinesisDataStreamDestinations"][0]["DestinationStatus"]
        return name

    async def lag(self, table: str) -> int:
        """The number of unpublished changes of a table."""
        return (await asyncio.to_thread(lag_records, self.process))[table]

    async def wait_lag(self, table: str, below: int) -> float:
        """Wait until fewer changes than that are unpublished; returns that moment."""
        async with asyncio.timeout(_DEADLINE_SECONDS):
            while await self.lag(table) >= below:
                await asyncio.sleep(_POLL_SECONDS)
        return perf_counter()


@contextmanager
def publishing(
    broker: KafkaBroker, delivery: str, directory: Path, *options: str
) -> Iterator[Published]:
    """The server, on a data directory."""
    named = ("--kafka-bootstrap-servers", broker.bootstrap_servers, "--kafka-delivery", delivery)
    with running_server(*named, "--admin-port", "0", *options, data_dir=directory) as process:
        yield Published(process, broker, delivery)
        process.stop()


async def drain(published: Published, options: argparse.Namespace) -> None:
    """Measure the publishing of one table's backlog, from the first record to the last."""
    server, broker = published.server, published.broker
    for _ in range(options.rounds):
        table = await published.table()
        broker.stop()
        await load(server, table, options.backlog)
        await wait_quiet(server)
        assert await published.lag(table) == options.backlog
        broker.start()
        cpu_before, broker_before = cpu_seconds(server.pid), cpu_seconds(broker.pid)
        # The server's next attempt to connect may be seconds away.
        began_at = await published.wait_lag(table, options.backlog)
        left = await published.lag(table)
        ended_at = await published.wait_lag(table, 1)
        cpu_us = (await wait_quiet(server) - cpu_before) / options.backlog * 1e6
        broker_us = (cpu_seconds(broker.pid) - broker_before) / options.backlog * 1e6
        print(
            f"{published.delivery:16}{options.backlog:10,}"
            f"{left / (ended_at - began_at):12,.0f}{cpu_us:15.1f}{broker_us:15.1f}"
            f"{resident_megabytes(server.pid):9.0f}",
            flush=True,
        )


async def lag(published: Published, options: argparse.Namespace) -> None:
    """Puts in an open loop, and their changes at a consumer, with and without a topic."""
    server, broker = published.server, published.broker
    isolation: Isolation = (
        "read_committed" if published.delivery == "exactly-once" else "read_uncommitted"
    )
    for _ in range(options.rounds):
        for is_published in (False, True):
            table = await published.table(published=is_published)
            follower = None
            if is_published:
                plan = LagPlan(broker.bootstrap_servers, table, isolation)
                follower = await Follower.start(plan)
            await wait_quiet(server)
            cpu_before = cpu_seconds(server.pid)
            puts = Plan(server.host, server.port, table, options.puts_per_second)
            generator = await OpenLoop.start(puts)
            await asyncio.sleep(options.seconds)
            report = await generator.stop()
            if is_published:
                await published.wait_lag(table, 1)
            cpu = await wait_quiet(server) - cpu_before
            sent = sum(report.puts.values())
            times = [percentile(report.puts, share) / 1e3 for share in (0.5, 0.99)]
            lags = f"{'':27}{'':9}"
            if follower is not None:
                read = await follower.stop()
                found = [percentile(read.lags, share) / 1e3 for share in (0.5, 0.99, 1.0)]
                lags = "".join(f"{time:9.1f}" for time in found) + f"{read.records:9,}"
            print(
                f"{published.delivery if is_published else 'not published':16}"
                f"{sent / report.seconds:8,.0f}{sent:9,}"
                + "".join(f"{time:9.1f}" for time in times)
                + f"{lags}{cpu / sent * 1e6:12.0f}{report.errors:8}",
                flush=True,
            )


async def writes(published: Published, options: argparse.Namespace) -> None:
    """Puts in a closed loop, alternating between a published table and another one."""
    server = published.server
    rows: dict[bool, list[tuple[float, ...]]] = {False: [], True: []}
    for _ in range(options.rounds):
        for is_published, measured in rows.items():
            table = await published.table(published=is_published)
            await wait_quiet(server)
            plan = ClosedPlan(
                server.host,
                server.port,
                table,
                "PutItem",
                _CLIENTS,
                options.seconds,
                _WARM_UP_SECONDS,
            )
            generator = await Generator.start(plan)
            cpu_before = cpu_seconds(server.pid)
            report = await generator.measure()
            ended_at = perf_counter()
            caught_up = await published.wait_lag(table, 1) - ended_at if is_published else 0.0
            cpu_us = (await wait_quiet(server) - cpu_before) / report.requests * 1e6
            times = [percentile(report.latencies, share) / 1e3 for share in (0.5, 0.99)]
            measured.append((report.requests / report.seconds, *times, cpu_us, caught_up))
    for is_published, measured in rows.items():
        per_second, p50, p99, cpu_us, caught_up = map(median, zip(*measured, strict=True))
        print(
            f"{published.delivery if is_published else 'not published':16}{per_second:10,.0f}"
            f"{p50:9.1f}{p99:9.1f}{cpu_us:12.0f}{caught_up:13.1f}",
            flush=True,
        )


async def outage(published: Published, options: argparse.Namespace) -> None:
    """Puts in an open loop to one table, alternating between broker up and down."""
    server, broker = published.server, published.broker
    table = await published.table()
    rows: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for _ in range(options.rounds):
        for is_there, measured in rows.items():
            if not is_there:
                broker.stop()
            await wait_quiet(server)
            puts = Plan(server.host, server.port, table, options.puts_per_second / 2)
            generator = await OpenLoop.start(puts)
            await asyncio.sleep(options.seconds)
            report = await generator.stop()
            p50, p99 = (percentile(report.puts, share) / 1e3 for share in (0.5, 0.99))
            measured.append((p50, p99))
            waiting = await published.lag(table)
            print(
                f"{published.delivery:16}{'there' if is_there else 'away':8}"
                f"{sum(report.puts.values()) / report.seconds:8,.0f}{p50:9.1f}{p99:9.1f}"
                f"{waiting:10,}{resident_megabytes(server.pid):9.0f}{report.errors:8}",
                flush=True,
            )
        broker.start()
        await published.wait_lag(table, 1)
    for is_there, measured in rows.items():
        p50, p99 = map(median, zip(*measured, strict=True))
        print(f"{'median':16}{'there' if is_there else 'away':8}{'':8}{p50:9.1f}{p99:9.1f}")


_HEADINGS = {
    "drain": f"{'':16}{'records':>10}{'records/s':>12}{'CPU µs/record':>15}"
    f"{'broker µs':>15}{'RSS MB':>9}",
    "lag": f"{'':16}{'puts/s':>8}{'puts':>9}{'put p50':>9}{'put p99':>9}{'lag p50':>9}"
    f"{'lag p99':>9}{'lag max':>9}{'read':>9}{'CPU µs/put':>12}{'errors':>8}   (milliseconds)",
    "writes": f"{'':16}{'puts/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'CPU µs/put':>12}"
    f"{'caught up s':>13}",
    "outage": f"{'':16}{'broker':8}{'puts/s':>8}{'p50 ms':>9}{'p99 ms':>9}{'waiting':>10}"
    f"{'RSS MB':>9}{'errors':>8}",
}
_PARTS = {"drain": drain, "lag": lag, "writes": writes, "outage": outage}


def main() -> None:
    """Parse the options and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.load.kafka_relay", description=__doc__)
    parser.add_argument("--parts", nargs="*", choices=_PARTS, default=list(_PARTS))
    parser.add_argument("--deliveries", nargs="*", choices=DELIVERIES, default=DELIVERIES)
    parser.add_argument("--backlog", type=int, default=200_000, help="records that are drained")
    parser.add_argument("--puts-per-second", type=float, default=2_000)
    parser.add_argument("--seconds", type=float, default=10, help="of each window")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", nargs="*", default=[], help="options for the server")
    parser.add_argument("--directory", type=Path, help="on the disk to measure; else temporary")
    options = parser.parse_args()
    with directory_on(options.directory) as directory:
        (directory / "kafka").mkdir()
        with running_broker(directory / "kafka", java_options=()) as broker:
            for part in options.parts:
                print(_HEADINGS[part], flush=True)
                for delivery in options.deliveries:
                    data = directory / f"{part}-{delivery}"
                    with publishing(broker, delivery, data, *options.serve) as published:
                        asyncio.run(_PARTS[part](published, options))


if __name__ == "__main__":
    main()
