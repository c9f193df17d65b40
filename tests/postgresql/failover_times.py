"""Measures how soon writes continue after a kill of the home.

``python -m tests.postgresql.failover_times 20`` kills the home 20 times.
"""

from __future__ import annotations

import sys
from contextlib import closing
from statistics import quantiles
from time import perf_counter

from tests.support.clients.clients import WireClient
from tests.support.servers.cluster import Cluster, running_cluster
from tests.support.servers.postgresql import running_postgresql
from tests.support.tables.tables import definition

_TABLE = "Threads"


def _main(kills: int) -> None:
    with running_postgresql() as postgresql, running_cluster(postgresql.url()) as cluster:
        with closing(WireClient(cluster.endpoints[0])) as wire:
            wire("CreateTable", definition("pk:S", name=_TABLE))
        seconds = [_seconds_without_writes(cluster, number) for number in range(kills)]
    cuts = quantiles(seconds, n=100, method="inclusive")
    sys.stdout.write(
        f"Writes continued after {cuts[49]:.2f} s by p50, {cuts[98]:.2f} s by p99, "
        f"{max(seconds):.2f} s at most, over {kills} kills\n"
    )


def _seconds_without_writes(cluster: Cluster, number: int) -> float:
    """Kill the home, write through another node, and start the killed node again."""
    home = cluster.home()
    other = (home + 1 + number % 2) % len(cluster.ports)
    with closing(WireClient(cluster.endpoints[other])) as wire:
        _put(wire, f"before{number}")
        cluster.kill(home)
        began = perf_counter()
        while _put(wire, f"after{number}") != 200:
            continue
        ended = perf_counter()
    cluster.start(home)
    return ended - began


def _put(wire: WireClient, key: str) -> int:
    return wire.send("PutItem", {"TableName": _TABLE, "Item": {"pk": {"S": key}}}).status


if __name__ == "__main__":
    _main(int(sys.argv[1]))
