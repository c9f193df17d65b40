"""Runs calls of endpoints concurrently, and raises the error of the first that fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from dynactor.api.clients.client import RequestFailed
from dynactor.api.clients.reach import CannotCall
from dynactor.api.commands.tables.transfer_failed import TransferFailed
from dynactor.storage.buckets.bucket import BucketError


@asynccontextmanager
async def concurrent_calls() -> AsyncIterator[TaskGroup]:
    """A task group whose first error comes out of the context alone, not in a group."""
    failures: tuple[BaseException, ...] = ()
    try:
        async with anyio.create_task_group() as group:
            yield group
    except* (RequestFailed, CannotCall, TransferFailed, BucketError, OSError) as errors:
        failures = errors.exceptions
    if failures:
        raise failures[0]
