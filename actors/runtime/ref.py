"""References to actors: the only way to send them messages."""

from __future__ import annotations

import asyncio
from typing import Any

from dynactor.actors.runtime.mailbox import Envelope, Mailbox, Message, ReplyT
from dynactor.actors.runtime.replies import ignore_result


class Ref:
    """The sending side of an actor's mailbox; only the actor takes messages from it."""

    __slots__ = ("_mailbox",)

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox

    def ask(
        self,
        message: Message[ReplyT],
        size_bytes: int = 0,
        *,
        always: bool = False,
        first: bool = False,
    ) -> asyncio.Future[ReplyT]:
        """Send a message; returns its reply's future. Raises ``MailboxFull``, ``MailboxClosed``.

        ``always``: send it even if the mailbox is full. ``first``: put it before all others.
        """
        return self._mailbox.put_nowait(message, size_bytes, always=always, first=first)

    def tell(self, message: Message[Any], *, always: bool = False, first: bool = False) -> None:
        """Send a message and ignore its reply; raises as ``ask``."""
        self._mailbox.put_nowait(message, always=always, first=first).add_done_callback(
            ignore_result
        )

    def forward(self, envelope: Envelope) -> None:
        """Send an envelope from another mailbox; the original sender gets the reply."""
        self._mailbox.give(envelope)

    def when_not_full(self) -> asyncio.Future[None]:
        """A future that completes when messages are taken out, or when the mailbox is closed.

        Other senders may take the free space first.
        """
        return self._mailbox.when_not_full()

    @property
    def is_closed(self) -> bool:
        """Whether the actor accepts no more messages."""
        return self._mailbox.closed
