"""Processor times of requests on one node and on several: ``python -m tests.load.nodes --help``.

Nodes share one PostgreSQL. Each of some tables has the same number of clients, which use one node
each, one after another, or the home of their table. The columns are processor times per request:
of the busiest node, of all nodes, and of PostgreSQL. Rounds alternate between the clusters.
"""

from __future__ import annotations

import asyncio
import re
import time
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack, closing
from itertools import product
from statistics import median
from typing import Final, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table

from tests.load.generator import Load, Plan
from tests.load.items import create_table
from tests.load.peers.servers import process_seconds
from tests.load.servers import postgresql_seconds
from tests.support.clients.clients import WireClient
from tests.support.environment.unused_ports import unused_ports
from tests.support.servers.cluster import Cluster, running_cluster
from tests.support.servers.postgresql import Postgresql, running_postgresql

_SETTINGS: Final = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "512MB"}
_SPREAD_SECONDS: Final = 60
_KEYS: Final = 2_000
_TABLE_SERIES: Final = re.compile(r'table="(load\d+)"')
_OPERATIONS: Final[dict[str, Literal["PutItem", "GetItem"]]] = {"put": "PutItem", "get": "GetItem"}


class Measured(NamedTuple):
    """The requests per second of a round, and processor times per request in µs."""

    rate: float
    busiest_us: float
    nodes_us: float
    postgresql_us: float


# The number of nodes, how clients choose one, and the kind of request.
Case: TypeAlias = tuple[int, str, str]


class Bench:
    """Clusters with tables, and the rounds on them."""

    def __init__(self, postgresql: Postgresql, clusters: dict[int, Cluster], tables: int) -> None:
        self._postgresql = postgresql
        self._clusters = clusters
        self._tables = [f"load{number}" for number in range(tables)]
        self._homes: dict[int, dict[str, int]] = {}

    def create_tables(self) -> None:
        """Create the tables of each cluster, and wait until they are spread."""
        for count, cluster in self._clusters.items():
            with closing(WireClient(cluster.endpoints[0])) as wire:
                for name in self._tables:
                    wire("CreateTable", create_table(name, indexed=False))
            self._homes[count] = self._spread(cluster)

    def _spread(self, cluster: Cluster) -> dict[str, int]:
        most = -(-len(self._tables) // len(cluster.servers))
        give_up_at = time.monotonic() + _SPREAD_SECONDS
        while time.monotonic() < give_up_at:
            homes = {
                name: number
                for number in cluster.servers
                for name in _TABLE_SERIES.findall(cluster.ask(number, "/metrics").body.decode())
            }
            counts = [list(homes.values()).count(number) for number in cluster.servers]
            if max(counts) <= most and sum(counts) == len(self._tables):
                return homes
            time.sleep(1)
        raise TimeoutError(f"the tables are not spread after {_SPREAD_SECONDS} s: {counts}")

    async def measure(self, case: Case, told: Namespace) -> Measured:
        """Run one round."""
        count, choice, line = case
        cluster = self._clusters[count]
        connections = told.connections * (count if told.per_node else 1) // len(self._tables)
        loads = []
        for name in self._tables:
            at_home = [self._homes[count][name]]
            numbers = at_home if choice == "home" else list(cluster.servers)
            for position, number in enumerate(numbers):
                address = urlsplit(cluster.endpoints[number])
                plan = Plan(
                    address.hostname or "",
                    address.port or 0,
                    name,
                    _OPERATIONS[line],
                    connections=_share(connections, position, len(numbers)),
                    seconds=told.seconds,
                    keys=_KEYS,
                )
                loads += [Load(plan)] if plan.connections else []
        await asyncio.gather(*(load.warm_up() for load in loads))
        pids = [server.process.pid for server in cluster.servers.values()]
        began = [process_seconds(pid) for pid in pids], postgresql_seconds(self._postgresql)
        reports = await asyncio.gather(*(load.measure() for load in loads))
        spent = [process_seconds(pid) - was for pid, was in zip(pids, began[0], strict=True)]
        in_postgresql = postgresql_seconds(self._postgresql) - began[1]
        assert not sum(report.errors for report in reports)
        requests = sum(report.requests for report in reports)
        micro = 1e6 / requests
        rate = sum(report.requests / report.seconds for report in reports)
        return Measured(rate, max(spent) * micro, sum(spent) * micro, in_postgresql * micro)


def _share(connections: int, position: int, parts: int) -> int:
    return connections * (position + 1) // parts - connections * position // parts


def _parsed() -> Namespace:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--lines", nargs="+", choices=list(_OPERATIONS), default=list(_OPERATIONS))
    parser.add_argument("--nodes", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--tables", type=int, default=8)
    parser.add_argument("--connections", type=int, default=128, help="of all tables together")
    parser.add_argument(
        "--per-node",
        action="store_true",
        help="multiply the connections by the number of nodes, so each node has as many",
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each round")
    return parser.parse_args()


async def _run(bench: Bench, told: Namespace, console: Console) -> None:
    cases = [
        (count, choice, line)
        for line, count, choice in product(told.lines, told.nodes, ("home", "any"))
        if count > 1 or choice == "home"
    ]
    rounds: dict[Case, list[Measured]] = {case: [] for case in cases}
    for _ in range(told.rounds):
        for case in cases:
            rounds[case].append(await bench.measure(case, told))
            console.print(*case, *(f"{each:.0f}" for each in rounds[case][-1]))
    shown = Table("Request", "Nodes", "Clients use", "Requests/s", "Busiest", "All", "PostgreSQL")
    for (count, choice, line), measured in rounds.items():
        figures = [f"{median(each):.0f}" for each in zip(*measured, strict=True)]
        shown.add_row(line, str(count), choice, *figures)
    console.print(shown)


def main() -> None:
    told = _parsed()
    with running_postgresql(_SETTINGS) as postgresql, ExitStack() as stack:
        clusters = {
            count: stack.enter_context(running_cluster(postgresql.url(), ports=unused_ports(count)))
            for count in told.nodes
        }
        bench = Bench(postgresql, clusters, told.tables)
        bench.create_tables()
        asyncio.run(_run(bench, told, Console()))


if __name__ == "__main__":
    main()
