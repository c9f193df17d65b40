"""The follower that publishes a table's changes to a topic of Kafka.

The table's logs are the buffer, never memory: a round of records is read from all of them, split
by the Kafka partitions of their keys, sent, and when all of it is acknowledged the checkpoints
move. Whatever the broker does, the rest waits in the logs and no write notices.

With exactly-once delivery a round is a transaction of Kafka, which also holds the position that
each log reaches by it; at start those positions go before the checkpoints.

Partitions are not split yet. A child's log joins the others when its parent's was published
whole, or the order of an item's changes would break.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from random import random
from typing import Final, Literal, NamedTuple, TypeAlias

import anyio
import structlog
from msgspec import Struct

from actors.change_feed import ChangeFeed
from actors.runtime.clock import Clock
from actors.runtime.mailbox import Envelope, Mailbox
from actors.subscribers import checkpoint
from actors.subscribers.checkpoint import Checkpoint
from actors.subscribers.relay_settings import RelaySettings
from actors.subscribers.shared_publisher import SharedPublisher
from actors.subscribers.snapshot import TableSnapshot
from actors.subscribers.subscriber import wait_tick
from model.limits import KIB, MIB
from storage import keys_layout
from storage.store import Closed, Conflict, Full, Group, Retry, Store
from streams import change_record
from streams.broker import (
    Broker,
    BrokerError,
    DeliveryFailed,
    FoundTopic,
    Publisher,
    Refused,
    TooLarge,
    Unreachable,
)
from streams.change_record import ChangeRecord
from streams.kafka_message import (
    KafkaForm,
    KafkaMessage,
    KafkaSource,
    change_messages,
    gap_message,
    snapshot_message,
    without_images,
)
from streams.kafka_partitioner import partition_of

RelayState: TypeAlias = Literal[
    "IDLE", "CONNECTING", "PUBLISHING", "SNAPSHOT", "WAITING", "FAILING"
]

# Of all relays together; each gets its share for the round that it has in hand.
_IN_HAND_BYTES: Final = 16 * MIB
_LEAST_ROUND_BYTES: Final = 64 * KIB
_MOST_ROUND_BYTES: Final = 2 * MIB
_ROUND_RECORDS: Final = 1_024
# Few: between two pieces requests get their turn.
_PIECE_RECORDS: Final = 64
_TICK_RECORDS: Final = 64
_BATCH_BYTES: Final = 512 * KIB
_BATCH_DIVISOR: Final = 4
_IMAGES_OMITTED: Final = "images-omitted"
_CHECKPOINT_RECORDS: Final = 4_096
_MICROSECONDS: Final = 1_000_000
# How often in a row a broker answers others before a publisher that waits for it is given up.
_ANSWERS_BESIDE: Final = 6

_log = structlog.get_logger("kafka")


class RelayPlace(Struct, frozen=True):
    """What a relay works for: a destination of a table.

    ``subscriber`` names its checkpoints, ``publisher_id`` its transactions and positions.
    ``partition_count`` is that of the topic when it was first reached; None before that.
    ``needs_snapshot``: the topic is to be told of a gap, and given every item of the table,
    before the changes that come then.
    """

    table_id: int
    subscriber: bytes
    publisher_id: str
    topic: str
    source: KafkaSource
    partition_count: int | None = None
    needs_snapshot: bool = False


class RelaySurroundings(NamedTuple):
    """What all relays share: the broker, the publisher, the clock, and those at work."""

    broker: Broker
    shared: SharedPublisher
    settings: RelaySettings
    clock: Clock
    at_work: set[bytes]


class _Log:
    """One of the table's logs, and how far it was published."""

    def __init__(self, feed: ChangeFeed, key: bytes) -> None:
        self.feed = feed
        self.key = key
        self.stored: bytes | None = None
        self.position = Checkpoint(0, 0)
        # Kept until it completes: a feed does not forget who waits for it.
        self.addition: asyncio.Future[None] | None = None

    @property
    def stored_counter(self) -> int:
        return checkpoint.decode(self.stored).counter

    def wait_addition(self) -> asyncio.Future[None]:
        if self.addition is None or self.addition.done():
            self.addition = self.feed.wait_addition()
        return self.addition


