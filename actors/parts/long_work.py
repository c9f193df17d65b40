"""Long work of the database's actor, in pieces, so that other messages are handled in between.

A handler of a message that may take long is an asynchronous generator. Each ``yield`` ends a piece.
The messages that arrived meanwhile are handled before the next piece, so after each ``yield`` a
table, a stream or a backup may be gone or changed. The message is answered after the last piece.

If a piece fails, the message gets the error and the rest is dropped. If the catalog was loaded
again meanwhile, or another node has changed a row, the handler starts from its beginning.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from itertools import count
from typing import Any, Final, TypeAlias

from dynactor.actors.runtime.mailbox import Envelope, MailboxClosed, Message

Pieces: TypeAlias = AsyncGenerator[None, None]

_OVER: Final = object()


class ContinueWork(Message[None], frozen=True):
    """Do the next piece of the work with this number."""

    number: int


class Work:
    """The work for one message. ``rest`` is None before the first piece and after the last one."""

    def __init__(self, envelope: Envelope) -> None:
        self.envelope = envelope
        self.rest: Pieces | None = None
        self.conflicts = 0

    async def do_piece(self) -> None:
        """Do the next piece."""
        assert self.rest is not None
        if await anext(self.rest, _OVER) is _OVER:
            self.rest = None

    async def drop(self) -> None:
        """Drop the rest, to start again."""
        rest, self.rest = self.rest, None
        if rest is not None:
            await rest.aclose()


class LongWork:
    """The work that is not over. ``tell`` sends the actor a message; see ``keep``."""

    def __init__(self, tell: Callable[[Message[Any], bool], None]) -> None:
        self._tell = tell
        self._numbers = count(1)
        self._works: dict[int, Work] = {}

    @property
    def envelopes(self) -> list[Envelope]:
        """The messages that are not answered yet."""
        return [work.envelope for work in self._works.values()]

    def keep(self, work: Work, *, first: bool) -> None:
        """Do the next piece after the messages that wait now, or ``first``."""
        number = next(self._numbers)
        self._works[number] = work
        self._tell(ContinueWork(number), first)

    def take(self, message: ContinueWork) -> Work | None:
        """The work to continue; None if it was dropped."""
        return self._works.pop(message.number, None)

    async def restart(self) -> None:
        """Let all work start again, because the catalog was loaded again."""
        for work in self._works.values():
            await work.drop()

    async def drop(self) -> None:
        """Drop all work, because the actor has crashed or stops."""
        works, self._works = self._works, {}
        for work in works.values():
            await work.drop()
            work.envelope.refuse(MailboxClosed())


async def chained(*works: Pieces) -> Pieces:
    """Some pieces after others."""
    for work in works:
        async with aclosing(work):
            async for _ in work:
                yield
