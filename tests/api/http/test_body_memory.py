"""The memory for large requests: admission in order, waiting, and eviction of slow senders."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random

import pytest

from dynactor.api.http.body_memory import RequestMemory, Reservation
from dynactor.api.http.settings import HttpSettings
from tests.support.clients.raw_http import (
    TO_FULL_LANE,
    RawConnection,
    head,
    raw_connection,
    request,
)
from tests.support.databases.fake_operations import Gate, echo_server
from tests.support.environment.stepped_time import on_stepped_time, pass_seconds, settle

MIB = 1024 * 1024
MEMORY_BYTES = 3 * MIB
# The memory suffices for one such body.
BODY = b'{"Text":"%s"}' % (b"x" * 2 * MIB)
HALF = len(BODY) // 2

both_lanes = pytest.mark.parametrize("more", [(), (TO_FULL_LANE,)], ids=["fast lane", "full lane"])
More = tuple[str, ...]
SETTINGS = HttpSettings(region="local")
GRACE_SECONDS = SETTINGS.grace_seconds
CHECK_SECONDS = GRACE_SECONDS / 4


# -- the memory -----------------------------------------------------------------------------


def reserve(memory: RequestMemory, size_bytes: int) -> Reservation:
    """A reservation that leaves as soon as it is evicted."""
    reservation = memory.reserve(size_bytes, lambda: memory.release(reservation))
    return reservation


def paced_memory() -> RequestMemory:
    """Room for 100 bytes. Senders have 4 seconds of grace, then must send 10 bytes a second."""
    return RequestMemory(100, grace_seconds=4, least_bytes_per_second=10)


async def test_requests_are_admitted_in_order_while_they_fit() -> None:
    memory = RequestMemory(10, grace_seconds=4, least_bytes_per_second=10)
    first, second, third, fourth = (reserve(memory, size) for size in (6, 4, 5, 1))
    assert [each.granted.done() for each in (first, second, third, fourth)] == [
        True,
        True,
        False,
        False,
    ]
    memory.release(second)
    # The fourth request would fit, but it must not overtake the third.
    assert not third.granted.done()
    assert not fourth.granted.done()
    memory.release(first)
    assert third.granted.done()
    assert fourth.granted.done()


async def test_a_request_larger_than_the_memory_is_admitted_alone() -> None:
    memory = RequestMemory(10, grace_seconds=4, least_bytes_per_second=10)
    small, large, other = reserve(memory, 1), reserve(memory, 20), reserve(memory, 1)
    assert not large.granted.done()
    memory.release(small)
    assert large.granted.done()
    assert not other.granted.done()
    memory.release(large)
    assert other.granted.done()


async def test_a_canceled_waiting_request_delays_no_other() -> None:
    memory = RequestMemory(10, grace_seconds=4, least_bytes_per_second=10)
    first, large, small = reserve(memory, 5), reserve(memory, 10), reserve(memory, 5)
    memory.release(large)
    assert small.granted.done()
    memory.release(first)
    memory.release(small)
    assert reserve(memory, 10).granted.done()


async def test_a_cancelled_request_frees_its_memory_when_it_leaves() -> None:
    memory = RequestMemory(10, grace_seconds=4, least_bytes_per_second=10)
    first, cancelled = reserve(memory, 10), reserve(memory, 10)
    cancelled.granted.cancel()
    memory.release(first)
    third = reserve(memory, 10)
    assert not third.granted.done()
    memory.release(cancelled)
    assert third.granted.done()


@on_stepped_time
async def test_a_silent_sender_is_evicted_after_its_grace_if_another_request_waits() -> None:
    memory = paced_memory()
    reserve(memory, 100)
    waiting = reserve(memory, 100)
    await pass_seconds(4)
    assert not waiting.granted.done()
    await pass_seconds(1)
    assert waiting.granted.done()


@on_stepped_time
async def test_received_bytes_extend_the_deadline() -> None:
    memory = paced_memory()
    reservation = reserve(memory, 100)
    waiting = reserve(memory, 100)
    reservation.arrived_bytes = 60
    await pass_seconds(4 + 6)
    assert not waiting.granted.done()
    await pass_seconds(1)
    assert waiting.granted.done()


@on_stepped_time
async def test_a_sender_that_keeps_the_pace_is_not_evicted() -> None:
    memory = paced_memory()
    reservation = reserve(memory, 100)
    waiting = reserve(memory, 100)
    for arrived_bytes in range(0, 100, 10):
        reservation.arrived_bytes = arrived_bytes
        await pass_seconds(1)
    reservation.is_whole = True
    await pass_seconds(100)
    assert not waiting.granted.done()
    memory.release(reservation)
    assert waiting.granted.done()


@on_stepped_time
async def test_no_sender_is_evicted_if_no_request_waits() -> None:
    memory = paced_memory()
    slow = reserve(memory, 60)
    await pass_seconds(100)
    waiting = reserve(memory, 60)
    # The first sender's grace starts now, because a request waits for memory.
    await pass_seconds(4)
    assert not waiting.granted.done()
    memory.release(waiting)
    await pass_seconds(100)
    memory.release(slow)


@on_stepped_time
async def test_the_grace_of_a_sender_starts_at_its_admission() -> None:
    memory = paced_memory()
    reserve(memory, 60)
    second, third = reserve(memory, 60), reserve(memory, 60)
    await pass_seconds(5)
    assert second.granted.done()
    await pass_seconds(4)
    assert not third.granted.done()
    await pass_seconds(1)
    assert third.granted.done()


@on_stepped_time
async def test_a_stall_of_the_server_evicts_no_client() -> None:
    memory = paced_memory()
    reserve(memory, 100)
    waiting = reserve(memory, 100)
    await pass_seconds(1000, step_seconds=1000)
    assert not waiting.granted.done()


@on_stepped_time
async def test_the_wait_of_the_first_request_is_limited() -> None:
    random = Random(1)
    for _ in range(50):
        memory = paced_memory()
        crowd = [reserve(memory, random.randint(1, 50)) for _ in range(30)]
        honest = reserve(memory, 50)
        first_since_seconds = 0.0
        while not honest.granted.done():
            # Each client sends random parts of its body, but never the whole body.
            for reservation in crowd:
                reservation.arrived_bytes += (
                    random.randint(0, reservation.size_bytes - reservation.arrived_bytes) // 2
                )
            granted = sum(reservation.granted.done() for reservation in crowd)
            await pass_seconds(1, step_seconds=1)
            is_first_another_one = granted < sum(
                reservation.granted.done() for reservation in crowd
            )
            first_since_seconds = 0.0 if is_first_another_one else first_since_seconds + 1
            # The maximum is the grace, the largest body at the lowest pace, and one check interval.
            assert first_since_seconds <= 4 + 50 / 10 + 1


# -- connections ----------------------------------------------------------------------------


@asynccontextmanager
async def one_within(
    gate: Gate, more: More, **settings: float
) -> AsyncIterator[tuple[RawConnection, RawConnection, str]]:
    """A server with an admitted large request, another connection, and an idle one."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(asyncio.timeout(30))
        endpoint = await stack.enter_async_context(
            echo_server(gate.operation, large_requests_bytes=MEMORY_BYTES, **settings)
        )
        within = await stack.enter_async_context(raw_connection(endpoint))
        other = await stack.enter_async_context(raw_connection(endpoint))
        other.writer.transport.set_write_buffer_limits(0)
        within.send(request("Wait", BODY, *more))
        while not gate.waiting:
            await asyncio.sleep(0.001)
        yield within, other, endpoint


