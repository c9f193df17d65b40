"""Cancels work, and recognizes whether a ``CancelledError`` cancels the current task.

Awaiting a future that another task has canceled raises ``CancelledError``, as if the awaiting task
itself were canceled. In a child of a task group that is dangerous: a child that ends with this
error silently cancels its group.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

import anyio

T = TypeVar("T")


def is_cancellation(error: BaseException) -> bool:
    """Whether an error that was just caught cancels this task, and is not a failure of its work."""
    if not isinstance(error, asyncio.CancelledError):
        return False
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def cancel_when(
    stopped: asyncio.Future[None],
    work: Callable[[], Awaitable[None]],
    grace_seconds: Callable[[], float] = lambda: 0.0,
) -> None:
    """Do work, and cancel it ``grace_seconds`` after ``stopped`` completes."""

    async def wait_and_cancel(scope: anyio.CancelScope) -> None:
        await asyncio.wait([stopped])
        # Work that ends during the grace period leaves the scope before it is canceled.
        await anyio.sleep(grace_seconds())
        scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(wait_and_cancel, group.cancel_scope)
        await work()
        group.cancel_scope.cancel()


async def outcomes(awaited: Iterable[Awaitable[T]]) -> list[T | BaseException]:
    """The results and errors of futures, when all are done.

    Use this instead of ``asyncio.gather(..., return_exceptions=True)``. When that is canceled, its
    ``CancelledError`` may have no message. anyio then does not recognize the error as the one of
    its scope.
    """
    futures = list(map(asyncio.ensure_future, awaited))
    for future in futures:
        # If this wait is canceled, nobody else retrieves the errors.
        future.add_done_callback(_outcome)
    if futures:
        await asyncio.wait(futures)
    return list(map(_outcome, futures))


async def together(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run these at the same time until all have ended; then raise the first error.

    An error of one does not end the others. If this is canceled, they are.
    """
    tasks = list(map(asyncio.ensure_future, works))
    try:
        found = await outcomes(tasks)
    finally:
        for task in tasks:
            task.cancel()
    for outcome in found:
        if outcome is not None:
            raise outcome


def _outcome(future: Future[T]) -> T | BaseException:
    if future.cancelled():
        return asyncio.CancelledError()
    return future.exception() or future.result()
