"""An event loop whose order of callbacks and whose time are determined by a seed.

    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(seed)) as runner:
        runner.run(main())

Each node has one queue of callbacks, first in, first out, as on a real loop. The context variable
``NODE`` is the number of the node that runs a task and its children. The seed picks the node whose
next callback runs. If no callback is ready, time jumps to the next timer. Futures, tasks and
anyio's cancel scopes have numbers as hashes, so that sets of them are iterated in the same order in
every process.

The loop supports no threads, sockets and child processes, so the embedded engine can't run on it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextvars import Context, ContextVar, copy_context
from functools import wraps
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any, Final, ParamSpec, TypeAlias
from unittest.mock import patch

from anyio._backends._asyncio import CancelScope

_Arguments = ParamSpec("_Arguments")
_Work: TypeAlias = Coroutine[Any, Any, Any] | Generator[Any, None, Any]

NODE: Final[ContextVar[int]] = ContextVar("NODE", default=0)


class Stuck(Exception):
    """No callback is ready and no timer is set: all tasks wait for each other."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """The event loop; its time starts at 0."""

    # The types of the base class lack it.
    _stopping: bool

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._draws = Random(seed)
        self._now_seconds = 0.0
        self._queues: dict[int, deque[asyncio.Handle]] = {}
        # Each timer has its time, the number of the call, the node, and the callback.
        self._timers: list[tuple[float, int, int, asyncio.TimerHandle]] = []
        self.numbers = count()
        # The nodes that do nothing: they are suspended or were killed.
        self.stopped: set[int] = set()
        # The number of each cancel scope by its address. The dictionary also keeps the scopes
        # alive, so that no two scopes have the same address.
        self.scopes: dict[int, tuple[int, CancelScope]] = {}
        self.set_task_factory(_make_task)

    def time(self) -> float:
        return self._now_seconds

    def create_future(self) -> asyncio.Future[Any]:
        return _SimulatedFuture(loop=self)

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        context = copy_context() if context is None else context
        handle = asyncio.Handle(callback, args, self, context)
        self._enqueue(_node(context), handle)
        return handle

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        context = copy_context() if context is None else context
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heappush(self._timers, (when, next(self.numbers), _node(context), timer))
        return timer

    def _enqueue(self, node: int, handle: asyncio.Handle) -> None:
        self._queues.setdefault(node, deque()).append(handle)

    def run_forever(self) -> None:
        # anyio keeps scopes in sets, too, and cancels them in the order of their hashes.
        with patch.object(CancelScope, "__hash__", _number_of_scope):
            super().run_forever()

    def _run_once(self) -> None:
        """Run callbacks until the loop is stopped; ``run_forever`` calls this method."""
        timers, queues, draw = self._timers, self._queues, self._draws.random
        while not self._stopping:
            while timers and (timers[0][3].cancelled() or timers[0][0] <= self._now_seconds):
                _, _, node, timer = heappop(timers)
                if not timer.cancelled():
                    self._enqueue(node, timer)
            stopped = self.stopped
            ready = [queue for node, queue in queues.items() if queue and node not in stopped]
            if not ready:
                if not timers:
                    raise Stuck
                self._now_seconds = max(self._now_seconds, timers[0][0])
                continue
            queue = ready[0] if len(ready) == 1 else ready[int(draw() * len(ready))]
            handle = queue.popleft()
            if not handle.cancelled():
                handle._run()

    def _asyncgen_finalizer_hook(self, generator: AsyncGenerator[Any, Any]) -> None:
        # The base class calls this loop as if from another thread.
        if not self.is_closed():
            self.call_soon(self.create_task, generator.aclose())


class _SimulatedFuture(asyncio.Future[Any]):
    def __init__(self, *, loop: SimulatedLoop) -> None:
        super().__init__(loop=loop)
        self._number = next(loop.numbers)

    def __hash__(self) -> int:
        return self._number


def _make_task(loop: asyncio.AbstractEventLoop, work: _Work, **named: Any) -> asyncio.Task[Any]:
    assert isinstance(loop, SimulatedLoop)
    return _SimulatedTask(loop, work, **named)


class _SimulatedTask(asyncio.Task[Any]):
    def __init__(self, loop: SimulatedLoop, work: _Work, **named: Any) -> None:
        # Set the number first, because asyncio's constructor puts the task into a set.
        self._number = next(loop.numbers)
        super().__init__(work, loop=loop, **named)

    def __hash__(self) -> int:
        return self._number


def _number_of_scope(scope: CancelScope) -> int:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    if id(scope) not in loop.scopes:
        loop.scopes[id(scope)] = next(loop.numbers), scope
    return loop.scopes[id(scope)][0]


def _node(context: Context) -> int:
    return context.get(NODE, 0)


def simulated(
    test: Callable[_Arguments, Coroutine[None, None, None]],
) -> Callable[_Arguments, None]:
    """Run a test on a simulated loop, on which waits take no real time."""

    @wraps(test)
    def run(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> None:
        with asyncio.Runner(loop_factory=lambda: SimulatedLoop(1)) as runner:
            runner.run(test(*arguments, **named))

    return run
