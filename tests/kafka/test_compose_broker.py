"""Kafka as the compose file starts it: through the image's own program, out of its variables."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.compose_file import read_compose_file
from tests.support.kafka_broker import (
    LARGEST_MESSAGE_BYTES,
    GivenBroker,
    KafkaBroker,
    run_kafka_tool,
    started,
    unused_ports,
)
from tests.support.kafka_topics import created_topic, first_value, produced

KAFKA = read_compose_file().services["kafka"]


class Composed:
    """The service's broker, with the names and ports of the container being ours."""

    def __init__(self, directory: Path) -> None:
        self._ports = dict(zip(("29093", "19092", "9092"), unused_ports(3), strict=True))
        self.environment = {
            **{name: self.ours(value) for name, value in KAFKA.environment.items()},
            "KAFKA_LOG_DIRS": str(directory / "data"),
        }
        self.broker = KafkaBroker(directory, self._set_up(directory), self.ours("kafka:19092"))

    def ours(self, text: str) -> str:
        text = text.replace("kafka:", "127.0.0.1:")
        return re.sub(r"\b(29093|19092|9092)\b", lambda port: str(self._ports[port[0]]), text)

    def _set_up(self, directory: Path) -> Path:
        """What the image does first: its settings out of the variables, its data formatted."""
        places = {name: directory / name for name in ("default", "mounted", "final")}
        for place in places.values():
            place.mkdir()
        for name in ("server.properties", "log4j2.yaml", "tools-log4j2.yaml"):
            (places["default"] / name).touch()
        options = [f"--{name}-configs-dir={place}" for name, place in places.items()]
        run_kafka_tool("kafka.docker.KafkaDockerWrapper", "setup", *options, **self.environment)
        return places["final"] / "server.properties"

    @property
    def is_healthy(self) -> bool:
        assert KAFKA.healthcheck is not None
        _, *command = map(self.ours, KAFKA.healthcheck.test)
        done = subprocess.run(command, stderr=subprocess.DEVNULL, check=False)
        return done.returncode == 0


@pytest.fixture(scope="module")
def composed(tmp_path_factory: pytest.TempPathFactory) -> Composed:
    return Composed(tmp_path_factory.mktemp("composed"))


@pytest.fixture(scope="module")
def broker(composed: Composed) -> Iterator[KafkaBroker]:
    assert not composed.is_healthy
    with started(composed.broker) as broker:
        yield broker


def test_the_health_check_passes_while_it_runs(composed: Composed, broker: KafkaBroker):
    assert composed.is_healthy
    with broker.stopped():
        assert not composed.is_healthy
    assert composed.is_healthy


async def test_the_machine_reads_what_a_container_wrote(composed: Composed, broker: KafkaBroker):
    topic = await created_topic(broker, max_message_bytes=LARGEST_MESSAGE_BYTES)
    value = b"x" * (LARGEST_MESSAGE_BYTES - 1024)
    assert await produced(broker, topic, value) == 0
    machine = GivenBroker(composed.ours("localhost:9092"))
    assert await first_value(machine, topic) == value


def test_its_data_lies_in_the_volume():
    (volume,) = KAFKA.volumes
    assert volume.split(":")[1] == KAFKA.environment["KAFKA_LOG_DIRS"]
