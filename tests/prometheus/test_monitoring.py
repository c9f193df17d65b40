"""The dashboard and the alerts, with a real Prometheus and a server under load."""

from __future__ import annotations

import json
import math
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from tests.support.clients.clients import WireClient
from tests.support.environment.unused_ports import unused_ports
from tests.support.prometheus import program
from tests.support.servers.admin import admin_port
from tests.support.servers.server import PROJECT, Server, running_server

RULES = PROJECT / "compose" / "prometheus"
DASHBOARD = PROJECT / "compose" / "grafana" / "dynactor.json"
DEADLINE_SECONDS = 60
# Rates need several scrapes.
WINDOW_SECONDS = 5
TABLE = {
    "TableName": "Orders",
    "AttributeDefinitions": [
        {"AttributeName": "id", "AttributeType": "S"},
        {"AttributeName": "status", "AttributeType": "S"},
    ],
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-status",
            "KeySchema": [{"AttributeName": "status", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
            "ProvisionedThroughput": {"ReadCapacityUnits": 100, "WriteCapacityUnits": 100},
        }
    ],
    "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 100},
}
# The broker is down, because the lag of a waiting destination is a metric, too.
OPTIONS = ("--throttling", "auto", "--initial-burst-seconds", "1")
TRACES = ("--traces-endpoint", "http://127.0.0.1:9", "--traces-sampled", "1")
BROKER = ("--kafka-bootstrap-servers", "127.0.0.1:9")
STREAM = "arn:aws:kinesis:us-east-1:000000000000:stream/orders"


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(each) for each in command], cwd=RULES, capture_output=True, text=True, check=False
    )


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


def expressions() -> list[tuple[str, str]]:
    return [
        (f"{panel['title']} {target['refId']}", target["expr"])
        for panel in panels()
        for target in panel["targets"]
    ]


def test_the_configuration_and_the_rules_are_valid() -> None:
    done = run(program("promtool"), "check", "config", "prometheus.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_when_it_should() -> None:
    done = run(program("promtool"), "test", "rules", "alerts_test.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    rules = msgspec.yaml.decode((RULES / "alerts.yaml").read_bytes())["groups"][0]["rules"]
    cases = msgspec.yaml.decode((RULES / "alerts_test.yaml").read_bytes())["tests"][0]
    firing = {case["alertname"] for case in cases["alert_rule_test"] if case["exp_alerts"]}
    assert firing == {rule["alert"] for rule in rules}


class Prometheus:
    """A Prometheus that scrapes a server every half second."""

    def __init__(self, port: int) -> None:
        self._port = port

    def query(self, expression: str) -> list[float]:
        path = f"/api/v1/query?{urlencode({'query': expression})}"
        with closing(HTTPConnection("127.0.0.1", self._port, timeout=DEADLINE_SECONDS)) as asked:
            asked.request("GET", path)
            response = asked.getresponse()
            if response.status == HTTPStatus.SERVICE_UNAVAILABLE:
                raise ConnectionError("Prometheus is not ready yet")
            answer = json.load(response)
        assert answer["status"] == "success", answer
        return [float(each["value"][1]) for each in answer["data"]["result"]]

    def wait(self) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            try:
                if self.query("up") == [1.0]:
                    return
            except OSError:
                pass
            assert time.monotonic() < deadline


@contextmanager
def prometheus_beside(server: Server, folder: Path) -> Iterator[Prometheus]:
    folder.mkdir()
    target = f"127.0.0.1:{admin_port(server)}"
    settings = {
        "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms"},
        "scrape_configs": [{"job_name": "dynactor", "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.yaml").write_bytes(msgspec.yaml.encode(settings))
    (port,) = unused_ports(1)
    command = [
        str(program("prometheus")),
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            prometheus = Prometheus(port)
            prometheus.wait()
            yield prometheus
        finally:
            process.terminate()


def load(wire: WireClient) -> None:
    """Requests for every panel."""
    item = {"id": {"S": "1"}, "status": {"S": "open"}, "at": {"N": "9999999999"}}
    put = {"TableName": "Orders", "Item": item}
    wire.send("PutItem", put)
    wire.send("TransactWriteItems", {"TransactItems": [{"Put": put}]})
    for _ in range(3):
        wire.send("GetItem", {"TableName": "Orders", "Key": {"id": {"S": "1"}}})
    wire.send("GetItem", {"TableName": "None", "Key": {"id": {"S": "1"}}})


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("monitoring")
    with (
        running_server(*OPTIONS, *BROKER, *TRACES, data_dir=folder / "data") as server,
        closing(WireClient(server.endpoint)) as wire,
        prometheus_beside(server, folder / "prometheus") as prometheus,
    ):
        wire("CreateTable", TABLE)
        ttl = {"AttributeName": "at", "Enabled": True}
        wire("UpdateTimeToLive", {"TableName": "Orders", "TimeToLiveSpecification": ttl})
        wire("EnableKinesisStreamingDestination", {"TableName": "Orders", "StreamArn": STREAM})
        began = time.monotonic()
        while time.monotonic() < began + 2 * WINDOW_SECONDS:
            load(wire)
        yield prometheus


@pytest.mark.parametrize(("name", "expression"), expressions())
def test_the_query_of_a_panel_has_a_result(
    prometheus: Prometheus, name: str, expression: str
) -> None:
    expression = expression.replace("$__rate_interval", f"{2 * WINDOW_SECONDS}s")
    expression = expression.replace("$instance", ".+")
    values = prometheus.query(expression)
    assert values, name
    assert not any(map(math.isnan, values)), (name, values)


def test_the_server_exports_each_metric_of_the_rules_and_panels(
    prometheus: Prometheus,
) -> None:
    texts = [(RULES / "alerts.yaml").read_text(), *(text for _, text in expressions())]
    named = set(re.findall(r"\b(?:dynactor|process)_\w+", " ".join(texts)))
    # The server exports these metrics only after errors.
    for metric in named - {"dynactor_store_refuses_writes", "dynactor_system_errors_total"}:
        assert prometheus.query(f"count({metric})"), metric
