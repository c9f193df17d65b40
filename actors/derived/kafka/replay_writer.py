"""Writes records to a topic until all of them are acknowledged, for as long as that takes.

What is on its way is the caller's to bound. Where a delivery fails, another publisher sends what
was not acknowledged: a record may come twice, and none is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Final

import structlog

from dynactor.actors.derived.kafka.client_calls import (
    BATCH_DIVISOR,
    FIRST_BATCH_BYTES,
    failing_if_cancelled,
    publish_to_each,
)
from dynactor.actors.derived.kafka.relay_settings import RelaySettings
from dynactor.actors.runtime.randomness import jittered
from dynactor.streams.kafka.broker import (
    Broker,
    BrokerError,
    DeliveryFailed,
    Publisher,
    Refused,
    TooLarge,
    Unreachable,
)
from dynactor.streams.kafka.message import KafkaMessage, KafkaSource, without_images

# After this much silence it is said that the broker is away.
_SILENT_SECONDS: Final = 3.0

_log = structlog.get_logger("kafka")


class TopicWriter:
    """A topic and a publisher of its own.

    ``told`` is called with what keeps it from writing, and with None when nothing does any more.
    Invariant: at most one publisher is open; the next one is opened when the last one is closed.
    """

    def __init__(
        self,
        broker: Broker,
        settings: RelaySettings,
        topic: str,
        source: KafkaSource,
        told: Callable[[BrokerError | None], None],
        *,
        randomness: Random,
    ) -> None:
        self.partition_count = 0
        self.omitted_images = 0
        self._broker = broker
        self._settings = settings
        self._topic = topic
        self._source = source
        self._told = told
        self._randomness = randomness
        self._batch_bytes = FIRST_BATCH_BYTES
        self._publisher: Publisher | None = None

    async def open(self) -> None:
        """Wait until the topic is there, and a publisher.

        Raises:
            Refused: the broker does not want it, or the topic has fewer partitions than it had.
        """
        pause_seconds = self._settings.first_pause_seconds
        while self._publisher is None:
            try:
                topic = self._settings.topic(self._topic)
                with failing_if_cancelled():
                    found = (await self._broker.ensure_topic(topic)).partition_count
                    self._publisher = await self._broker.open_publisher()
            except (Unreachable, DeliveryFailed) as error:
                self._told(error)
                # Not all at the same moment.
                await asyncio.sleep(jittered(pause_seconds, self._randomness))
                pause_seconds = min(2 * pause_seconds, self._settings.longest_pause_seconds)
            else:
                if found < self.partition_count:
                    raise Refused(
                        f"topic {self._topic} had {self.partition_count} partitions and has {found}"
                    )
                # Partitions that somebody adds stay empty: keys would move to other ones.
                self.partition_count = self.partition_count or found
        self._told(None)

    async def write(self, messages: Mapping[int, list[KafkaMessage]]) -> None:
        """Append records to the topic's partitions; returns when all of them are acknowledged.

        Raises:
            Refused: the broker does not want them.
        """
        left = {number: list(of_partition) for number, of_partition in messages.items()}
        pause_seconds = self._settings.first_pause_seconds
        while left:
            await self.open()
            try:
                await self._send(left)
            except TooLarge as error:
                if error.count > 1:
                    self._batch_bytes = max(1, self._batch_bytes // BATCH_DIVISOR)
                await self.close()
            except DeliveryFailed as error:
                self._told(error)
                await self.close()
                await asyncio.sleep(pause_seconds)
                pause_seconds = min(2 * pause_seconds, self._settings.longest_pause_seconds)

    async def close(self) -> None:
        """Give up what is not acknowledged; the next ``open`` gets another publisher."""
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            await publisher.close()

    async def _send(self, left: dict[int, list[KafkaMessage]]) -> None:
        """Send what is left, which then is what was not acknowledged."""
        publisher = self._publisher
        assert publisher is not None
        silence = asyncio.get_running_loop().call_later(
            _SILENT_SECONDS, self._told, Unreachable("the broker does not answer")
        )
        try:
            outcomes = await publish_to_each(publisher, self._topic, left, self._batch_bytes)
        finally:
            silence.cancel()
        failures: list[BaseException] = []
        for number, outcome in outcomes.items():
            if outcome is None:
                del left[number]
                continue
            failures.append(outcome)
            if isinstance(outcome, TooLarge) and outcome.count == 1:
                self._cut(left[number], outcome)
            if isinstance(outcome, DeliveryFailed):
                del left[number][: outcome.delivered]
        if failures:
            # Of several, the one that is not explained by the publisher's being thrown away.
            raise min(failures, key=lambda failure: type(failure) is DeliveryFailed)
        self._told(None)

    def _cut(self, messages: list[KafkaMessage], refusal: TooLarge) -> None:
        """Leave the images out of the record that the broker finds too large."""
        whole = messages[refusal.delivered]
        cut = without_images(whole, self._source, self._settings.form)
        if cut is whole:
            raise Refused(f"topic {self._topic} takes no record of this size: {refusal}")
        messages[refusal.delivered] = cut
        self.omitted_images += 1
        if self.omitted_images == 1:
            _log.warning("images_omitted", topic=self._topic, reason=str(refusal))
