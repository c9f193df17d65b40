"""The traces that a running server sends to a receiver, and the options for traces."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dynactor.api.options.read_settings import read_settings
from dynactor.api.tracing.trace_settings import TraceSettings
from dynactor.model.configuration_error import ConfigurationError
from tests.support.clients.clients import WireClient
from tests.support.servers.admin import admin_port, ask
from tests.support.servers.otlp_receiver import otlp_receiver
from tests.support.servers.server import PROJECT, Server, running_server

SECRET = "violets-in-september"
TABLE = {
    "TableName": "Thread",
    "AttributeDefinitions": [{"AttributeName": "forum", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "forum", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}
RECEIVER = "http://127.0.0.1:4318"
# Runs a server's start and stop, then lists the loaded modules.
PROGRAM = """
import asyncio, json, sys
from dynactor.api.options.read_settings import read_settings
from dynactor.api.serve.running_server import running_server
async def main():
    async with running_server(read_settings(in_memory=True, port=0, admin_port=0)):
        packages = ("opentelemetry", "google", "requests", "dynactor.api.tracing")
        print(json.dumps(sorted(name for name in sys.modules if name.startswith(packages))))
asyncio.run(main())
"""


def sample(server: Server, name: str, **labels: str) -> float:
    """The value of a sample; 0 if missing."""
    text = ask(admin_port(server), "/metrics").body.decode()
    for family in text_string_to_metric_families(text):
        for each in family.samples:
            if each.name == f"dynactor_{name}" and each.labels == labels:
                return each.value
    return 0.0


def test_a_request_to_a_server_is_traced_without_its_data():
    item = {"forum": {"S": SECRET}, "text": {"S": SECRET}}
    with otlp_receiver() as receiver:
        options = ("--traces-endpoint", receiver.endpoint, "--traces-sampled", "1")
        with running_server("--admin-port", "0", *options) as server:
            with closing(WireClient(server.endpoint)) as wire:
                wire("CreateTable", TABLE)
                put = wire.send("PutItem", {"TableName": "Thread", "Item": item})
                select = f"SELECT * FROM Thread WHERE forum = '{SECRET}'"
                wire("ExecuteStatement", {"Statement": select})
                wire.send(SECRET, {})
            spans = {}
            while "DynamoDB" not in spans:
                span = receiver.next()
                spans[span.name] = span
            while sample(server, "traces_exported_total") < 4:
                pass
    found = spans["DynamoDB.PutItem"]
    assert found.attributes["aws.dynamodb.table_names"] == ["Thread"]
    assert found.attributes["aws.request_id"] == put.headers["x-amzn-RequestId"]
    assert {"wait for mailbox", "commit", "wait for sync"} <= spans.keys()
    assert not any(SECRET.encode() in body for body in receiver.bodies)


def test_no_request_fails_if_the_receiver_refuses_traces():
    with otlp_receiver() as receiver:
        receiver.status = 403
        options = ("--traces-endpoint", receiver.endpoint, "--traces-sampled", "1")
        with running_server("--admin-port", "0", *options) as server:
            with closing(WireClient(server.endpoint)) as wire:
                wire("CreateTable", TABLE)
            while not sample(server, "traces_dropped_total", reason="export_failed"):
                pass
            assert sample(server, "traces_dropped_total", reason="queue_full") == 0
            assert sample(server, "traces_exported_total") == 0


def test_a_server_without_the_option_imports_nothing_for_traces():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    settings = ["dynactor.api.tracing", "dynactor.api.tracing.trace_settings"]
    assert json.loads(done.stdout) == settings


def test_one_request_in_a_hundred_is_traced_by_default():
    assert read_settings(in_memory=True).traces == TraceSettings(sampled=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"traces_sampled": 1.5}, "from 0 to 1"),
        ({"traces_sampled": -0.1}, "from 0 to 1"),
        ({"traces_sampled": float("nan")}, "from 0 to 1"),
        ({"traces_endpoint": "127.0.0.1:4318"}, "is not a URL"),
        ({"traces_endpoint": "ftp://127.0.0.1"}, "is not a URL"),
        ({"traces_endpoint": "http://"}, "is not a URL"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], message: str):
    with pytest.raises(ConfigurationError, match=message):
        read_settings(**options)


def test_the_error_for_missing_packages_names_them(monkeypatch: pytest.MonkeyPatch):
    read_settings(traces_endpoint=RECEIVER)
    for name in [name for name in sys.modules if name.startswith("opentelemetry")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    with pytest.raises(ConfigurationError, match=r"pip install 'dynactor\[traces\]'"):
        read_settings(traces_endpoint=RECEIVER)
