"""A broker that gives no answer at the start of a server is logged once."""

from __future__ import annotations

import anyio
import pytest
import structlog

from dynactor.actors.derived.kafka.broker_check import checking_broker
from dynactor.streams.kafka.broker import BrokerError, BrokerRefused, Unreachable
from tests.support.environment.hanging import HANG_SECONDS
from tests.support.kafka.fake_broker import FakeBroker


@pytest.mark.parametrize(
    "error", [Unreachable("a:1: nobody"), BrokerRefused("a:1: wrong password")]
)
async def test_an_absent_broker_is_logged(error: BrokerError):
    broker = FakeBroker()
    with structlog.testing.capture_logs() as logged, broker.unreachable(error):
        async with checking_broker(broker):
            with anyio.fail_after(HANG_SECONDS):
                while not logged:
                    await anyio.lowlevel.checkpoint()
    assert logged == [{"event": "broker_not_reached", "log_level": "warning", "reason": str(error)}]


async def test_a_broker_that_answers_is_not_logged():
    broker = FakeBroker()
    with structlog.testing.capture_logs() as logged:
        async with checking_broker(broker), checking_broker(None):
            await anyio.wait_all_tasks_blocked()
    assert logged == []


async def test_a_slow_broker_delays_no_end():
    broker = FakeBroker()
    with broker.silent(), anyio.move_on_after(HANG_SECONDS) as limit:
        async with checking_broker(broker):
            await anyio.wait_all_tasks_blocked()
    assert not limit.cancelled_caught
