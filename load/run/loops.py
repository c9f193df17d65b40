"""Distributes work to lanes: as soon as one is free, or on schedule."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from time import perf_counter

from dynactor.load.run.lanes import Lane, Lanes
from dynactor.load.run.recorder import Recorder
from dynactor.load.run.timer import Timer, open_timer
from dynactor.load.work.operations import Dialogue
from dynactor.load.work.pacing import Pacing

Draw = Callable[[], tuple[str, Dialogue]]


class ClosedLoop:
    """Each lane sends its next request when the last one is answered."""

    def __init__(self, lanes: Lanes, draw: Draw, recorder: Recorder) -> None:
        self._lanes = lanes
        self._draw = draw
        self._recorder = recorder
        self._over = False
        self._busy = 0
        self._quiet = asyncio.Event()

    def start(self, ramp_seconds: float) -> None:
        """Start the lanes one by one during the ramp."""
        self._lanes.loop = self
        loop = asyncio.get_running_loop()
        for number, lane in enumerate(self._lanes.lanes):
            if ramp_seconds:
                delay = ramp_seconds * number / len(self._lanes.lanes)
                loop.call_later(delay, self._begin, lane)
            else:
                self._begin(lane)

    def _begin(self, lane: Lane) -> None:
        if not self._over:
            self._busy += 1
            lane.start(*self._draw(), perf_counter())

    def freed(self, lane: Lane, outcome: str) -> None:
        now = perf_counter()
        self._recorder.note(lane.operation, lane.due_at, now, outcome)
        if self._over:
            self._busy -= 1
            if not self._busy:
                self._quiet.set()
        else:
            lane.start(*self._draw(), now)

    async def stop(self) -> None:
        """Send no more requests, and wait for requests in flight; lanes abort overdue ones."""
        self._over = True
        if self._busy:
            await self._quiet.wait()


class OpenLoop:
    """Each request is sent on schedule, or when a lane is free after that."""

    def __init__(
        self,
        lanes: Lanes,
        draw: Draw,
        recorder: Recorder,
        pacing: Pacing,
        *,
        clock: Callable[[], float] = perf_counter,
        timer: Callable[[Callable[[], None]], Timer] = open_timer,
    ) -> None:
        self._clock = clock
        self._lanes = lanes
        self._draw = draw
        self._recorder = recorder
        self._pacing = pacing
        self._number = 0
        self._started_at = 0.0
        self._over = False
        self._idle: list[Lane] = []
        self._waiting: deque[float] = deque()
        self._quiet = asyncio.Event()
        self._timer = timer(self._send_due)

    def start(self, started_at: float) -> None:
        """Send scheduled requests from then on."""
        self._lanes.loop = self
        self._idle = list(self._lanes.lanes)
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

    def freed(self, lane: Lane, outcome: str) -> None:
        self._recorder.note(lane.operation, lane.due_at, self._clock(), outcome)
        if self._waiting and not self._over:
            lane.start(*self._draw(), self._waiting.popleft())
            return
        self._idle.append(lane)
        if len(self._idle) == len(self._lanes.lanes):
            self._quiet.set()

    async def stop(self) -> None:
        """Send no more, and wait for requests in flight. Requests still waiting count as unsent."""
        self._over = True
        self._timer.close()
        now = self._clock()
        for due_at in self._waiting:
            self._recorder.note_unsent(due_at, now)
        self._quiet.clear()
        if len(self._idle) < len(self._lanes.lanes):
            await self._quiet.wait()


class Finite:
    """Each lane takes the next dialogue until there are none left, or too many have failed.

    ``ended`` is the number of successful requests.
    """

    def __init__(self, lanes: Lanes, dialogues: Iterator[Dialogue]) -> None:
        self.ended = 0
        self._lanes = lanes
        self._dialogues = dialogues
        self._busy = 0
        self._failures_left = len(lanes.lanes)
        self._quiet = asyncio.Event()

    async def run(self) -> None:
        """Run all dialogues."""
        self._lanes.loop = self
        self._busy = len(self._lanes.lanes)
        for lane in self._lanes.lanes:
            self._next(lane)
        await self._quiet.wait()

    def freed(self, lane: Lane, outcome: str) -> None:
        self.ended += not outcome
        self._failures_left -= bool(outcome)
        self._next(lane)

    def _next(self, lane: Lane) -> None:
        dialogue = next(self._dialogues, None) if self._failures_left > 0 else None
        if dialogue is not None:
            lane.start("", dialogue, perf_counter())
            return
        self._busy -= 1
        if not self._busy:
            self._quiet.set()
