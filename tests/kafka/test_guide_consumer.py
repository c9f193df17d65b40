"""The consumer in docs/KAFKA.md prints the documented output."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing

from tests.support.clients.clients import WireClient
from tests.support.documentation.pages import DOCS, blocks
from tests.support.kafka.kafka_broker import BrokerAddress
from tests.support.kafka.kafka_server import kafka_options
from tests.support.servers.server import running_server
from tests.support.tables.tables import definition, wait_until_active

BROKER = "127.0.0.1:9092"
(CONSUMER,) = (block for block in blocks(DOCS / "KAFKA.md", "python") if "aiokafka" in block)


def test_the_guides_consumer_prints_each_change_of_an_item(kafka_broker: BrokerAddress):
    prefix = "pasted"
    key = {"pk": {"S": "one"}}
    with (
        running_server(*kafka_options(kafka_broker), "--kafka-topic-prefix", prefix) as server,
        closing(WireClient(server.endpoint)) as call,
    ):
        call("CreateTable", definition("pk:S", name="Music"))
        wait_until_active(call, "Music")
        call("PutItem", {"TableName": "Music", "Item": key})
        call("PutItem", {"TableName": "Music", "Item": {**key, "n": {"N": "1"}}})
        call("DeleteItem", {"TableName": "Music", "Key": key})
        assert BROKER in CONSUMER
        pasted = CONSUMER.replace(BROKER, kafka_broker.bootstrap_servers)
        pasted = pasted.replace("dynactor.Music", f"{prefix}.Music")
        with subprocess.Popen(
            [sys.executable, "-c", pasted], stdout=subprocess.PIPE, text=True
        ) as consumer:
            assert consumer.stdout is not None
            lines = [consumer.stdout.readline().strip() for _ in range(3)]
            consumer.kill()
    assert lines == [
        f"{name} by a user {{'pk': {{'S': 'one'}}}}" for name in ("INSERT", "MODIFY", "REMOVE")
    ]
