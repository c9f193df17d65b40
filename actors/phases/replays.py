"""The replays: jobs that publish a table's changes again, with or without its items.

A job ends with the server at the latest. Until it ends, its table's changes are recorded, and the
logs are kept from its position on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import structlog
from msgspec import structs

from dynactor.actors.catalog import definition_commit
from dynactor.actors.catalog.definition_commit import CommittedDefinition
from dynactor.actors.derived.kafka.replay import Replay, ReplayPlace
from dynactor.actors.derived.kafka.replay_progress import ReplayProgress, ReplayStart
from dynactor.actors.followers.stored_checkpoint import first_checkpoints
from dynactor.actors.parts.part import Part, Parts
from dynactor.actors.phases.publishing import Publishing
from dynactor.actors.phases.streams import StreamRegistry
from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.runtime.randomness import random_uuid
from dynactor.actors.table.followers import ActorFollowing
from dynactor.actors.table.messages import OwnMessage
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import TABLE_INDEX_ID, TableDefinition
from dynactor.model.errors import ResourceNotFoundException, ValidationException
from dynactor.model.tables import destination_rules as rules
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.storage import key_layout
from dynactor.storage.catalog import TableRecord
from dynactor.storage.store import StoreError
from dynactor.storage.subscriber_names import replay_subscriber
from dynactor.streams import log_bounds, sequence_number
from dynactor.streams.log_bounds import LogReach
from dynactor.streams.sequence_number import SequenceNumber

_SHOWN_AFTERWARDS: Final = 20

_log = structlog.get_logger("kafka")


class StartReplay(Message[ReplayProgress], frozen=True):
    """Publish a table's changes to a topic again.

    Raises ``ResourceNotFoundException`` or ``ResourceInUseException``; ``ValidationException`` if
    there is no Kafka, the topic can't be used, or the logs do not go back that far.
    """

    name: str
    topic: str
    start: ReplayStart
    follows: bool = False


class CancelReplay(Message[ReplayProgress], frozen=True):
    """Stop publishing; raises ``ResourceNotFoundException`` if there is no such replay."""

    replay_id: str


class EndReplay(OwnMessage, frozen=True):
    """A replay has ended."""

    table_id: int
    name: str
    replay_id: str


class Replays(Part):
    """Running replays, and the most recently ended ones."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._publishing = parts[Publishing]
        self._streams = parts[StreamRegistry]
        self.handlers = {
            StartReplay: self._start,
            CancelReplay: self._cancel,
            EndReplay: self._end,
        }
        self._replays: dict[str, Replay] = {}
        # The ids of jobs whose changes are recorded, and whose checkpoints are stored.
        self._recording: set[str] = set()

    # -- for requests -----------------------------------------------------------------------

    def all(self) -> Sequence[ReplayProgress]:
        """The jobs, the newest last."""
        return [replay.progress for replay in self._replays.values()]

    def find(self, replay_id: str) -> ReplayProgress:
        """The job with this id, unless it was forgotten; raises ``ResourceNotFoundException``."""
        return self._named(replay_id).progress

    # -- for the database's actor -----------------------------------------------------------

    async def _start(self, message: StartReplay) -> ReplayProgress:
        table = self._tables.settled(message.name)
        definitions = await self._parts.definitions()
        kafka = self._publishing.needed_kafka()
        self._check_topic(message.topic, definitions)
        # Find the positions in the logs first, so that an error changes nothing.
        positions, is_whole = await self._positions(table, message.start)
        replay_id = random_uuid(self._environment.randomness).hex
        definition = table.definition
        subscriber = replay_subscriber(definition.table_id, replay_id)
        followed = await self._record(table, subscriber, positions)
        self._recording.add(replay_id)
        end = EndReplay(definition.table_id, definition.name, replay_id)
        replay = Replay(
            await self._place(table, message, replay_id, is_whole=is_whole),
            [feed for feed in await table.followers.feeds() if feed.partition_number in followed],
            self._store,
            kafka,
            ended=lambda: self._parts.tell(end),
        )
        await replay.load()
        self._forget_oldest()
        self._replays[replay_id] = replay
        table.followers.attach(subscriber, ActorFollowing(replay, self._supervisor))
        self._supervisor.start(replay)
        # An actor that the supervisor abandons sends no message, so also use its mailbox's end.
        replay.mailbox.when_closed().add_done_callback(lambda _: self._parts.tell(end))
        await self._streams.attach_logs(table)
        return replay.progress

    async def _cancel(self, message: CancelReplay) -> ReplayProgress:
        replay = self._named(message.replay_id)
        await self._supervisor.stop(replay)
        if not replay.is_over:
            replay.fail_abandoned()
        return replay.progress

    async def _end(self, message: EndReplay) -> None:
        """Stop recording changes and keeping logs for a job that has ended."""
        table = self._tables.same(message.name, message.table_id)
        if table is None or message.replay_id not in self._recording:
            return
        subscriber = replay_subscriber(message.table_id, message.replay_id)
        await table.followers.detach(subscriber)

        def storing(record: TableRecord, _counters: Mapping[int, int]) -> CommittedDefinition:
            return CommittedDefinition(
                definition_commit.without_followers(record, [subscriber]),
                deletes=[key_layout.checkpoint(subscriber, n) for n in record.log_numbers],
            )

        definition = structs.replace(table.definition, is_replayed=self._is_replayed(table))
        await definition_commit.redefine(self._owner, table, definition, storing)
        self._recording.discard(message.replay_id)

    async def opening(self, table: Table) -> None:
        """Stop recording for jobs that ended with the server; the table has no actors yet."""
        if not table.definition.is_replayed:
            return
        definition = structs.replace(table.definition, is_replayed=False)
        rows = key_layout.replay_checkpoint_range(definition.table_id)
        try:
            await definition_commit.store(self._owner, table, definition, range_deletes=[rows])
        except StoreError as error:
            # Ignore the error, because a server must start on a full disk, too. The next start
            # tries again.
            _log.info("replay_cleanup_delayed", table=table.definition.name, error=str(error))

    def may_move(self, table: Table) -> bool:
        """Whether no job publishes the table."""
        return not table.definition.is_replayed

    def check(self) -> None:
        """End the jobs with more unpublished changes than the logs keep for them."""
        for replay in self._replays.values():
            if not replay.is_over and replay.contract.must_accept_gap(replay.lag_bytes):
                replay.give_up()

    def writes_to(self, topic: str) -> bool:
        """Whether a job publishes to a topic."""
        return any(
            progress.topic == topic and not self._replays[progress.replay_id].is_over
            for progress in self.all()
        )

    # -- parts ------------------------------------------------------------------------------

    def _named(self, replay_id: str) -> Replay:
        replay = self._replays.get(replay_id)
        if replay is None:
            raise ResourceNotFoundException(
                f"There is no replay {replay_id}: a server that is started again knows of none"
            )
        return replay

    def _forget_oldest(self) -> None:
        ended = [replay_id for replay_id, replay in self._replays.items() if replay.is_over]
        for replay_id in ended[: max(0, len(ended) - _SHOWN_AFTERWARDS + 1)]:
            del self._replays[replay_id]
            # The set still has the id if the table was deleted before the job's end was handled.
            self._recording.discard(replay_id)

    def _is_replayed(self, table: Table) -> bool:
        table_id = table.definition.table_id
        subscribers = (replay_subscriber(table_id, each) for each in self._replays)
        return any(map(table.followers.following, subscribers))

    def _check_topic(self, topic: str, definitions: Iterable[TableDefinition]) -> None:
        try:
            rules.check_topic(topic)
        except ValidationException:
            raise ValidationException(f"{topic!r} can't be the name of a Kafka topic") from None
        for definition in definitions:
            destination = rules.in_use(definition)
            if destination is not None and destination.topic == topic:
                raise ValidationException(
                    f"The changes of table {definition.name} are published to topic "
                    f"{topic} as they are made: older ones between them would break their "
                    "order. Give another topic"
                )
        if self.writes_to(topic):
            raise ValidationException(f"Another replay is writing to topic {topic}")

    async def _record(
        self, table: Table, subscriber: bytes, positions: Mapping[int, int] | None
    ) -> Collection[int]:
        """Record changes for a job, independently of other followers.

        The same commit stores the job's checkpoints, so the logs are kept from there on. Without
        ``positions`` the job starts with the first change that is recorded for it. Returns the
        numbers of the logs that it follows.
        """
        logged_bytes = {
            feed.partition_number: feed.logged_bytes for feed in await table.followers.feeds()
        }
        followed: list[int] = []

        def storing(record: TableRecord, counters: Mapping[int, int]) -> CommittedDefinition:
            first = counters if positions is None else positions
            followed[:] = first
            # All earlier writes become durable with this commit, so a snapshot shows them.
            return CommittedDefinition(
                definition_commit.with_follower(record, subscriber, first),
                # The bytes of earlier records don't count for this job.
                puts=first_checkpoints(subscriber, first, logged_bytes),
            )

        definition = structs.replace(table.definition, is_replayed=True)
        await definition_commit.redefine(self._owner, table, definition, storing)
        return followed

    async def _place(
        self,
        table: Table,
        message: StartReplay,
        replay_id: str,
        *,
        is_whole: bool,
    ) -> ReplayPlace:
        """The parameters of a job."""
        definition = table.definition
        heads = await table.heads()
        return ReplayPlace(
            replay_id,
            replay_subscriber(definition.table_id, replay_id),
            self._publishing.source(definition),
            message.topic,
            message.start,
            message.follows,
            is_whole,
            sum(head.item_counts.get(TABLE_INDEX_ID, 0) for head in heads),
        )

    async def _positions(
        self, table: Table, start: ReplayStart
    ) -> tuple[dict[int, int] | None, bool]:
        """The first position of a job in each log, and whether no earlier change is missing.

        The positions are None for a snapshot, which has its own positions.
        """
        if start.origin == "snapshot":
            return None, True
        view = self._store.durable()
        now_us = int(self._clock.now_epoch_seconds() * MICROSECONDS_PER_SECOND)
        logs = await log_bounds.reaches(view, table.record, now_us)
        if start.origin == "beginning":
            if all(log.after == log.last and log.lost_us is not None for log in logs):
                raise _too_far_back(table.definition.name, logs)
            return {log.partition_number: log.after for log in logs}, _is_whole(logs)
        time_us, known = start.number, None
        if start.origin == "time" and time_us > now_us:
            raise ValidationException(
                f"{_time_text(time_us)} is still to come: by the server's clock it is "
                f"{_time_text(now_us)}"
            )
        if start.origin == "sequence-number":
            known = sequence_number.unpack(start.number)
            time_us = await self._change_time(table.definition.name, logs, known)
        if time_us <= max((log.lost_us for log in logs if log.lost_us is not None), default=-1):
            raise _too_far_back(table.definition.name, logs)
        positions = {
            log.partition_number: await log_bounds.position_at(view, log, time_us) for log in logs
        }
        if known is not None:
            positions[known.partition_number] = known.counter - 1
        is_whole = _is_whole(logs) and all(position == 0 for position in positions.values())
        return positions, is_whole

    async def _change_time(self, name: str, logs: list[LogReach], number: SequenceNumber) -> int:
        """The time of a change; raises ``ValidationException`` if no log has it."""
        partition_logs = {log.partition_number: log for log in logs}
        log = partition_logs.get(number.partition_number)
        if log is None or not 0 < number.counter <= log.last:
            raise ValidationException(
                f"{number.wire()} is not the sequence number of a change of table {name}"
            )
        view = self._store.durable()
        record = await log_bounds.first_behind(view, number.partition_number, number.counter - 1)
        if number.counter <= log.after or record is None:
            raise _too_far_back(name, logs)
        return record.commit_time_us


def _is_whole(logs: Sequence[LogReach]) -> bool:
    return all(log.lost_us is None for log in logs)


def _too_far_back(name: str, logs: Sequence[LogReach]) -> ValidationException:
    if all(log.after == log.last for log in logs):
        return ValidationException(
            f"No changes of table {name} are kept: changes are recorded while a stream, a "
            "destination or an index follows the table, and kept for a day where it has a "
            "stream. --from snapshot starts with every item"
        )
    lost_us = max(log.lost_us for log in logs if log.lost_us is not None)
    return ValidationException(
        f"The changes of table {name} are kept from {_time_text(lost_us + 1)} on, and no older "
        "ones: --from beginning starts with the oldest one kept, --from snapshot with every item"
    )


def _time_text(time_us: int) -> str:
    return datetime.fromtimestamp(time_us / MICROSECONDS_PER_SECOND, tz=UTC).isoformat()
