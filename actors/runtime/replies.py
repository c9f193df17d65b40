"""What is done with replies: waited for, several together, or left for nobody."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from dynactor.actors.runtime.mailbox import ReplyT
from dynactor.model.errors import DynamoDBError


async def wait_done(replies: Sequence[Future[Any]]) -> None:
    """Wait for all of them, whatever they give."""
    for reply in replies:
        if not reply.done():
            with suppress(DynamoDBError):
                await reply


def results(replies: Sequence[Future[ReplyT]]) -> list[ReplyT]:
    """What they have given, or the first error; no other is left unlooked at."""
    failures = [failure for reply in replies if (failure := reply.exception()) is not None]
    if failures:
        raise failures[0]
    return [reply.result() for reply in replies]


def for_nobody(reply: Future[Any]) -> None:
    """Look at a reply that nobody waits for, so that an error in it is no warning."""
    if not reply.cancelled():
        reply.exception()
