"""Turns of the event loop for pipelined requests, over all connections.

The first request of a connection starts as soon as it is read. Pipelined requests wait in one queue
in the order of arrival, one of each connection at a time. A turn of the event loop starts pipelined
requests for a millisecond, so other connections are read and answered in between.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections import deque
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Final

# Maximum time for pipelined requests in one turn of the event loop. The last one may exceed it.
_SECONDS_PER_TURN: Final = 0.001


class Turns:
    """The queue of pipelined requests. Invariant: one turn is scheduled while a request waits."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], bool]] = deque()
        self._is_scheduled = False

    def take(self, begin: Callable[[], bool]) -> None:
        """Call ``begin`` when the connection's turn comes; ``begin`` must not raise.

        ``begin`` returns whether its request is still running after the call. Such a request ends
        the turn, because its duration is unknown.
        """
        self._waiting.append(begin)
        self._schedule()

    @property
    def waiting_count(self) -> int:
        """Number of requests that wait for their turn."""
        return len(self._waiting)

    async def wait(self) -> None:
        """Wait for a turn; the caller then answers the request."""
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
        # The waiter was cancelled.
        return False
    turn.set_result(None)
    return True
