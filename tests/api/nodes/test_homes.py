"""Nodes on simulated time share the tables, and no table ever has two homes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Final

import anyio
import pytest

from dynactor.api.http.protocol import JSON_1_0, Answer, Request
from tests.support.clients.clients import AUTHORIZATION
from tests.support.environment.simulated_loop import SimulatedLoop, simulated
from tests.support.servers.simulated_cluster import TABLES, SimulatedCluster
from tests.support.servers.simulated_faults import FaultyRun

NODES: Final = (1, 2, 3)
SEEDS: Final = 5


@asynccontextmanager
async def spread_cluster() -> AsyncIterator[SimulatedCluster]:
    """Three nodes with two tables each."""
    cluster = SimulatedCluster()
    async with asyncio.TaskGroup() as tasks:
        for number in NODES:
            tasks.create_task(cluster.start(number))
    try:
        await until(lambda: is_spread(cluster))
        yield cluster
        assert cluster.database.violations == []
    finally:
        cluster.end()


def is_spread(cluster: SimulatedCluster) -> bool:
    """Whether each node has opened two tables, and no table moves."""
    database = cluster.database
    shares = Counter(
        claim.epoch
        for table, claim in database.claims.items()
        if not claim.is_recalled and database.opened[table] == (0, claim.epoch)
    )
    return sorted(shares.values()) == [2, 2]


async def until(is_true: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not is_true():
            await anyio.sleep(0.01)


def leader_of(cluster: SimulatedCluster) -> int:
    name = cluster.database.home_name()
    assert name is not None
    return int(name.removeprefix("n"))


def home_of(cluster: SimulatedCluster, table: str) -> int:
    """The number of the node that a table's claim names, or of the leader."""
    claim = cluster.database.claims.get(table)
    if claim is None:
        return leader_of(cluster)
    rows = cluster.database.rows.values()
    return next(int(row.name.removeprefix("n")) for row in rows if row.share == claim.epoch)


def given_table(cluster: SimulatedCluster) -> str:
    return min(cluster.database.claims)


@simulated
async def test_each_node_gets_its_share_of_the_tables_and_all_nodes_answer_for_all() -> None:
    async with spread_cluster() as cluster:
        homes = Counter(home_of(cluster, table) for table in TABLES)
        assert homes == {1: 2, 2: 2, 3: 2}
        for number in NODES:
            for table in TABLES:
                assert (await cluster.put(number, f"{number} {table}", table)).status == 200
        assert len(cluster.database.written) == len(NODES) * len(TABLES)


@simulated
async def test_tables_of_a_killed_node_have_another_home_within_half_a_second() -> None:
    async with spread_cluster() as cluster:
        table = given_table(cluster)
        home = home_of(cluster, table)
        cluster.kill(home)
        began = cluster.loop.time()
        assert (await cluster.put(leader_of(cluster), "after", table)).status == 200
        assert cluster.loop.time() - began < 0.5


@simulated
async def test_tables_with_other_homes_are_served_while_there_is_no_leader() -> None:
    async with spread_cluster() as cluster:
        table = given_table(cluster)
        cluster.kill(leader_of(cluster))
        cluster.database.owner = "another program"
        began = cluster.loop.time()
        assert (await cluster.put(home_of(cluster, table), "meanwhile", table)).status == 200
        assert cluster.loop.time() - began < 0.1


@simulated
async def test_a_suspended_home_writes_nothing_after_its_tables_have_another_home() -> None:
    async with spread_cluster() as cluster:
        table = given_table(cluster)
        home = home_of(cluster, table)
        in_flight = asyncio.create_task(cluster.put(home, "in flight", table))
        await anyio.sleep(0.005)
        cluster.pause(home)
        while (await cluster.put(leader_of(cluster), "after", table)).status != 200:
            continue
        cluster.resume(home)
        answer = await in_flight
        assert (answer.status, b"taken over" in answer.body) == (500, True)
        assert "in flight" not in cluster.database.written


@simulated
async def test_tables_of_one_transaction_keep_one_home() -> None:
    async with spread_cluster() as cluster:
        tables = sorted(TABLES, key=lambda table: home_of(cluster, table))[1:5:3]
        assert len({home_of(cluster, table) for table in tables}) == 2
        assert (await cluster.put(3, "both", *tables)).status == 200
        await anyio.sleep(60)
        assert len({home_of(cluster, table) for table in tables}) == 1
        moves = cluster.database.claims_version
        assert (await cluster.put(2, "again", *tables)).status == 200
        await anyio.sleep(10)
        assert cluster.database.claims_version == moves
        assert cluster.database.written == ["both", "again"]


@simulated
async def test_an_operation_of_the_leader_gets_the_table() -> None:
    async with spread_cluster() as cluster:
        table = given_table(cluster)
        answer = await cluster.put(1, "backups", table, operation="UpdateContinuousBackups")
        assert answer.status == 200
        assert home_of(cluster, table) == leader_of(cluster)


