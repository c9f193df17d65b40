"""How a round gets to the broker: in batches that it takes, however long it takes for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import anyio
import structlog

from dynactor.actors.derived.kafka.client_calls import (
    BATCH_DIVISOR,
    FIRST_BATCH_BYTES,
    failing_if_cancelled,
    publish_to_each,
)
from dynactor.actors.derived.kafka.relay_environment import RelayTarget
from dynactor.actors.derived.kafka.relay_rounds import Round
from dynactor.actors.derived.kafka.relay_session import RelaySession
from dynactor.streams.kafka.broker import (
    BrokerError,
    DeliveryFailed,
    Refused,
    TooLarge,
    Unreachable,
)
from dynactor.streams.kafka.message import KafkaForm, KafkaMessage, without_images

_IMAGES_OMITTED: Final = "images-omitted"
# How often in a row a broker answers others before a publisher that waits for it is given up.
_ANSWERS_BESIDE: Final = 6

_log = structlog.get_logger("kafka")


class RelayDelivery:
    """What is known of the batches that a topic takes.

    ``waits`` is told what keeps a round waiting.
    """

    def __init__(
        self, place: RelayTarget, form: KafkaForm, relay: str, waits: Callable[[BrokerError], None]
    ) -> None:
        self.omitted_images = 0
        self._place = place
        self._form = form
        self._relay = relay
        self._waits = waits
        self._batch_bytes = FIRST_BATCH_BYTES
        self._is_stuck = False

    async def deliver(self, session: RelaySession, current: Round) -> None:
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
                with failing_if_cancelled():
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

    async def _look_after(self, session: RelaySession, sending: anyio.CancelScope) -> None:
        """Tell of a broker that is silent; give up a publisher that it answers beside."""
        settings = session.settings
        await anyio.sleep(settings.silent_seconds)
        self._waits(Unreachable("the broker does not answer"))
        answers = 0
        while answers < _ANSWERS_BESIDE:
            await anyio.sleep(settings.probe_seconds)
            try:
                # A topic that was deleted is there again, and the publisher goes on.
                with failing_if_cancelled():
                    await session.ensure_topic()
            except BrokerError as error:
                answers = 0
                self._waits(error)
            else:
                answers += 1
        self._is_stuck = True
        sending.cancel()

    async def _send(self, session: RelaySession, current: Round) -> None:
        publisher, topic = session.publisher, self._place.topic
        if session.is_transactional:
            await publisher.begin()
        outcomes = await publish_to_each(publisher, topic, current.messages, self._batch_bytes)
        failures = []
        for number, outcome in outcomes.items():
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
            self._batch_bytes = max(1, self._batch_bytes // BATCH_DIVISOR)
            return
        whole = messages[refusal.delivered]
        if whole.value is None or _IMAGES_OMITTED in dict(whole.headers):
            raise Refused(f"topic {self._place.topic} takes not even a record without images")
        messages[refusal.delivered] = without_images(whole, self._place.source, self._form)
        self.omitted_images += 1
        if self.omitted_images == 1:
            _log.warning("images_omitted", relay=self._relay, reason=str(refusal))
