"""The shared environment of all actors that publish to Kafka."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from dynactor.actors.derived.kafka.relay_settings import RelaySettings
from dynactor.actors.derived.kafka.shared_publisher import SharedPublisher
from dynactor.actors.runtime.clock import Clock
from dynactor.actors.table.environment import TableEnvironment
from dynactor.streams.kafka.broker import Broker


class KafkaEnvironment(NamedTuple):
    """The shared parts. ``running`` are the subscriber ids of the running relays and replays."""

    broker: Broker
    shared: SharedPublisher
    settings: RelaySettings
    clock: Clock
    running: set[bytes]
    randomness: Random

    @classmethod
    def of(
        cls, broker: Broker, settings: RelaySettings, environment: TableEnvironment
    ) -> KafkaEnvironment:
        """The parts that the publishers to a broker share."""
        return cls(
            broker,
            SharedPublisher(broker),
            settings,
            environment.clock,
            set(),
            environment.randomness,
        )
