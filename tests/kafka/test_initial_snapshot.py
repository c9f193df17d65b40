"""A new topic starts with every item of its table, even if the server is killed meanwhile."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import pytest

from tests.kafka.test_relay import DELIVERIES, created, rebuilt, wait_written, writing
from tests.support.clients.clients import WireClient
from tests.support.kafka.kafka_broker import BrokerAddress
from tests.support.kafka.kafka_server import kafka_options, wait_published, wait_until
from tests.support.servers.admin import admin_port, ask
from tests.support.servers.server import Server, running_server

ITEMS = 10_000
_BATCH_ITEMS = 25


@pytest.fixture(params=DELIVERIES)
def delivery(request: pytest.FixtureRequest) -> tuple[str, str]:
    return ("--kafka-delivery", request.param)


async def test_the_initial_snapshot_restarts_after_a_kill_of_the_server(
    kafka_broker: BrokerAddress, tmp_path: Path, delivery: tuple[str, str]
):
    with running_server(data_dir=tmp_path) as server, closing(WireClient(server.endpoint)) as call:
        table = created(server)
        for first in range(0, ITEMS, _BATCH_ITEMS):
            puts = [
                {"PutRequest": {"Item": {"pk": {"S": f"old {number}"}, "text": {"S": "x" * 300}}}}
                for number in range(first, first + _BATCH_ITEMS)
            ]
            call("BatchWriteItem", {"RequestItems": {table: puts}})
        assert server.stop() == 0
    options = kafka_options(kafka_broker, *delivery, "--kafka-snapshot", "initial")
    with running_server(*options, data_dir=tmp_path) as server:
        wait_until(lambda: published_records(server) >= ITEMS // 20, "some of it is there")
        server.kill()
    with (
        running_server(*options, data_dir=tmp_path) as server,
        closing(WireClient(server.endpoint)) as call,
    ):
        with writing([server], table) as writers:
            wait_written(writers, 500)
            wait_until(lambda: is_active(call, table), "it is whole")
            wait_written(writers, 200)
        wait_published(server, table)
        replica = await rebuilt(kafka_broker, server, table, delivery)
        assert replica.events["INSERT", "snapshot"] >= ITEMS
        assert replica.gaps > 3


def is_active(call: WireClient, table: str) -> bool:
    described = call("DescribeKinesisStreamingDestination", {"TableName": table})
    return [found["DestinationStatus"] for found in described["KinesisDataStreamDestinations"]] == [
        "ACTIVE"
    ]


def published_records(server: Server) -> float:
    """The number of records published since the server started."""
    text = ask(admin_port(server), "/metrics").body.decode()
    pattern = r"^dynactor_destination_published_records_total\{.*\} (\S+)$"
    return sum(map(float, re.findall(pattern, text, re.MULTILINE)))
