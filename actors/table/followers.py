"""What follows a table's changes, in the logs of its partitions that are kept for that.

Its global indexes do, time to live, Kafka destinations and replays. Streams are no followers: they
are windows over the logs (``StreamRegistry``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from dynactor.actors.derived.indexes.global_index import GlobalIndexActors, IndexPlace
from dynactor.actors.derived.pacing import Pacing
from dynactor.actors.partition.change_feed import ChangeFeed
from dynactor.actors.runtime.supervisor import Actor, Supervisor
from dynactor.actors.table.environment import TableEnvironment
from dynactor.actors.table.throttle import BackfillUnits, FreeUnits, TableThrottle
from dynactor.model.indexes.index import IndexDefinition
from dynactor.model.tables.table import GlobalIndex
from dynactor.storage import catalog, key_layout
from dynactor.storage.catalog import TableRecord


class Following(Protocol):
    """What follows a table's changes as a whole: time to live, a Kafka destination, a replay."""

    def floor(self, partition_number: int) -> int:
        """The counter up to which a log's records are not needed any more.

        Of a log that ended (``ChangeFeed.last``) only those are asked who followed it then.
        """
        ...

    def split(self, parent: int, children: list[ChangeFeed]) -> None:
        """A partition was split, durably: its log has ended, and these go on behind it."""
        ...

    async def close(self) -> None:
        """Stop its actors after their present run."""
        ...


class FollowingActor(Actor, Protocol):
    """An actor that reads all logs of a table by itself."""

    def floor(self, partition_number: int) -> int:
        """The counter up to which it needs no records of a log any more."""
        ...

    def split(self, children: Sequence[ChangeFeed]) -> None:
        """A partition was split: its children's logs come behind its own."""
        ...


class ActorFollowing:
    """One actor that follows a table: a relay, who waits for its broker, or a replay."""

    def __init__(self, actor: FollowingActor, supervisor: Supervisor) -> None:
        self.actor = actor
        self._supervisor = supervisor

    def floor(self, partition_number: int) -> int:
        """As the actor."""
        return self.actor.floor(partition_number)

    def split(self, parent: int, children: list[ChangeFeed]) -> None:
        """As the actor."""
        del parent
        self.actor.split(children)

    async def close(self) -> None:
        """Stop the actor: a relay after its present round, or within its deadline."""
        await self._supervisor.stop(self.actor)


class Followers:
    """The followers of one table. ``indexes`` are those global indexes that are at work, by id.

    Invariant: there is a feed for each log that the table's record names.
    """

    def __init__(
        self,
        record: Callable[[], TableRecord],
        environment: TableEnvironment,
        throttle: TableThrottle,
    ) -> None:
        """``record`` gives the table's, as it is now."""
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
        """The change feeds of all logs that are kept, their tails known, parents before children.

        Those of ended logs are among them; not everybody reads these (``feeds_for``).
        """
        feeds = list(self._feeds.values())
        values = await self._store.durable().load(
            [key_layout.partition_head(feed.partition_number) for feed in feeds]
        )
        for feed, value in zip(feeds, values, strict=True):
            # That of an ended log has begun.
            head = catalog.decode_partition_head(value)
            feed.begin(head.counter, head.logged_bytes)
        return feeds

    async def live_feeds(self) -> list[ChangeFeed]:
        """The change feeds of the present partitions, their tails known."""
        return [feed for feed in await self.feeds() if feed.last is None]

    async def feeds_for(self, subscriber_id: bytes) -> list[ChangeFeed]:
        """What a subscriber follows: all present logs, and ended ones that it followed then."""
        return [
            feed
            for feed in await self.feeds()
            if feed.last is None or subscriber_id in self._subscribers(feed.partition_number)
        ]

    def _subscribers(self, partition_number: int) -> tuple[bytes, ...]:
        ended = self._record().ended_log(partition_number)
        return ended.subscribers if ended else ()

    def split(self, parent: int, children: tuple[int, int]) -> list[ChangeFeed]:
        """A partition was split, durably; the record says so already.

        Returns:
            The feeds of the children.
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
            for following in (*self.indexes.values(), *self._followings.values()):
                following.split(parent, feeds)
        return feeds

    def forget(self, number: int) -> None:
        """A log that had ended is gone, durably; the record says so already."""
        del self._feeds[number]
        for feed in self._feeds.values():
            if feed.parent == number:
                feed.parent = None
        for actors in self.indexes.values():
            actors.forget(number)

    # -- followers --------------------------------------------------------------------------

    def start_index(self, index: GlobalIndex) -> GlobalIndexActors:
        """Put a global index to work; it has no followers yet."""
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
        )
        self.indexes[index_id] = actors
        return actors

    def _backfill_units(self, index_id: int) -> BackfillUnits:
        if self._record().definition.restore_phase == "DONE":
            return BackfillUnits(self._throttle, index_id, self._environment.clock)
        return FreeUnits(Pacing(self._environment.consumed_units))

    async def stop_index(self, index_id: int) -> None:
        """Stop whatever works for a global index."""
        actors = self.indexes.pop(index_id, None)
        if actors is not None:
            await actors.close()

    def attach(self, subscriber_id: bytes, following: Following) -> None:
        """Keep the changes that it still needs, and stop it when the table is closed.

        ``subscriber_id`` names it among those who followed a log that ends.
        """
        assert subscriber_id not in self._followings
        self._followings[subscriber_id] = following

    def following(self, subscriber_id: bytes) -> Following | None:
        """Who follows the table under this id, if anybody does."""
        return self._followings.get(subscriber_id)

    async def detach(self, subscriber_id: bytes) -> None:
        """Stop whoever follows the table under this id."""
        following = self._followings.pop(subscriber_id, None)
        if following is not None:
            await following.close()

    def floor(self, partition_number: int, tail: int) -> int:
        """The counter up to which no follower needs a log's records any more."""
        record = self._record()
        ended = record.ended_log(partition_number)
        floors = [tail]
        for subscriber_id, following in self._followings.items():
            if ended is None or subscriber_id in ended.subscribers:
                floors.append(following.floor(partition_number))
        for index in record.definition.global_indexes:
            index_id = index.definition.index_id
            if ended is not None:
                subscriber = key_layout.index_subscriber(record.definition.table_id, index_id)
                if subscriber not in ended.subscribers:
                    continue
            actors = self.indexes.get(index_id)
            if actors is not None:
                floors.append(actors.floor(partition_number))
            elif index.holds_entries:
                floors.append(0)
        return min(floors)

    @property
    def subscriber_ids(self) -> tuple[bytes, ...]:
        """Who follows the table's logs now."""
        indexes = (each.subscriber_id for each in self.indexes.values() if each.is_followed)
        return (*indexes, *self._followings)

    def index_lag_records(self, index: IndexDefinition) -> int:
        """How many changes an index may be behind its table; 0 for one that is not followed."""
        actors = self.indexes.get(index.index_id)
        return actors.lag_records if actors else 0

    async def close(self) -> None:
        """Stop all of them after their present run."""
        followings = [*self.indexes.values(), *self._followings.values()]
        await asyncio.gather(*(following.close() for following in followings))
        self.indexes.clear()
        self._followings.clear()
