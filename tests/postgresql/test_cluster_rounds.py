"""Rounds of faults of a cluster under load; indexes, streams, time to live and Kafka survive each.

``--rounds 50`` makes 50 rounds of kill -9 of a node, 20 of a suspended node, and 20 of a promoted
standby. It makes 10 rolling restarts, and cuts nodes off from each other 10 times.
"""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from random import Random
from statistics import quantiles
from time import perf_counter
from typing import Final, NamedTuple

import pytest

from tests.support.environment.maven_jars import NotFetched
from tests.support.kafka.kafka_broker import KafkaBroker, running_broker
from tests.support.servers.cluster import running_cluster
from tests.support.servers.load_balancer import balanced
from tests.support.servers.peer_network import Pair as Cut
from tests.support.servers.postgresql import Pair, Postgresql, running_pair
from tests.support.writers.busy_cluster import BusyCluster, CaughtUp, cluster_options
from tests.support.writers.sdk_writers import sdk_writers

# The share of the requested rounds.
SHARES: Final = {"kill": 1.0, "promotion": 0.4, "cut": 0.2, "pause": 0.4, "restart": 0.2}
FEW_FAULTS: Final = ("kill", "kill")
# A history that grows makes each audit slower.
ROUNDS_OF_A_DATABASE: Final = 10
WRITES: Final = 300
# Longer than nodes and clients wait for a home.
CUT_SECONDS: Final = 15.0


