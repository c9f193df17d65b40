"""Random faults of simulated nodes, while clients write; no write is lost or done twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import Final

import anyio

from dynactor.api.nodes.node_link import AnswerLost
from tests.support.servers.simulated_cluster import SimulatedCluster

FAULTS: Final = 6
_CLIENTS: Final = 4
_LEAST_WRITES: Final = 100


class FaultyRun:
    """Writes of clients to the nodes that are up, until ``end``."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        draw: Random,
        nodes: Collection[int],
        tables: Callable[[], Sequence[str]],
    ) -> None:
        """``tables`` draws the tables of a write."""
        self._cluster = cluster
        self._draw = draw
        self._nodes = frozenset(nodes)
        self._up = set(nodes)
        self._tables = tables
        self._acknowledged: list[str] = []
        self._refused: list[str] = []
        self._is_ended = False

    async def survive(
        self, node: Callable[[], int], probes: Sequence[Sequence[str]], pause_seconds: float
    ) -> None:
        """Let nodes fail one after another, and check all writes.

        ``node`` draws the next node that fails. After each fault it has to write to the tables of
        each of the ``probes``. The pauses before the faults are ``pause_seconds`` at most.
        """
        async with asyncio.TaskGroup() as tasks:
            for client in range(_CLIENTS):
                tasks.create_task(self._write(client))
            for _ in range(FAULTS):
                await anyio.sleep(self._draw.random() * pause_seconds)
                number = node()
                self._up.discard(number)
                await self._fail(number)
                self._up.add(number)
                for tables in probes:
                    while (await self._cluster.put(number, "probe", *tables)).status != 200:
                        await anyio.sleep(0.1)
            self._is_ended = True
        self._check()

    async def _fail(self, number: int) -> None:
        cluster, draw = self._cluster, self._draw
        match draw.choice(("kill", "leave", "pause", "cut")):
            case "kill":
                cluster.kill(number)
                await anyio.sleep(draw.random() * 8)
                await cluster.start(number)
            case "leave":
                await cluster.leave(number)
                await cluster.start(number)
            case "pause":
                cluster.pause(number)
                await anyio.sleep(draw.random() * 10)
                cluster.resume(number)
            case "cut":
                others = sorted(self._nodes - {number})
                for other in draw.choice((others, others[:1])):
                    cluster.cut(number, other)
                await anyio.sleep(draw.random() * 8)
                cluster.heal()

    async def _write(self, client: int) -> None:
        number = 0
        while not self._is_ended:
            number += 1
            text = f"{client} {number}"
            node = self._draw.choice(sorted(self._up))
            try:
                answer = await self._cluster.put(node, text, *self._tables())
            except AnswerLost:
                continue
            if answer.status == 200:
                self._acknowledged.append(text)
            elif b"unknown" not in answer.body:
                self._refused.append(text)
            await anyio.sleep(self._draw.random() / 20)

    def _check(self) -> None:
        written = Counter(text for text in self._cluster.database.written if text != "probe")
        assert max(written.values()) == 1
        assert set(self._acknowledged) <= written.keys()
        assert not written.keys() & set(self._refused)
        assert len(self._acknowledged) > _LEAST_WRITES
