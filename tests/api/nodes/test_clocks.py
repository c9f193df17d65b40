"""A node whose clock is wrong gives its tables away, and is a home again once it is right."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest
import structlog

from tests.support.environment.simulated_loop import simulated
from tests.support.servers.simulated_cluster import SimulatedCluster

NAMES = ("n1", "n2", "n3")


@asynccontextmanager
async def three_nodes() -> AsyncIterator[SimulatedCluster]:
    cluster = SimulatedCluster()
    for number in (1, 2, 3):
        await cluster.start(number)
    try:
        await until(lambda: len(cluster.database.claims) == 4)
        yield cluster
        assert cluster.database.violations == []
    finally:
        cluster.end()


async def until(is_true: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not is_true():
            await anyio.sleep(0.01)


def leader_of(cluster: SimulatedCluster) -> str:
    return cluster.database.home_name() or ""


def tables_of(cluster: SimulatedCluster, name: str) -> int:
    """The number of tables whose claims name a node."""
    share = cluster.nodes[name].membership.share
    return sum(share == claim.epoch for claim in cluster.database.claims.values())


@simulated
async def test_a_node_with_a_wrong_clock_gives_its_tables_away_and_gets_some_when_it_is_right() -> (
    None
):
    async with three_nodes() as cluster:
        name = min(set(NAMES) - {leader_of(cluster)})
        clocks = cluster.database.ahead_seconds
        assert tables_of(cluster, name) == 2
        clocks[name] = -1.1
        await until(lambda: cluster.nodes[name].membership.share == 0)
        assert cluster.nodes[name].figures.clock_ahead_seconds == -1.1
        # Not quite right: tables would move each second at a difference of about a second.
        clocks[name] = -0.95
        with structlog.testing.capture_logs() as logged:
            await anyio.sleep(20)
        assert cluster.nodes[name].membership.share == 0
        # Each opening of a share would raise an epoch.
        assert [line for line in logged if line["event"] == "share_opened"] == []
        assert (await cluster.put(int(name[1:]), "forwarded", "ta")).status == 200
        clocks[name] = -0.5
        await until(lambda: tables_of(cluster, name) > 0)


@simulated
async def test_a_leader_with_a_wrong_clock_lets_another_node_lead() -> None:
    async with three_nodes() as cluster:
        leader = leader_of(cluster)
        wrong = min(set(NAMES) - {leader})
        cluster.database.ahead_seconds |= {leader: 2.0, wrong: 2.0}
        (right,) = set(NAMES) - {leader, wrong}
        await until(lambda: leader_of(cluster) == right)
        await anyio.sleep(30)
        assert leader_of(cluster) == right


@pytest.mark.parametrize("place", [0, 1])
@simulated
async def test_a_node_with_a_wrong_clock_does_not_follow_a_killed_leader(place: int) -> None:
    async with three_nodes() as cluster:
        leader = leader_of(cluster)
        others = sorted(set(NAMES) - {leader})
        wrong, right = others[place], others[1 - place]
        cluster.database.ahead_seconds[wrong] = 2.0
        await until(lambda: cluster.nodes[wrong].membership.has_wrong_clock)
        cluster.kill(int(leader[1:]))
        # The node with the right clock would often be faster anyway.
        cluster.pause(int(right[1:]))
        node = cluster.nodes[wrong]
        await until(node._lacks_leader)
        assert not await node._may_become_leader()
        assert cluster.database.owner is None
        cluster.resume(int(right[1:]))
        await until(lambda: leader_of(cluster) == right)


@simulated
async def test_a_leader_remains_while_all_clocks_are_wrong() -> None:
    async with three_nodes() as cluster:
        leader = leader_of(cluster)
        cluster.database.ahead_seconds |= dict.fromkeys(NAMES, 2.0)
        await anyio.sleep(30)
        assert leader_of(cluster) == leader
        assert (await cluster.put(1, "still", "ta")).status == 200


@simulated
async def test_an_answer_that_says_nothing_about_the_clock_changes_nothing() -> None:
    async with three_nodes() as cluster:
        membership = cluster.nodes["n1"].membership
        membership._note_clock(3.0)
        membership._note_clock(None)
        assert membership.has_wrong_clock
