"""Loops that start operations on clients: as soon as a client is free, or on schedule."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from time import perf_counter

from dynactor.load.run.clients import Client, Clients
from dynactor.load.run.recorder import Recorder
from dynactor.load.run.timer import Timer, open_timer
from dynactor.load.work.operations import Dialogue
from dynactor.load.work.pacing import Pacing

Draw = Callable[[], tuple[str, Dialogue]]


class ClosedLoop:
    """Each client sends its next request when the last one is answered."""

    def __init__(self, clients: Clients, draw: Draw, recorder: Recorder) -> None:
        self._clients = clients
        self._draw = draw
        self._recorder = recorder
        self._over = False
        self._busy = 0
        self._quiet = asyncio.Event()

    def start(self, ramp_seconds: float) -> None:
        """Start the clients one by one during the ramp."""
        self._clients.loop = self
        loop = asyncio.get_running_loop()
        for number, client in enumerate(self._clients.clients):
            if ramp_seconds:
                delay = ramp_seconds * number / len(self._clients.clients)
                loop.call_later(delay, self._begin, client)
            else:
                self._begin(client)

    def _begin(self, client: Client) -> None:
        if not self._over:
            self._busy += 1
            client.start(*self._draw(), perf_counter())

    def freed(self, client: Client, outcome: str) -> None:
        now = perf_counter()
        self._recorder.note(client.operation, client.due_at, now, outcome)
        if self._over:
            self._busy -= 1
            if not self._busy:
                self._quiet.set()
        else:
            client.start(*self._draw(), now)

    async def stop(self) -> None:
        """Send no more requests, and wait for requests in flight; clients abort overdue ones."""
        self._over = True
        if self._busy:
            await self._quiet.wait()


class OpenLoop:
    """Each request is sent on schedule, or when a client is free after that."""

    def __init__(
        self,
        clients: Clients,
        draw: Draw,
        recorder: Recorder,
        pacing: Pacing,
        *,
        clock: Callable[[], float] = perf_counter,
        timer: Callable[[Callable[[], None]], Timer] = open_timer,
    ) -> None:
        self._clock = clock
        self._clients = clients
        self._draw = draw
        self._recorder = recorder
        self._pacing = pacing
        self._number = 0
        self._started_at = 0.0
        self._over = False
        self._idle: list[Client] = []
        self._waiting: deque[float] = deque()
        self._quiet = asyncio.Event()
        self._timer = timer(self._send_due)

    def start(self, started_at: float) -> None:
        """Send scheduled requests from then on."""
        self._clients.loop = self
        self._idle = list(self._clients.clients)
        self._started_at = started_at
        self._send_due()

    def _send_due(self) -> None:
        if self._over:
            return
        while (due_at := self._due_at()) <= (now := self._clock()):
            self._number += 1
            if self._idle:
                self._recorder.note_sent(due_at, now)
                self._idle.pop().start(*self._draw(), due_at)
            else:
                self._waiting.append(due_at)
        self._timer.set(due_at)

    def _due_at(self) -> float:
        return self._started_at + self._pacing.due_seconds(self._number)

    def freed(self, client: Client, outcome: str) -> None:
        self._recorder.note(client.operation, client.due_at, self._clock(), outcome)
        if self._waiting and not self._over:
            client.start(*self._draw(), self._waiting.popleft())
            return
        self._idle.append(client)
        if len(self._idle) == len(self._clients.clients):
            self._quiet.set()

    async def stop(self) -> None:
        """Send no more, and wait for requests in flight. Due requests without client are unsent."""
        self._over = True
        self._timer.close()
        now = self._clock()
        for due_at in self._waiting:
            self._recorder.note_unsent(due_at, now)
        self._quiet.clear()
        if len(self._idle) < len(self._clients.clients):
            await self._quiet.wait()


class Finite:
    """Each client runs the next dialogue until there are none left, or too many have failed.

    ``ended`` is the number of successful dialogues.
    """

    def __init__(self, clients: Clients, dialogues: Iterator[Dialogue]) -> None:
        self.ended = 0
        self._clients = clients
        self._dialogues = dialogues
        self._busy = 0
        self._failures_left = len(clients.clients)
        self._quiet = asyncio.Event()

    async def run(self) -> None:
        """Run all dialogues."""
        self._clients.loop = self
        self._busy = len(self._clients.clients)
        for client in self._clients.clients:
            self._next(client)
        await self._quiet.wait()

    def freed(self, client: Client, outcome: str) -> None:
        self.ended += not outcome
        self._failures_left -= bool(outcome)
        self._next(client)

    def _next(self, client: Client) -> None:
        dialogue = next(self._dialogues, None) if self._failures_left > 0 else None
        if dialogue is not None:
            client.start("", dialogue, perf_counter())
            return
        self._busy -= 1
        if not self._busy:
            self._quiet.set()
