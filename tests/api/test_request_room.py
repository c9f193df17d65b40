"""Room for large requests: who is let in, who waits, and that nobody waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from api.request_room import RequestRoom
from tests.support.fake_operations import Gate, echo_server
from tests.support.raw_http import TO_PLAIN_LANE, RawConnection, head, raw_connection, request

MIB = 1024 * 1024
ROOM_BYTES = 3 * MIB
# Two of them don't fit.
BODY = b'{"Text":"%s"}' % (b"x" * 2 * MIB)
HALF = len(BODY) // 2

both_lanes = pytest.mark.parametrize(
    "more", [(), (TO_PLAIN_LANE,)], ids=["fast lane", "plain lane"]
)
More = tuple[str, ...]


# -- the room -------------------------------------------------------------------------------


async def test_requests_are_let_in_in_their_order_while_they_fit() -> None:
    room = RequestRoom(10)
    first, second, third, fourth = (room.enter(size) for size in (6, 4, 5, 1))
    assert [each.let_in.done() for each in (first, second, third, fourth)] == [
        True,
        True,
        False,
        False,
    ]
    room.leave(second)
    # The fourth would fit, but a large one must not be passed by for ever.
    assert not third.let_in.done()
    assert not fourth.let_in.done()
    room.leave(first)
    assert third.let_in.done()
    assert fourth.let_in.done()


async def test_a_request_that_is_larger_than_the_room_is_let_in_alone() -> None:
    room = RequestRoom(10)
    small, large, other = room.enter(1), room.enter(20), room.enter(1)
    assert not large.let_in.done()
    room.leave(small)
    assert large.let_in.done()
    assert not other.let_in.done()
    room.leave(large)
    assert other.let_in.done()


async def test_whoever_no_longer_waits_holds_up_nobody() -> None:
    room = RequestRoom(10)
    first, large, small = room.enter(5), room.enter(10), room.enter(5)
    room.leave(large)
    assert small.let_in.done()
    room.leave(first)
    room.leave(small)
    assert room.enter(10).let_in.done()


async def test_whoever_is_cancelled_and_has_not_left_yet_gives_its_place_up_when_it_does() -> None:
    room = RequestRoom(10)
    first, cancelled = room.enter(10), room.enter(10)
    cancelled.let_in.cancel()
    room.leave(first)
    third = room.enter(10)
    assert not third.let_in.done()
    room.leave(cancelled)
    assert third.let_in.done()


# -- connections ----------------------------------------------------------------------------


@asynccontextmanager
async def one_within(
    gate: Gate, more: More, **settings: float
) -> AsyncIterator[tuple[RawConnection, RawConnection, str]]:
    """A server, a connection whose large request is in its room, and another one."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(asyncio.timeout(30))
        endpoint = await stack.enter_async_context(
            echo_server(gate.operation, large_requests_bytes=ROOM_BYTES, **settings)
        )
        within = await stack.enter_async_context(raw_connection(endpoint))
        other = await stack.enter_async_context(raw_connection(endpoint))
        other.writer.transport.set_write_buffer_limits(0)
        within.send(request("Wait", BODY, *more))
        while not gate.waiting:
            await asyncio.sleep(0.001)
        yield within, other, endpoint


async def is_read(connection: RawConnection) -> bool:
    """Whether the server takes all that was sent."""
    try:
        await asyncio.wait_for(connection.writer.drain(), 0.3)
    except TimeoutError:
        return False
    return True


@both_lanes
async def test_a_large_request_is_read_when_another_one_has_been_answered(more: More) -> None:
    gate = Gate()
    # What sockets take in is not the server's.
    flood = request("Echo", b'{"Text":"%s"}' % (b"y" * 15 * MIB), *more)
    async with one_within(gate, more) as (within, other, _):
        other.send(flood)
        assert not await is_read(other)
        gate.opened.set()
        assert (await within.answer()).body == BODY
        assert len((await other.answer()).body) == 15 * MIB + len(b'{"Text":""}')


@both_lanes
async def test_small_requests_are_not_held_up(more: More) -> None:
    gate = Gate()
    small = b'{"Text":"%s"}' % (b"z" * 60_000)
    async with one_within(gate, more) as (_, other, endpoint):
        other.send(head("Echo", len(BODY), *more) + BODY[:HALF])
        async with raw_connection(endpoint) as third, raw_connection(endpoint) as fourth:
            third.send(head("Echo", len(small), *more) + small[:1])
            # Meanwhile that much is read, and no more.
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
async def test_many_large_requests_that_come_piece_by_piece_are_all_answered(more: More) -> None:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(asyncio.timeout(30))
        endpoint = await stack.enter_async_context(echo_server(large_requests_bytes=ROOM_BYTES))
        connections = [await stack.enter_async_context(raw_connection(endpoint)) for _ in range(12)]
        # All have begun before the first one ends.
        for connection in connections:
            connection.send(head("Echo", len(BODY), *more) + BODY[:HALF])
        await asyncio.sleep(0)
        for connection in reversed(connections):
            connection.send(BODY[HALF:] + request("Echo", b'{"Text":"next"}', *more))
        for connection in connections:
            assert (await connection.answer()).body == BODY
            assert (await connection.answer()).json == {"Text": "next"}


@both_lanes
async def test_whoever_leaves_amid_a_large_request_makes_room(more: More) -> None:
    async with (
        asyncio.timeout(30),
        echo_server(large_requests_bytes=ROOM_BYTES) as endpoint,
        raw_connection(endpoint) as staying,
    ):
        for _ in range(3):
            async with raw_connection(endpoint) as leaving:
                leaving.send(head("Echo", len(BODY), *more) + BODY[:HALF])
                await leaving.writer.drain()
        assert (await staying.ask("Echo", BODY, *more)).body == BODY


@both_lanes
async def test_whoever_does_not_send_the_rest_is_closed_and_makes_room(more: More) -> None:
    async with (
        asyncio.timeout(30),
        echo_server(large_requests_bytes=ROOM_BYTES, transfer_seconds=1) as endpoint,
        raw_connection(endpoint) as slow,
        raw_connection(endpoint) as waiting,
    ):
        slow.send(head("Echo", len(BODY), *more) + BODY[:HALF])
        await slow.writer.drain()
        assert (await waiting.ask("Echo", BODY, *more)).body == BODY


@both_lanes
async def test_the_time_for_which_a_client_waits_for_room_is_not_its_own(more: More) -> None:
    gate = Gate()
    async with one_within(gate, more, idle_seconds=1.5, transfer_seconds=1) as opened:
        within, other, endpoint = opened
        other.send(head("Echo", len(BODY), *more) + BODY)
        async with raw_connection(endpoint) as idle:
            # That the idle one is closed shows that the time is over.
            assert await idle.is_closed()
        gate.opened.set()
        assert (await within.answer()).status == 200
        assert (await other.answer()).body == BODY


@both_lanes
async def test_a_server_that_stops_closes_those_who_wait(more: More) -> None:
    gate = Gate()
    async with one_within(gate, more, drain_seconds=0.3) as (_, other, _):
        other.send(head("Echo", len(BODY), *more) + BODY[:HALF])
    assert await other.is_closed()
