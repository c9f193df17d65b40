"""A verified run finds the server's faults, and nothing on a correct server."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from dynactor.load.check.findings import Findings
from dynactor.load.options import RunOptions
from dynactor.load.results.histogram import Histogram
from dynactor.load.results.result import Result
from dynactor.load.run.one import run_once
from tests.support.clients.faulty_dynamodb import FaultyDynamoDB
from tests.support.servers.server import running_server

_PUTS_AND_GETS = "put=50,get=50"


async def run(endpoint: str, **options: Any) -> Result:
    made = RunOptions(
        **{
            "endpoint": endpoint,
            # Long enough even if a dozen other processes need the processor.
            "duration": 1.5,
            "warm_up": 0.0,
            # Enough to find faults, with a fraction of the processor's power.
            "rate": 600.0,
            "connections": 8,
            "keys": 200,
            "quiet": True,
            "verify": True,
            **options,
        }
    )
    return await run_once(made, Console())


async def findings(server: FaultyDynamoDB, **options: Any) -> Findings:
    async with server.serving():
        result = await run(server.endpoint, mix=_PUTS_AND_GETS, **options)
    assert result.findings is not None
    assert result.findings.reads_checked > 50
    assert result.findings.writes_acknowledged > 50
    return result.findings


async def test_a_correct_server_gives_no_findings():
    assert (await findings(FaultyDynamoDB(), workers=2)).counts == {}


async def test_a_lost_write_is_found():
    server = FaultyDynamoDB()
    # Use many items and a short run, so that some lost puts are not followed by another put.
    server.loses_put = lambda number: number % 5 == 0
    found = await findings(server, keys=2_000)
    assert found.counts["lost"] > 0
    assert any("version" in finding.text for finding in found.examples)


async def test_stale_reads_are_found():
    server = FaultyDynamoDB()
    # Make many reads stale, because one stale read may overlap a write and be correct.
    server.shows_old = lambda number: 30 <= number < 130
    found = await findings(server, key_choice="hot-set:0.1:1")
    assert found.counts.keys() == {"stale"}


async def test_an_answer_with_the_wrong_item_is_found():
    server = FaultyDynamoDB()
    server.shows_other = lambda number: number == 20
    found = await findings(server)
    # The server returned another item than the requested one.
    assert found.counts == {"foreign": 1, "stale": 1}


async def test_a_write_without_an_answer_is_no_finding_whether_or_not_it_took_effect():
    server = FaultyDynamoDB()
    server.hangs_up = lambda number: number % 10 == 0
    found = await findings(server)
    assert found.counts == {}
    assert found.writes_unknown > 3


async def test_a_request_without_an_answer_times_out_and_counts_with_the_timeout():
    server = FaultyDynamoDB()
    server.falls_silent = lambda number: number == 50
    async with server.serving():
        result = await run(server.endpoint, workload="put", timeout=0.6, duration=3.0)
    assert result.findings is not None
    assert result.findings.counts == {}
    # On a busy machine, other requests may time out, too.
    assert result.findings.writes_unknown >= 1
    assert result.total.outcomes.keys() == {"Timeout"}
    assert Histogram.decode(result.total.latency.histogram).maximum > 600_000


async def test_items_stay_unread_if_the_server_does_not_return():
    server = FaultyDynamoDB()
    server.dies = lambda number: number == 50
    async with server.serving():
        result = await run(server.endpoint, mix=_PUTS_AND_GETS, timeout=0.3)
    assert result.findings is not None
    assert result.findings.counts == {}
    assert result.findings.items_unread > 0
    assert not result.findings.is_clean


@pytest.mark.parametrize(("lag_seconds", "lost"), [(0.5, False), (60, True)])
async def test_a_global_index_may_lag_but_has_to_catch_up(lag_seconds: float, lost: bool):
    with running_server("--gsi-lag", f"fixed:{lag_seconds}") as server:
        result = await run(
            server.endpoint,
            mix="put=50,gsi-query=50",
            index_deadline=1.0 if lost else 30.0,
            # A category does not fit into one page.
            item_size="150000",
            keys=20,
            connections=2,
        )
    assert result.findings is not None
    assert result.findings.counts.keys() == ({"lost"} if lost else set())


async def test_every_operation_of_this_server_is_verified_in_one_run():
    mix = (
        "get=10,put=10,update=10,conditional-put=10,delete=5,insert=5,read-modify-write=10,"
        "query=10,range=10,lsi-query=10,gsi-query=10,batch-get=5,batch-write=5"
    )
    with running_server() as server:
        result = await run(
            server.endpoint, mix=mix, keys=600, workers=2, item_size="200-3000", duration=4.0
        )
    assert result.findings is not None
    assert result.findings.counts == {}
    assert result.total.errors == 0
    assert result.operations.keys() == {part.partition("=")[0] for part in mix.split(",")}
