"""Common properties of all connections: answers, time-outs, limits, the server's end.

Most tests run in both lanes; a header makes the fast lane pass a request to the full one.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from typing import cast
from urllib.parse import urlsplit
from zlib import crc32

import pytest
import structlog
from msgspec import structs

from dynactor.api.access.sender import NO_CLIENT
from dynactor.api.http.aiohttp_lane import full_server
from dynactor.api.http.body_memory import RequestMemory
from dynactor.api.http.browser_access import Access
from dynactor.api.http.compression import WORTH_COMPRESSING_BYTES
from dynactor.api.http.fast_lane import FastLanes
from dynactor.api.http.loop_turn import LoopTurn
from dynactor.api.http.pipelining import Turns
from dynactor.api.http.protocol import Answer, Protocol, Request
from dynactor.api.http.settings import HttpSettings
from dynactor.api.nodes.frames import decode_requests, encode, request_frame
from dynactor.api.requests.call import Call
from tests.support.clients.raw_http import (
    TO_FULL_LANE,
    RawConnection,
    head,
    raw_connection,
    request,
)
from tests.support.databases.fake_operations import ECHO, NO_DATABASE, EchoInput, Gate, echo_server
from tests.support.databases.fake_operations import operation as fake_operation
from tests.support.databases.transacting import until
from tests.support.environment.stepped_time import on_stepped_time, pass_seconds

MIB = 1024 * 1024

both_lanes = pytest.mark.parametrize("more", [(), (TO_FULL_LANE,)], ids=["fast lane", "full lane"])
More = tuple[str, ...]


async def _large(_call: Call[EchoInput]) -> bytes:
    return b"x" * (8 * MIB)


LARGE = fake_operation("Large", _large)


async def _stray(_call: Call[EchoInput]) -> bytes:
    somebody_else_s = asyncio.get_running_loop().create_future()
    somebody_else_s.cancel()
    await somebody_else_s
    return b"{}"


STRAY = fake_operation("Stray", _stray)


async def test_both_lanes_answer_equally():
    async with echo_server() as endpoint, raw_connection(endpoint) as connection:
        fast = await connection.ask("Echo", b'{"Text":"hi"}')
        full = await connection.ask("Echo", b'{"Text":"hi"}', TO_FULL_LANE)
    assert (fast.status, fast.body) == (200, b'{"Text":"hi"}')
    varying = ("x-amzn-requestid", "date")
    assert set(fast.headers) == set(full.headers)
    assert [fast.headers[name] for name in fast.headers if name not in varying] == [
        full.headers[name] for name in fast.headers if name not in varying
    ]
    assert fast.headers["x-amz-crc32"] == str(crc32(fast.body))
    assert re.fullmatch("[0-9A-Z]{52}", fast.headers["x-amzn-requestid"])


@both_lanes
async def test_a_bug_is_a_500_with_the_request_id_and_traceback_in_the_log(more: More):
    async with echo_server() as endpoint, raw_connection(endpoint) as connection:
        with structlog.testing.capture_logs() as logs:
            answer = await connection.ask("Break", b'{"Text":"the bug"}', *more)
        assert (await connection.ask("Echo", b"{}", *more)).status == 200
    assert answer.status == 500
    assert answer.json == {
        "__type": "com.amazonaws.dynamodb.v20120810#InternalServerError",
        "message": "Internal server error",
    }
    entry, request_failed = logs
    assert request_failed["http_status"] == 500
    assert entry["request_id"] == answer.headers["x-amzn-requestid"]
    assert entry["exc_info"]


@both_lanes
async def test_a_cancellation_inside_a_request_is_a_bug_like_any_other(more: More):
    gate = Gate()
    async with (
        echo_server(STRAY, gate.operation) as endpoint,
        raw_connection(endpoint) as connection,
        raw_connection(endpoint) as other,
    ):
        other.send(request("Wait", b"{}", *more))
        await until(lambda: gate.waiting > 0)
        with structlog.testing.capture_logs() as logs:
            answer = await connection.ask("Stray", b"{}", *more)
        gate.opened.set()
        assert (await other.answer()).status == 200
        assert (await connection.ask("Echo", b"{}", *more)).status == 200
    assert answer.status == 500
    entry, request_failed = logs
    assert request_failed["http_status"] == 500
    assert entry["request_id"] == answer.headers["x-amzn-requestid"]
    assert entry["exc_info"]


@both_lanes
async def test_a_request_canceled_by_the_stop_of_the_server_is_not_logged_as_a_bug(more: More):
    gate = Gate()
    with structlog.testing.capture_logs() as logs:
        async with AsyncExitStack() as clients:
            async with echo_server(gate.operation, drain_seconds=0.01) as endpoint:
                working = await clients.enter_async_context(raw_connection(endpoint))
                working.send(request("Wait", b"{}", *more))
                await until(lambda: gate.waiting > 0)
            assert await working.is_closed()
    assert not logs


class FailingProtocol(Protocol):
    """A protocol that violates its contract: awaiting its results raises an error."""

    def answer(self, request: Request, turn: LoopTurn | None = None) -> Answer | Awaitable[Answer]:
        if request.target.endswith("Echo"):
            return super().answer(request, turn)
        return self._fail(request.target)

    async def _fail(self, target: str) -> Answer:
        if target.endswith("Stray"):
            await _stray(cast("Call[EchoInput]", None))
        raise RuntimeError("the bug")


@pytest.mark.parametrize("failing", ["Break", "Stray"])
async def test_a_failed_connection_is_closed_without_affecting_others(failing: str):
    protocol = FailingProtocol(NO_DATABASE, (ECHO,))
    async with (
        echo_server(protocol=protocol) as endpoint,
        raw_connection(endpoint) as connection,
        raw_connection(endpoint) as other,
    ):
        assert (await other.ask("Echo")).status == 200
        with structlog.testing.capture_logs() as logs:
            connection.send(request(failing))
            assert await connection.is_closed()
        assert (await other.ask("Echo")).status == 200
    (entry,) = logs
    assert entry["event"] == "connection_failed"
    assert entry["exc_info"]


async def test_a_header_that_is_not_utf_8_is_refused_like_any_other():
    unusual = request("Echo", b"{}", "Content-Encoding: ?").replace(b"?", b"\xff")
    async with echo_server() as endpoint, raw_connection(endpoint) as connection:
        connection.send(unusual)
        answer = await connection.answer()
    assert (answer.status, answer.json["__type"].rpartition("#")[2]) == (
        400,
        "SerializationException",
    )


@pytest.mark.parametrize("name", [b"X-Amz-Target", b"Authorization", b"Accept-Encoding"])
async def test_both_lanes_give_the_protocol_the_same_text_for_bytes_that_are_not_utf_8(
    name: bytes,
):
    protocol = Protocol(NO_DATABASE, ())
    seen = []

    async def see(given: Request) -> Answer:
        seen.append(structs.replace(given, headers={}, client=NO_CLIENT))
        return Answer(200, "", b"{}", "")

    protocol.detour(see)
    async with echo_server(protocol=protocol) as endpoint:
        for more in (b"", TO_FULL_LANE.encode() + b"\r\n"):
            async with raw_connection(endpoint) as connection:
                connection.send(
                    b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                    + name
                    + b": \xff\r\nContent-Length: 2\r\n"
                    + more
                    + b"\r\n{}"
                )
                assert (await connection.answer()).status == 200
    assert seen[0] == seen[1]
    assert decode_requests(encode([request_frame(1, seen[1])]))[0].message == seen[1]


async def test_an_operation_that_is_not_implemented_is_reported_and_not_retried():
    async with echo_server() as endpoint, raw_connection(endpoint) as connection:
        answer = await connection.ask("Later")
    assert answer.status == 400
    assert answer.json == {
        "__type": "com.amazon.coral.service#UnknownOperationException",
        "message": "Later is not implemented yet in dynactor",
    }


async def test_a_serialization_fault_is_reported_before_an_operations_validation():
    async with echo_server() as endpoint, raw_connection(endpoint) as connection:
        answer = await connection.ask("Refuse", b'{"Text":"no","Value":{"N":5}}')
    assert answer.json["__type"] == "com.amazon.coral.service#SerializationException"


async def test_a_connection_may_change_lanes():
    async with echo_server() as endpoint, raw_connection(endpoint) as connection:
        assert (await connection.ask("Echo")).status == 200
        connection.send(head("Echo", None, "Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n\r\n")
        assert (await connection.answer()).status == 200
        assert (await connection.ask("Echo")).status == 200


async def test_pipelined_requests_of_both_lanes_are_answered_in_order():
    async with echo_server() as endpoint, raw_connection(endpoint) as connection:
        for number in range(6):
            more = (TO_FULL_LANE,) if number == 3 else ()
            connection.send(request("Echo", b'{"Text":"%d"}' % number, *more))
        answers = [(await connection.answer()).json["Text"] for _ in range(6)]
    assert answers == ["0", "1", "2", "3", "4", "5"]


async def test_the_server_does_not_read_many_pipelined_requests_ahead():
    gate = Gate()
    async with echo_server(gate.operation) as endpoint, raw_connection(endpoint) as connection:
        connection.writer.transport.set_write_buffer_limits(0)
        connection.send(request("Wait"))
        flood = request("Echo", b'{"Text":"%s"}' % (b"x" * 10_000)) * 5000
        connection.send(flood)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(connection.writer.drain(), 0.5)
        gate.opened.set()
        assert (await connection.answer()).status == 200
        assert len((await connection.answer()).json["Text"]) == 10_000


@both_lanes
async def test_a_large_pipelined_request_is_read_completely(more: More):
    text = b"y" * (2 * MIB)
    async with (
        asyncio.timeout(30),
        echo_server(LARGE) as endpoint,
        raw_connection(endpoint) as connection,
    ):
        # The client has not read the large answer, so the second request has to wait.
        connection.send(request("Large") + request("Echo", b'{"Text":"%b"}' % text, *more))
        assert len((await connection.answer()).body) == 8 * MIB
        assert text in (await connection.answer()).body


@both_lanes
async def test_a_body_may_come_in_pieces(more: More):
    body = b'{"Text":"%s"}' % (b"x" * 300_000)
    async with echo_server() as endpoint, raw_connection(endpoint) as connection:
        connection.send(head("Echo", len(body), *more))
        for at in range(0, len(body), 50_000):
            connection.send(body[at : at + 50_000])
            await connection.writer.drain()
        assert (await connection.answer()).body == body


async def test_an_idle_connection_is_closed():
    async with echo_server(idle_seconds=0.2) as endpoint, raw_connection(endpoint) as connection:
        assert (await connection.ask("Echo")).status == 200
        assert await connection.is_closed()


async def test_a_connection_on_which_nothing_is_sent_is_closed():
    async with echo_server(idle_seconds=0.2) as endpoint, raw_connection(endpoint) as connection:
        assert await connection.is_closed()


async def test_a_connection_with_an_incomplete_head_is_closed_after_a_time_out():
    async with (
        echo_server(transfer_seconds=0.2) as endpoint,
        raw_connection(endpoint) as connection,
    ):
        connection.send(head("Echo", 2)[:50])
        assert await connection.is_closed()


async def test_a_connection_with_an_incomplete_body_is_closed_after_a_time_out():
    async with (
        echo_server(transfer_seconds=0.2) as endpoint,
        raw_connection(endpoint) as connection,
    ):
        connection.send(head("Echo", 3) + b"{}")
        assert await connection.is_closed()


async def test_an_endless_body_is_refused_in_the_full_lane():
    async with (
        echo_server(transfer_seconds=0.2) as endpoint,
        raw_connection(endpoint) as connection,
    ):
        connection.send(head("Echo", 3, TO_FULL_LANE) + b"{}")
        assert (await connection.answer()).status == 408
        assert await connection.is_closed()


async def test_no_time_out_applies_while_the_server_executes_a_request():
    gate = Gate()
    settings = {"idle_seconds": 0.05, "transfer_seconds": 0.05}
    async with (
        echo_server(gate.operation, **settings) as endpoint,
        raw_connection(endpoint) as working,
        raw_connection(endpoint) as idle,
    ):
        working.send(request("Wait"))
        # The idle connection is closed, which shows that the time-out has passed.
        assert await idle.is_closed()
        gate.opened.set()
        assert (await working.answer()).status == 200


@both_lanes
async def test_a_client_that_does_not_read_its_answer_is_disconnected(more: More):
    async with (
        echo_server(LARGE, transfer_seconds=0.2) as endpoint,
        raw_connection(endpoint) as connection,
    ):
        connection.writer.transport.pause_reading()
        connection.send(request("Large", b"{}", *more))
        with pytest.raises(ConnectionError):
            await _send_until_refused(connection)


async def _send_until_refused(connection: RawConnection) -> None:
    while True:
        connection.send(b"\r\n")
        await connection.writer.drain()
        await asyncio.sleep(0)


class FullTransport(asyncio.Transport):
    """A transport whose client reads nothing, so ``close`` never completes."""

    def __init__(self, lanes: FastLanes) -> None:
        super().__init__()
        self._protocol: asyncio.BaseProtocol = lanes.connection()
        self._is_closing = False
        self.is_aborted = False
        self._protocol.connection_made(self)

    def receive(self, data: bytes) -> None:
        cast("asyncio.Protocol", self._protocol).data_received(data)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        self._is_closing = True

    def abort(self) -> None:
        self._is_closing = self.is_aborted = True
        self._protocol.connection_lost(None)


def fast_lanes(settings: HttpSettings) -> FastLanes:
    protocol = Protocol(NO_DATABASE, (ECHO,))
    memory = RequestMemory(
        settings.large_requests_bytes,
        grace_seconds=settings.grace_seconds,
        least_bytes_per_second=settings.least_bytes_per_second,
    )
    turns = Turns()
    full = full_server(protocol, settings, memory, turns)
    return FastLanes(protocol, settings, full, memory, turns)


@both_lanes
@on_stepped_time
async def test_a_client_that_does_not_read_the_rest_of_its_last_answer_is_disconnected(more: More):
    settings = HttpSettings(region="local")
    async with fast_lanes(settings) as lanes:
        transport = FullTransport(lanes)
        transport.receive(request("Echo", b"{}", *more))
        await pass_seconds(settings.idle_seconds, step_seconds=5)
        assert not transport.is_aborted
        await pass_seconds(2 * settings.transfer_seconds, step_seconds=5)
        assert transport.is_aborted


@both_lanes
async def test_a_client_that_disconnects_during_its_answer_does_not_affect_others(more: More):
    gate = Gate()
    async with echo_server(gate.operation) as endpoint, raw_connection(endpoint) as other:
        async with raw_connection(endpoint) as leaving:
            leaving.send(request("Wait", b"{}", *more))
            while not gate.waiting:
                assert (await other.ask("Echo")).status == 200
        gate.opened.set()
        assert (await other.ask("Echo")).status == 200


async def test_a_client_that_is_gone_is_not_handed_to_the_full_lane():
    gate = Gate()
    async with echo_server(gate.operation) as endpoint, raw_connection(endpoint) as other:
        with structlog.testing.capture_logs() as logs:
            async with raw_connection(endpoint) as leaving:
                leaving.send(request("Wait") + request("Echo", b"{}", TO_FULL_LANE))
                while not gate.waiting:
                    assert (await other.ask("Echo")).status == 200
                leaving.reset_when_closed()
            for _ in range(3):
                assert (await other.ask("Echo")).status == 200
            gate.opened.set()
            for _ in range(3):
                assert (await other.ask("Echo")).status == 200
        assert not logs


@both_lanes
async def test_a_stopping_server_answers_requests_in_flight_and_closes(more: More):
    gate = Gate()
    async with AsyncExitStack() as clients, asyncio.TaskGroup() as tasks:
        async with echo_server(gate.operation) as endpoint:
            working = await clients.enter_async_context(raw_connection(endpoint))
            idle = await clients.enter_async_context(raw_connection(endpoint))
            working.send(request("Wait", b"{}", *more))
            while not gate.waiting:
                assert (await idle.ask("Echo")).status == 200
            tasks.create_task(_open_once_closed(gate, idle))
        assert (await working.answer()).status == 200
        assert await working.is_closed()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", urlsplit(endpoint).port)


async def _open_once_closed(gate: Gate, idle: RawConnection) -> None:
    """Wait until the server closes an idle connection, so it is stopping, and open the gate."""
    assert await idle.is_closed()
    gate.opened.set()


async def test_a_stopping_server_waits_for_requests_for_a_limited_time():
    gate = Gate()
    async with AsyncExitStack() as clients:
        async with echo_server(gate.operation, drain_seconds=0.1) as endpoint:
            working = await clients.enter_async_context(raw_connection(endpoint))
            idle = await clients.enter_async_context(raw_connection(endpoint))
            working.send(request("Wait"))
            while not gate.waiting:
                assert (await idle.ask("Echo")).status == 200
        assert await working.is_closed()


@both_lanes
async def test_connections_above_the_limit_are_closed_at_once(more: More):
    protocol = Protocol(NO_DATABASE, (ECHO,))
    async with AsyncExitStack() as clients:
        endpoint = await clients.enter_async_context(
            echo_server(protocol=protocol, most_connections=2)
        )
        first, second = [
            await clients.enter_async_context(raw_connection(endpoint)) for _ in range(2)
        ]
        for one in (first, second):
            assert (await one.ask("Echo", b"{}", *more)).status == 200
        assert protocol.figures.connections() == 2
        for count in (1, 2):
            async with raw_connection(endpoint) as refused:
                assert await refused.is_closed()
            assert protocol.figures.refused_connections == count
        assert (await second.ask("Echo", b"{}", *more)).status == 200
        first.writer.close()
        await until(lambda: protocol.figures.connections() == 1)
        async with raw_connection(endpoint) as admitted:
            assert (await admitted.ask("Echo", b"{}", *more)).status == 200


async def test_a_connection_that_was_accepted_as_the_server_stopped_is_closed():
    async with fast_lanes(HttpSettings(region="local")) as lanes:
        pass
    assert FullTransport(lanes).is_aborted


@both_lanes
async def test_a_half_closed_connection_gets_its_answer(more: More):
    async with echo_server() as endpoint, raw_connection(endpoint) as connection:
        connection.send(request("Echo", b"{}", *more) * 2)
        connection.send(request("Echo", b'{"Text":"last"}', *more))
        connection.writer.write_eof()
        for _ in range(2):
            assert (await connection.answer()).status == 200
        assert (await connection.answer()).json == {"Text": "last"}
        assert await connection.is_closed()


@both_lanes
async def test_a_half_closed_connection_waits_for_its_answer(more: More):
    gate = Gate()
    async with (
        echo_server(gate.operation) as endpoint,
        raw_connection(endpoint) as connection,
        raw_connection(endpoint) as other,
    ):
        connection.send(request("Wait", b"{}", *more))
        connection.writer.write_eof()
        await until(lambda: gate.waiting > 0)
        for _ in range(20):
            assert (await other.ask("Echo")).status == 200
        gate.opened.set()
        assert (await connection.answer()).status == 200
        assert await connection.is_closed()


@both_lanes
@pytest.mark.parametrize("missing_bytes", [1, 20, 200])
async def test_a_connection_half_closed_within_a_request_is_closed(more: More, missing_bytes: int):
    whole = request("Echo", b'{"Text":"torn"}', *more)
    async with (
        asyncio.timeout(30),
        echo_server() as endpoint,
        raw_connection(endpoint) as connection,
    ):
        connection.send(request("Echo", b"{}", *more) + whole[:-missing_bytes])
        connection.writer.write_eof()
        assert (await connection.answer()).status == 200
        assert await connection.is_closed()


async def test_a_chunked_body_is_parsed_wherever_the_data_is_divided():
    chunked = head("Echo", None, "Transfer-Encoding: chunked")
    chunked += b'3;more=x\r\n{"T\r\nc\r\next":"hello"\r\n1\r\n}\r\n0\r\nTrailer: x\r\n\r\n'
    async with echo_server() as endpoint, raw_connection(endpoint) as connection:
        for at in range(1, len(chunked)):
            connection.send(chunked[:at])
            await connection.writer.drain()
            for _ in range(3):
                await asyncio.sleep(0)
            connection.send(chunked[at:])
            assert (await connection.answer()).json == {"Text": "hello"}, at


async def test_only_the_last_answer_on_a_half_closed_connection_has_connection_close():
    gate = Gate()
    async with (
        echo_server(gate.operation) as endpoint,
        raw_connection(endpoint) as connection,
        raw_connection(endpoint) as other,
    ):
        connection.send(request("Wait") + request("Echo") * 2)
        connection.writer.write_eof()
        for _ in range(3):
            assert (await other.ask("Echo")).status == 200
        gate.opened.set()
        said = [(await connection.answer()).headers.get("connection") for _ in range(3)]
        assert said == [None, None, "close"]
        assert await connection.is_closed()


async def test_the_full_lane_learns_of_an_end_that_came_before_it():
    gate = Gate()
    async with (
        echo_server(gate.operation) as endpoint,
        raw_connection(endpoint) as connection,
        raw_connection(endpoint) as other,
    ):
        connection.send(request("Wait") + request("Echo", b'{"Text":"last"}', TO_FULL_LANE))
        connection.writer.write_eof()
        # When these requests are answered, the server has read the earlier data.
        for _ in range(3):
            assert (await other.ask("Echo")).status == 200
        gate.opened.set()
        assert (await connection.answer()).status == 200
        assert (await connection.answer()).json == {"Text": "last"}
        assert await connection.is_closed()


@both_lanes
@pytest.mark.parametrize("host", ["evil.example.com", "localhost.evil.com", "127.0.0.1.evil.com"])
async def test_a_foreign_host_name_is_refused(more: More, host: str):
    async with echo_server() as endpoint, raw_connection(endpoint) as connection:
        answer = await connection.ask("Echo", b"{}", *more, host=host)
    assert answer.status == 403
    assert answer.json["__type"] == "com.amazon.coral.service#AccessDeniedException"


@both_lanes
async def test_a_configured_host_name_is_served(more: More):
    access = Access(host_names=frozenset({"db.example.com"}))
    async with echo_server(access=access) as endpoint, raw_connection(endpoint) as connection:
        answer = await connection.ask("Echo", b"{}", *more, host="DB.example.com:8000")
    assert answer.status == 200


_PAGE = "https://page.example.com"
_PREFLIGHT = (
    b"OPTIONS / HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: %s\r\n"
    b"Access-Control-Request-Method: POST\r\n"
    b"Access-Control-Request-Headers: x-amz-target,authorization\r\n\r\n" % _PAGE.encode()
)


async def test_cross_origin_reads_are_refused_by_default():
    async with echo_server() as endpoint, raw_connection(endpoint) as connection:
        connection.send(_PREFLIGHT)
        answer = await connection.answer()
        assert answer.status == 403
        assert "access-control-allow-origin" not in answer.headers
        answer = await connection.ask("Echo", b"{}", f"Origin: {_PAGE}")
        assert answer.status == 200
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(("configured", "allowed"), [(_PAGE, _PAGE), ("*", "*")])
async def test_a_configured_origin_may_read(configured: str, allowed: str):
    access = Access(origins=frozenset({configured}))
    async with echo_server(access=access) as endpoint, raw_connection(endpoint) as connection:
        connection.send(_PREFLIGHT)
        preflight = await connection.answer()
        assert preflight.status == 200
        assert preflight.headers["access-control-allow-origin"] == allowed
        assert preflight.headers["access-control-allow-headers"] == "x-amz-target,authorization"
        answer = await connection.ask("Echo", b"{}", f"Origin: {_PAGE}")
        assert answer.headers["access-control-allow-origin"] == allowed
        assert "X-Dynactor-Explanation" in answer.headers["access-control-expose-headers"]
        # The answers to two pages differ only if the answer names the page's origin.
        assert answer.headers.get("vary") == (None if allowed == "*" else "Origin")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1\r\n", 200),
        (b"PUT / HTTP/1.1\r\n", 404),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n", 413),
    ],
    ids=["health", "an unknown method", "a large body"],
)
async def test_a_page_may_read_answers_that_no_operation_gives(head: bytes, status: int):
    access = Access(origins=frozenset({"*"}))
    async with echo_server(access=access) as endpoint, raw_connection(endpoint) as connection:
        connection.send(b"%bHost: 127.0.0.1\r\nOrigin: %b\r\n\r\n" % (head, _PAGE.encode()))
        answer = await connection.answer()
    assert (answer.status, answer.headers.get("access-control-allow-origin")) == (status, "*")


@pytest.mark.parametrize("method", ["POST", "DELETE", ""])
async def test_a_preflight_is_answered_with_the_method_it_asks_for(method: str):
    asked = f"Access-Control-Request-Method: {method}\r\n" if method else ""
    access = Access(origins=frozenset({"*"}))
    async with echo_server(access=access) as endpoint, raw_connection(endpoint) as connection:
        connection.send(
            f"OPTIONS / HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: {_PAGE}\r\n{asked}\r\n".encode()
        )
        answer = await connection.answer()
    assert answer.headers.get("access-control-allow-methods", "") == method


@pytest.mark.parametrize(("texts", "coding"), [(["gzip", "deflate"], "gzip"), (["x", "gzip"], "")])
async def test_only_the_first_of_two_accept_encoding_headers_counts(texts: list[str], coding: str):
    body = json.dumps({"Text": "x" * 2 * WORTH_COMPRESSING_BYTES}).encode()
    async with echo_server() as endpoint, raw_connection(endpoint) as connection:
        answer = await connection.ask("Echo", body, *[f"Accept-Encoding: {one}" for one in texts])
    assert answer.headers.get("content-encoding", "") == coding


async def test_invalid_http_leaves_no_error_in_the_log(caplog: pytest.LogCaptureFixture):
    async with echo_server() as endpoint, raw_connection(endpoint) as connection:
        connection.send(b"\x16\x03\x01\x02\x00\x01\r\n\r\n")
        assert (await connection.reader.read()).startswith(b"HTTP/1.0 400")
    assert not caplog.records


async def test_connections_use_tcp_nodelay():
    async with echo_server() as endpoint, raw_connection(endpoint) as connection:
        bare: socket.socket = connection.writer.get_extra_info("socket")
        bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in request("Echo", b'{"Text":"slow"}'):
            connection.send(bytes([byte]))
            await asyncio.sleep(0)
        assert (await connection.answer()).json == {"Text": "slow"}
