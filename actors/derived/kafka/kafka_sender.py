"""Delivers a sink's rounds to its topic, in batches that the broker accepts, with one back-off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

import anyio
import structlog

from dynactor.actors.derived.kafka.client_calls import failing_if_cancelled, publish_to_each
from dynactor.actors.derived.kafka.kafka_sink import KafkaSink
from dynactor.actors.derived.kafka.topic_session import TopicSession
from dynactor.actors.followers.round_sink import Opened, Round
from dynactor.model.back_off import BackOff
from dynactor.model.limits import KIB
from dynactor.streams.kafka.broker import (
    BatchTooLarge,
    BrokerError,
    BrokerRefused,
    DeliveryFailed,
    FoundTopic,
    Unreachable,
)
from dynactor.streams.kafka.message import KafkaMessage

SenderState: TypeAlias = Literal["CONNECTING", "SENDING", "WAITING", "FAILING"]

# The size of a batch until the broker refuses one as too large.
_FIRST_BATCH_BYTES: Final = 512 * KIB
# When the broker refuses a batch as too large, the maximum batch size is divided by this.
_BATCH_DIVISOR: Final = 4
# A publisher that gets no answer is abandoned after the broker has answered this many other
# requests in a row.
_OTHER_ANSWERS: Final = 6

_log = structlog.get_logger("kafka")


class KafkaSender:
    """Delivers rounds to a topic (``RoundSender``).

    ``on_change`` is called with each problem, and with None when the broker answers. ``is_new``: as
    far as is stored, the topic never got a record.

    Invariant: at most one publisher is open; the next one is opened after the last one is closed.
    """

    def __init__(
        self,
        session: TopicSession,
        sink: KafkaSink,
        on_change: Callable[[BrokerError | None], None] = lambda _: None,
        *,
        is_new: bool = False,
    ) -> None:
        self.state: SenderState = "CONNECTING"
        # The reason why delivery fails; None while the broker answers.
        self.problem: str | None = None
        # Number of failed attempts.
        self.errors = 0
        # Number of records without images, because the broker found them too large.
        self.omitted_images = 0
        self._session = session
        self._sink = sink
        self._on_change = on_change
        self._is_new = is_new
        settings = session.settings
        self._back_off = BackOff(settings.first_pause_seconds, settings.longest_pause_seconds)
        self._batch_bytes = _FIRST_BATCH_BYTES
        self._is_stuck = False

    @property
    def is_open(self) -> bool:
        """Whether there is a publisher."""
        return self._session.is_open and self.state != "CONNECTING"

    @property
    def is_answered(self) -> bool:
        """Whether the broker answered the last request, and is not silent now."""
        return self.state == "SENDING"

    @property
    def round_bytes(self) -> int:
        """Maximum bytes of messages in a round."""
        return self._session.round_bytes

    async def reach_topic(self, stopped: asyncio.Future[None]) -> FoundTopic | None:
        """Create the topic unless it exists; None if that failed."""
        try:
            with failing_if_cancelled():
                return await self._session.ensure_topic()
        except BrokerError as error:
            await self._fail(error, stopped)
            return None

    async def open(
        self, counters: Mapping[int, int], stopped: asyncio.Future[None]
    ) -> Opened | None:
        """Connect to the topic and open a publisher; None if that failed."""
        self.state = "CONNECTING"
        try:
            with failing_if_cancelled():
                opened = await self._open(counters)
        except BrokerError as error:
            await self._fail(error, stopped)
            return None
        self._set_state("SENDING", None)
        return opened

    async def _open(self, counters: Mapping[int, int]) -> Opened:
        session, sink = self._session, self._sink
        found = await session.open()
        known = sink.partition_count
        if known > found.partition_count:
            raise BrokerRefused(
                f"topic {session.topic} had {known} partitions and has {found.partition_count}"
            )
        needs_snapshot = False
        if self._is_new and known == 0 and not any(counters.values()):
            # The topic may have records of an earlier table with the same name.
            needs_snapshot = not await session.has_new_topic(found.partition_count)
        reached = await session.read_positions(counters) if session.keeps_positions else {}
        # Set last, so that after a failed attempt the topic still counts as new.
        sink.partition_count = known or found.partition_count
        return Opened(reached, needs_snapshot)

    async def deliver(self, current: Round[KafkaMessage], stopped: asyncio.Future[None]) -> bool:
        """Send a round, however long the broker takes; False if the delivery failed.

        A waiting publisher is kept, because its records may still arrive. Another publisher would
        repeat them after later records. After a failure the round holds the remaining messages.
        """
        failure: BrokerError | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch, group.cancel_scope)
            try:
                with failing_if_cancelled():
                    await self._send(current)
            except BrokerError as error:
                # Handle the error outside of the group, which would wrap it in an exception group.
                failure = error
            group.cancel_scope.cancel()
        if failure is None and self._is_stuck:
            failure = DeliveryFailed("the broker answers, but does not acknowledge the records")
        self._is_stuck = False
        if failure is not None:
            await self._fail(failure, stopped)
            return False
        self._back_off.reset()
        self._set_state("SENDING", None)
        return True

    async def close(self) -> None:
        """Release the publisher."""
        self.state = "CONNECTING"
        await self._session.close()

    async def _fail(self, error: BrokerError, stopped: asyncio.Future[None]) -> None:
        """Report a failed attempt, close the publisher and wait before the next attempt."""
        self.errors += 1
        if isinstance(error, BatchTooLarge):
            # Try again at once with smaller batches or without images, because the broker works.
            self._on_change(error)
        else:
            self._set_state("FAILING", error)
        # Run this also if the sink is being stopped, because only this call closes the publisher.
        with anyio.CancelScope(shield=True):
            await self._session.discard()
        if not isinstance(error, BatchTooLarge):
            # A broker doesn't signal its return. A refusal lasts until the operator acts, so its
            # pause is the longest.
            longest_seconds = self._session.settings.longest_pause_seconds
            least_seconds = longest_seconds if isinstance(error, BrokerRefused) else 0.0
            seconds = self._back_off.pause_seconds(least_seconds)
            await asyncio.wait([stopped], timeout=self._session.jittered(seconds))

    def _set_state(self, state: SenderState, trouble: BrokerError | None) -> None:
        self.state = state
        self.problem = None if trouble is None else str(trouble)
        self._on_change(trouble)

    async def _watch(self, sending: anyio.CancelScope) -> None:
        """Report a silent broker; abandon a publisher if the broker answers other requests."""
        settings = self._session.settings
        # Usually the round is acknowledged before this time is over.
        await anyio.sleep(settings.silent_seconds)
        self._set_state("WAITING", Unreachable("the broker does not answer"))
        answers = 0
        while answers < _OTHER_ANSWERS:
            # A broker doesn't signal its return.
            await anyio.sleep(settings.probe_seconds)
            try:
                # This creates a topic that was deleted, so the publisher can continue.
                with failing_if_cancelled():
                    await self._session.ensure_topic()
            except BrokerError as error:
                answers = 0
                self._set_state("WAITING", error)
            else:
                answers += 1
        self._is_stuck = True
        sending.cancel()

    async def _send(self, current: Round[KafkaMessage]) -> None:
        session = self._session
        if session.is_transactional:
            await session.publisher.begin()
        outcomes = await publish_to_each(
            session.publisher, session.topic, current.messages, self._batch_bytes
        )
        failures = []
        for number, outcome in outcomes.items():
            if outcome is not None:
                failures.append(outcome)
            if isinstance(outcome, BatchTooLarge):
                self._make_smaller(current.messages[number], outcome)
            if session.is_transactional:
                continue
            if outcome is None:
                del current.messages[number]
            elif isinstance(outcome, DeliveryFailed):
                del current.messages[number][: outcome.delivered]
        if failures:
            # Closing the publisher causes further errors, so prefer an error of another kind.
            raise min(failures, key=lambda failure: type(failure) is DeliveryFailed)
        if session.is_transactional:
            if session.keeps_positions:
                await session.publish_positions(current.positions)
            await session.publisher.commit()

    def _make_smaller(self, messages: list[KafkaMessage], refusal: BatchTooLarge) -> None:
        """Change the next attempt after a batch was too large: smaller batches, or no images."""
        if refusal.count > 1:
            # Large records are sent alone, so several records exceeded the topic's limit.
            self._batch_bytes = max(1, self._batch_bytes // _BATCH_DIVISOR)
            return
        whole = messages[refusal.delivered]
        cut = self._sink.without_images(whole)
        if cut is whole:
            raise BrokerRefused(
                f"topic {self._session.topic} takes not even a record without images"
            )
        messages[refusal.delivered] = cut
        self.omitted_images += 1
        if self.omitted_images == 1:
            _log.warning("images_omitted", topic=self._session.topic, reason=str(refusal))
