"""Pipelined requests take turns, are limited in number, and are dropped after a disconnect."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import cast

import pytest

from dynactor.api.execution.operation import Operation
from dynactor.api.http.aiohttp_lane import full_server
from dynactor.api.http.body_memory import RequestMemory
from dynactor.api.http.fast_lane import FastLanes
from dynactor.api.http.pipelining import Turns
from dynactor.api.http.protocol import Protocol
from dynactor.api.http.settings import HttpSettings
from dynactor.api.requests.call import Call
from tests.support.clients.raw_http import TO_FULL_LANE, RawConnection, raw_connection, request
from tests.support.databases.fake_operations import ECHO, NO_DATABASE, EchoInput, Gate, echo_server
from tests.support.databases.fake_operations import operation as fake_operation
from tests.support.databases.transacting import until

CLIENTS = 30
REQUESTS = 50
# The server reads from a client with at most this many pipelined requests.
FEW = 30
# Turns of the event loop that suffice for reading an answer, with server and test in one loop.
TURNS_OF_AN_ANSWER = 20

both_lanes = pytest.mark.parametrize("more", [(), (TO_FULL_LANE,)], ids=["fast lane", "full lane"])
More = tuple[str, ...]


class Counted:
    """An operation ``Count`` that never waits, like a query of rows in memory."""

    def __init__(self) -> None:
        self.count = 0

    async def handle(self, _call: Call[EchoInput]) -> bytes:
        self.count += 1
        return b"{}"

    @property
    def operation(self) -> Operation:
        return fake_operation("Count", self.handle)


def counts(more: More, count: int = REQUESTS) -> bytes:
    return request("Count", b"{}", *more) * count


@both_lanes
async def test_pipelined_requests_are_dropped_when_their_client_disconnects(more: More):
    gate, counted = Gate(), Counted()
    async with (
        echo_server(gate.operation, counted.operation) as endpoint,
        raw_connection(endpoint) as other,
    ):
        async with raw_connection(endpoint) as leaving:
            leaving.send(request("Wait", b"{}", *more) + counts(more, FEW))
            await until(lambda: gate.waiting > 0)
            leaving.reset_when_closed()
        # When this request is answered, the server has noticed the disconnect.
        assert (await other.ask("Echo")).status == 200
        gate.opened.set()
        for _ in range(3):
            assert (await other.ask("Echo")).status == 200
        assert counted.count == 0


@both_lanes
async def test_after_a_disconnect_no_more_pipelined_requests_are_executed(more: More):
    counted = Counted()
    async with (
        echo_server(counted.operation) as endpoint,
        raw_connection(endpoint) as other,
    ):
        async with raw_connection(endpoint) as leaving:
            leaving.send(counts(more))
            await until(lambda: counted.count > 0)
            leaving.reset_when_closed()
        for _ in range(REQUESTS):
            assert (await other.ask("Echo")).status == 200
        assert counted.count < REQUESTS


@both_lanes
async def test_all_pipelines_together_get_one_turn_between_turns_of_another_client(more: More):
    counted = Counted()
    async with AsyncExitStack() as stack:
        endpoint = await stack.enter_async_context(echo_server(counted.operation))
        other = await stack.enter_async_context(raw_connection(endpoint))
        assert (await other.ask("Echo")).status == 200
        crowd = [await stack.enter_async_context(raw_connection(endpoint)) for _ in range(CLIENTS)]
        for client in crowd:
            client.send(counts(more))
        # The first request of each connection needs no turn.
        await until(lambda: counted.count > CLIENTS)
        before = counted.count
        assert (await other.ask("Echo")).status == 200
        assert counted.count - before <= TURNS_OF_AN_ANSWER
        for client in crowd:
            for _ in range(REQUESTS):
                assert (await client.answer()).status == 200


class Paused(asyncio.Transport):
    """A transport without a socket that records whether the server reads."""

    def __init__(self, lanes: FastLanes) -> None:
        super().__init__()
        self.is_read = True
        self.answers = 0
        self.protocol = cast("asyncio.Protocol", lanes.connection())
        self.protocol.connection_made(self)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.answers += bytes(data).count(b"HTTP/1.1 200")

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True

    def abort(self) -> None:
        self.protocol.connection_lost(None)


@contextmanager
def transport(gate: Gate) -> Iterator[FastLanes]:
    settings, turns = HttpSettings(region="local"), Turns()
    protocol = Protocol(NO_DATABASE, (ECHO, gate.operation))
    memory = RequestMemory(settings.large_requests_bytes, grace_seconds=1, least_bytes_per_second=1)
    full = full_server(protocol, settings, memory, turns)
    yield FastLanes(protocol, settings, full, memory, turns)


@pytest.mark.parametrize("padding_bytes", [0, 10_000])
async def test_the_server_stops_reading_from_a_client_with_many_unanswered_requests(
    padding_bytes: int,
):
    gate = Gate()
    ahead = request("Echo", b'{"Text":"%s"}' % (b"x" * padding_bytes))
    with transport(gate) as made:
        async with made as lanes:
            connection = Paused(lanes)
            connection.protocol.data_received(request("Wait"))
            sent = 0
            while connection.is_read:
                connection.protocol.data_received(ahead)
                sent += 1
                assert sent <= 33
                assert sent * len(ahead) < 64 * 1024 + len(ahead)
            gate.opened.set()
            await until(lambda: connection.is_read)
            assert 1 <= connection.answers < 1 + sent
            await until(lambda: connection.answers == 1 + sent)
            connection.abort()


@both_lanes
async def test_requests_are_parsed_wherever_the_data_is_divided(more: More):
    pipeline = b"".join(request("Echo", b'{"Text":"%s"}' % text, *more) for text in (b"a", b"b"))
    async with echo_server() as endpoint, raw_connection(endpoint) as connection:
        for at in range(1, len(pipeline)):
            connection.send(pipeline[:at])
            await _read_by_server(connection)
            connection.send(pipeline[at:])
            answers = [(await connection.answer()).json["Text"] for _ in range(2)]
            assert answers == ["a", "b"], at


async def _read_by_server(connection: RawConnection) -> None:
    await connection.writer.drain()
    for _ in range(3):
        await asyncio.sleep(0)
