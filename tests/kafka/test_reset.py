"""The reset of a server that publishes to a real broker."""

from __future__ import annotations

from contextlib import closing

import psutil
import pytest

from tests.support.clients.clients import WireClient
from tests.support.kafka.kafka_broker import BrokerAddress, KafkaBroker
from tests.support.kafka.kafka_consumer import read_topic
from tests.support.kafka.kafka_server import kafka_options, wait_published, wait_until
from tests.support.servers.admin import admin_port, ask
from tests.support.servers.server import Server, running_server
from tests.support.tables.tables import definition, unique_name

DELIVERIES = pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
PUTS = 200


def create(call: WireClient, name: str, puts: int) -> None:
    call("CreateTable", definition("pk:S", name=name))
    for number in range(puts):
        call("PutItem", {"TableName": name, "Item": {"pk": {"S": f"{puts}/{number}"}}})


def reset(server: Server) -> None:
    answer = ask(admin_port(server), "/reset", "POST", {})
    assert answer.status == 200, answer.body


def connections(server: Server, broker: BrokerAddress) -> int:
    """The number of the server's connections to the broker."""
    port = int(broker.bootstrap_servers.rpartition(":")[2])
    found = psutil.Process(server.process.pid).net_connections("tcp")
    return sum(1 for each in found if each.raddr and each.raddr.port == port)


@DELIVERIES
async def test_a_reset_leaves_no_publisher_and_a_new_table_is_published(
    kafka_broker: BrokerAddress, delivery: str
):
    name = unique_name()
    options = kafka_options(kafka_broker, "--kafka-delivery", delivery)
    with (
        running_server(*options) as server,
        closing(WireClient(server.endpoint)) as call,
    ):
        create(call, name, PUTS)
        wait_until(lambda: connections(server, kafka_broker) > 0, "it publishes")
        reset(server)
        assert connections(server, kafka_broker) == 0
        create(call, name, 5)
        wait_published(server, name)
        assert server.stop() == 0
        assert "Traceback" not in server.log, server.log
        assert "Unclosed" not in server.log, server.log
    keys = [record.key.decode() for record in await read_topic(kafka_broker, f"dynactor.{name}")]
    # The changes that were unpublished at the reset are discarded; the new table is complete.
    assert {f"5/{number}" for number in range(5)} == {
        key.split('"')[-2] for key in keys if '"5/' in key
    }


@DELIVERIES
@pytest.mark.parametrize("fault", ["stopped", "suspended"])
def test_a_reset_does_not_wait_for_a_broker(
    breakable_broker: KafkaBroker, delivery: str, fault: str
):
    name = unique_name()
    options = kafka_options(breakable_broker, "--kafka-delivery", delivery)
    with (
        running_server(*options) as server,
        closing(WireClient(server.endpoint)) as call,
    ):
        create(call, name, 5)
        wait_published(server, name)
        broken = breakable_broker.stopped() if fault == "stopped" else breakable_broker.suspended()
        with broken:
            for number in range(20):
                call("PutItem", {"TableName": name, "Item": {"pk": {"S": f"{number}"}}})
            reset(server)
            assert call("ListTables", {})["TableNames"] == []
            create(call, name, 3)
        wait_published(server, name)
        assert server.stop() == 0
        assert "Traceback" not in server.log, server.log
