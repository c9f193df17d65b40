"""Pipelined requests of all connections share the event loop's turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dynactor.api.http.pipelining import Turns


def beginning(begun: list[str], name: str, *, goes_on: bool) -> Callable[[], bool]:
    def begin() -> bool:
        begun.append(name)
        return goes_on

    return begin


async def test_requests_start_in_the_order_in_which_they_queued():
    turns, begun = Turns(), list[str]()
    for name in "abc":
        turns.take(beginning(begun, name, goes_on=False))
    await asyncio.sleep(0)
    assert begun == ["a", "b", "c"]


async def test_a_request_that_continues_is_the_last_one_of_its_turn():
    turns, begun = Turns(), list[str]()
    for name in "abcd":
        turns.take(beginning(begun, name, goes_on=name in "bc"))
    seen = []
    for _ in range(3):
        await asyncio.sleep(0)
        seen.append("".join(begun))
    assert seen == ["ab", "abc", "abcd"]


async def test_a_request_that_queues_again_waits_for_the_next_turn():
    turns, begun = Turns(), list[str]()

    def begin() -> bool:
        begun.append("again")
        if len(begun) < 3:
            turns.take(begin)
        return False

    turns.take(begin)
    for count in range(1, 4):
        await asyncio.sleep(0)
        assert len(begun) == count


async def test_a_long_request_is_the_last_one_of_its_turn():
    turns, begun = Turns(), list[str]()
    loop = asyncio.get_running_loop()

    def begin() -> bool:
        begun.append("long")
        ends_at = loop.time() + 0.002
        while loop.time() < ends_at:
            pass
        return False

    turns.take(begin)
    turns.take(begin)
    await asyncio.sleep(0)
    assert len(begun) == 1
    await asyncio.sleep(0)
    assert len(begun) == 2


async def test_a_request_that_no_longer_waits_takes_no_turn():
    turns = Turns()
    cancelled, waiting = (asyncio.ensure_future(turns.wait()) for _ in range(2))
    await asyncio.sleep(0)
    cancelled.cancel()
    await waiting
    assert cancelled.cancelled()
