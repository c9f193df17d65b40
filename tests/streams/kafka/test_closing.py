"""Closing a client of aiokafka ends in time, and its errors don't reach the caller."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import anyio
import pytest
from aiokafka.errors import NodeNotReadyError
from structlog.testing import capture_logs

from dynactor.streams.kafka.aiokafka_broker import _within
from tests.support.environment.hanging import HANG_SECONDS


async def cancelled_within() -> None:
    """Cancels its own task, as aiokafka cancels fetches that wait for an unreachable broker."""
    fetching = asyncio.ensure_future(asyncio.sleep(60))
    await asyncio.sleep(0)
    fetching.cancel()
    await fetching


async def failing() -> None:
    raise NodeNotReadyError("no broker")


@pytest.mark.parametrize("closing", [cancelled_within, failing])
async def test_errors_and_cancellations_during_closing_do_not_reach_the_caller(closing):
    with capture_logs() as logged:
        await _within(10, closing())
    assert [entry["event"] for entry in logged] == ["client_close_failed"]


async def test_work_that_does_not_end_is_abandoned():
    is_left = asyncio.Event()

    async def close() -> None:
        while not is_left.is_set():
            # A task that suppresses the cancellation of its own work.
            with suppress(asyncio.CancelledError):
                await is_left.wait()

    with anyio.move_on_after(HANG_SECONDS) as limit:
        await _within(0.001, close())
    is_left.set()
    assert not limit.cancelled_caught


async def test_a_cancelled_caller_still_closes():
    closed = False

    async def close() -> None:
        nonlocal closed
        await asyncio.sleep(0)
        closed = True

    with anyio.CancelScope() as scope:
        scope.cancel()
        await _within(10, close())
    assert closed


async def test_a_bug_is_reported():
    async def broken() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await _within(10, broken())
