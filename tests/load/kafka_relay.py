"""How fast changes are published to Kafka, and how late they come there.

``python -m tests.load.kafka_relay --help``; it starts a broker with Java 17 and Maven. First a
backlog, written while the broker is stopped, is drained. Then puts come at a given rate, once with
the broker and once without, to compare their latencies; a consumer in a process of its own
measures how late their changes come.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import re
import time
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.load.footprint import connections
from tests.load.generator import Generator, Plan, percentile
from tests.load.index_requests import OpenLoop
from tests.load.index_requests import Plan as OpenPlan
from tests.load.index_tables import make_table
from tests.load.kafka_lag import Lag, LagPlan, LagReport
from tests.load.servers import Server as Measured
from tests.load.servers import cpu_seconds, resident_megabytes
from tests.support.kafka_broker import KafkaBroker, running_broker
from tests.support.kafka_server import kafka_options
from tests.support.server import Server, running_server
from tests.support.wire import Connection

_METRICS = re.compile(r"Metrics on http://([^:/]+):([0-9]+)(\S+)")
_CLIENTS = 64
# Few: a put that leaves an item as it was is no change, and each load begins with the same ones.
_KEYS = 500
_POLL_SECONDS = 0.02


def metric(server: Server, name: str, table: str) -> float:
    """A metric of the destination of a table."""
    found = _METRICS.search(server.announcement)
    assert found is not None
    with closing(http.client.HTTPConnection(found[1], int(found[2]))) as connection:
        connection.request("GET", found[3])
        text = connection.getresponse().read().decode()
    pattern = rf'^dynactor_destination_{name}\{{[^}}]*table="{table}"[^}}]*\}} ([0-9.e+]+)$'
    value = re.search(pattern, text, re.MULTILINE)
    return float(value[1]) if value else 0.0


def address(server: Server) -> tuple[str, int]:
    """Where requests go."""
    host, port = server.endpoint.removeprefix("http://").split(":")
    return host, int(port)


async def backlog(server: Server, broker: KafkaBroker, seconds: float) -> None:
    """Puts while the broker is stopped; then it is started, and takes what there is."""
    host, port = address(server)
    async with connection_to(server) as (connection,):
        await make_table(connection, "backlog", 0)
    with broker.stopped():
        plan = Plan(host, port, "backlog", "PutItem", _CLIENTS, seconds)
        report = await (await Generator.start(plan)).measure()
        memory_mb = resident_megabytes(server.process.pid)
    # Until the first record is published it waits for the broker, not for the relay.
    while not metric(server, "published_records_total", "backlog"):
        await asyncio.sleep(_POLL_SECONDS)
    began, cpu = time.perf_counter(), cpu_seconds(server.process.pid)
    before = metric(server, "published_records_total", "backlog")
    while metric(server, "lag_records", "backlog"):
        await asyncio.sleep(_POLL_SECONDS)
    took = time.perf_counter() - began
    records = metric(server, "published_records_total", "backlog") - before
    cpu = cpu_seconds(server.process.pid) - cpu
    print(
        f"backlog: {report.requests / report.seconds:,.0f} puts/s without the broker "
        f"({memory_mb:.0f} MB), {records:,.0f} records drained at {records / took:,.0f}/s, "
        f"CPU {cpu / records * 1e6:.0f} µs a record",
        flush=True,
    )


async def rate(
    server: Server, broker: KafkaBroker, options: argparse.Namespace, isolation_level: str
) -> None:
    """Puts at a rate, with the broker and without it."""
    async with connection_to(server) as (connection,):
        await make_table(connection, "rate", 0)
    while metric(server, "state", "rate") != 1 or metric(server, "lag_records", "rate"):
        await asyncio.sleep(_POLL_SECONDS)
    await one_rate(server, options, LagPlan(broker.bootstrap_servers, "dynactor.rate", ""), "warm")
    plan = LagPlan(broker.bootstrap_servers, "dynactor.rate", isolation_level)
    await one_rate(server, options, plan, "with the broker")
    with broker.stopped():
        await one_rate(server, options, None, "without the broker")


async def one_rate(
    server: Server, options: argparse.Namespace, plan: LagPlan | None, name: str
) -> None:
    """One measurement."""
    host, port = address(server)
    consumer = await Lag.start(plan) if plan is not None and plan.isolation_level else None
    load = await OpenLoop.start(OpenPlan(host, port, "rate", options.puts_per_second, keys=_KEYS))
    await asyncio.sleep(options.seconds)
    report = await load.stop()
    lag = LagReport(0, {})
    if consumer is not None:
        await asyncio.sleep(1)
        lag = await consumer.stop()
    puts = sum(report.puts.values())
    told = ", ".join(
        f"{what} p{share * 100:.0f} {percentile(of, share) / 1e3:.1f} ms"
        for what, of in (("put", report.puts), ("lag", lag.lags))
        for share in (0.5, 0.99)
        if of
    )
    print(
        f"{name}: {puts / report.seconds:,.0f} puts/s, {told}, {lag.records} records, "
        f"{report.errors} errors",
        flush=True,
    )


def connection_to(server: Server) -> AbstractAsyncContextManager[list[Connection]]:
    """One connection to a server."""
    host, port = address(server)
    return connections(Measured("dynactor", host, port, server.process.pid), 1)


def main() -> None:
    """Parse the options and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.load.kafka_relay", description=__doc__)
    parser.add_argument("--puts-per-second", type=float, default=2_000)
    parser.add_argument("--seconds", type=float, default=10, help="of each load")
    parser.add_argument(
        "--deliveries", nargs="*", default=["at-least-once", "exactly-once"], metavar="DELIVERY"
    )
    parser.add_argument("--directory", type=Path, help="on the disk to measure; else temporary")
    options = parser.parse_args()
    for delivery in options.deliveries:
        print(delivery, flush=True)
        isolation = "read_committed" if delivery == "exactly-once" else "read_uncommitted"
        with TemporaryDirectory(dir=options.directory) as temporary:
            directory = Path(temporary)
            (directory / "kafka").mkdir()
            with running_broker(directory / "kafka") as broker:
                serve = kafka_options(broker, "--kafka-delivery", delivery)
                with running_server(*serve, data_dir=directory / "data") as server:
                    asyncio.run(backlog(server, broker, options.seconds))
                    asyncio.run(rate(server, broker, options, isolation))
                    server.stop()


if __name__ == "__main__":
    main()
