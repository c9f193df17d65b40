"""The followers of a table's changes, which read the logs of its partitions.

These are global indexes, time to live, Kafka destinations and replays. Streams are not followers:
they show parts of the logs (``StreamRegistry``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

from dynactor.actors.feeds.change_feed import ChangeFeed
from dynactor.actors.followers import checkpoint
from dynactor.actors.followers.pacing import Pacing
from dynactor.actors.followers.sink import Contract, Gap
from dynactor.actors.followers.stored_checkpoint import first_checkpoints
from dynactor.actors.indexes.global_index import GlobalIndexActors, IndexPlace
from dynactor.actors.limits.backfill_units import BackfillUnits, FreeUnits
from dynactor.actors.limits.throttle import TableThrottle
from dynactor.actors.runtime.supervisor import Actor, Supervisor
from dynactor.actors.table.environment import TableEnvironment
from dynactor.model.definitions.table import GlobalIndex, TableDefinition
from dynactor.storage import catalog, key_layout
from dynactor.storage.catalog import TableRecord
from dynactor.storage.subscriber_names import destination_subscriber, index_subscriber


class Subscription(Enum):
    """The logs that are kept for a subscriber, each from its stored checkpoint on."""

    # Every log, also those of future partitions. Without a checkpoint, the whole log is kept.
    ALL = "all"
    # Only the logs in which the subscriber has a checkpoint.
    KNOWN = "known"
    NONE = "none"


class Subscriber(Protocol):
    """A reader for which logs are kept."""

    @property
    def subscription(self) -> Subscription:
        """The logs that are kept for the subscriber now."""

    @property
    def contract(self) -> Contract:
        """The contract of the subscriber's sink."""


class Following(Subscriber, Protocol):
    """A follower of a whole table: time to live, a Kafka destination, a replay."""

    def split(self, parent: int, children: list[ChangeFeed]) -> None:
        """Follow the logs of a split partition's children, after the parent's log."""

    async def close(self) -> None:
        """Stop its actors after the records in progress."""


class FollowingActor(Actor, Subscriber, Protocol):
    """An actor that reads all logs of a table by itself."""

    def split(self, children: Sequence[ChangeFeed]) -> None:
        """Follow the logs of a split partition's children, after the parent's log."""


class ActorFollowing:
    """One actor that follows a table: a relay, which waits for its broker, or a replay."""

    def __init__(self, actor: FollowingActor, supervisor: Supervisor) -> None:
        self.actor = actor
        self._supervisor = supervisor

    @property
    def subscription(self) -> Subscription:
        """The actor's subscription."""
        return self.actor.subscription

    @property
    def contract(self) -> Contract:
        """The contract of the actor's sink."""
        return self.actor.contract

    def split(self, _parent: int, children: list[ChangeFeed]) -> None:
        """Pass the children's logs on to the actor."""
        self.actor.split(children)

    async def close(self) -> None:
        """Stop the actor: a relay after the round in progress, or at its deadline."""
        await self._supervisor.stop(self.actor)