class _Round:
    """Records in hand: what is not acknowledged of them, and where their logs are behind them."""

    def __init__(self) -> None:
        self.records = 0
        self.size_bytes = 0
        self.positions: dict[int, Checkpoint] = {}
        self.messages: defaultdict[int, list[KafkaMessage]] = defaultdict(list)


class KafkaRelay:
    """The actor.

    Invariants: every record up to a log's position was acknowledged (with exactly-once delivery:
    committed); a log's stored checkpoint is at or below its position. ``settled`` is called with
    the topic's count of partitions whenever it was reached, and has its snapshot if it needs one.
    """

    def __init__(
        self,
        place: RelayPlace,
        feeds: Sequence[ChangeFeed],
        store: Store,
        surroundings: RelaySurroundings | None,
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
        self.omitted_images = 0
        self._trouble: type[BrokerError] | None = BrokerError
        self._place = place
        self._store = store
        self._surroundings = surroundings
        self._settled = settled
        self._logs = {
            feed.partition_number: _Log(
                feed, keys_layout.checkpoint(place.subscriber, feed.partition_number)
            )
            for feed in feeds
        }
        self._first = 0
        self._round: _Round | None = None
        self._batch_bytes = _BATCH_BYTES
        self._is_stuck = False
        self._form = surroundings.settings.form if surroundings else KafkaForm()
        self._unstored_records = 0
        self._partition_count = place.partition_count or 0
        self._needs_snapshot = place.needs_snapshot
        # The rounds of the snapshot, once it was begun; they go on where the broker comes back.
        self._snapshot: AsyncGenerator[_Round, None] | None = None
        self._has_published = asyncio.Event()

    # -- for others -------------------------------------------------------------------------

    @property
    def lag_records(self) -> int:
        """How many changes are not published, at most."""
        return sum(max(0, log.feed.tail - log.position.counter) for log in self._logs.values())

    @property
    def lag_bytes(self) -> int:
        """How many bytes of records are not published."""
        return sum(
            max(0, log.feed.logged_bytes - log.position.logged_bytes)
            for log in self._logs.values()
            if log.feed.tail > log.position.counter
        )

    async def oldest_unpublished_us(self) -> int | None:
        """When the oldest change was made that is not published; None if all are."""
        oldest = []
        for log in self._logs.values():
            records = await log.feed.read(log.position.counter, max_records=1, max_bytes=1)
            oldest += [record.commit_time_us for record in records]
        return min(oldest, default=None)

    def floor(self, partition_number: int) -> int:
        """The counter up to which it needs no records of a log any more."""
        return self._logs[partition_number].stored_counter

    async def load(self) -> None:
        """Read the checkpoints; before it is started, for ``floor`` tells of them."""
        logs = list(self._logs.values())
        values = await self._store.latest.load([log.key for log in logs])
        for log, value in zip(logs, values, strict=True):
            log.stored = value
            if log.position.counter == 0:
                log.position = checkpoint.decode(value)

    async def drain(self) -> None:
        """Wait until all is published that is durable now, as long as the broker takes it."""
        ends = {number: log.feed.tail for number, log in self._logs.items()}
        for number, end in ends.items():
            # A counter that no record has is passed by nobody.
            while self._logs[number].position.counter < end and await self._has_more(number):
                if self.state not in ("CONNECTING", "PUBLISHING", "SNAPSHOT"):
                    return
                self._has_published.clear()
                await self._has_published.wait()

    # -- the actor --------------------------------------------------------------------------

    async def run(self) -> None:
        """Publish until the mailbox is closed; then store the checkpoints."""
        await self.load()
        # Of a life before this one, which ended by an error in the middle of it.
        self._round = None
        closed = self.mailbox.when_closed()
        if self._surroundings is None:
            await closed
            return
        self._surroundings.at_work.add(self._place.subscriber)
        session = _Session(self._surroundings, self._place)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._end_when, closed, group.cancel_scope)
                await self._work(session, closed)
                group.cancel_scope.cancel()
        finally:
            self._surroundings.at_work.discard(self._place.subscriber)
            self._has_published.set()
            with anyio.CancelScope(shield=True):
                await session.close()
                if self._snapshot is not None:
                    await self._snapshot.aclose()
                    self._snapshot = None
        await self._store_checkpoints()

    async def _end_when(self, closed: asyncio.Future[None], scope: anyio.CancelScope) -> None:
        """Let the round in hand come to its end when the actor is closed, but not for long."""
        assert self._surroundings is not None
        await closed
        if self.state in ("PUBLISHING", "SNAPSHOT"):
            await anyio.sleep(self._surroundings.settings.closing_seconds)
        scope.cancel()

    async def _work(self, session: _Session, closed: asyncio.Future[None]) -> None:
        settings = session.settings
        pause_seconds = settings.first_pause_seconds
        while not closed.done():
            try:
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
                await asyncio.wait([closed], timeout=pause_seconds * (0.5 + random() / 2))  # noqa: S311
                pause_seconds = min(2 * pause_seconds, settings.longest_pause_seconds)

    async def _open(self, session: _Session) -> None:
        """Reach the broker, see to the topic, and learn from where to go on."""
        self.state = "CONNECTING"
        found = await session.open()
        if self._partition_count > found.partition_count:
            raise Refused(
                f"topic {self._place.topic} had {self._partition_count} partitions "
                f"and has {found.partition_count}"
            )
        if self._partition_count == 0:
            # Of a table that was made again, the topic may tell of the one before.
            is_from_birth = all(log.position.counter == 0 for log in self._logs.values())
            self._needs_snapshot |= is_from_birth and not found.is_new
        # Partitions that somebody adds stay empty: keys would move to other ones.
        self._partition_count = self._partition_count or found.partition_count
        if session.is_transactional:
            await self._go_on_behind(await session.read_positions(self._logs))
        if not self._needs_snapshot:
            self._settled(self._partition_count)
        self._turn(self._at_work, None)

    async def _go_on_behind(self, counters: Mapping[int, int]) -> None:
        """Pass over what was committed without our knowing: a commit that got no answer."""
        for number, counter in counters.items():
            log = self._logs[number]
            if counter > max(log.feed.tail, log.position.counter):
                # The data are from a backup: what was published since then did not happen.
                _log.error("published_more_than_stored", relay=self.name, log=number)
                self._needs_snapshot = True
            while log.position.counter < counter:
                records = await log.feed.read(
                    log.position.counter, max_records=_ROUND_RECORDS, max_bytes=_MOST_ROUND_BYTES
                )
                known = [record for record in records if record.sequence_number.counter <= counter]
                if not known:
                    break
                log.position = _behind(log.position, known)
                self._unstored_records += len(known)
                # It was what is in hand.
                self._round = None

    async def _publish_round(self, session: _Session, closed: asyncio.Future[None]) -> None:
        """Publish what there is, or wait until there is something."""
        additions = [log.feed.additions for log in self._logs.values()]
        if self._round is None and self._needs_snapshot:
            self._round = await self._next_of_snapshot()
        if self._round is None:
            self._round = await self._next_round(session.round_bytes)
        current = self._round
        if current is None:
            if additions == [log.feed.additions for log in self._logs.values()]:
                waiting = [log.wait_addition() for log in self._logs.values()]
                await asyncio.wait([*waiting, closed], return_when=asyncio.FIRST_COMPLETED)
            return
        await self._patiently(session, current)
        self._round = None
        self._passed(current)
        if self._unstored_records >= _CHECKPOINT_RECORDS:
            await self._store_checkpoints()
        if current.records < _TICK_RECORDS:
            await wait_tick()

    async def _next_round(self, limit_bytes: int) -> _Round | None:
        """Take records of all logs in turn, as many as may be in hand."""
        logs = list(self._logs.values())
        current = _Round()
        for _ in logs:
            log = logs[self._first]
            records = await log.feed.read(
                log.position.counter,
                max_records=_ROUND_RECORDS - current.records,
                max_bytes=limit_bytes - current.size_bytes,
            )
            if records:
                taken = await self._add(current, records, limit_bytes)
                position = _behind(log.position, records[:taken])
                current.positions[log.feed.partition_number] = position
            self._first = (self._first + 1) % len(logs)
            if current.records >= _ROUND_RECORDS or current.size_bytes >= limit_bytes:
                break
        return current if current.records else None

    async def _next_of_snapshot(self) -> _Round | None:
        """The next round of the snapshot; None behind its end, where the logs go on."""
        if self._snapshot is None:
            self._snapshot = self._snapshot_rounds()
        current = await anext(self._snapshot, None)
        if current is None:
            self._snapshot = None
            self._needs_snapshot = False
            self._unstored_records += 1
            await self._store_checkpoints()
            self._settled(self._partition_count)
        return current

    async def _snapshot_rounds(self) -> AsyncGenerator[_Round, None]:
        """Word of the gap for each Kafka partition, then every item, page by page."""
        taken = await TableSnapshot.take(self._store, self._place.table_id, self._logs)
        source, form = self._place.source, self._form
        assert self._surroundings is not None
        now_us = int(self._surroundings.clock.now_epoch_seconds() * _MICROSECONDS)
        gap = _Round()
        for number in range(self._partition_count):
            gap.messages[number].append(gap_message(source, form, time_us=now_us))
        yield gap
        async for page in taken.pages():
            current = _Round()
            for at, item in enumerate(page):
                if at % _PIECE_RECORDS == _PIECE_RECORDS - 1:
                    await asyncio.sleep(0)
                message = snapshot_message(item, source, form, taken_us=now_us)
                number = partition_of(message.key, self._partition_count)
                current.messages[number].append(message)
                current.size_bytes += _size_bytes(message)
            current.records = len(page)
            yield current
        end = _Round()
        end.positions |= taken.positions
        yield end

    async def _add(self, current: _Round, records: list[ChangeRecord], limit_bytes: int) -> int:
        """Put the first of these records into a round, as many as it holds; returns how many."""
        place, form = self._place, self._form
        for at, record in enumerate(records):
            if at % _PIECE_RECORDS == _PIECE_RECORDS - 1:
                await asyncio.sleep(0)
            messages = change_messages(record, place.source, form)
            partition = partition_of(messages[0].key, self._partition_count)
            current.messages[partition] += messages
            current.size_bytes += sum(map(_size_bytes, messages))
            current.records += 1
            if current.size_bytes >= limit_bytes:
                return at + 1
        return len(records)

    async def _patiently(self, session: _Session, current: _Round) -> None:
        """Send a round, however long the broker takes; tell if that is long.

        A publisher that waits is kept: what it has sent may still arrive, and from another one
        it would come again, behind what is sent then.

        Raises:
            DeliveryFailed: as it says; the round holds what is left to be sent.
        """
        failure: BrokerError | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._look_after, session, group.cancel_scope)
            try:
                await self._send(session, current)
            except BrokerError as error:
                # Not out of the group, which would put it into another one.
                failure = error
            group.cancel_scope.cancel()
        if failure is None and self._is_stuck:
            failure = DeliveryFailed("the broker is there, and does not acknowledge")
        self._is_stuck = False
        if failure is not None:
            raise failure
        self._turn(self._at_work, None)

    async def _look_after(self, session: _Session, sending: anyio.CancelScope) -> None:
        """Tell of a broker that is silent; give up a publisher that it answers beside."""
        settings = session.settings
        await anyio.sleep(settings.silent_seconds)
        self._turn("WAITING", Unreachable("the broker does not answer"))
        answers = 0
        while answers < _ANSWERS_BESIDE:
            await anyio.sleep(settings.probe_seconds)
            try:
                # A topic that was deleted is there again, and the publisher goes on.
                await session.ensure_topic()
            except BrokerError as error:
                answers = 0
                self._turn("WAITING", error)
            else:
                answers += 1
        self._is_stuck = True
        sending.cancel()

    async def _send(self, session: _Session, current: _Round) -> None:
        publisher, topic = session.publisher, self._place.topic
        if session.is_transactional:
            await publisher.begin()
        partitions = list(current.messages)
        outcomes = await asyncio.gather(
            *(
                publisher.publish(topic, number, current.messages[number], self._batch_bytes)
                for number in partitions
            ),
            return_exceptions=True,
        )
        failures = []
        for number, outcome in zip(partitions, outcomes, strict=True):
            if outcome is not None:
                failures.append(outcome)
            if isinstance(outcome, TooLarge):
                self._make_smaller(current.messages[number], outcome)
            if session.is_transactional:
                continue
            if outcome is None:
                del current.messages[number]
            elif isinstance(outcome, DeliveryFailed):
                del current.messages[number][: outcome.delivered]
        if failures:
            # Of several, the one that is not explained by the publisher's being thrown away.
            raise min(failures, key=lambda failure: type(failure) is DeliveryFailed)
        if session.is_transactional:
            await session.publish_positions(current.positions)
            await publisher.commit()

    def _make_smaller(self, messages: list[KafkaMessage], refusal: TooLarge) -> None:
        """What to do about a batch that the broker finds too large: smaller ones, or no images."""
        if refusal.count > 1:
            # Large records went alone: this is a bound of the topic, and it stays.
            self._batch_bytes = max(1, self._batch_bytes // _BATCH_DIVISOR)
            return
        whole = messages[refusal.delivered]
        if whole.value is None or _IMAGES_OMITTED in dict(whole.headers):
            raise Refused(f"topic {self._place.topic} takes not even a record without images")
        messages[refusal.delivered] = without_images(whole, self._place.source, self._form)
        self.omitted_images += 1
        if self.omitted_images == 1:
            _log.warning("images_omitted", relay=self.name, reason=str(refusal))

    def _passed(self, current: _Round) -> None:
        """All of a round is acknowledged."""
        for number, position in current.positions.items():
            self._logs[number].position = position
        self.published_records += current.records
        self.published_bytes += current.size_bytes
        self._unstored_records += current.records
        self._has_published.set()

    @property
    def _at_work(self) -> RelayState:
        return "SNAPSHOT" if self._needs_snapshot else "PUBLISHING"

    # -- parts ------------------------------------------------------------------------------

    async def _has_more(self, number: int) -> bool:
        log = self._logs[number]
        return bool(await log.feed.read(log.position.counter, max_records=1, max_bytes=1))

    async def _store_checkpoints(self) -> None:
        """Store how far it got; refused by the store, the next checkpoint does."""
        moved = [log for log in self._logs.values() if log.position.encode() != log.stored]
        if not self._unstored_records or not moved:
            return
        values = [log.position.encode() for log in moved]
        try:
            await self._store.commit(
                [
                    Group(log.key, log.stored, value)
                    for log, value in zip(moved, values, strict=True)
                ]
            )
        except Conflict:
            # The store was opened again, without the last checkpoint: what it covers is sent anew
            # by whoever starts from it, not by this one.
            stored = await self._store.latest.load([log.key for log in moved])
            for log, value in zip(moved, stored, strict=True):
                log.stored = value
            return
        except (Full, Retry, Closed) as error:
            _log.info("checkpoint_not_stored", relay=self.name, error=str(error))
            return
        for log, value in zip(moved, values, strict=True):
            log.stored = value
        self._unstored_records = 0

    def _failed(self, error: BrokerError) -> None:
        self.errors += 1
        self._has_published.set()
        if not isinstance(error, TooLarge):
            self._turn("FAILING", error)

    def _turn(self, state: RelayState, trouble: BrokerError | None) -> None:
        """Be in a state from now on, and tell if that is news."""
        self.state = state
        self.problem = None if trouble is None else str(trouble)
        kind = None if trouble is None else type(trouble)
        if kind is self._trouble:
            return
        self._trouble = kind
        if trouble is None:
            _log.info("publishing", relay=self.name, lag_records=self.lag_records)
        else:
            _log.warning("not_publishing", relay=self.name, reason=self.problem)


class _Session:
    """A relay's way to the broker: the topics that it needs, and a publisher."""

    def __init__(self, surroundings: RelaySurroundings, place: RelayPlace) -> None:
        self.settings = surroundings.settings
        self.is_transactional = surroundings.settings.delivery == "exactly-once"
        self._surroundings = surroundings
        self._place = place
        self._publisher: Publisher | None = None

    @property
    def publisher(self) -> Publisher:
        """The publisher of an open session."""
        assert self._publisher is not None
        return self._publisher

    @property
    def round_bytes(self) -> int:
        """How many bytes of records a round may have: all relays share the memory for them."""
        share = _IN_HAND_BYTES // max(1, len(self._surroundings.at_work))
        return min(_MOST_ROUND_BYTES, max(_LEAST_ROUND_BYTES, share))

    async def ensure_topic(self) -> FoundTopic:
        """See to the topic of the destination.

        Raises:
            Unreachable, Refused: it may not be there.
        """
        return await self._surroundings.broker.ensure_topic(self.settings.topic(self._place.topic))

    async def open(self) -> FoundTopic:
        """See to the topics and get a publisher.

        Raises:
            Unreachable, Refused: nothing can be published now.
        """
        broker, settings = self._surroundings.broker, self.settings
        found = await self.ensure_topic()
        if self.is_transactional:
            await broker.ensure_topic(settings.positions_topic)
            self._publisher = await broker.open_publisher(self._place.publisher_id)
        else:
            self._publisher = await self._surroundings.shared.take()
        return found

    async def read_positions(self, partition_numbers: Iterable[int]) -> dict[int, int]:
        """The counters that committed transactions reached, by log."""
        numbers = {self._position_key(number): number for number in partition_numbers}
        topic = self.settings.positions_topic.name
        found = await self._surroundings.broker.read_last(topic, numbers)
        return {numbers[key]: int(value) for key, value in found.items()}

    async def publish_positions(self, positions: Mapping[int, Checkpoint]) -> None:
        """Put the positions that the logs reach into the transaction."""
        messages = [
            KafkaMessage(self._position_key(number), b"%d" % position.counter, (), 0)
            for number, position in positions.items()
        ]
        await self.publisher.publish(self.settings.positions_topic.name, 0, messages, _BATCH_BYTES)

    async def throw_away(self) -> None:
        """Close a publisher that failed; the next ``open`` gets another one."""
        publisher, self._publisher = self._publisher, None
        if publisher is None:
            return
        if self.is_transactional:
            await publisher.close()
        else:
            await self._surroundings.shared.throw_away(publisher)

    async def close(self) -> None:
        """Let go of the publisher, unless others have it too."""
        if self.is_transactional:
            await self.throw_away()

    def _position_key(self, partition_number: int) -> bytes:
        return f"{self._place.publisher_id}/{partition_number}".encode()


def _size_bytes(message: KafkaMessage) -> int:
    return len(message.key) + len(message.value or b"")


def _behind(position: Checkpoint, records: Sequence[ChangeRecord]) -> Checkpoint:
    """The position behind these records, which follow on it."""
    size_bytes = sum(map(change_record.stored_bytes, records))
    return Checkpoint(records[-1].sequence_number.counter, position.logged_bytes + size_bytes)
