"""A table moves only after the requests to it have ended."""

from __future__ import annotations

import asyncio
from time import perf_counter

from dynactor.api.http.protocol import JSON_1_0, Answer, Protocol, Request
from dynactor.api.nodes.request_rates import RequestRates
from dynactor.api.nodes.request_tables import RequestTables
from dynactor.api.nodes.runner import Runner
from tests.support.clients.clients import AUTHORIZATION
from tests.support.databases.fake_operations import NO_DATABASE, Gate

WAIT = Request("DynamoDB_20120810.Wait", JSON_1_0, AUTHORIZATION, *("", "", "", ""), b"{}")
TURNS = 5


async def test_a_table_is_drained_when_its_last_request_has_ended() -> None:
    gate = Gate()
    runner = Runner(Protocol(NO_DATABASE, [gate.operation]), RequestRates(perf_counter))
    answer = runner.answer(WAIT, RequestTables(("busy",), is_at_home=True))
    assert not isinstance(answer, Answer)
    request = asyncio.ensure_future(answer)
    draining = asyncio.ensure_future(runner.drained(["busy"], 60))
    for _ in range(TURNS):
        await asyncio.sleep(0)
    assert gate.waiting == 1
    assert not draining.done()
    assert await runner.drained(["idle"], 60)
    gate.opened.set()
    assert await draining
    assert (await request).status == 200