@simulated
async def test_a_client_sends_no_message_of_nodes() -> None:
    async with spread_cluster() as cluster:
        number = next(each for each in NODES if each != leader_of(cluster))
        message = Request("dynactor.ClaimsChanged", JSON_1_0, AUTHORIZATION, *("",) * 4, b"")
        answer = cluster.protocols[f"n{number}"].answer(message)
        assert not isinstance(answer, Answer)
        assert (await answer).status == 400


@simulated
async def test_a_leaving_node_gives_its_tables_back_and_fails_no_request() -> None:
    async with spread_cluster() as cluster:
        table = given_table(cluster)
        home = home_of(cluster, table)
        others = [number for number in NODES if number != home]
        answers = [
            asyncio.create_task(cluster.put(number, f"{number} {turn}", table))
            for turn in range(20)
            for number in others
        ]
        leaving = asyncio.create_task(cluster.leave(home))
        assert {(await answer).status for answer in answers} == {200}
        await leaving
        assert (await cluster.put(others[0], "after", table)).status == 200
        assert max(Counter(cluster.database.written).values()) == 1


def others_than(*numbers: int) -> list[int]:
    return [number for number in NODES if number not in numbers]


@simulated
async def test_a_node_cut_off_from_a_home_reaches_it_through_the_leader() -> None:
    async with spread_cluster() as cluster:
        table = given_table(cluster)
        home = home_of(cluster, table)
        (other,) = others_than(home, leader_of(cluster))
        cluster.cut(home, other)
        began = cluster.loop.time()
        assert (await cluster.put(other, "relayed", table)).status == 200
        assert cluster.loop.time() - began < 0.1
        await anyio.sleep(20)
        assert home_of(cluster, table) == home
        assert all(node.is_ready for node in cluster.nodes.values())


@simulated
async def test_the_leader_takes_the_tables_of_a_node_that_it_is_cut_off_from() -> None:
    async with spread_cluster() as cluster:
        table = given_table(cluster)
        home, leader = home_of(cluster, table), leader_of(cluster)
        cluster.cut(home, leader)
        began = cluster.loop.time()
        assert (await cluster.put(leader, "during the cut", table)).status == 200
        assert cluster.loop.time() - began < 5
        assert home_of(cluster, table) == leader
        cluster.heal()
        await until(lambda: home in {home_of(cluster, each) for each in TABLES})
        assert (await cluster.put(home, "after the cut", table)).status == 200


@simulated
async def test_nodes_cut_off_from_the_leader_are_soon_not_ready() -> None:
    async with spread_cluster() as cluster:
        leader = leader_of(cluster)
        for other in others_than(leader):
            cluster.cut(leader, other)
        await anyio.sleep(1)
        assert {node.readiness for node in cluster.nodes.values()} == {""}
        await anyio.sleep(3)
        ready = {name for name, node in cluster.nodes.items() if not node.readiness}
        assert ready == {f"n{leader}"}
        for table in TABLES:
            assert (await cluster.put(leader, "during the cut", table)).status == 200
        cluster.heal()
        await until(lambda: all(not node.readiness for node in cluster.nodes.values()))


@simulated
async def test_two_busy_tables_of_one_node_get_different_homes_and_stay_there() -> None:
    async with spread_cluster() as cluster:
        home = home_of(cluster, given_table(cluster))
        busy = [table for table in TABLES if home_of(cluster, table) == home]
        assert len(busy) == 2

        async def write() -> None:
            while True:
                await cluster.put(home, "busy", draw.choice(busy))
                await anyio.sleep(0.2)

        draw = Random(1)
        async with asyncio.TaskGroup() as tasks:
            writers = [tasks.create_task(write()) for _ in range(4)]
            await until(lambda: len({home_of(cluster, table) for table in busy}) == 2)
            await anyio.sleep(20)
            moves = cluster.database.claims_version
            await anyio.sleep(60)
            assert cluster.database.claims_version == moves
            assert len({home_of(cluster, table) for table in busy}) == 2
            for writer in writers:
                writer.cancel()


@simulated
async def test_a_new_node_gets_a_share() -> None:
    async with spread_cluster() as cluster:
        await cluster.start(4)
        await until(lambda: any(home_of(cluster, table) == 4 for table in TABLES))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_table_has_two_homes_over_random_faults(seed: int) -> None:
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(seed)) as runner:
        runner.run(random_faults(Random(seed)))


async def random_faults(draw: Random) -> None:
    async with spread_cluster() as cluster:

        def tables() -> list[str]:
            return draw.sample(TABLES[:4], 2) if draw.random() < 0.02 else [draw.choice(TABLES)]

        run = FaultyRun(cluster, draw, NODES, tables)
        probes = [[table] for table in TABLES]
        await run.survive(lambda: draw.choice(NODES), probes, pause_seconds=4)
