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
        self._stopped: set[int] = set()
        # The queues of all other nodes, in the order of their first callbacks.
        self._running: list[deque[asyncio.Handle]] = []
        # The number of each cancel scope by its address. The list keeps the scopes alive, so that
        # no two scopes have the same address.
        self._scope_numbers: dict[int, int] = {}
        self._scopes: list[CancelScope] = []
        self.set_task_factory(_make_task)

    def time(self) -> float:
        return self._now_seconds

    def create_future(self) -> asyncio.Future[Any]:
        return _SimulatedFuture(loop=self)

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        context = copy_context() if context is None else context
        handle = _Handle(callback, args, self, context)
        self._queue(context.get(NODE, 0)).append(handle)
        return handle

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        context = copy_context() if context is None else context
        timer = _TimerHandle(when, callback, args, self, context)
        heappush(self._timers, (when, next(self.numbers), context.get(NODE, 0), timer))
        return timer

    def stop_node(self, node: int) -> None:
        """Run no callback of a node from now on."""
        self._stopped.add(node)
        self._list_running()

    def resume_node(self, node: int) -> None:
        """Run the callbacks of a node again."""
        self._stopped.discard(node)
        self._list_running()

    def resume_all_nodes(self) -> None:
        """Run the callbacks of all nodes again."""
        self._stopped.clear()
        self._list_running()

    def _list_running(self) -> None:
        stopped = self._stopped
        self._running = [queue for node, queue in self._queues.items() if node not in stopped]

    def _queue(self, node: int) -> deque[asyncio.Handle]:
        queue = self._queues.get(node)
        if queue is None:
            queue = self._queues[node] = deque()
            self._list_running()
        return queue

    def run_forever(self) -> None:
        def number(scope: CancelScope) -> int:
            found = self._scope_numbers.get(id(scope))
            if found is None:
                found = self._scope_numbers[id(scope)] = next(self.numbers)
                self._scopes.append(scope)
            return found

        # anyio keeps scopes in sets, too, and cancels them in the order of their hashes.
        with patch.object(CancelScope, "__hash__", number):
            super().run_forever()

    def _run_once(self) -> None:
        """Run callbacks until the loop is stopped; ``run_forever`` calls this method."""
        timers, draw = self._timers, self._draws.random
        while not self._stopping:
            while timers and (timers[0][0] <= self._now_seconds or timers[0][3].cancelled()):
                _, _, node, timer = heappop(timers)
                if not timer.cancelled():
                    self._queue(node).append(timer)
            ready = list(filter(None, self._running))
            if not ready:
                if not timers:
                    raise Stuck
                self._now_seconds = max(self._now_seconds, timers[0][0])
                continue
            queue = ready[0] if len(ready) == 1 else ready[int(draw() * len(ready))]
            handle = queue.popleft()
            if not handle._cancelled:
                handle._run()

    def _asyncgen_finalizer_hook(self, generator: AsyncGenerator[Any, Any]) -> None:
        # The base class calls this loop as if from another thread.
        if not self.is_closed():
            self.call_soon(self.create_task, generator.aclose())


class _Handle(asyncio.Handle):
    __slots__ = ()

    def __init__(  # the base class asks for the debug mode
        self, callback: Callable[..., object], args: Any, loop: SimulatedLoop, context: Context
    ) -> None:
        self._callback = callback
        self._args = args
        self._loop = loop
        self._context = context
        self._cancelled = False
        self._repr = self._source_traceback = None


class _TimerHandle(asyncio.TimerHandle):
    __slots__ = ()

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: Any,
        loop: SimulatedLoop,
        context: Context,
    ) -> None:
        self._callback = callback
        self._args = args
        self._loop = loop
        self._context = context
        self._cancelled = self._scheduled = False
        self._repr = self._source_traceback = None
        self._when = when


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


def simulated(
    test: Callable[_Arguments, Coroutine[None, None, None]],
) -> Callable[_Arguments, None]:
    """Run a test on a simulated loop, on which waits take no real time."""

    @wraps(test)
    def run(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> None:
        with asyncio.Runner(loop_factory=lambda: SimulatedLoop(1)) as runner:
            runner.run(test(*arguments, **named))

    return run
