"""The job that publishes a table's changes again, or every item and then the changes.

The replay has its own topic, and publishes the changes of each item in order. An incomplete
snapshot is worthless: it is taken again, after a gap in every Kafka partition, so that consumers
forget the earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import structlog
from msgspec import Struct

from dynactor.actors.derived.kafka.kafka_environment import KafkaEnvironment
from dynactor.actors.derived.kafka.kafka_sender import KafkaSender
from dynactor.actors.derived.kafka.kafka_sink import KafkaSink, replay_contract
from dynactor.actors.derived.kafka.replay_progress import (
    ENDED,
    ReplayProgress,
    ReplayStart,
    ReplayState,
)
from dynactor.actors.derived.kafka.topic_session import TopicSession
from dynactor.actors.feeds.change_feed import ChangeFeed
from dynactor.actors.followers.round_follower import RoundFollower, RoundSettings, SnapshotSource
from dynactor.actors.followers.table_progress import TableProgress
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.actors.table.followers import Subscription
from dynactor.storage.store import Store
from dynactor.streams.kafka.broker import BrokerError, BrokerRefused
from dynactor.streams.kafka.message import KafkaSource

# A replay may be far behind all other followers, and its logs are trimmed as it progresses.
_CHECKPOINT_RECORDS: Final = 1
_CRASHED: Final = "the job failed again and again: the server's log says why"

_log = structlog.get_logger("kafka")


class ReplayPlace(Struct, frozen=True):
    """The parameters of a replay.

    ``subscriber`` names its checkpoints, which determine its start in each log. ``items`` is the
    number of items in the table.
    """

    replay_id: str
    subscriber: bytes
    source: KafkaSource
    topic: str
    start: ReplayStart
    follows: bool
    is_whole: bool
    items: int


class Replay:
    """The actor of a replay; ``ended`` is called once, when the replay is over."""

    def __init__(
        self,
        place: ReplayPlace,
        feeds: Sequence[ChangeFeed],
        store: Store,
        environment: KafkaEnvironment,
        *,
        ended: Callable[[], None],
    ) -> None:
        self.name = f"replay of table {place.source.table_name} to topic {place.topic}"
        self.mailbox = Mailbox(1)
        self.in_progress: list[Envelope] = []
        settings = environment.settings
        self.contract = replay_contract(settings)
        self._place = place
        self._ended = ended
        self._logs = TableProgress(feeds, store, subscriber_id=place.subscriber, reader=self.name)
        sink = KafkaSink(place.source, settings, self.contract)
        session = TopicSession(environment, place.topic, place.subscriber)
        self._sender = KafkaSender(session, sink, self._changed)
        self._follower = RoundFollower(
            self.name,
            self._logs,
            sink,
            self._sender,
            SnapshotSource(store, environment.clock, place.source.table_name),
            settings=RoundSettings(_CHECKPOINT_RECORDS),
            needs_snapshot=place.start.origin == "snapshot",
            on_progress=lambda: None,
            on_current=self._set_ends,
        )
        # The final state of the replay; None while the replay runs.
        self._outcome: ReplayState | None = None
        self._problem: str | None = None
        self._was_waiting = False
        self._runs = False
        # The ends of the logs: after the snapshot, or at the start of a replay without a snapshot.
        self._ends: dict[int, int] | None = None
        if not self._follower.needs_snapshot:
            self._set_ends()

    # -- for others -------------------------------------------------------------------------

    @property
    def progress(self) -> ReplayProgress:
        """The present progress."""
        place, follower = self._place, self._follower
        problem = self._problem if self.is_over else self._sender.problem
        state = self._state
        if state == "FAILED" and not self.is_over:
            problem = _CRASHED
        changes = follower.records - follower.all_items
        return ReplayProgress(
            place.replay_id,
            place.source.table_name,
            place.topic,
            place.start,
            place.follows,
            state,
            problem,
            place.is_whole,
            follower.items,
            self._items_total,
            changes,
            changes + self._changes_left,
            follower.missing_changes,
            follower.snapshots,
            self._sender.omitted_images,
        )

    @property
    def _state(self) -> ReplayState:
        follower = self._follower
        if self._outcome is not None:
            return self._outcome
        if self.mailbox.closed and not self._runs:
            return "FAILED"
        if follower.needs_snapshot:
            return "SNAPSHOT" if follower.has_snapshot else "STARTING"
        return "FOLLOWING" if self._place.follows and follower.has_caught_up else "CHANGES"

    @property
    def _items_total(self) -> int:
        is_given = self._place.start.origin == "snapshot" and not self._follower.needs_snapshot
        return self._follower.items if is_given else max(self._follower.items, self._place.items)

    @property
    def _changes_left(self) -> int:
        """Number of changes between the positions and the logs' ends, including missing ones."""
        if self._ends is None:
            return 0
        if self._place.follows:
            return self._logs.lag_records
        return sum(max(0, self._ends[log.number] - log.position.counter) for log in self._logs)

    @property
    def is_over(self) -> bool:
        """Whether the replay has ended."""
        return self._outcome in ENDED

    @property
    def lag_bytes(self) -> int:
        """Number of bytes of unpublished records that were written since the replay started."""
        return self._logs.lag_bytes

    def give_up(self) -> None:
        """Fail, because the topic is so slow that the logs would fill the disk."""
        self._fail(
            f"the topic was too slow: more than {self.contract.trim_delay_bytes:,} bytes of "
            "changes were waiting for it"
        )

    def fail_abandoned(self) -> None:
        """End a replay whose actor was abandoned after too many crashes."""
        assert self.mailbox.closed
        self._end("FAILED", _CRASHED)

    async def load(self) -> None:
        """Load the checkpoints, so that ``progress`` can show the number of changes left."""
        await self._logs.load()

    def split(self, children: Sequence[ChangeFeed]) -> None:
        """Publish the logs of a split partition's children, after the parent's log."""
        if self.subscription is Subscription.ALL:
            self._logs.add(children)

    @property
    def subscription(self) -> Subscription:
        """All logs, or only the present ones once the end of the replay is known."""
        if self.mailbox.closed:
            return Subscription.NONE
        is_bounded = self._ends is not None and not self._place.follows
        return Subscription.KNOWN if is_bounded else Subscription.ALL

    # -- the actor --------------------------------------------------------------------------

    async def run(self) -> None:
        """Publish everything that was requested, unless the mailbox is closed first."""
        closed = self.mailbox.when_closed()
        self._runs = True
        try:
            await self._follower.run(closed)
        finally:
            self._runs = False
        self._end("CANCELLED" if closed.done() else "DONE", None)

    def _set_ends(self) -> None:
        if self._ends is None:
            self._ends = {log.number: log.feed.tail for log in self._logs}
            if not self._place.follows:
                self._follower.end_at(self._ends)

    def _changed(self, trouble: BrokerError | None) -> None:
        if isinstance(trouble, BrokerRefused):
            self._fail(str(trouble))
        is_waiting = self._sender.problem is not None
        if is_waiting != self._was_waiting:
            self._was_waiting = is_waiting
            _log.info("replay_blocked" if is_waiting else "replay_resumed", replay=self.name)

    def _fail(self, problem: str) -> None:
        self._end("FAILED", problem)
        self.mailbox.close()

    def _end(self, outcome: ReplayState, problem: str | None) -> None:
        if self.is_over:
            return
        self._outcome, self._problem = outcome, problem
        _log.info("replay_ended", replay=self.name, state=outcome, problem=problem)
        self._ended()
