"""The services of the compose file run with the programs and environments of their images."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.support.clients.clients import WireClient
from tests.support.environment.compose_file import read_compose_file
from tests.support.environment.dockerfile import stages
from tests.support.environment.unused_ports import unused_ports
from tests.support.kafka.kafka_broker import (
    LARGEST_MESSAGE_BYTES,
    GivenBroker,
    KafkaBroker,
    run_kafka_tool,
    started,
)
from tests.support.kafka.kafka_consumer import read_topic
from tests.support.kafka.kafka_server import wait_published
from tests.support.kafka.kafka_topics import created_topic, first_value, partition_count, produced
from tests.support.servers.server import PROJECT, Server
from tests.support.tables.tables import definition, wait_until_active

SERVICES = read_compose_file().services
DYNACTOR, KAFKA = SERVICES["dynactor"], SERVICES["kafka"]


class Composed:
    """The broker of the service ``kafka``, with host names and ports of the test."""

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
        """Write the settings from the environment variables, and format the data directory."""
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
    with started(composed.broker) as broker:
        yield broker


async def test_a_client_on_the_host_reads_records_that_a_container_published(
    composed: Composed, broker: KafkaBroker
):
    topic = await created_topic(broker, max_message_bytes=LARGEST_MESSAGE_BYTES)
    value = b"x" * (LARGEST_MESSAGE_BYTES - 1024)
    assert await produced(broker, topic, value) == 0
    machine = GivenBroker(composed.ours("localhost:9092"))
    assert await first_value(machine, topic) == value


async def test_the_server_starts_before_kafka_and_publishes_once_kafka_runs(
    composed: Composed, broker: KafkaBroker, tmp_path: Path
):
    assert composed.is_healthy
    broker.stop()
    assert not composed.is_healthy
    with composed_server(composed, tmp_path) as server:
        with closing(WireClient(server.endpoint)) as call:
            call("CreateTable", definition("pk:S", name="Early"))
            wait_until_active(call, "Early")
            call("PutItem", {"TableName": "Early", "Item": {"pk": {"S": "before Kafka"}}})
        broker.start()
        assert composed.is_healthy
        wait_published(server, "Early")
        assert metrics_status(server, host="dynactor:8001") == 200
        assert server.stop() == 0
    machine = GivenBroker(composed.ours("localhost:9092"))
    assert await partition_count(machine, "dynactor.Early") == 6
    (record,) = await read_topic(machine, "dynactor.Early")
    assert record.key == b'{"pk":{"S":"before Kafka"}}'


@contextmanager
def composed_server(composed: Composed, data: Path) -> Iterator[Server]:
    """Run the service ``dynactor`` on free ports."""
    image = stages(PROJECT / "compose" / "Dockerfile")[-1]
    variables = {**image.environment, **DYNACTOR.environment}
    environment = {
        **os.environ,
        **{name: composed.ours(text) for name, text in variables.items() if name != "PATH"},
        "XDG_DATA_HOME": str(data),
        "DYNACTOR_PORT": "0",
        "DYNACTOR_ADMIN_PORT": "0",
    }
    program, *arguments = image.command
    assert program == "dynactor"
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(
            [sys.executable, "-m", "dynactor", *arguments],
            cwd=PROJECT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            yield Server(process, log)
        finally:
            process.kill()


def metrics_status(server: Server, host: str) -> int:
    found = re.search(r"^Metrics on http://[\d.]+:(\d+)/", server.announcement, re.MULTILINE)
    assert found, server.announcement
    with closing(HTTPConnection("127.0.0.1", int(found[1]), timeout=10)) as connection:
        connection.request("GET", "/metrics", headers={"Host": host})
        with closing(connection.getresponse()) as response:
            return response.status


def test_the_brokers_data_directory_is_in_the_volume():
    (volume,) = KAFKA.volumes
    assert volume.split(":")[1] == KAFKA.environment["KAFKA_LOG_DIRS"]
