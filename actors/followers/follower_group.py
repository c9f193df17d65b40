"""The followers of one sink: one for each log of a table, parents before their children."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from dynactor.actors.feeds.change_feed import ChangeFeed
from dynactor.actors.followers import log_progress
from dynactor.actors.followers.partition_follower import PartitionFollower
from dynactor.actors.followers.sink import ChangeOrder, MessageSink, RowSink
from dynactor.actors.runtime.supervisor import Supervisor


class FollowerGroup(Mapping[int, PartitionFollower]):
    """The followers by the number of their log's partition."""

    def __init__(
        self,
        name: str,
        subscriber_id: bytes,
        sink_for: Callable[[ChangeFeed], RowSink[Any] | MessageSink],
        supervisor: Supervisor,
    ) -> None:
        """``sink_for`` makes the sink for the changes of one log."""
        self._name = name
        self._subscriber_id = subscriber_id
        self._sink_for = sink_for
        self._supervisor = supervisor
        self._followers: dict[int, PartitionFollower] = {}

    def __getitem__(self, partition_number: int, /) -> PartitionFollower:
        return self._followers[partition_number]

    def __iter__(self) -> Iterator[int]:
        return iter(self._followers)

    def __len__(self) -> int:
        return len(self._followers)

    def follow(self, feeds: Sequence[ChangeFeed]) -> None:
        """Follow more logs from their checkpoints on; parents come before their children."""
        for feed in feeds:
            sink = self._sink_for(feed)
            parent = None if feed.parent is None else self._followers.get(feed.parent)
            is_ordered = sink.contract.order is ChangeOrder.ITEM
            follower = PartitionFollower(
                self._name,
                self._subscriber_id,
                feed,
                sink,
                after=parent.ended if parent and is_ordered else None,
            )
            self._followers[feed.partition_number] = follower
            self._supervisor.start(follower)

    def split(self, parent: int, children: Sequence[ChangeFeed]) -> bool:
        """Follow the children's logs if the parent's log is followed; return whether it is."""
        if parent not in self._followers:
            return False
        self.follow(children)
        return True

    def forget(self, partition_number: int) -> None:
        """Forget the follower of an ended log that is deleted."""
        self._followers.pop(partition_number, None)

    def forget_all_but(self, kept: Collection[int]) -> None:
        """Forget all followers except those of these logs, because the other logs are deleted."""
        for number in self._followers.keys() - set(kept):
            del self._followers[number]

    @property
    def lag_records(self) -> int:
        """Number of changes that are not applied, at most."""
        return log_progress.lag_records(follower.log for follower in self._followers.values())

    async def oldest_unapplied_us(self) -> int | None:
        """When the oldest change that is not applied was committed; None if all are applied."""
        return await log_progress.oldest_unapplied_us(
            follower.log for follower in self._followers.values()
        )

    async def wait_caught_up(self) -> bool:
        """Wait until the changes durable now are applied; False if a follower ends first."""
        tails = {follower: follower.feed.tail for follower in self._followers.values()}
        have_passed = [await follower.wait_passed(tail) for follower, tail in tails.items()]
        return all(have_passed)

    def begin_close(self) -> None:
        """Tell the followers to stop after the records that they are applying."""
        for follower in self._followers.values():
            follower.mailbox.close()

    async def close(self) -> None:
        """Stop the followers after the records that they are applying."""
        self.begin_close()
        await asyncio.gather(*map(self._supervisor.stop, self._followers.values()))
        self._followers.clear()
