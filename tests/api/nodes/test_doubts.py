"""While a commit may still be written, its node gives no table away; afterwards it does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from tests.support.environment.simulated_loop import simulated
from tests.support.servers.simulated_cluster import SimulatedCluster


@asynccontextmanager
async def two_nodes() -> AsyncIterator[tuple[SimulatedCluster, int, int]]:
    """A cluster, the number of its leader, and that of the node with the other tables."""
    cluster = SimulatedCluster()
    await cluster.start(1)
    await cluster.start(2)
    leader = int((cluster.database.home_name() or "").removeprefix("n"))
    try:
        await until(lambda: len(opened(cluster, 3 - leader)) == 3)
        yield cluster, leader, 3 - leader
        assert cluster.database.violations == []
    finally:
        cluster.end()


def opened(cluster: SimulatedCluster, number: int) -> list[str]:
    """The tables that a node has opened in its share."""
    share = cluster.nodes[f"n{number}"].membership.share
    return [name for name, owner in cluster.database.opened.items() if share and owner[1] == share]


async def until(is_true: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not is_true():
            await anyio.sleep(0.01)


def share_store(cluster: SimulatedCluster, number: int) -> Any:
    keeper = cluster.nodes[f"n{number}"]._keeper
    assert keeper is not None
    assert keeper.share is not None
    return keeper.share.store


@simulated
async def test_a_node_that_leaves_gives_its_tables_once_its_doubt_has_ended() -> None:
    async with two_nodes() as (cluster, _, other):
        store = share_store(cluster, other)
        store.is_in_doubt = True
        shares = dict(cluster.database.shares)
        leaving = asyncio.create_task(cluster.leave(other))
        await anyio.sleep(2)
        assert len(cluster.database.claims) == 3
        store.is_in_doubt = False
        await until(lambda: not cluster.database.claims)
        await leaving
        # The leader did not have to end the share.
        assert cluster.database.shares == shares


@simulated
async def test_a_node_in_doubt_keeps_its_recalled_tables_open_until_the_doubt_has_ended() -> None:
    async with two_nodes() as (cluster, leader, other):
        table = min(cluster.database.claims)
        store = share_store(cluster, other)
        store.is_in_doubt = True
        recalling = asyncio.create_task(cluster.nodes[f"n{leader}"].recall(table))
        await until(lambda: cluster.database.claims[table].is_recalled)
        for _ in range(5):
            await anyio.sleep(1)
            assert (await cluster.put(other, "meanwhile", table)).status == 200
        assert share_store(cluster, other) is store
        store.is_in_doubt = False
        await until(lambda: table not in cluster.database.claims)
        await recalling


@simulated
async def test_a_leader_gives_tables_once_its_doubt_has_ended() -> None:
    cluster = SimulatedCluster()
    try:
        await cluster.start(1)
        home = cluster.nodes["n1"].leadership
        assert home is not None
        store: Any = home.store
        store.is_in_doubt = True
        await cluster.start(2)
        await anyio.sleep(20)
        assert not cluster.database.claims
        store.is_in_doubt = False
        await until(lambda: len(cluster.database.claims) == 3)
    finally:
        cluster.end()
