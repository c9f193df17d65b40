"""Times of a request's messages to partitions, for traces.

``TimedMailbox`` replaces ``Mailbox`` only in a server that exports traces, so others pay nothing.
All times are nanoseconds of ``time.perf_counter_ns``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextvars import ContextVar
from time import perf_counter_ns
from typing import Any, Final

from dynactor.actors.runtime.mailbox import Envelope, Mailbox, Message, ReplyT

# A batch or transaction may send 100 messages; the first ones are enough for a trace.
_MOST_MESSAGES: Final = 8


class MessageTimes:
    """When a message entered its mailbox, was taken, accepted by the store, and replied to.

    A time is 0 until it is known. ``accepted`` stays 0 in transactions.
    """

    __slots__ = ("accepted", "entered", "replied", "taken")

    def __init__(self) -> None:
        self.entered = perf_counter_ns()
        self.taken = 0
        self.accepted = 0
        self.replied = 0


class RequestTimes:
    """The times of a request's first messages; ``CURRENT_REQUEST`` has those of this context."""

    def __init__(self) -> None:
        self.messages: list[MessageTimes] = []
        # An actor that a request starts inherits the request's context, and keeps it afterwards.
        self.has_ended = False

    def begin_message(self) -> MessageTimes | None:
        """Begin the times of a message; None if no more messages of the request are timed."""
        if self.has_ended or len(self.messages) >= _MOST_MESSAGES:
            return None
        times = MessageTimes()
        self.messages.append(times)
        return times


CURRENT_REQUEST: Final[ContextVar[RequestTimes | None]] = ContextVar(
    "CURRENT_REQUEST", default=None
)


class TimedMailbox(Mailbox):
    """A mailbox that notes the times of traced messages."""

    def __init__(self, capacity: int, *, copy_messages: bool = False) -> None:
        super().__init__(capacity, copy_messages=copy_messages)
        # Times by reply, from the sending of a message until its reply.
        self._timed: dict[asyncio.Future[Any], MessageTimes] = {}

    def put_nowait(
        self,
        message: Message[ReplyT],
        size_bytes: int = 0,
        *,
        always: bool = False,
        first: bool = False,
    ) -> asyncio.Future[ReplyT]:
        """Put a message in as ``Mailbox`` does, and time it if its request is traced."""
        reply = super().put_nowait(message, size_bytes, always=always, first=first)
        request = CURRENT_REQUEST.get()
        if request is not None and (times := request.begin_message()) is not None:
            self._timed[reply] = times
            reply.add_done_callback(self._note_reply)
        return reply

    async def take(self, max_messages: int, max_bytes: int) -> list[Envelope]:
        """Take a batch as ``Mailbox`` does, and note when timed messages were taken."""
        batch = await super().take(max_messages, max_bytes)
        if self._timed:
            now = perf_counter_ns()
            for times in self._timed_messages(batch):
                times.taken = now
        return batch

    def note_accepted(self, envelopes: Iterable[Envelope]) -> None:
        """Note that the store has accepted the writes of these messages."""
        if self._timed:
            now = perf_counter_ns()
            for times in self._timed_messages(envelopes):
                times.accepted = now

    def _timed_messages(self, envelopes: Iterable[Envelope]) -> list[MessageTimes]:
        found = (self._timed.get(envelope.reply) for envelope in envelopes)
        return [times for times in found if times is not None]

    def _note_reply(self, reply: asyncio.Future[Any]) -> None:
        self._timed.pop(reply).replied = perf_counter_ns()
