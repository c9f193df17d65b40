"""A cluster whose home fails, for the clients of histories."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from random import Random
from typing import Literal, TypeAlias

from tests.support.clients.wire import Connection
from tests.support.histories.restarting_server import RestartingServer
from tests.support.servers.cluster import Cluster, running_cluster
from tests.support.servers.peer_network import Pair

ClusterFault: TypeAlias = Literal["kill", "pause", "stop", "cut"]


class HistoryCluster(RestartingServer):
    """Nodes on one database. Each new connection goes to the next node.

    ``faults`` happen one after another, each to the node that is the home then.
    """

    def __init__(self, store_url: str, seed: int, faults: list[ClusterFault]) -> None:
        self.kills = 0
        self.timeouts = 0
        self.draw = Random(seed)
        self._url = store_url
        self._planned = iter(faults)
        self._has_network = "cut" in faults
        self._turns = count()
        self._cluster: Cluster | None = None
        self._paused: set[int] = set()

    @property
    def cluster(self) -> Cluster:
        """The running nodes."""
        assert self._cluster is not None
        return self._cluster

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run three nodes, and kill them at the end."""
        with running_cluster(self._url, has_network=self._has_network) as self._cluster:
            yield

    async def connect(self) -> Connection:
        """Open a connection to the next running node."""
        numbers = [number for number in self.cluster.servers if number not in self._paused]
        number = numbers[next(self._turns) % len(numbers)]
        return await Connection.open("127.0.0.1", self.cluster.ports[number])

    async def disturb(self) -> None:
        """Let the next fault happen to the home, wait for another home, and repair the fault."""
        cluster = self.cluster
        home = await asyncio.to_thread(cluster.home)
        fault = next(self._planned)
        if fault == "cut":
            await asyncio.to_thread(self._cut_off, home)
            self.kills += 1
            return
        match fault:
            case "kill":
                await asyncio.to_thread(cluster.kill, home)
            case "stop":
                assert await asyncio.to_thread(cluster.stop, home) == 0
            case "pause":
                self._paused.add(home)
                cluster.pause(home)
        await asyncio.to_thread(cluster.home, without=home)
        if fault == "pause":
            cluster.resume(home)
            # Until it notices that another node is the home, it refuses reads.
            await asyncio.to_thread(cluster.home)
            self._paused.clear()
        else:
            await asyncio.to_thread(cluster.start, home)
        self.kills += 1

    def _cut_off(self, home: int) -> None:
        """Cut the home off from the others until they are not ready."""
        cluster, network = self.cluster, self.cluster.network
        assert network is not None
        others = [number for number in cluster.servers if number != home]
        pairs = [Pair((home, other)) for other in others]
        with network.cut(pairs, is_silent=self.draw.random() < 0.5):
            while any(cluster.ask(other, "/ready").status == 200 for other in others):
                continue
        cluster.home()
