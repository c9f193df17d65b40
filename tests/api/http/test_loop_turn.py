"""The latency metrics of requests that are answered within one turn of the event loop."""

from __future__ import annotations

import asyncio

import pytest

from dynactor.api.http.loop_turn import LoopTurn
from dynactor.api.http.protocol import Protocol
from dynactor.api.requests.call import Call
from dynactor.model.latency_histogram import LatencyHistogram
from tests.support.clients.raw_http import TO_FULL_LANE, raw_connection
from tests.support.databases.fake_operations import NO_DATABASE, EchoInput, Gate, echo_server
from tests.support.databases.fake_operations import operation as fake_operation


class Clock:
    """A clock in nanoseconds that the test sets."""

    def __init__(self) -> None:
        self.now = 5

    def __call__(self) -> int:
        return self.now


async def test_a_latency_is_measured_from_the_start_to_the_end_of_a_turn():
    clock, sent = Clock(), list[int]()
    turn = LoopTurn(lambda: sent.append(gets.count), clock)
    gets, queries = LatencyHistogram(), LatencyHistogram()
    turn.begin()
    turn.answered += [gets, queries, gets, gets]
    clock.now += 70
    await asyncio.sleep(0)
    assert (gets.count, gets.total_nanoseconds) == (3, 210)
    assert (queries.count, queries.total_nanoseconds) == (1, 70)
    # The answers are sent together after they are counted.
    assert sent == [3]


async def test_the_next_turn_has_its_own_start():
    clock = Clock()
    turn = LoopTurn(lambda: None, clock)
    gets = LatencyHistogram()
    for _ in range(2):
        assert not turn.began_nanoseconds
        turn.begin()
        turn.answered.append(gets)
        clock.now += 10
        await asyncio.sleep(0)
        # Time passes without requests.
        clock.now += 1_000
    assert (gets.count, gets.total_nanoseconds) == (2, 20)


def at_once(_call: Call[EchoInput]) -> bytes:
    return b"{}"


@pytest.mark.parametrize("more", [(), (TO_FULL_LANE,)], ids=["fast lane", "full lane"])
async def test_each_answer_is_counted_in_each_lane(more: tuple[str, ...]):
    gate = Gate()
    gate.opened.set()
    protocol = Protocol(NO_DATABASE, [fake_operation("Once", at_once), gate.operation])
    latencies = protocol.figures.of(None).latencies
    async with (
        echo_server(protocol=protocol) as endpoint,
        raw_connection(endpoint) as connection,
    ):
        for asked in range(1, 4):
            await connection.ask("Once", b"{}", *more)
            await connection.ask("Wait", b"{}", *more)
            assert latencies["Once"].count == asked
            assert latencies["Wait"].count == asked
    assert 0 < latencies["Once"].total_nanoseconds < latencies["Once"].count * 10**9
