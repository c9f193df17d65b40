"""Waits for the broker of a destination that was cut off.

The changes that the destination missed are deleted, so no logs are kept for it meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from dynactor.actors.derived.kafka.kafka_sender import KafkaSender
from dynactor.actors.feeds.change_feed import ChangeFeed
from dynactor.actors.followers.sink import Contract
from dynactor.actors.runtime.cancellation import cancel_when
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.actors.table.followers import Subscription


class BrokenDestination:
    """Tries to reach a topic; calls ``reached`` once, with the topic's number of partitions."""

    subscription = Subscription.NONE

    def __init__(
        self,
        topic: str,
        sender: KafkaSender,
        contract: Contract,
        *,
        reached: Callable[[int], None],
    ) -> None:
        self.name = f"wait for topic {topic}"
        self.mailbox = Mailbox(1)
        self.in_progress: list[Envelope] = []
        self.contract = contract
        self._sender = sender
        self._reached = reached

    def split(self, children: Sequence[ChangeFeed]) -> None:
        """Do nothing, because a broken destination reads no logs."""

    async def run(self) -> None:
        """Try to reach the topic until it exists, or until the mailbox is closed."""
        closed = self.mailbox.when_closed()
        await cancel_when(closed, partial(self._reach, closed))

    async def _reach(self, closed: asyncio.Future[None]) -> None:
        while not closed.done():
            found = await self._sender.reach_topic(closed)
            if found is not None:
                self._reached(found.partition_count)
                return