async def is_read(connection: RawConnection) -> bool:
    """Whether the server reads all sent bytes."""
    try:
        await asyncio.wait_for(connection.writer.drain(), 0.3)
    except TimeoutError:
        return False
    return True


@both_lanes
async def test_a_large_request_is_read_when_another_one_has_been_answered(more: More) -> None:
    gate = Gate()
    # The body must exceed the buffers of the sockets, which don't count as the server's memory.
    flood = request("Echo", b'{"Text":"%s"}' % (b"y" * 15 * MIB), *more)
    async with one_within(gate, more) as (within, other, _):
        other.send(flood)
        assert not await is_read(other)
        gate.opened.set()
        assert (await within.answer()).body == BODY
        assert len((await other.answer()).body) == 15 * MIB + len(b'{"Text":""}')


@both_lanes
async def test_small_requests_are_not_delayed(more: More) -> None:
    gate = Gate()
    small = b'{"Text":"%s"}' % (b"z" * 60_000)
    async with one_within(gate, more) as (_, other, endpoint):
        other.send(head("Echo", len(BODY), *more) + BODY[:HALF])
        async with raw_connection(endpoint) as third, raw_connection(endpoint) as fourth:
            third.send(head("Echo", len(small), *more) + small[:1])
            # While the small request is incomplete, other small requests are answered.
            for _ in range(10):
                assert (await fourth.ask("Echo", small, *more)).body == small
            third.send(small[1:])
            assert (await third.answer()).body == small
            chunk = b"%x\r\n%b\r\n" % (len(small), small)
            third.send(head("Echo", None, "Transfer-Encoding: chunked") + chunk + b"0\r\n\r\n")
            assert (await third.answer()).body == small
        gate.opened.set()
        other.send(BODY[HALF:])
        assert (await other.answer()).body == BODY


