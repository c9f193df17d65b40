"""Cancellations that anyio has to recognize, and errors that the program has to retrieve."""

from __future__ import annotations

import asyncio
from asyncio import Future

import anyio
import pytest

from dynactor.actors.runtime.cancellation import outcomes, together


async def test_outcomes_has_results_and_errors_in_order():
    loop = asyncio.get_running_loop()
    done: Future[str] = loop.create_future()
    failed: Future[str] = loop.create_future()
    canceled: Future[str] = loop.create_future()
    loop.call_soon(done.set_result, "a result")
    loop.call_soon(failed.set_exception, KeyError("an error"))
    canceled.cancel()
    first, second, third = await outcomes([failed, done, canceled])
    assert isinstance(first, KeyError)
    assert second == "a result"
    assert isinstance(third, asyncio.CancelledError)


async def test_a_scope_that_ends_a_wait_for_outcomes_ends_nothing_else():
    loop = asyncio.get_running_loop()
    open_ended: Future[None] = loop.create_future()
    done: Future[None] = loop.create_future()
    done.set_result(None)
    with anyio.CancelScope() as scope:
        loop.call_soon(scope.cancel)
        await outcomes([open_ended, done])
    assert scope.cancelled_caught
    assert not open_ended.cancelled()


async def test_an_error_does_not_end_other_work_that_runs_together_with_it():
    ended = []

    async def fail() -> None:
        raise KeyError("an error")

    async def end(name: str) -> None:
        await asyncio.sleep(0)
        ended.append(name)

    with pytest.raises(KeyError):
        await together([end("first"), fail(), end("last")])
    assert ended == ["first", "last"]


async def test_work_that_runs_together_is_canceled_together():
    canceled = []

    async def wait(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            canceled.append(name)

    with anyio.CancelScope() as scope:
        asyncio.get_running_loop().call_soon(asyncio.get_running_loop().call_soon, scope.cancel)
        await together([wait("first"), wait("second")])
    await asyncio.sleep(0)
    assert canceled == ["first", "second"]
