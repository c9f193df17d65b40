"""Functions that wait for several replies, or ignore the error of one."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from dynactor.actors.runtime.mailbox import ReplyT
from dynactor.model.errors import DynamoDBError


class PartitionMoved(Exception):
    """The partition was split, and has not carried out the message; send it to the children."""


async def wait_done(replies: Sequence[Future[Any]]) -> None:
    """Wait for all replies, whether they are results or errors."""
    for reply in replies:
        if not reply.done():
            with suppress(DynamoDBError, PartitionMoved):
                await reply


def results(replies: Sequence[Future[ReplyT]]) -> list[ReplyT]:
    """The results of replies, or the first error; the other errors are marked as retrieved."""
    failures = [failure for reply in replies if (failure := reply.exception()) is not None]
    if failures:
        raise failures[0]
    return [reply.result() for reply in replies]


def ignore_result(reply: Future[Any]) -> None:
    """Retrieve the error of an ignored reply, so that asyncio logs no warning."""
    if not reply.cancelled():
        reply.exception()
