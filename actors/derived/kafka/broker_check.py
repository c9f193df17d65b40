"""Tells at the start of a server whether its broker answers.

A relay reports trouble only when it has something to publish. Without this check, a wrong address
would stay unnoticed until the first change of a table.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import structlog

from dynactor.model.kept_failure import KeptFailure
from dynactor.streams.kafka.broker import Broker, BrokerError

_log = structlog.get_logger("kafka")


@asynccontextmanager
async def checking_broker(broker: Broker | None) -> AsyncIterator[None]:
    """Ask the broker once within the context; log a line if it gives no answer."""
    if broker is None:
        yield
        return
    kept = KeptFailure()
    async with anyio.create_task_group() as group:
        group.start_soon(_check, broker)
        with kept:
            yield
        group.cancel_scope.cancel()
    kept.raise_again()


async def _check(broker: Broker) -> None:
    try:
        await broker.check()
    except BrokerError as error:
        _log.warning("broker_not_reached", reason=str(error))
