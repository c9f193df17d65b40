"""Rounds of faults under load: indexes, streams, time to live and transactions survive each.

``--rounds 100`` makes 100 rounds of kill -9 of the server, 50 of PostgreSQL, and 30 of a primary
whose synchronous standby is promoted.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import pytest

from tests.postgresql.cutting_proxy import cutting_proxy_in_thread
from tests.postgresql.disturbances import disturb
from tests.support.environment.left_out import leave_out
from tests.support.servers import server as servers
from tests.support.servers.postgresql import Postgresql, running_pair, running_postgresql
from tests.support.servers.server import Server
from tests.support.writers.busy_database import BusyDatabase

FEW_ANSWERS: Final = 500
CUTS: Final = 20
MANY_ANSWERS: Final = 1_500
# The number of faults of PostgreSQL that one server outlives before it is stopped.
ROUNDS_OF_A_SERVER: Final = 5
# A database that grows makes each round slower.
ROUNDS_OF_A_DATABASE: Final = 10
# The share of the requested rounds, and the number of rounds without a request.
SHARES: Final = {
    "test_kill_9_of_the_server": (1.0, 2),
    "test_kill_9_of_postgresql": (0.5, 2),
    "test_promotion_of_the_standby": (0.3, 1),
}


class Plan(NamedTuple):
    """The rounds of one database, and the maximum number of answers before and after a fault."""

    seed: int
    rounds: int
    most_answers: int


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Divide the requested rounds over databases; a test runs once for each database."""
    if "plan" not in metafunc.fixturenames:
        return
    share, few = SHARES[metafunc.function.__name__]
    requested: int | None = metafunc.config.getoption("--rounds")
    total = few if requested is None else round(requested * share)
    most_answers = FEW_ANSWERS if requested is None else MANY_ANSWERS
    plans = [
        Plan(start, min(ROUNDS_OF_A_DATABASE, total - start), most_answers)
        for start in range(0, total, ROUNDS_OF_A_DATABASE)
    ]
    metafunc.parametrize("plan", plans, ids=[f"from-{plan.seed}" for plan in plans])


async def test_kill_9_of_the_server(
    postgresql: Postgresql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan
) -> None:
    monkeypatch.setattr(servers, "place_options", postgresql.place_options)
    database = BusyDatabase(tmp_path, Random(plan.seed))
    await database.make()
    for number in range(plan.rounds):
        with database.running() as running:
            assert await database.violations(running.server) == []
            await database.load(running, plan.most_answers, running.server.kill)
            check_log(running.server)
        if number % 3 == 0:
            await database.expiring.verify()
    await end(database)


async def test_kill_9_of_postgresql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan
) -> None:
    with running_postgresql() as postgresql:
        monkeypatch.setattr(servers, "place_options", postgresql.place_options)
        database = BusyDatabase(tmp_path, Random(plan.seed))
        await database.make()

        def kill_and_start() -> None:
            postgresql.kill()
            postgresql.start()

        await outlive(database, kill_and_start, plan)


async def test_promotion_of_the_standby(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan
) -> None:
    with running_pair() as pair:
        monkeypatch.setattr(servers, "place_options", pair.primary.place_options)
        database = BusyDatabase(tmp_path, Random(plan.seed))
        await database.make()
        await outlive(database, pair.fail_over, plan, pair.add_standby)


@pytest.mark.parametrize("fault", ["fast stop", "long outage", "sessions", "pause", "full disk"])
async def test_another_fault_of_postgresql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config, fault: str
) -> None:
    is_full = fault == "full disk"
    if is_full and os.geteuid() != 0:
        leave_out(pytestconfig, "the full disk of PostgreSQL: needs the right to mount")
        return
    with running_postgresql(disk_mib=150 if is_full else None) as postgresql:
        monkeypatch.setattr(servers, "place_options", postgresql.place_options)
        database = BusyDatabase(tmp_path, Random(1))
        await database.make()
        await outlive(database, partial(disturb, postgresql, fault), Plan(1, 1, FEW_ANSWERS))
        if fault in ("long outage", "full disk"):
            assert database.refusals


async def test_slow_connections_that_break(
    postgresql: Postgresql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cutting_proxy_in_thread(postgresql.port) as (proxy, port):
        monkeypatch.setattr(postgresql, "hosts", f"127.0.0.1:{port}")
        monkeypatch.setattr(servers, "place_options", postgresql.place_options)
        database = BusyDatabase(tmp_path, Random(1))
        await database.make()
        draw = Random(2)

        def cut() -> None:
            for _ in range(CUTS):
                proxy.arm(draw.randrange(200))
                while proxy.is_armed:
                    subprocess.run(["/usr/bin/env", "sleep", "0.01"], check=True)

        proxy.delay_seconds = 0.002
        await outlive(database, cut, Plan(1, 1, FEW_ANSWERS))
        assert proxy.cuts == CUTS


def nothing() -> None:
    """Repair nothing."""


async def outlive(
    database: BusyDatabase,
    fault: Callable[[], None],
    plan: Plan,
    repair: Callable[[], None] = nothing,
) -> None:
    """Audit after each fault of PostgreSQL. The same server serves for several rounds."""
    for first in range(0, plan.rounds, ROUNDS_OF_A_SERVER):
        with database.running() as running:
            for _ in range(first, min(first + ROUNDS_OF_A_SERVER, plan.rounds)):
                await database.load(running, plan.most_answers, fault)
                assert await database.violations(running.server) == []
                await asyncio.to_thread(repair)
            check_log(running.server)
            assert running.server.stop() == 0, running.server.log
        await database.expiring.verify()
    await end(database)


async def end(database: BusyDatabase) -> None:
    """Audit everything once more on a new server, and report the coverage."""
    with database.running() as running:
        assert await database.violations(running.server) == []
        await database.complete(running.server)
        assert running.server.stop() == 0, running.server.log
    await database.expiring.verify()
    sys.stdout.write(
        f"{database.answers} answers, {database.refusals} refused, "
        f"{database.unknown_outcomes} unknown, {len(database.transacting.answered)} transactions, "
        f"{database.expiring.deleted} items expired\n"
    )


def check_log(server: Server) -> None:
    """No actor failed or was given up."""
    assert "actor_given_up" not in server.log, server.log
    assert "Traceback" not in server.log, server.log
