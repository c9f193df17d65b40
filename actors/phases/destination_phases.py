"""Takes the destinations of tables through their phases.

A destination is ENABLING until its topic exists, then ACTIVE. The commit that enables a destination
stores the positions from which changes are recorded, as its relay's first checkpoints. The relay
publishes from these positions whenever the broker is available. A destination that is switched off
is DISABLING until its recorded changes are published, within a deadline, and then DISABLED.

A destination that lags by more than a configured bound is cut off, because its logs would fill the
disk: it is BROKEN, and nothing is recorded for it. When its broker is available again, it is
ENABLING once more: its topic gets a gap marker, every item, and then the changes since.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import anyio
import structlog
from msgspec import Struct, structs

from dynactor.actors.catalog import definition_commit
from dynactor.actors.catalog.definition_commit import CommittedDefinition
from dynactor.actors.derived.kafka.broken_destination import BrokenDestination
from dynactor.actors.derived.kafka.kafka_sender import KafkaSender
from dynactor.actors.derived.kafka.kafka_sink import KafkaSink, relay_contract
from dynactor.actors.derived.kafka.relay import KafkaRelay, RelayTarget
from dynactor.actors.derived.kafka.relay_progress import RelayProgress
from dynactor.actors.derived.kafka.topic_session import TopicSession
from dynactor.actors.followers.stored_checkpoint import first_checkpoints
from dynactor.actors.parts.long_work import Pieces, chained
from dynactor.actors.parts.part import Part, Parts
from dynactor.actors.parts.phase_machine import Phase, PhaseMachine, Subject, table_subject
from dynactor.actors.phases.destination_messages import (
    DisableDestination,
    EnableDestination,
    UpdateDestination,
)
from dynactor.actors.phases.log_trimming import LogTrimmer
from dynactor.actors.phases.publishing import Publishing
from dynactor.actors.phases.replays import Replays
from dynactor.actors.phases.streams import StreamRegistry
from dynactor.actors.table.followers import ActorFollowing
from dynactor.actors.table.messages import OwnMessage
from dynactor.actors.table.table import Table
from dynactor.model.definitions.table import (
    TABLE_INDEX_ID,
    StreamingDestination,
    TableDefinition,
)
from dynactor.model.errors import ValidationException
from dynactor.model.tables import destination_rules as rules
from dynactor.model.time_units import MICROSECONDS_PER_SECOND
from dynactor.storage import key_layout
from dynactor.storage.catalog import Catalog, TableRecord
from dynactor.storage.subscriber_names import destination_subscriber

_log = structlog.get_logger("kafka")


class CheckDestinations(OwnMessage, frozen=True):
    """Check whether to cut off a destination, or to end a replay."""


class TableDestination(Struct, frozen=True):
    """A destination of a table, as stored."""

    table: Table
    destination: StreamingDestination

    @property
    def subscriber(self) -> bytes:
        """The id of its relay among the table's followers."""
        return _subscriber(self.table.definition, self.destination)