@both_lanes
async def test_many_large_requests_sent_in_pieces_are_all_answered(more: More) -> None:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(asyncio.timeout(30))
        endpoint = await stack.enter_async_context(echo_server(large_requests_bytes=MEMORY_BYTES))
        connections = [await stack.enter_async_context(raw_connection(endpoint)) for _ in range(12)]
        # All requests start before the first one ends.
        for connection in connections:
            connection.send(head("Echo", len(BODY), *more) + BODY[:HALF])
        await asyncio.sleep(0)
        for connection in reversed(connections):
            connection.send(BODY[HALF:] + request("Echo", b'{"Text":"next"}', *more))
        for connection in connections:
            assert (await connection.answer()).body == BODY
            assert (await connection.answer()).json == {"Text": "next"}


@on_stepped_time
async def test_a_compressed_large_request_waits_for_memory_like_a_plain_one() -> None:
    gate = Gate()
    packed, is_packed = gzip.compress(BODY), "Content-Encoding: gzip"
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(packed), packed)
    async with (
        echo_server(gate.operation, large_requests_bytes=MEMORY_BYTES) as endpoint,
        raw_connection(endpoint) as within,
        raw_connection(endpoint) as second,
        raw_connection(endpoint) as third,
    ):
        within.send(request("Wait", packed, is_packed))
        await settle()
        assert gate.waiting == 1
        second.send(request("Wait", packed, is_packed))
        third.send(head("Wait", None, is_packed, "Transfer-Encoding: chunked") + chunked)
        await settle()
        assert gate.waiting == 1
        gate.opened.set()
        for connection in (within, second, third):
            assert (await connection.answer()).body == BODY


async def test_many_compressed_large_requests_are_all_answered() -> None:
    packed, is_packed = gzip.compress(BODY), "Content-Encoding: gzip"
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(asyncio.timeout(30))
        endpoint = await stack.enter_async_context(echo_server(large_requests_bytes=MEMORY_BYTES))
        connections = [await stack.enter_async_context(raw_connection(endpoint)) for _ in range(12)]
        for connection in connections:
            connection.send(request("Echo", packed, is_packed) + request("Echo", b"{}"))
        for connection in connections:
            assert (await connection.answer()).body == BODY
            assert (await connection.answer()).json == {"Text": ""}


@both_lanes
async def test_a_client_that_disconnects_during_a_large_request_frees_memory(more: More) -> None:
    async with (
        asyncio.timeout(30),
        echo_server(large_requests_bytes=MEMORY_BYTES) as endpoint,
        raw_connection(endpoint) as staying,
    ):
        for _ in range(3):
            async with raw_connection(endpoint) as leaving:
                leaving.send(head("Echo", len(BODY), *more) + BODY[:HALF])
                await leaving.writer.drain()
        assert (await staying.ask("Echo", BODY, *more)).body == BODY


@both_lanes
@on_stepped_time
async def test_a_client_that_stops_sending_is_disconnected_and_frees_memory(more: More) -> None:
    async with (
        echo_server(large_requests_bytes=MEMORY_BYTES) as endpoint,
        raw_connection(endpoint) as stalled,
        raw_connection(endpoint) as waiting,
    ):
        stalled.send(head("Echo", len(BODY), *more) + BODY[:HALF])
        await settle()
        waiting.send(request("Echo", BODY, *more))
        earned_seconds = HALF / SETTINGS.least_bytes_per_second
        await pass_seconds(GRACE_SECONDS + earned_seconds + 2 * CHECK_SECONDS)
        assert (await waiting.answer()).body == BODY
        assert await is_let_go(stalled)


