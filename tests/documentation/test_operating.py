"""The pages for operators name the metrics and log events of the server."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from tests.support.clients.clients import WireClient
from tests.support.documentation.pages import DOCS
from tests.support.servers.cluster import NODE_METRICS
from tests.support.servers.server import PROJECT, running_server
from tests.support.tables.tables import definition, global_index, wait_until_indexes_active

EVENT = re.compile(r"^\| `([a-z_]+)` \| (?:critical|error|warning|info) \|", re.MULTILINE)
# The name of a log event, or one of the two names in a conditional expression.
LOGGED = re.compile(r"_log\.\w+\(\s*\"(\w+)\"|\"(\w+)\" if | else \"(\w+)\"\)")
# The options of a server that has all metrics: no broker and no trace receiver are reachable.
OPTIONS = (
    "--kafka-bootstrap-servers",
    "127.0.0.1:1",
    "--kafka-all-tables",
    "--virtual-clock",
    "now",
    "--traces-endpoint",
    "http://127.0.0.1:1",
    "--allow-faults",
    "--admin-port",
    "0",
)


# tests/api/tls/test_tls_server.py reads it from a server with TLS.
WITH_TLS = {"dynactor_tls_certificate_expiry_timestamp_seconds"}


def exposed(data: Path) -> set[str]:
    """The metrics of a server that uses every feature; counters have their suffix ``_total``."""
    with (
        running_server(*OPTIONS, data_dir=data) as server,
        closing(WireClient(server.endpoint)) as call,
    ):
        table = definition(
            "pk:S", name="Music", GlobalSecondaryIndexes=[global_index("ByKind", "gk")]
        )
        table["AttributeDefinitions"].append({"AttributeName": "gk", "AttributeType": "S"})
        call("CreateTable", table)
        wait_until_indexes_active(call, "Music")
        call.send("GetItem", {"TableName": "Music", "Key": {}})
        [address] = re.findall(r"^Metrics on (\S+)$", server.announcement, re.MULTILINE)
        text = urlopen(address).read().decode()  # noqa: S310
    families = text_string_to_metric_families(text)
    return {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in families
        if family.name.startswith("dynactor_")
    }


def test_the_page_of_metrics_has_every_metric(tmp_path: Path):
    shown = set(re.findall(r"`(dynactor_[a-z_]+)`", (DOCS / "METRICS.md").read_text()))
    assert shown == exposed(tmp_path / "data") | WITH_TLS | NODE_METRICS


def test_every_log_event_of_the_table_is_logged():
    shown = EVENT.findall((DOCS / "OPERATING.md").read_text())
    sources = (
        path for floor in ("actors", "api", "storage") for path in (PROJECT / floor).rglob("*.py")
    )
    logged = {
        name for path in sources for found in LOGGED.findall(path.read_text()) for name in found
    }
    assert len(shown) >= 8
    assert [event for event in shown if event not in logged] == []
