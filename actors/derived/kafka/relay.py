"""The follower that publishes a table's changes to a topic of Kafka.

The table's logs are the buffer, never memory: a round of records is read from all of them, split
by the Kafka partitions of their keys, sent, and when all of it is acknowledged the checkpoints
move. Whatever the broker does, the rest waits in the logs and no write notices.

With exactly-once delivery a round is a transaction of Kafka, which also holds the position that
each log reaches by it; at start those positions go before the checkpoints.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Final, Literal, TypeAlias

import anyio
import structlog

from dynactor.actors.derived.coalesced_wakeups import wait_wakeup
from dynactor.actors.derived.kafka.client_calls import failing_if_cancelled
from dynactor.actors.derived.kafka.relay_delivery import RelayDelivery
from dynactor.actors.derived.kafka.relay_environment import RelayEnvironment, RelayTarget
from dynactor.actors.derived.kafka.relay_logs import RelayLogs
from dynactor.actors.derived.kafka.relay_rounds import RelayRounds, Round
from dynactor.actors.derived.kafka.relay_session import RelaySession
from dynactor.actors.partition.change_feed import ChangeFeed
from dynactor.actors.runtime.mailbox import Envelope, Mailbox
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.storage.store import Store
from dynactor.streams.kafka.broker import BrokerError, Refused, TooLarge
from dynactor.streams.kafka.message import KafkaForm

RelayState: TypeAlias = Literal[
    "IDLE", "CONNECTING", "PUBLISHING", "SNAPSHOT", "WAITING", "FAILING"
]

_TICK_RECORDS: Final = 64
_CHECKPOINT_RECORDS: Final = 4_096

_log = structlog.get_logger("kafka")


class KafkaRelay:
    """The actor.

    Invariants: every record up to a log's position was acknowledged (with exactly-once delivery:
    committed). ``settled`` is called with the topic's count of partitions whenever it was
    reached, and has its snapshot if it needs one.
    """

    def __init__(
        self,
        place: RelayTarget,
        feeds: Sequence[ChangeFeed],
        store: Store,
        environment: RelayEnvironment | None,
        *,
        settled: Callable[[int], None],
    ) -> None:
        self.name = f"relay of table {place.source.table_name} to topic {place.topic}"
        self.mailbox = Mailbox(1)
        self.in_hand: list[Envelope] = []
        self.state: RelayState = "IDLE"
        # What keeps it from publishing, in words; None while nothing does.
        self.problem: str | None = None
        self.published_records = 0
        self.published_bytes = 0
        self.errors = 0
        self._trouble: type[BrokerError] | None = BrokerError
        self._place = place
        self._environment = environment
        self._settled = settled
        form = environment.settings.form if environment else KafkaForm()
        self._logs = RelayLogs(feeds, subscriber=place.subscriber, store=store, relay=self.name)
        self._rounds = RelayRounds(place, form, self._logs, store)
        self._delivery = RelayDelivery(place, form, self.name, self._wait)
        self._round: Round | None = None
        self._needs_snapshot = place.needs_snapshot
        # The rounds of the snapshot, once it was begun; they go on where the broker comes back.
        self._snapshot: AsyncGenerator[Round, None] | None = None
        self._has_published = asyncio.Event()

    # -- for others -------------------------------------------------------------------------

    @property
    def lag_records(self) -> int:
        """How many changes are not published, at most."""
        return sum(log.lag_records for log in self._logs)

    @property
    def lag_bytes(self) -> int:
        """How many bytes of records are not published."""
        return sum(log.lag_bytes for log in self._logs)

    @property
    def omitted_images(self) -> int:
        """Of how many records the broker took the keys alone."""
        return self._delivery.omitted_images

    async def oldest_unpublished_us(self) -> int | None:
        """When the oldest change was made that is not published; None if all are."""
        firsts = [await log.first() for log in self._logs]
        return min((first.commit_time_us for first in firsts if first), default=None)

    def floor(self, partition_number: int) -> int:
        """The counter up to which it needs no records of a log any more."""
        return self._logs[partition_number].stored_counter

    def split(self, children: Sequence[ChangeFeed]) -> None:
        """A partition was split: its children's logs come behind its own."""
        self._logs.add(children)

    async def load(self) -> None:
        """Read the checkpoints; before it is started, for ``floor`` tells of them."""
        await self._logs.load()

    async def drain(self) -> None:
        """Wait until all is published that is durable now, as long as the broker takes it."""
        ends = [(log, log.feed.tail) for log in self._logs]
        for log, end in ends:
            while True:
                # Clear before looking: a round that is published meanwhile must not be missed.
                self._has_published.clear()
                # A counter that no record has is passed by nobody.
                if log.position.counter >= end or await log.first() is None:
                    break
                if self.state not in ("CONNECTING", "PUBLISHING", "SNAPSHOT"):
                    return
                await self._has_published.wait()

    # -- the actor --------------------------------------------------------------------------

    async def run(self) -> None:
        """Publish until the mailbox is closed; then store the checkpoints."""
        await self.load()
        # Of a life before this one, which ended by an error in the middle of it.
        self._round = None
        closed = self.mailbox.when_closed()
        if self._environment is None:
            self._turn("IDLE", Refused("the server was started without --kafka-bootstrap-servers"))
            await closed
            return
        self._environment.at_work.add(self._place.subscriber)
        session = RelaySession(self._environment, self._place)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._end_when, closed, group.cancel_scope)
                await self._work(session, closed)
                group.cancel_scope.cancel()
        finally:
            self._environment.at_work.discard(self._place.subscriber)
            self.state = "IDLE"
            self._has_published.set()
            with anyio.CancelScope(shield=True):
                await session.close()
                if self._snapshot is not None:
                    await self._snapshot.aclose()
                    self._snapshot = None
        await self._logs.store_checkpoints()

    async def _end_when(self, closed: asyncio.Future[None], scope: anyio.CancelScope) -> None:
        """Let the round in hand come to its end when the actor is closed, but not for long."""
        assert self._environment is not None
        await closed
        if self.state in ("PUBLISHING", "SNAPSHOT"):
            await anyio.sleep(self._environment.settings.closing_seconds)
        scope.cancel()

    async def _work(self, session: RelaySession, closed: asyncio.Future[None]) -> None:
        settings = session.settings
        pause_seconds = settings.first_pause_seconds
        while not closed.done():
            try:
                with failing_if_cancelled():
                    await self._open(session)
                while not closed.done():
                    await self._publish_round(session, closed)
                    pause_seconds = settings.first_pause_seconds
            except TooLarge as error:
                # It is sent otherwise, at once: nothing is wrong with the broker.
                self._failed(error)
                await session.throw_away()
            except BrokerError as error:
                self._failed(error)
                await session.throw_away()
                if isinstance(error, Refused):
                    pause_seconds = settings.longest_pause_seconds
                # Not all at the same moment.
                await asyncio.wait([closed], timeout=session.jittered(pause_seconds))
                pause_seconds = min(2 * pause_seconds, settings.longest_pause_seconds)

    async def _open(self, session: RelaySession) -> None:
        """Reach the broker, see to the topic, and learn from where to go on."""
        self.state = "CONNECTING"
        found = await session.open()
        known = self._rounds.partition_count
        if known > found.partition_count:
            raise Refused(
                f"topic {self._place.topic} had {known} partitions and has {found.partition_count}"
            )
        is_from_birth = all(log.position.counter == 0 for log in self._logs)
        if known == 0 and is_from_birth and not self._place.began_late:
            # Of a table that was made again, the topic may tell of the one before.
            is_new = await session.has_new_topic(found.partition_count)
            self._needs_snapshot |= not is_new
        # Partitions that somebody adds stay empty: keys would move to other ones.
        self._rounds.partition_count = known or found.partition_count
        if session.is_transactional:
            # A commit that got no answer may have been made.
            counters = await session.read_positions(log.number for log in self._logs)
            self._needs_snapshot |= self._logs.are_behind(counters)
            if await self._logs.pass_over(counters):
                # It was what is in hand.
                self._round = None
        if not self._needs_snapshot:
            self._settled(self._rounds.partition_count)
        self._turn(self._at_work, None)

    async def _publish_round(self, session: RelaySession, closed: asyncio.Future[None]) -> None:
        """Publish what there is, or wait until there is something."""
        seen = self._logs.seen()
        if self._round is None and self._needs_snapshot:
            self._round = await self._next_of_snapshot()
        if self._round is None:
            self._round = await self._rounds.next(session.round_bytes)
        current = self._round
        if current is not None:
            await self._delivery.deliver(session, current)
            self._turn(self._at_work, None)
            self._round = None
            self._passed(current)
        if self._logs.unstored_records >= _CHECKPOINT_RECORDS or self._logs.has_unstored_end:
            await self._logs.store_checkpoints()
        if current is None:
            await self._logs.wait_more(seen, closed)
        elif current.records < _TICK_RECORDS:
            await wait_wakeup()

    async def _next_of_snapshot(self) -> Round | None:
        """The next round of the snapshot; None behind its end, where the logs go on."""
        if self._snapshot is None:
            assert self._environment is not None
            now_seconds = self._environment.clock.now_epoch_seconds()
            self._snapshot = self._rounds.snapshot(int(now_seconds * MICROSECONDS_PER_SECOND))
        current = await anext(self._snapshot, None)
        if current is None:
            self._snapshot = None
            self._needs_snapshot = False
            await self._logs.store_checkpoints()
            self._settled(self._rounds.partition_count)
        return current

    def _passed(self, current: Round) -> None:
        """All of a round is acknowledged."""
        self._logs.passed(current.positions, current.records)
        self.published_records += current.records
        self.published_bytes += current.size_bytes
        self._has_published.set()

    @property
    def _at_work(self) -> RelayState:
        return "SNAPSHOT" if self._needs_snapshot else "PUBLISHING"

    def _failed(self, error: BrokerError) -> None:
        self.errors += 1
        self._has_published.set()
        if not isinstance(error, TooLarge):
            self._turn("FAILING", error)

    def _wait(self, trouble: BrokerError) -> None:
        self._turn("WAITING", trouble)

    def _turn(self, state: RelayState, trouble: BrokerError | None) -> None:
        """Be in a state from now on, and tell if that is news."""
        self.state = state
        self.problem = None if trouble is None else str(trouble)
        kind = None if trouble is None else type(trouble)
        if kind is self._trouble:
            return
        self._trouble = kind
        self._has_published.set()
        if trouble is None:
            _log.info("publishing", relay=self.name, lag_records=self.lag_records)
        else:
            _log.warning("not_publishing", relay=self.name, reason=self.problem)
