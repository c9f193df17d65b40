"""A sink made for tests: it copies a table's items to a fake external system, in rounds.

``Mirror`` is the sink, ``MirrorSender`` delivers its messages to the external system, and
``MirrorActor`` is the follower of one table.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dynactor.actors.feeds.change_feed import ChangeFeed
from dynactor.actors.followers.round_follower import RoundFollower, RoundSettings, SnapshotSource
from dynactor.actors.followers.round_sink import Opened, Round, RoundSink
from dynactor.actors.followers.sink import ChangeOrder, Contract, Gap
from dynactor.actors.followers.table_progress import TableProgress
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.actors.table.followers import Subscription
from dynactor.model.values.stored_item import StoredItem
from dynactor.streams.change_record import ChangeRecord


class MirrorMessage(NamedTuple):
    """A change of an item. Without an image the item is deleted, without a key all items are."""

    key: bytes
    version: int
    image: bytes | None


class Mirror(RoundSink[MirrorMessage]):
    """Sends each change, and each item of a snapshot."""

    contract = Contract(ChangeOrder.ITEM, Gap.REBUILD, trim_delay_bytes=None)

    def add_change(self, current: Round[MirrorMessage], record: ChangeRecord) -> None:
        image = record.new.data if record.new else None
        current.messages[0].append(
            MirrorMessage(record.keys, record.sequence_number.packed(), image)
        )

    def add_item(self, current: Round[MirrorMessage], item: StoredItem, taken_us: int) -> None:
        del taken_us
        current.messages[0].append(MirrorMessage(b"", item.version, item.data))

    def add_gap(self, current: Round[MirrorMessage], now_us: int) -> None:
        del now_us
        current.messages[0].append(MirrorMessage(b"", 0, None))


class MirrorSender:
    """Delivers at least once. Each ``fails_every``-th delivery fails after half of its messages.

    ``crashes`` are the numbers of deliveries that crash the actor instead.
    """

    round_bytes = 64 * 1024
    is_answered = True

    def __init__(self, *, fails_every: int = 1 << 30, crashes: Sequence[int] = ()) -> None:
        self.delivered: list[MirrorMessage] = []
        self.is_open = False
        self._deliveries = 0
        self._fails_every = fails_every
        self._crashes = crashes

    async def open(self, counters: Mapping[int, int], stopped: asyncio.Future[None]) -> Opened:
        del counters, stopped
        self.is_open = True
        return Opened({}, needs_snapshot=False)

    async def deliver(self, current: Round[MirrorMessage], stopped: asyncio.Future[None]) -> bool:
        del stopped
        await asyncio.sleep(0)
        self._deliveries += 1
        messages = current.messages[0]
        is_failure = self._deliveries % self._fails_every == 0
        taken = len(messages) // 2 if is_failure else len(messages)
        self.delivered += messages[:taken]
        if self._deliveries in self._crashes:
            raise RuntimeError("played by a test")
        if is_failure:
            self.is_open = False
        return not is_failure

    async def close(self) -> None:
        self.is_open = False


class MirrorActor:
    """The actor that copies the changes of one table."""

    subscription = Subscription.ALL
    contract = Mirror.contract

    def __init__(
        self, logs: TableProgress, sender: MirrorSender, source: SnapshotSource, *, is_new: bool
    ) -> None:
        self.name = "mirror"
        self.mailbox = Mailbox(1)
        self.in_progress: list[Envelope] = []
        self.logs = logs
        self.follower = RoundFollower(
            self.name,
            logs,
            Mirror(),
            sender,
            source,
            settings=RoundSettings(100),
            needs_snapshot=is_new,
            on_progress=lambda: None,
            on_current=lambda: None,
        )

    def split(self, children: Sequence[ChangeFeed]) -> None:
        self.logs.add(children)

    async def run(self) -> None:
        await self.follower.run(self.mailbox.when_closed())
