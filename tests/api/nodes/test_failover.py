"""Nodes on simulated time: one is the home, and no write is lost or done twice when it fails."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Final

import anyio
import pytest

from dynactor.storage.store import CannotOpen
from tests.support.environment.simulated_loop import SimulatedLoop, simulated
from tests.support.servers.simulated_cluster import SimulatedCluster
from tests.support.servers.simulated_faults import FaultyRun

NODES: Final = (1, 2, 3)
SEEDS: Final = 5


@asynccontextmanager
async def running_cluster() -> AsyncIterator[SimulatedCluster]:
    cluster = SimulatedCluster()
    async with asyncio.TaskGroup() as tasks:
        for number in NODES:
            tasks.create_task(cluster.start(number))
    try:
        yield cluster
    finally:
        cluster.end()


def home_of(cluster: SimulatedCluster) -> int:
    name = cluster.database.home_name()
    assert name is not None
    return int(name.removeprefix("n"))


async def seconds_until_written(cluster: SimulatedCluster, number: int) -> float:
    """The time until a node has answered a write with success."""
    began = cluster.loop.time()
    while (await cluster.put(number, f"after {began}")).status != 200:
        continue
    return cluster.loop.time() - began


@simulated
async def test_one_of_the_nodes_that_start_together_is_the_home() -> None:
    async with running_cluster() as cluster:
        for number in NODES:
            assert (await cluster.put(number, f"{number}")).status == 200
        assert sorted(cluster.database.written) == ["1", "2", "3"]
        assert cluster.database.epoch == 1
        states = [node.state for node in cluster.nodes.values()]
        assert {state.home for state in states} == {cluster.database.home_name()}
        assert sorted(node.is_ready for node in cluster.nodes.values()) == [True] * 3


@simulated
async def test_a_node_that_cannot_reach_the_home_names_the_home_and_the_reason() -> None:
    async with running_cluster() as cluster:
        home = home_of(cluster)
        cluster.unreachable.add(f"n{home}")
        reason = rf"Node n{home} is the home of .* reached at n{home} \(the node has ended\)"
        with pytest.raises(CannotOpen, match=reason):
            await cluster.start(4)


@simulated
async def test_a_node_starts_although_it_opens_the_tables_for_a_long_time() -> None:
    cluster = SimulatedCluster()
    cluster.open_seconds = 60.0
    await cluster.start(1)
    assert (await cluster.put(1, "first")).status == 200
    cluster.end()


@simulated
async def test_a_node_that_leaves_while_it_opens_the_tables_does_not_become_the_home() -> None:
    async with running_cluster() as cluster:
        cluster.open_seconds = 5.0
        cluster.kill(home_of(cluster))
        with anyio.fail_after(10):
            while (name := cluster.database.owner) is None:
                await anyio.sleep(0.01)
        node = cluster.nodes[name]
        await cluster.leave(int(name.removeprefix("n")))
        assert node.figures.times_leader == 0


@simulated
async def test_writes_continue_within_half_a_second_after_a_kill_of_the_home() -> None:
    async with running_cluster() as cluster:
        home = home_of(cluster)
        cluster.kill(home)
        assert await seconds_until_written(cluster, home % 3 + 1) < 0.5


@simulated
async def test_a_suspended_home_is_replaced_after_missed_beats_and_writes_nothing_later() -> None:
    async with running_cluster() as cluster:
        home = home_of(cluster)
        other = home % 3 + 1
        in_flight = asyncio.create_task(cluster.put(home, "in flight"))
        await anyio.sleep(0.005)
        cluster.pause(home)
        assert await seconds_until_written(cluster, other) < 8
        cluster.resume(home)
        answer = await in_flight
        assert (answer.status, b"taken over" in answer.body) == (500, True)
        assert "in flight" not in cluster.database.written
        # The suspended node forwards, after its next renewal at the latest.
        await anyio.sleep(1.1)
        assert (await cluster.put(home, "forwarded")).status == 200
        assert cluster.nodes[f"n{home}"].leadership is None


@simulated
async def test_a_leaving_home_hands_over_and_fails_no_request() -> None:
    async with running_cluster() as cluster:
        home = home_of(cluster)
        others = [number for number in NODES if number != home]
        answers = [
            asyncio.create_task(cluster.put(number, f"{number} {turn}"))
            for turn in range(20)
            for number in others
        ]
        leaving = asyncio.create_task(cluster.leave(home))
        assert {(await answer).status for answer in answers} == {200}
        await leaving
        assert await seconds_until_written(cluster, others[0]) < 0.5
        assert home_of(cluster) in others
        assert max(Counter(cluster.database.written).values()) == 1


@simulated
async def test_a_write_whose_answer_is_lost_is_unknown_and_not_repeated() -> None:
    async with running_cluster() as cluster:
        home = home_of(cluster)
        asked = asyncio.create_task(cluster.put(home % 3 + 1, "written"))
        while not cluster.database.written:
            await anyio.sleep(0.001)
        cluster.kill(home)
        answer = await asked
        assert (answer.status, b"Whether this was written is unknown" in answer.body) == (500, True)
        assert await seconds_until_written(cluster, home % 3 + 1) < 0.5
        assert cluster.database.written.count("written") == 1


@simulated
async def test_without_a_home_a_request_gets_a_retryable_error_after_10_seconds() -> None:
    async with running_cluster() as cluster:
        home = home_of(cluster)
        cluster.kill(home)
        # Another program keeps the database.
        cluster.database.owner = "another program"
        cluster.database.epoch += 1
        began = cluster.loop.time()
        node = cluster.nodes[f"n{home % 3 + 1}"]
        asked = asyncio.create_task(cluster.put(home % 3 + 1, "never"))
        await anyio.sleep(5)
        assert (node.is_ready, node.readiness) == (False, "")
        answer = await asked
        assert answer.status == 500
        assert b"Nothing was written: no node" in answer.body
        assert 10 <= cluster.loop.time() - began < 11
        assert cluster.database.written == []
        await anyio.sleep(1)
        assert node.readiness == "this node has no connection to a home of the tables"


@pytest.mark.parametrize("seed", range(SEEDS))
def test_writes_are_done_once_at_most_over_random_faults(seed: int) -> None:
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(seed)) as runner:
        runner.run(random_faults(Random(seed)))


async def random_faults(draw: Random) -> None:
    async with running_cluster() as cluster:

        def node() -> int:
            return home_of(cluster) if draw.random() < 0.7 else draw.choice(NODES)

        run = FaultyRun(cluster, draw, NODES, tables=lambda: ())
        await run.survive(node, probes=[()], pause_seconds=2)