class Followers:
    """The followers of one table. ``indexes`` are the active global indexes, by id.

    Invariant: there is a feed for each log that the table's record names.
    """

    def __init__(
        self,
        record: Callable[[], TableRecord],
        environment: TableEnvironment,
        throttle: TableThrottle,
    ) -> None:
        """``record`` returns the table's present record."""
        self._record = record
        self._environment = environment
        self._store = environment.store
        self._throttle = throttle
        first = record()
        parents = {child: ended.number for ended in first.ended_logs for child in ended.children}
        # Parents before their children.
        self._feeds = {
            number: ChangeFeed(number, environment.store, environment.recent, parents.get(number))
            for number in first.log_numbers
        }
        for ended in first.ended_logs:
            self._feeds[ended.number].begin(ended.last, ended.logged_bytes)
            self._feeds[ended.number].end()
        self.indexes: dict[int, GlobalIndexActors] = {}
        self._followings: dict[bytes, Following] = {}

    # -- logs -------------------------------------------------------------------------------

    def feed(self, partition_number: int) -> ChangeFeed:
        """The change feed of a partition."""
        return self._feeds[partition_number]

    async def feeds(self) -> list[ChangeFeed]:
        """The change feeds of all logs that are kept, with their tails, parents before children.

        Feeds of ended logs are included; not every follower reads those (``feeds_for``).
        """
        feeds = list(self._feeds.values())
        values = await self._store.durable().load(
            [key_layout.partition_head(feed.partition_number) for feed in feeds]
        )
        for feed, value in zip(feeds, values, strict=True):
            # The feed of an ended log has already started.
            if value is not None:
                head = catalog.decode_partition_head(value)
                feed.begin(head.counter, head.logged_bytes)
        return feeds

    async def live_feeds(self) -> list[ChangeFeed]:
        """The change feeds of the present partitions, with their tails."""
        return [feed for feed in await self.feeds() if feed.last is None]

    async def feeds_for(self, subscriber_id: bytes) -> list[ChangeFeed]:
        """The logs of a subscriber: all present ones, and the ended ones that it followed."""
        return [
            feed
            for feed in await self.feeds()
            if feed.last is None or subscriber_id in self._subscribers(feed.partition_number)
        ]

    def _subscribers(self, partition_number: int) -> tuple[bytes, ...]:
        ended = self._record().ended_log(partition_number)
        return ended.subscribers if ended else ()

    def split(self, parent: int, children: tuple[int, int]) -> list[ChangeFeed]:
        """Replace a split partition's feed by its children's; ``record`` has the split already.

        Returns the feeds of the children.
        """
        ended = self._record().ended_log(parent)
        feeds = [
            ChangeFeed(
                number,
                self._store,
                self._environment.recent,
                parent=parent if ended else None,
            )
            for number in children
        ]
        for feed in feeds:
            feed.begin(0)
            self._feeds[feed.partition_number] = feed
        if ended is None:
            del self._feeds[parent]
        else:
            self._feeds[parent].begin(ended.last, ended.logged_bytes)
            self._feeds[parent].end()
            for actors in self.indexes.values():
                actors.split(parent, feeds)
            for following in self._followings.values():
                following.split(parent, feeds)
        return feeds

    def forget(self, number: int) -> None:
        """Forget an ended log that was deleted; ``record`` lacks it already."""
        del self._feeds[number]
        for feed in self._feeds.values():
            if feed.parent == number:
                feed.parent = None
        for actors in self.indexes.values():
            actors.forget(number)

    # -- followers --------------------------------------------------------------------------

    def start_index(self, index: GlobalIndex) -> GlobalIndexActors:
        """Start the actors of a global index, without followers."""
        index_id = index.definition.index_id
        record = self._record()
        place = IndexPlace(
            record.definition.table_id,
            record.definition.key_schema,
            index.definition,
            record.ranges(index_id),
        )
        actors = GlobalIndexActors(
            place,
            self._store,
            self._environment.supervisor,
            copy_messages=self._environment.settings.copy_messages,
            lag=self._environment.settings.index_lag,
            reads_wait_seconds=self._environment.settings.index_reads_wait_seconds,
            units=self._backfill_units(index_id),
            pacing=Pacing(self._consumed_units()),
        )
        self.indexes[index_id] = actors
        return actors

    def _backfill_units(self, index_id: int) -> BackfillUnits:
        if self._record().definition.restore_phase == "DONE":
            return BackfillUnits(self._throttle, index_id, self._environment.clock)
        return FreeUnits()

    def _consumed_units(self) -> Callable[[], float]:
        """Counts the units of requests to which a backfill gives priority."""
        if self._record().definition.restore_phase == "DONE":
            return lambda: self._throttle.consumed_units
        # Requests can't use this table yet, so count the requests to all tables.
        return self._environment.consumed_units

    async def stop_index(self, index_id: int) -> None:
        """Stop all actors of a global index."""
        actors = self.indexes.pop(index_id, None)
        if actors is not None:
            await actors.close()

    def attach(self, subscriber_id: bytes, following: Following) -> None:
        """Register a follower: keep the changes that it needs, and close it with the table.

        ``subscriber_id`` identifies the follower among the subscribers of an ended log.
        """
        assert subscriber_id not in self._followings
        self._followings[subscriber_id] = following

    def following(self, subscriber_id: bytes) -> Following | None:
        """The follower with this id, or None."""
        return self._followings.get(subscriber_id)

    async def detach(self, subscriber_id: bytes) -> None:
        """Stop the follower with this id."""
        following = self._followings.pop(subscriber_id, None)
        if following is not None:
            await following.close()

    async def floors(self) -> dict[int, int]:
        """The counters up to which no subscriber needs a log's records, by partition number.

        The result depends only on stored checkpoints.
        """
        feeds = await self.feeds()
        needs = [
            (feed, subscriber_id)
            for feed in feeds
            for subscriber_id in self._log_subscribers(feed.partition_number)
        ]
        values = await self._store.latest.load(
            [key_layout.checkpoint(id_, feed.partition_number) for feed, id_ in needs]
        )
        floors = {feed.partition_number: feed.tail for feed in feeds}
        for (feed, subscriber_id), value in zip(needs, values, strict=True):
            following = self._followings.get(subscriber_id)
            stored = checkpoint.decode(value)
            if following is not None:
                if value is None and following.subscription is Subscription.KNOWN:
                    continue
                may_miss = following.contract.gap is Gap.MISSING
                lag_bytes = feed.logged_bytes - stored.logged_bytes
                if may_miss and following.contract.must_accept_gap(lag_bytes):
                    continue
            number = feed.partition_number
            floors[number] = min(floors[number], stored.counter)
        return floors

    def _log_subscribers(self, partition_number: int) -> list[bytes]:
        """The subscribers that may need a log; for an ended log, those that followed it."""
        record = self._record()
        table_id = record.definition.table_id
        found = [
            index_subscriber(table_id, index.definition.index_id)
            for index in record.definition.global_indexes
            if index.holds_entries or index.definition.index_id in self.indexes
        ]
        found += self._following_ids
        ended = record.ended_log(partition_number)
        if ended is None:
            return found
        return [subscriber_id for subscriber_id in found if subscriber_id in ended.subscribers]

    @property
    def _following_ids(self) -> list[bytes]:
        return [
            subscriber_id
            for subscriber_id, following in self._followings.items()
            if following.subscription is not Subscription.NONE
        ]

    @property
    def subscriber_ids(self) -> tuple[bytes, ...]:
        """The ids of all present subscribers."""
        indexes = (each.subscriber_id for each in self.indexes.values() if each.is_followed)
        return (*indexes, *self._following_ids)

    def first_checkpoints(self, children: Sequence[int]) -> list[tuple[bytes, bytes]]:
        """The first checkpoints of all subscribers in the logs of these new partitions."""
        return [
            row
            for subscriber_id in self.subscriber_ids
            if self._follows_all(subscriber_id)
            for row in first_checkpoints(subscriber_id, dict.fromkeys(children, 0))
        ]

    def _follows_all(self, subscriber_id: bytes) -> bool:
        following = self._followings.get(subscriber_id)
        return following is None or following.subscription is Subscription.ALL

    async def close(self) -> None:
        """Stop all followers after the records in progress."""
        closing = [each.close() for each in self.indexes.values()]
        closing += [each.close() for each in self._followings.values()]
        await asyncio.gather(*closing)
        self.indexes.clear()
        self._followings.clear()


def subscribers_at_creation(definition: TableDefinition) -> list[bytes]:
    """The ids of the subscribers that follow a table from its first change on."""
    table_id = definition.table_id
    return [
        index_subscriber(table_id, index.definition.index_id)
        for index in definition.global_indexes
        if index.holds_entries
    ] + [
        destination_subscriber(table_id, destination.destination_id)
        for destination in definition.destinations
    ]