class Rounds:
    """Rounds of one fault of one cluster, and the times that they took."""

    def __init__(self, busy: BusyCluster, pair: Pair | None, draw: Random) -> None:
        self.busy = busy
        self.cluster = busy.cluster
        self.times: list[CaughtUp] = []
        self._pair = pair
        self._draw = draw

    async def round(self, fault: str) -> str:
        """Let a fault happen under load, audit everything, and return the figures.

        Raises:
            AssertionError: something acknowledged is lost.
        """
        writers = self.busy.expiring
        before = writers.writes, writers.unanswered
        started = perf_counter()
        async with self.busy.loading():
            await writers.wait_writes(self._draw.randrange(WRITES // 3, WRITES))
            told = await getattr(self, fault)()
            await writers.wait_writes(self._draw.randrange(WRITES // 3, WRITES))
        published = await self.busy.wait_published()
        began = perf_counter()
        found = await self.busy.violations()
        assert found == [], "\n".join([told, *found[:20]])
        return (
            f"{told}; all published {published:.2f} s after the load; "
            f"{writers.writes - before[0]} writes, {writers.unanswered - before[1]} unknown; "
            f"load {began - started:.1f} s, audit {perf_counter() - began:.1f} s"
        )

    async def _measure(self, began: float, through: int, tables: set[str]) -> str:
        if not tables:
            return "had no tables"
        self.times.append(await self.busy.catch_up(began, through, sorted(tables)))
        writes, indexes, expiry = self.times[-1]
        return (
            f"{len(tables)} tables took writes after {writes:.2f} s, "
            f"indexes followed after {indexes:.2f} s, time to live after {expiry:.2f} s"
        )

    async def _chosen(self) -> tuple[int, int, str]:
        """A node, which is the leader half of the time, another node, and the first one's role."""
        leader = await asyncio.to_thread(self.cluster.home)
        number = self._draw.choice((leader, *self.cluster.servers))
        others = [each for each in self.cluster.servers if each != number]
        role = "the leader" if number == leader else "another node"
        return number, self._draw.choice(others), role

    async def kill(self) -> str:
        """Kill a node, and start it again."""
        number, through, role = await self._chosen()
        tables = await self.busy.tables_of(number)
        self.busy.use_nodes(without=number)
        began = perf_counter()
        await asyncio.to_thread(self.cluster.kill, number)
        told = await self._measure(began, through, tables)
        await asyncio.to_thread(self.cluster.start, number)
        self.busy.use_nodes()
        return f"{role} killed, {told}"

    async def pause(self) -> str:
        """Suspend a node until others have removed it, and resume it under load."""
        number, through, role = await self._chosen()
        tables = await self.busy.tables_of(number)
        self.busy.use_nodes(without=number)
        began = perf_counter()
        self.cluster.pause(number)
        try:
            told = await self._measure(began, through, tables)
            while f"n{number}" in await self._members(through):
                await asyncio.sleep(0.1)
            silent = perf_counter() - began
            await self.busy.expiring.wait_writes(WRITES // 3)
        finally:
            self.cluster.resume(number)
        self.busy.use_nodes()
        await asyncio.to_thread(self.cluster.home)
        return f"{role} suspended and removed after {silent:.1f} s, {told}"

    async def _members(self, number: int) -> list[str]:
        state = await asyncio.to_thread(self.cluster.state, number)
        return [member["name"] for member in state["members"]]

    async def promotion(self) -> str:
        """Kill the primary, promote its standby, and add a new standby."""
        assert self._pair is not None
        await asyncio.to_thread(self._pair.fail_over)
        began = perf_counter()
        through = self._draw.choice(list(self.cluster.servers))
        told = await self._measure(began, through, {*self.busy.tables})
        await asyncio.to_thread(self._pair.add_standby)
        return f"standby promoted, {told}"

    async def restart(self) -> str:
        """Restart all nodes one after another; no request of an SDK fails."""
        async with self._sdk_writing() as told:
            for number in list(self.cluster.servers):
                self.busy.use_nodes(without=number)
                assert await asyncio.to_thread(self.cluster.stop, number) == 0
                await asyncio.to_thread(self.cluster.start, number)
                self.busy.use_nodes()
        return f"all restarted, {told[0]}"

    async def cut(self) -> str:
        """Cut nodes off from each other; no request of an SDK fails."""
        assert self.cluster.network is not None
        number, other, role = await self._chosen()
        pairs = {Cut((number, other))}
        if is_alone := self._draw.random() < 0.5:
            pairs = {Cut((number, each)) for each in self.cluster.servers if each != number}
        is_silent = self._draw.random() < 0.5
        async with self._sdk_writing() as told:
            with self.cluster.network.cut(pairs, is_silent=is_silent):
                await asyncio.sleep(CUT_SECONDS)
            await asyncio.to_thread(self.cluster.home)
        return (
            f"{role} cut off from {'all others' if is_alone else 'one other'}"
            f"{', silently' if is_silent else ''}, {told[0]}"
        )

    @asynccontextmanager
    async def _sdk_writing(self) -> AsyncIterator[list[str]]:
        """Writers by boto3 within the context; none of their requests may fail or be lost."""

        def is_ready(number: int) -> bool:
            if number not in self.cluster.servers:
                return False
            try:
                return bool(self.cluster.ask(number, "/ready").status == 200)
            except (OSError, KeyError):
                return False

        told: list[str] = []
        with balanced(self.cluster.ports, is_ready) as endpoint, sdk_writers(endpoint) as writers:
            await asyncio.to_thread(writers.wait_writes, 20)
            yield told
            await asyncio.to_thread(writers.wait_writes, 20)
            await asyncio.to_thread(writers.stop)
            assert writers.failures == []
            assert await asyncio.to_thread(writers.missing) == []
            told.append(f"slowest request of an SDK {writers.slowest_seconds:.1f} s")


@pytest.fixture(scope="module")
def broker(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[KafkaBroker | None]:
    """A broker for long runs, if its program is there."""
    if pytestconfig.getoption("--rounds") is None:
        yield None
        return
    try:
        with running_broker(tmp_path_factory.mktemp("kafka")) as broker:
            yield broker
    except NotFetched as error:
        tell(f"Without Kafka: {error}")
        yield None


@pytest.fixture(scope="module")
def times() -> Iterator[defaultdict[str, list[CaughtUp]]]:
    """The times of all rounds by fault, which are printed at the end."""
    times: defaultdict[str, list[CaughtUp]] = defaultdict(list)
    yield times
    for fault, found in times.items():
        if not found:
            continue
        tell(f"After {fault}, {len(found)} rounds with tables, by p50, p99, and at most:")
        for name, column in zip(CaughtUp._fields, zip(*found, strict=True), strict=True):
            cuts = quantiles((*column, column[0]), n=100, method="inclusive")
            tell(f"  {name} {cuts[49]:.2f} s, {cuts[98]:.2f} s, {max(column):.2f} s")


class Plan(NamedTuple):
    """The faults of one database."""

    seed: int
    faults: Sequence[str]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Divide the requested rounds over databases; a test runs once for each database."""
    if "plan" not in metafunc.fixturenames:
        return
    requested: int | None = metafunc.config.getoption("--rounds")
    plans = {"few": Plan(1, FEW_FAULTS)}
    if requested is not None:
        plans = {
            f"{fault} {first + 1}": Plan(first, [fault] * min(ROUNDS_OF_A_DATABASE, total - first))
            for fault, share in SHARES.items()
            for total in (round(requested * share),)
            for first in range(0, total, ROUNDS_OF_A_DATABASE)
        }
    metafunc.parametrize("plan", plans.values(), ids=plans.keys())


async def test_nothing_is_lost(
    plan: Plan,
    broker: KafkaBroker | None,
    times: defaultdict[str, list[CaughtUp]],
    request: pytest.FixtureRequest,
) -> None:
    if plan.faults is FEW_FAULTS:
        await run_rounds(request.getfixturevalue("postgresql"), None, plan)
        return
    with running_pair() as pair:
        times[plan.faults[0]] += await run_rounds(pair, broker, plan)


async def run_rounds(
    database: Pair | Postgresql, broker: KafkaBroker | None, plan: Plan
) -> list[CaughtUp]:
    """Run a cluster on a new database over these faults; return the times that they took."""
    pair = database if isinstance(database, Pair) else None
    url = (database.primary if isinstance(database, Pair) else database).url()
    draw = Random(plan.seed)
    with running_cluster(
        url, has_network="cut" in plan.faults, arguments=cluster_options(broker)
    ) as cluster:
        busy = BusyCluster(cluster, draw, broker)
        await busy.make()
        run = Rounds(busy, pair, draw)
        for number, fault in enumerate(plan.faults):
            told = await run.round(fault)
            tell(f"{fault} {plan.seed + number + 1}: {told}")
        for number in list(cluster.servers):
            assert cluster.stop(number) == 0
    return run.times


def tell(text: str) -> None:
    """Print a line of progress, which ``-s`` shows at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
