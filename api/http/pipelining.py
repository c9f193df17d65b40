"""Turns of the event loop for pipelined requests, over all connections.

The first request of a connection begins as soon as it is read. Whatever its client has sent behind
it waits here, one request of each connection at a time, first come, first served. One turn of the
event loop begins only as many pipelined requests as take a millisecond, so other connections are
read and answered between them, however many clients pipeline.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections import deque
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Final

# Spent on pipelined requests in one turn of the event loop, and on one request more.
_SECONDS_PER_TURN: Final = 0.001


class Turns:
    """The queue. Invariant: one turn is scheduled as long as somebody waits, and no second one."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], bool]] = deque()
        self._is_scheduled = False

    def take(self, begin: Callable[[], bool]) -> None:
        """Call ``begin`` when it is its turn; it must not raise.

        It says whether its request goes on after the call. The time of such a request is unknown,
        so it is the last one of its turn.
        """
        self._waiting.append(begin)
        self._schedule()

    @property
    def waiting_count(self) -> int:
        """How many requests wait for their turn."""
        return len(self._waiting)

    async def wait(self) -> None:
        """Wait for a turn, for a request that is carried out afterwards."""
        turn: Future[None] = asyncio.get_running_loop().create_future()
        self.take(partial(_give_to, turn))
        await turn

    def _schedule(self) -> None:
        if self._waiting and not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._give)

    def _give(self) -> None:
        self._is_scheduled = False
        ends_at = perf_counter() + _SECONDS_PER_TURN
        for _ in range(len(self._waiting)):
            begin = self._waiting.popleft()
            if begin() or perf_counter() >= ends_at:
                break
        self._schedule()


def _give_to(turn: Future[None]) -> bool:
    if turn.done():
        # Cancelled meanwhile.
        return False
    turn.set_result(None)
    return True
