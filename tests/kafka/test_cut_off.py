"""A destination whose broker is away for too long is cut off, and made whole when it is back."""

from __future__ import annotations

import http.client
import re
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from tests.kafka.test_relay import DELIVERIES, created, rebuilt, wait_written, writing
from tests.support.admin import admin_port, ask
from tests.support.clients import WireClient
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_server import kafka_options, wait_published, wait_until
from tests.support.server import Server, running_server

RETENTION_BYTES = 3_000_000
# Both images of each change are recorded: ten times as much in all as the disk may take.
LARGE_BYTES = 100_000
LARGE_WRITES = 2_500
DISK_BYTES = 350_000_000


@pytest.fixture(params=DELIVERIES)
def delivery(request: pytest.FixtureRequest) -> tuple[str, str]:
    return ("--kafka-delivery", request.param)


def destination(call: WireClient, table: str) -> tuple[str, str]:
    """The state of the table's destination, and what is said of it."""
    described = call("DescribeKinesisStreamingDestination", {"TableName": table})
    (found,) = described["KinesisDataStreamDestinations"]
    return found["DestinationStatus"], found.get("DestinationStatusDescription", "")


def shown_state(server: Server, table: str) -> str:
    """The state that the metrics show."""
    text = ask(admin_port(server), "/metrics").body.decode()
    pattern = rf'^dynactor_destination_state\{{state="(\w+)",table="{table}".*\}} 1\.0$'
    other = rf'^dynactor_destination_state\{{table="{table}",.*state="(\w+)"\}} 1\.0$'
    found = re.search(pattern, text, re.MULTILINE) or re.search(other, text, re.MULTILINE)
    assert found is not None, text
    return found[1]


def write_large(call: WireClient, table: str, draw: Random, count: int) -> None:
    for _ in range(count):
        text = draw.randbytes(LARGE_BYTES // 2).hex()
        item = {"pk": {"S": f"large {draw.randrange(20)}"}, "text": {"S": text}}
        answer = call.send("PutItem", {"TableName": table, "Item": item})
        assert answer.status == http.client.OK, answer


def directory_bytes(directory: Path) -> int:
    total = 0
    for path in directory.rglob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            # The engine deletes files at any time.
            continue
    return total


async def test_writes_go_on_the_disk_is_bounded_and_the_consumer_ends_equal(
    breakable_broker: KafkaBroker, tmp_path: Path, delivery: tuple[str, str]
):
    bounded = ("--kafka-retention-bytes", str(RETENTION_BYTES))
    options = kafka_options(breakable_broker, *delivery, *bounded)
    draw = Random(7)
    with (
        running_server(*options, data_dir=tmp_path) as server,
        closing(WireClient(server.endpoint)) as call,
    ):
        table = created(server)
        write_large(call, table, draw, 20)
        with writing([server], table) as writers:
            wait_written(writers, 300)
            wait_published(server, table)
            with breakable_broker.stopped():
                wait_until(
                    lambda: write_large(call, table, draw, 1) or not is_publishing(call, table),
                    "it is cut off",
                )
                status, description = destination(call, table)
                assert status == "ENABLE_FAILED"
                assert description.startswith(f"BROKEN: more than {RETENTION_BYTES} bytes")
                assert shown_state(server, table) == "BROKEN"
                write_large(call, table, draw, LARGE_WRITES)
                # It is gone while nobody records it: the gap alone can tell.
                call("DeleteItem", {"TableName": table, "Key": {"pk": {"S": "large 3"}}})
                assert directory_bytes(tmp_path) < DISK_BYTES
                assert destination(call, table)[0] == "ENABLE_FAILED"
            wait_until(lambda: destination(call, table)[0] == "ACTIVE", "it is whole again")
            wait_written(writers, 300)
        wait_published(server, table)
        replica = await rebuilt(breakable_broker, server, table, delivery)
        # One in each Kafka partition.
        assert replica.gaps == 3
        assert destination(call, table) == ("ACTIVE", "")
        assert "Traceback" not in server.log, server.log


def is_publishing(call: WireClient, table: str) -> bool:
    return destination(call, table)[0] == "ACTIVE"
