"""While PostgreSQL is slow, no table waits longer than it must for a new home."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import anyio

from tests.support.environment.simulated_loop import simulated
from tests.support.servers.simulated_cluster import SimulatedCluster
from tests.support.stores.stepped_store import turns

_SLOW_SECONDS: Final = 20.0


@asynccontextmanager
async def three_nodes() -> AsyncIterator[tuple[SimulatedCluster, list[int]]]:
    """A cluster, and the numbers of the two nodes that have shares with tables."""
    cluster = SimulatedCluster()
    for number in (1, 2, 3):
        await cluster.start(number)
    leader = int((cluster.database.home_name() or "").removeprefix("n"))
    others = [number for number in (1, 2, 3) if number != leader]
    try:
        await until(lambda: all(tables_of(cluster, number) for number in others))
        yield cluster, others
        assert cluster.database.violations == []
    finally:
        cluster.end()


def tables_of(cluster: SimulatedCluster, number: int) -> set[str]:
    """The tables that a node has opened in its share."""
    share = cluster.nodes[f"n{number}"].membership.share
    opened = cluster.database.opened
    return {name for name, owner in opened.items() if share and owner[1] == share}


def are_at_leader(cluster: SimulatedCluster, names: set[str]) -> bool:
    return all(cluster.database.opened[name][1] == 0 for name in names)


async def until(is_true: Callable[[], bool], seconds: float = 60) -> None:
    with anyio.fail_after(seconds):
        while not is_true():
            await anyio.sleep(0.01)


@simulated
async def test_tables_that_are_given_back_do_not_wait_for_an_answer_about_another_node() -> None:
    async with three_nodes() as (cluster, (silent, leaving)):
        given = tables_of(cluster, leaving)
        # A fence is asked for after two beats.
        cluster.database.fence_seconds = _SLOW_SECONDS
        cluster.pause(silent)
        await anyio.sleep(4)
        async with anyio.create_task_group() as group:
            group.start_soon(cluster.leave, leaving)
            await until(lambda: are_at_leader(cluster, given), _SLOW_SECONDS / 4)


@simulated
async def test_the_shares_of_two_ended_nodes_are_taken_at_the_same_time() -> None:
    async with three_nodes() as (cluster, others):
        names = set().union(*(tables_of(cluster, number) for number in others))
        cluster.database.fence_seconds = _SLOW_SECONDS
        for number in others:
            cluster.kill(number)
        await until(lambda: are_at_leader(cluster, names), 1.5 * _SLOW_SECONDS)


@simulated
async def test_a_request_does_not_wait_until_the_followers_of_its_table_have_started() -> None:
    async with three_nodes() as (cluster, others):
        leader = 6 - sum(others)
        cluster.database.follow_seconds = _SLOW_SECONDS
        for ended in others:
            table = min(tables_of(cluster, ended))
            cluster.kill(ended)
            asking = asyncio.create_task(cluster.put(leader, f"to {table}", table))
            await until(partial(are_at_leader, cluster, {table}))
            with anyio.fail_after(0.1):
                assert (await asking).status == 200


@simulated
async def test_requests_look_for_their_home_when_a_table_was_opened() -> None:
    async with three_nodes() as (cluster, others):
        leader = cluster.nodes[f"n{6 - sum(others)}"]
        other = cluster.nodes[f"n{others[0]}"]
        for node, guard in ((leader, leader._spreader), (other, other._keeper)):
            assert guard is not None
            waiting = asyncio.create_task(node._changes.wait(60))
            await turns(1)
            guard.opened()
            # No time passes.
            await turns()
            assert waiting.done()


@simulated
async def test_the_share_of_a_removed_node_is_taken_without_an_earlier_answer_about_it() -> None:
    async with three_nodes() as (cluster, (silent, _)):
        names = tables_of(cluster, silent)
        cluster.database.fence_seconds = _SLOW_SECONDS
        cluster.pause(silent)
        # The node is removed after 5 beats. Before, its session shows that it has not ended.
        await until(lambda: are_at_leader(cluster, names), 1.5 * _SLOW_SECONDS)
