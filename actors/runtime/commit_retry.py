"""Commits that are retried during a write stall, or until the store accepts writes again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

import anyio
import structlog

from dynactor.model.pauses import REFUSED_SECONDS, STALL_SECONDS
from dynactor.storage.store import Closed, Full, Group, Retry, Store, Unavailable, Unknown

_log = structlog.get_logger("actors")


class CommitTarget(Protocol):
    """A store, or its locked heads."""

    async def commit(self, groups: Sequence[Group]) -> asyncio.Future[None]:
        """Write all groups or none."""


async def commit_past_stalls(store: CommitTarget, groups: Sequence[Group]) -> asyncio.Future[None]:
    """Commit groups like the store's ``commit``, but retry while the engine stalls writes."""
    while True:
        try:
            return await store.commit(groups)
        except Retry:
            # The store doesn't signal the end of a stall.
            await anyio.sleep(STALL_SECONDS)


def is_unknown(durable: asyncio.Future[None]) -> bool:
    """Whether a commit has already failed with ``Unknown``, as a commit in PostgreSQL can."""
    return durable.done() and durable.exception() is not None


async def commit_with_retries(
    store: Store, group: Group, given_up: asyncio.Future[None], who: str
) -> bool:
    """Commit a group and wait until it is durable, however long the store refuses writes.

    False if ``given_up`` completed first; then the outcome is unknown. Raises ``Fenced`` if a guard
    failed, so the caller ends; ``Conflict`` if the stored head is another one, perhaps because an
    earlier attempt was written.
    """
    while True:
        try:
            durable = await store.commit([group])
            await durable
        except (Retry, Full, Closed, Unavailable, Unknown) as error:
            if given_up.done():
                return False
            if isinstance(error, Retry):
                await asyncio.wait([given_up], timeout=STALL_SECONDS)
            else:
                _log.info("write_retried", who=who, error=str(error))
                await asyncio.wait([given_up], timeout=REFUSED_SECONDS)
        else:
            return True
