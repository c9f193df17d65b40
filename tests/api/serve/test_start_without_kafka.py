"""A server without Kafka does not import its client, and warns about tables with destinations."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.support.clients.clients import WireClient
from tests.support.servers.server import running_server
from tests.support.tables.tables import definition


@pytest.mark.parametrize(
    ("options", "is_loaded"), [((), False), (("--kafka-bootstrap-servers", "127.0.0.1:9"), True)]
)
def test_kafkas_client_is_loaded_only_with_a_broker(options: tuple[str, ...], is_loaded: bool):
    # With this variable, Python lists imports on standard error.
    with running_server(*options, environment={"PYTHONPROFILEIMPORTTIME": "1"}) as server:
        assert server.stop() == 0
        assert "import time:" in server.log
        assert ("aiokafka" in server.log) == is_loaded


def test_a_server_without_kafka_warns_of_tables_with_destinations(tmp_path: Path):
    broker = ("--kafka-bootstrap-servers", "127.0.0.1:9")
    with (
        running_server(*broker, data_dir=tmp_path) as server,
        closing(WireClient(server.endpoint)) as call,
    ):
        call("CreateTable", definition("pk:S", name="orders"))
        arn = "arn:aws:kinesis:us-east-1:000000000000:stream/topic"
        call("EnableKinesisStreamingDestination", {"TableName": "orders", "StreamArn": arn})
    with running_server(data_dir=tmp_path) as server:
        assert server.stop() == 0
        (warning,) = [line for line in server.log.splitlines() if "relay_blocked" in line]
    assert "orders" in warning
    assert "started without --kafka-bootstrap-servers" in warning