@both_lanes
@on_stepped_time
async def test_a_client_that_stops_sending_is_finally_disconnected_even_if_no_request_waits(
    more: More,
) -> None:
    async with (
        echo_server(large_requests_bytes=MEMORY_BYTES) as endpoint,
        raw_connection(endpoint) as stalled,
    ):
        stalled.send(head("Echo", len(BODY), *more) + BODY[:HALF])
        await pass_seconds(2 * SETTINGS.transfer_seconds)
        assert await is_let_go(stalled)
        async with raw_connection(endpoint) as later:
            assert (await later.ask("Echo", BODY, *more)).body == BODY


@both_lanes
@on_stepped_time
async def test_a_slow_sender_is_not_evicted_if_no_request_waits(more: More) -> None:
    async with (
        echo_server(large_requests_bytes=MEMORY_BYTES) as endpoint,
        raw_connection(endpoint) as slow,
        raw_connection(endpoint) as waiting,
    ):
        slow.send(head("Echo", len(BODY), *more) + BODY[:HALF])
        await pass_seconds(0.8 * SETTINGS.transfer_seconds)
        waiting.send(request("Echo", BODY, *more))
        await pass_seconds(GRACE_SECONDS)
        slow.send(BODY[HALF:])
        assert (await slow.answer()).body == BODY
        assert (await waiting.answer()).body == BODY


@both_lanes
@on_stepped_time
async def test_a_request_at_the_lowest_pace_is_read_completely_while_others_wait(
    more: More,
) -> None:
    pace = int(SETTINGS.least_bytes_per_second)
    async with (
        echo_server(large_requests_bytes=MEMORY_BYTES) as endpoint,
        raw_connection(endpoint) as within,
        raw_connection(endpoint) as waiting,
    ):
        within.send(head("Echo", len(BODY), *more) + BODY[:pace])
        await settle()
        waiting.send(request("Echo", BODY, *more))
        for at in range(pace, len(BODY), pace):
            await pass_seconds(1)
            within.send(BODY[at : at + pace])
        assert (await within.answer()).body == BODY
        assert (await waiting.answer()).body == BODY


@both_lanes
@on_stepped_time
async def test_clients_that_stall_in_turn_delay_others_only_briefly(more: More) -> None:
    async with AsyncExitStack() as stack:
        endpoint = await stack.enter_async_context(echo_server(large_requests_bytes=MEMORY_BYTES))
        connections = [await stack.enter_async_context(raw_connection(endpoint)) for _ in range(6)]
        for stalled in connections:
            stalled.send(head("Echo", len(BODY), *more) + BODY[: 65 * 1024])
            await settle()
        waiting = await stack.enter_async_context(raw_connection(endpoint))
        waiting.send(request("Echo", BODY, *more))
        # Each stalled client is admitted when the previous one is evicted.
        await pass_seconds(6 * (GRACE_SECONDS + 2 * CHECK_SECONDS))
        assert (await waiting.answer()).body == BODY
        for stalled in connections:
            assert await is_let_go(stalled)


async def is_let_go(connection: RawConnection) -> bool:
    """Whether the server closes the connection, with or without an answer of status 408."""
    # After an early answer, the server gives the client time to read it.
    await pass_seconds(SETTINGS.transfer_seconds)
    try:
        first_line, _, _ = (await connection.reader.read()).partition(b"\r\n")
    except ConnectionResetError:
        return True
    return first_line in (b"", b"HTTP/1.1 408 Request Timeout")


@both_lanes
@on_stepped_time
async def test_waiting_for_memory_does_not_count_toward_a_clients_time_outs(
    more: More, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate()
    async with (
        echo_server(gate.operation, large_requests_bytes=MEMORY_BYTES) as endpoint,
        raw_connection(endpoint) as within,
        raw_connection(endpoint) as other,
        raw_connection(endpoint) as idle,
    ):
        within.send(request("Wait", BODY, *more))
        while not gate.waiting:
            await asyncio.sleep(0)
        other.send(request("Echo", BODY, *more))
        await pass_seconds(3 * max(SETTINGS.transfer_seconds, SETTINGS.idle_seconds))
        # The idle connection is closed, which shows that all time-outs have passed.
        assert await idle.is_closed()
        gate.opened.set()
        assert (await within.answer()).status == 200
        assert (await other.answer()).body == BODY
    # The server did not try to evict the complete request.
    assert not caplog.records


@both_lanes
async def test_a_stopping_server_closes_connections_that_wait_for_memory(more: More) -> None:
    gate = Gate()
    async with one_within(gate, more, drain_seconds=0.3) as (_, other, _):
        other.send(head("Echo", len(BODY), *more) + BODY[:HALF])
    assert await other.is_closed()
