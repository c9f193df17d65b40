"""A server publishes all changes to a real broker in order, over stops and kills of both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.support.clients.clients import WireClient, boto3_client
from tests.support.kafka.kafka_broker import BrokerAddress, KafkaBroker
from tests.support.kafka.kafka_consumer import Isolation, Replica, read_topic
from tests.support.kafka.kafka_server import (
    Writer,
    kafka_options,
    lag_records,
    replica_of,
    stream_arn,
    wait_published,
    wait_until,
)
from tests.support.servers.server import Server, running_server
from tests.support.tables.tables import definition, unique_name, wait_until_active

DELIVERIES = ("at-least-once", "exactly-once")


@pytest.fixture(params=DELIVERIES)
def delivery(request: pytest.FixtureRequest) -> tuple[str, str]:
    return ("--kafka-delivery", request.param)


async def rebuilt(
    broker: BrokerAddress, server: Server, table: str, delivery: tuple[str, str]
) -> Replica:
    """Wait until a consumer of this table's topic equals the table; return the consumer's state."""
    is_committed = delivery[1] == "exactly-once"
    isolation: Isolation = "read_committed" if is_committed else "read_uncommitted"
    return await replica_of(broker, f"dynactor.{table}", server, table, isolation)


def created(server: Server) -> str:
    name = unique_name()
    with closing(WireClient(server.endpoint)) as call:
        call("CreateTable", definition("pk:S", name=name))
        wait_until_active(call, name)
    return name


@contextmanager
def writing(servers: list[Server], table: str, clients: int = 4) -> Iterator[list[Writer]]:
    """Run clients within the context that write to the last server of the list."""
    writers = [Writer(lambda: servers[-1].endpoint, table, seed) for seed in range(clients)]
    for writer in writers:
        writer.start()
    try:
        yield writers
    finally:
        for writer in writers:
            writer.end()
    assert [error for writer in writers for error in writer.errors] == []


def wait_written(writers: list[Writer], more: int) -> None:
    enough = sum(writer.written for writer in writers) + more
    wait_until(lambda: sum(writer.written for writer in writers) >= enough, "they have written")


async def test_a_consumer_rebuilds_the_table(kafka_broker: BrokerAddress, delivery):
    with running_server(*kafka_options(kafka_broker, *delivery)) as server:
        table = created(server)
        with writing([server], table) as writers:
            wait_written(writers, 2_000)
        wait_published(server, table)
        replica = await rebuilt(kafka_broker, server, table, delivery)
        assert replica.duplicates == 0
        assert {name for name, _ in replica.events} == {"INSERT", "MODIFY", "REMOVE"}
        assert {origin for _, origin in replica.events} == {"user"}


async def test_boto3_enables_and_disables_a_destination(kafka_broker: BrokerAddress):
    options = ("--kafka-bootstrap-servers", kafka_broker.bootstrap_servers)
    topic = unique_name("topic")
    with running_server(*options) as server, closing(boto3_client(server.endpoint)) as client:
        table = created(server)
        named = {"TableName": table, "StreamArn": stream_arn(topic)}

        def status() -> str:
            described = client.describe_kinesis_streaming_destination(TableName=table)
            return described["KinesisDataStreamDestinations"][0]["DestinationStatus"]

        client.put_item(TableName=table, Item={"pk": {"S": "before"}})
        client.enable_kinesis_streaming_destination(**named)
        client.put_item(TableName=table, Item={"pk": {"S": "a"}, "blob": {"B": b"\x00\xff"}})
        wait_until(lambda: status() == "ACTIVE", "it is active")
        client.delete_item(TableName=table, Key={"pk": {"S": "before"}})
        client.disable_kinesis_streaming_destination(**named)
        wait_until(lambda: status() == "DISABLED", "it is disabled")
        client.put_item(TableName=table, Item={"pk": {"S": "after"}})
        records = await read_topic(kafka_broker, topic)
        names = sorted(record.headers["event-name"] for record in records)
        assert names == ["INSERT", "REMOVE"]


def test_a_table_that_is_deleted_at_once_leaves_no_connection_to_the_broker(
    kafka_broker: BrokerAddress, delivery
):
    with (
        running_server(*kafka_options(kafka_broker, *delivery)) as server,
        closing(WireClient(server.endpoint)) as call,
    ):
        for at in range(12):
            table = created(server)
            # Each run deletes the table a few writes later.
            for number in range(at):
                call("PutItem", {"TableName": table, "Item": {"pk": {"S": f"{number}"}}})
            call("DeleteTable", {"TableName": table})
        assert server.stop() == 0
        assert "Unclosed" not in server.log, server.log
        assert "Traceback" not in server.log, server.log


async def test_items_of_400_kb_are_published_whole(kafka_broker: BrokerAddress, delivery):
    with running_server(*kafka_options(kafka_broker, *delivery)) as server:
        table = created(server)
        with closing(WireClient(server.endpoint)) as call:
            for number in range(3):
                # Control characters take 6 bytes each in JSON.
                text = chr(1) * (399_000 - number)
                call("PutItem", {"TableName": table, "Item": {"pk": {"S": "a"}, "t": {"S": text}}})
        wait_published(server, table)
        replica = await rebuilt(kafka_broker, server, table, delivery)
        assert "omitted" not in replica.items.values()


async def test_an_unreachable_broker_delays_no_write_and_misses_no_change(
    breakable_broker: KafkaBroker, delivery
):
    with running_server(*kafka_options(breakable_broker, *delivery)) as server:
        table = created(server)
        with writing([server], table) as writers:
            wait_written(writers, 200)
            with breakable_broker.stopped():
                wait_written(writers, 1_500)
                assert lag_records(server)[table] >= 1_000
            wait_written(writers, 200)
            with breakable_broker.suspended():
                wait_written(writers, 500)
        wait_published(server, table)
        await rebuilt(breakable_broker, server, table, delivery)
        # The event is logged once per state, not once per retry.
        assert server.log.count("relay_blocked") <= 4, server.log
        assert "Traceback" not in server.log, server.log


async def test_a_server_starts_and_stops_without_its_broker(
    breakable_broker: KafkaBroker, tmp_path: Path, delivery
):
    options = kafka_options(breakable_broker, *delivery)
    with breakable_broker.stopped(), running_server(*options, data_dir=tmp_path) as server:
        table = created(server)
        with writing([server], table) as writers:
            wait_written(writers, 500)
        # A server that waited for its broker would not stop before the end of this context.
        assert server.stop() == 0
    with running_server(*options, data_dir=tmp_path) as server:
        wait_published(server, table)
        replica = await rebuilt(breakable_broker, server, table, delivery)
        assert replica.duplicates == 0