class DestinationPhases(Part):
    """Changes Kafka destinations, and moves them through their phases.

    Without a broker relays publish nothing, and recorded changes are kept.
    """

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._publishing = parts[Publishing]
        self._relays = self._publishing.settings
        self._kafka = self._publishing.kafka
        self._replays = parts[Replays]
        self._streams = parts[StreamRegistry]
        self._log_trimmer = parts[LogTrimmer]
        self._next_check: asyncio.TimerHandle | None = None
        self.handlers = {
            EnableDestination: self._enable_named,
            DisableDestination: self._disable,
            UpdateDestination: self._update,
            CheckDestinations: self._check_all,
        }
        # By subscriber: the number of partitions that the relay has found in its topic.
        self._partition_counts: dict[bytes, int] = {}
        self._machine = PhaseMachine(
            "destination",
            {
                "ENABLING": Phase(("ACTIVE",), self._relay, leave=self._activate),
                "ACTIVE": Phase(start=self._go_on),
                "DISABLING": Phase(("DISABLED",), self._drain, leave=self._end),
                "DISABLED": Phase(),
                "BROKEN": Phase(("ENABLING",), self._wait_for_broker, leave=self._mend),
            },
            find=self._find,
            stored_phase=lambda thing: thing.destination.status,
            tell=parts.tell_later,
            part_ids=lambda table: [
                destination.destination_id for destination in table.definition.destinations
            ],
        )
        self.machines = [self._machine]

    def relay(self, table: Table, destination: StreamingDestination) -> KafkaRelay | None:
        """The active relay of a destination."""
        following = table.followers.following(_subscriber(table.definition, destination))
        if isinstance(following, ActorFollowing) and isinstance(following.actor, KafkaRelay):
            return following.actor
        return None

    async def progress(
        self, table: Table, destination: StreamingDestination
    ) -> RelayProgress | None:
        """The progress of a destination's relay; None if it has no relay."""
        relay = self.relay(table, destination)
        if relay is None:
            return None
        oldest_us = await relay.oldest_unpublished_us()
        return RelayProgress(
            relay.state,
            relay.lag_records,
            relay.lag_bytes,
            oldest_us,
            relay.published_records,
            relay.published_bytes,
            relay.errors,
            relay.omitted_images,
        )

    def status_description(self, table: Table, destination: StreamingDestination) -> str | None:
        """A description of a destination's state, with the reason if it can't be reached."""
        description = destination.status_description
        relay = self.relay(table, destination)
        if destination.status != "ENABLING" or relay is None or relay.problem is None:
            return description
        return relay.problem if description is None else f"{description}. {relay.problem}"

    def wanted(self, definition: TableDefinition) -> str | None:
        """The default topic of a table without a destination, if all tables are published.

        A restored table gets its topic when complete, because restored items are not published.
        """
        if not self._relays.all_tables or self._kafka is None or definition.destinations:
            return None
        if definition.restore_phase != "DONE":
            return None
        return rules.default_topic(self._relays.topic_prefix, definition.name)

    async def adopt(self, _loaded: Catalog) -> None:
        """Check the destinations periodically from now on."""
        self._check_later()

    async def opened(self, table: Table) -> None:
        """Give the table a destination if all tables have one."""
        topic = self.wanted(table.definition)
        if topic is not None:
            self._parts.tell(EnableDestination(table.definition.name, topic))

    def _find(self, subject: Subject) -> TableDestination | None:
        table = self._parts.find_table(subject)
        if table is None:
            return None
        destination = _destination(table.definition, subject.part_id)
        return None if destination is None else TableDestination(table, destination)

    async def _enable_named(self, message: EnableDestination) -> StreamingDestination:
        table = self._tables.settled(message.name)
        if self._replays.writes_to(message.topic):
            raise ValidationException(f"A replay is writing to topic {message.topic}")
        return await self.enable(table, message)

    async def enable(self, table: Table, message: EnableDestination) -> StreamingDestination:
        """Record a table's changes for a topic from now on.

        Raises ``ValidationException`` without Kafka, or as ``destination_rules.enabled``.
        ``StoreError`` changes nothing.
        """
        self._publishing.needed_kafka()
        definition = rules.enabled(table.definition, message.topic, message.precision)
        await self._record_for(table, definition, definition.destinations[-1])
        await self._machine.resume_table(table)
        return table.definition.destinations[-1]

    async def _disable(self, message: DisableDestination) -> StreamingDestination:
        table = self._tables.settled(message.name)
        definition = rules.disabling(table.definition, message.topic)
        destination = rules.in_use(definition)
        assert destination is not None
        await self._put(table, definition)
        await self._machine.resume_table(table)
        return destination

    async def _update(self, message: UpdateDestination) -> StreamingDestination:
        table = self._tables.settled(message.name)
        definition = rules.updated(table.definition, message.topic, message.precision)
        destination = rules.in_use(definition)
        assert destination is not None
        await self._put(table, definition)
        await table.followers.detach(_subscriber(definition, destination))
        await self._machine.restart(table_subject(table, destination.destination_id))
        return structs.replace(destination, status="UPDATING")

    async def _check_all(self, _message: CheckDestinations) -> Pieces:
        """Cut off destinations that lag too far behind, and reclaim their disk space."""
        self._replays.check()
        now = self._clock.now_epoch_seconds()
        for table in list(self._tables.values()):
            if self._tables.has(table) and await self._check(table, now):
                async for _ in chained(self._log_trimmer.give_back(table, now)):
                    yield
            yield
        self._check_later()

    def _check_later(self) -> None:
        # Start only one timer, because the actor may adopt the catalog repeatedly.
        if self._next_check is not None:
            self._next_check.cancel()
        loop, seconds = asyncio.get_running_loop(), self._relays.check_seconds
        self._next_check = loop.call_later(seconds, self._parts.tell, CheckDestinations())

    async def _check(self, table: Table, now_epoch_seconds: float) -> bool:
        """Cut off the destination of a table if it lags too far behind; return whether it was."""
        for destination in table.definition.destinations:
            relay = self.relay(table, destination)
            if relay is not None and destination.publishes:
                reason = await self._over_bounds(relay, now_epoch_seconds)
                if reason is not None:
                    await self._cut_off(table, destination, reason)
                    return True
        return False

    async def _over_bounds(self, relay: KafkaRelay, now_epoch_seconds: float) -> str | None:
        settings = self._relays
        if relay.contract.must_accept_gap(relay.lag_bytes):
            return f"more than {settings.retention_bytes} bytes of changes were not taken"
        if settings.retention_seconds is None or not relay.lag_records:
            return None
        oldest_us = await relay.oldest_unpublished_us()
        if oldest_us is None:
            return None
        age_seconds = now_epoch_seconds - oldest_us / MICROSECONDS_PER_SECOND
        if age_seconds <= settings.retention_seconds:
            return None
        return f"changes were not taken for more than {settings.retention_seconds} seconds"

    async def _cut_off(self, table: Table, destination: StreamingDestination, reason: str) -> None:
        broken = structs.replace(
            destination,
            status="BROKEN",
            status_description=f"BROKEN: {reason}. When the broker takes them again, the topic is "
            "told of the gap and given every item",
            needs_snapshot=True,
        )
        _log.error(
            "destination_dropped",
            table=table.definition.name,
            topic=destination.topic,
            reason=reason,
        )
        subscriber = _subscriber(table.definition, destination)
        await self._put(
            table,
            rules.with_destination(table.definition, broken),
            forgotten=subscriber,
        )
        await table.followers.detach(subscriber)
        await self._machine.resume_table(table)

    async def drain(self, table: Table) -> None:
        """Publish a table's recorded changes, up to a deadline."""
        with anyio.move_on_after(self._relays.draining_seconds):
            for destination in table.definition.destinations:
                relay = self.relay(table, destination)
                if relay is not None:
                    await relay.drain()

    async def _record_for(
        self, table: Table, definition: TableDefinition, destination: StreamingDestination
    ) -> None:
        """Make the partitions record changes, and store the positions where that starts."""
        feeds = await table.followers.live_feeds()
        heads = await table.heads()
        subscriber = _subscriber(definition, destination)

        def storing(record: TableRecord, counters: Mapping[int, int]) -> CommittedDefinition:
            # A table with items may have counters of 0, because children of a split begin at 0.
            has_items = any(head.item_counts.get(TABLE_INDEX_ID) for head in heads)
            was_written = has_items or any(counters.values())
            needs_snapshot = was_written and self._relays.snapshot == "initial"
            begun = structs.replace(
                destination,
                began_late=was_written,
                needs_snapshot=destination.needs_snapshot or needs_snapshot,
            )
            record = structs.replace(record, definition=rules.with_destination(definition, begun))
            return CommittedDefinition(
                definition_commit.without_followers(record, [subscriber]),
                # The feeds were read a moment before the counters, so these bytes may be slightly
                # too low.
                puts=first_checkpoints(
                    subscriber,
                    counters,
                    {feed.partition_number: feed.logged_bytes for feed in feeds},
                ),
            )

        await definition_commit.redefine(self._owner, table, definition, storing)
        await self._streams.attach_logs(table)

    # -- phases -----------------------------------------------------------------------------

    async def _relay(self, thing: TableDestination, over: Callable[[], None]) -> None:
        """Start a relay that publishes the recorded changes, unless one is running."""
        table, destination = thing.table, thing.destination
        if table.followers.following(thing.subscriber) is not None:
            return
        definition = table.definition
        target = RelayTarget(
            definition.table_id,
            thing.subscriber,
            f"{self._relays.topic_prefix}.{definition.name}.{definition.uuid}."
            f"{destination.destination_id}",
            destination.topic,
            self._publishing.source(definition),
            destination.partition_count,
            destination.needs_snapshot,
            destination.began_late,
        )

        def settled(partition_count: int) -> None:
            self._partition_counts[thing.subscriber] = partition_count
            over()

        relay = KafkaRelay(
            target,
            await table.followers.feeds_for(target.subscriber),
            self._store,
            self._kafka,
            self._relays,
            settled=settled,
        )
        await relay.load()
        table.followers.attach(target.subscriber, ActorFollowing(relay, self._supervisor))
        self._supervisor.start(relay)

    async def _go_on(self, thing: TableDestination, _over: Callable[[], None]) -> None:
        """Continue to publish; an earlier phase has prepared the topic."""
        await self._relay(thing, _nothing)

    async def _activate(self, thing: TableDestination) -> str:
        active = structs.replace(
            thing.destination,
            status="ACTIVE",
            status_description=None,
            partition_count=self._partition_counts.get(thing.subscriber),
            needs_snapshot=False,
        )
        await self._put(thing.table, rules.with_destination(thing.table.definition, active))
        return "ACTIVE"

    async def _drain(self, thing: TableDestination, over: Callable[[], None]) -> None:
        await self._relay(thing, _nothing)
        self._supervisor.run_in_background(self._drain_and_tell, thing.table, over)

    async def _drain_and_tell(self, table: Table, over: Callable[[], None]) -> None:
        await self.drain(table)
        # If the table was closed meanwhile, its phases were forgotten, and this has no effect.
        over()

    async def _end(self, thing: TableDestination) -> str:
        await thing.table.followers.detach(thing.subscriber)
        disabled = structs.replace(thing.destination, status="DISABLED", needs_snapshot=False)
        await self._put(
            thing.table,
            rules.with_destination(thing.table.definition, disabled),
            forgotten=thing.subscriber,
        )
        return "DISABLED"

    async def _wait_for_broker(self, thing: TableDestination, over: Callable[[], None]) -> None:
        table, destination = thing.table, thing.destination
        if self._kafka is None or table.followers.following(thing.subscriber) is not None:
            return
        session = TopicSession(self._kafka, destination.topic, thing.subscriber)
        contract = relay_contract(self._relays)
        waiting = BrokenDestination(
            destination.topic,
            # This sender only checks whether the topic can be reached. The relay that starts after
            # it sends the gap.
            KafkaSender(
                session,
                KafkaSink(self._publishing.source(table.definition), self._relays, contract),
            ),
            contract,
            reached=lambda _: over(),
        )
        table.followers.attach(thing.subscriber, ActorFollowing(waiting, self._supervisor))
        self._supervisor.start(waiting)

    async def _mend(self, thing: TableDestination) -> str:
        """Record changes again for a destination that was cut off, and publish every item to it."""
        table = thing.table
        mended = structs.replace(
            thing.destination,
            status="ENABLING",
            status_description="BROKEN before: the topic is being told of the gap and given "
            "every item",
        )
        await self._record_for(table, rules.with_destination(table.definition, mended), mended)
        await table.followers.detach(thing.subscriber)
        return "ENABLING"

    async def _put(
        self, table: Table, definition: TableDefinition, *, forgotten: bytes | None = None
    ) -> None:
        """Change a table's definition; delete the checkpoints of the relay ``forgotten``."""

        def storing(record: TableRecord, _counters: Mapping[int, int]) -> CommittedDefinition:
            if forgotten is None:
                return CommittedDefinition(record)
            return CommittedDefinition(
                definition_commit.without_followers(record, [forgotten]),
                deletes=[key_layout.checkpoint(forgotten, number) for number in record.log_numbers],
            )

        await definition_commit.redefine(self._owner, table, definition, storing)


def _nothing() -> None:
    """Do nothing: the callback of a relay that is to end no phase."""


def _destination(definition: TableDefinition, destination_id: int) -> StreamingDestination | None:
    for destination in definition.destinations:
        if destination.destination_id == destination_id:
            return destination
    return None


def _subscriber(definition: TableDefinition, destination: StreamingDestination) -> bytes:
    return destination_subscriber(definition.table_id, destination.destination_id)
