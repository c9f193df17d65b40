"""The commands ``insights`` and ``advise`` with a server, and the answers of the admin port."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple
from urllib.request import urlopen

import pytest

from tests.support.clients.clients import WireClient
from tests.support.servers.admin import admin_port, ask
from tests.support.servers.server import Server, run_command, running_server
from tests.support.tables.tables import (
    definition,
    global_index,
    local_index,
    wait_until_indexes_active,
)

BY_STATUS = "by-status"


class Served(NamedTuple):
    """A server, and a table of orders with recorded traffic."""

    server: Server
    port: int

    def command(self, name: str, *arguments: str) -> tuple[int, str, str]:
        """Run a command; return its exit code, output and errors."""
        places = ["--admin-endpoint", f"http://127.0.0.1:{self.port}"]
        if name == "advise":
            places += ["--endpoint", self.server.endpoint]
        done = run_command(name, *places, *arguments)
        return done.returncode, done.stdout, done.stderr

    def json(self, name: str, *arguments: str) -> Any:
        code, told, errors = self.command(name, "--json", *arguments)
        assert code == 0, errors
        return json.loads(told)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with (
        running_server("--admin-port", "0") as server,
        closing(WireClient(server.endpoint)) as wire,
    ):
        indexes = (local_index("by-day", "customer", "day"),)
        request = definition(
            *("customer:S", "order:S", "status:S", "day:S"),
            indexes=indexes,
            name="Orders",
            GlobalSecondaryIndexes=[global_index(BY_STATUS, "status")],
        )
        wire("CreateTable", request)
        wait_until_indexes_active(wire, "Orders")
        on = {"TableName": "Orders", "ContributorInsightsAction": "ENABLE"}
        wire("UpdateContributorInsights", on)
        for number in range(40):
            customer = "acme" if number % 4 else f"c{number}"
            texts = {"customer": customer, "order": f"{number:02}", "day": "1", "status": "new"}
            item = {name: {"S": text} for name, text in texts.items()}
            wire("PutItem", {"TableName": "Orders", "Item": item})
        key = {"customer": {"S": "acme"}, "order": {"S": "01"}}
        for _ in range(10):
            wire("GetItem", {"TableName": "Orders", "Key": key, "ConsistentRead": True})
        wire("CreateTable", definition("pk:S", "sk:S", name="Idle"))
        yield Served(server, admin_port(server))


def test_insights_shows_the_busiest_keys(served):
    code, told, errors = served.command("insights", "--table", "Orders", "--top", "2")

    assert (code, errors) == (0, "")
    lines = told.splitlines()
    assert lines[0] == (
        "Table Orders: Contributor Insights is ENABLED (ACCESSED_AND_THROTTLED_KEYS)"
    )
    # Each write takes 2 units, one for the item and one for its entry in the local index.
    assert lines[1].endswith(": 10 read units, 80 write units, 0 throttled requests")
    assert lines[3] == "Most accessed partition keys"
    assert lines[5].split()[:6] == ["acme", "70", "78", "%", "10", "60"]
    assert lines[8] == "Most accessed items"
    assert lines[10].split()[:7] == ["acme", "/", "01", "12", "13", "%", "10"]
    assert len(lines) == 12


def test_insights_of_an_index_without_enabled_insights_is_a_sample(served):
    code, told, _ = served.command("insights", "--table", "Orders", "--index", BY_STATUS)

    assert code == 0
    lines = told.splitlines()
    assert lines[0] == f"Index {BY_STATUS} of table Orders: Contributor Insights is DISABLED"
    assert "These counts are of a sample of the requests" in lines[1]
    assert lines[-1].split()[:4] == ["new", "40", "100", "%"]


def test_insights_prints_json(served):
    told = served.json("insights", "--table", "Orders", "--top", "1")

    assert (told["table"], told["index"], told["status"]) == ("Orders", None, "ENABLED")
    (busiest,) = told["most_accessed_partition_keys"]
    assert busiest["key"] == {"customer": {"S": "acme"}}
    assert (busiest["total"], busiest["reads"], busiest["writes"]) == (70, 10, 60)
    assert busiest["error"] == 0
    assert told["most_throttled_items"] == []
    assert told["to"] >= told["from"]


def test_insights_of_an_unused_table_shows_no_keys(served):
    _, told, _ = served.command("insights", "--table", "Idle")

    assert told.splitlines()[-1] == "No requests were counted in this time"


def test_insights_of_even_traffic_tells_what_no_key_exceeds():
    puts = [
        {"PutRequest": {"Item": {"pk": {"S": f"{number:05}"}, "sk": {"S": "a"}}}}
        for number in range(1_500)
    ]
    with (
        running_server("--admin-port", "0") as server,
        closing(WireClient(server.endpoint)) as wire,
    ):
        wire("CreateTable", definition("pk:S", "sk:S", name="Even"))
        for at in range(0, len(puts), 25):
            wire("BatchWriteItem", {"RequestItems": {"Even": puts[at : at + 25]}})
        served = Served(server, admin_port(server))
        _, sampled, _ = served.command("insights", "--table", "Even")
        found = served.json("insights", "--table", "Even")

    lines = sampled.splitlines()
    for title, what in (("partition keys", "key"), ("items", "item")):
        at = lines.index(f"Most accessed {title}")
        assert lines[at + 1] == f"  No {what} stands out: none has more than about 96 units"
    assert found["most_accessed_partition_keys"] == []
    assert found["bounds"]["most_accessed_partition_keys"] == 96
    assert found["bounds"]["most_throttled_items"] == 0


@pytest.mark.parametrize("name", ["insights", "advise"])
def test_a_missing_table_is_reported(served, name):
    code, told, errors = served.command(name, "--table", "Nowhere")

    assert (code, told) == (1, "")
    assert errors.startswith("dynactor: ")
    assert "Nowhere" in errors


@pytest.mark.parametrize("name", ["insights", "advise"])
def test_a_missing_server_is_reported(name):
    nowhere = "http://127.0.0.1:9"
    done = run_command(
        name, "--table", "Orders", "--endpoint", nowhere, "--admin-endpoint", nowhere
    )

    assert done.returncode == 1
    assert "Cannot reach http://127.0.0.1:" in done.stderr


def test_advise_prints_its_findings_under_headings(served):
    code, told, errors = served.command(
        "advise", "--table", "Orders", "--index-key", "status", "--writes-per-second", "3000"
    )

    assert (code, errors) == (0, "")
    lines = told.splitlines()
    assert lines[0] == "Table Orders: 40 items of 32 bytes, on demand, 4 partitions"
    headlines = [line for line in lines[3:] if line and not line.startswith(" ") and line[0] != "!"]
    assert headlines == [
        *("Partition key", "Throughput", "Item collections", "Indexes", "An index on status"),
    ]
    assert max(map(len, lines)) <= 96
    text = " ".join(told.split())
    assert "if only 1.8 keys shared it equally (S76, S140)" in text
    assert "The largest item collection acme has 4.8 KB of 10 GB (S73)" in text
    assert "by-status: not read in" in text
    assert "by-day" in text
    assert "100 % of the writes to an index on status would have the key new" in text
    assert "Add an attribute with a number from 1 to 3 followed by status" in text


def test_advise_as_json_has_every_finding_with_its_rules(served):
    told = served.json("advise", "--table", "Orders", "--write-units", "10")

    assert (told["items"], told["average_item_bytes"], told["sampled_items"]) == (40, 32, 40)
    for finding in told["findings"]:
        assert finding["rules"], finding
        assert finding["level"] in ("problem", "hint", "fact")
    (skew,) = (
        each for each in told["findings"] if "S76" in each["rules"] and each["operation"] == "write"
    )
    assert skew["hottest_share"] == 0.75


def test_advise_takes_no_units_and_is_not_counted_for_keys(served):
    before = served.json("insights", "--table", "Orders", "--top", "32")

    served.command("advise", "--table", "Orders", "--index-key", "status")

    after = served.json("insights", "--table", "Orders", "--top", "32")
    assert [after[name] for name in ("read_units", "write_units")] == [
        before[name] for name in ("read_units", "write_units")
    ]
    metrics = ask(served.port, "/metrics").body.decode()
    assert 'read_capacity_units_total{index="",table="Orders"} 10.0' in metrics


@pytest.mark.parametrize(
    ("path", "method", "status", "words"),
    [
        ("/insights", "GET", 400, "Name the table"),
        ("/insights?table=Nowhere", "GET", 404, "There is no table Nowhere"),
        ("/insights?table=Orders&index=nowhere", "GET", 404, "Index: nowhere of table: Orders"),
        ("/insights?table=Orders", "POST", 405, "accepts GET, HEAD"),
        ("/insights/nothing?table=Orders", "GET", 404, "There are /insights, /insights/use"),
        ("/insights/sample?table=Orders", "GET", 400, "Give the number of items"),
        ("/insights/sample?table=Orders&count=10001", "GET", 400, "up to 10,000"),
        ("/insights/sample?table=Orders&count=-1", "GET", 400, "Give the number of items"),
    ],
)
def test_a_missing_answer_of_the_admin_listener_is_reported(served, path, method, status, words):
    answer = ask(served.port, path, method)

    assert answer.status == status
    assert words in answer.json["message"]


def test_insights_on_the_admin_port_need_a_local_host_name(served):
    assert ask(served.port, "/insights?table=Orders", host="db.example").status == 403


def test_the_figures_of_the_latest_writes_are_reported(served):
    told = ask(served.port, "/insights/use?table=Orders&attribute=status").json

    assert told["written"] == [{"status": {"S": "new"}}] * 40
    assert told["partitions"] == {"": 4, BY_STATUS: 4}
    assert told["consumed"][BY_STATUS] == {"read": 0, "write": 40}


def test_counting_of_keys_can_be_disabled():
    with (
        running_server("--admin-port", "0", "--no-key-traffic") as server,
        closing(WireClient(server.endpoint)) as wire,
    ):
        wire("CreateTable", definition("pk:S", "sk:S", name="Orders"))
        key = {"pk": {"S": "a"}, "sk": {"S": "b"}}
        wire("GetItem", {"TableName": "Orders", "Key": key})
        served = Served(server, admin_port(server))
        _, told, _ = served.command("insights", "--table", "Orders")
        code, advice, _ = served.command("advise", "--table", "Orders")
    assert "No requests are counted: enable Contributor Insights" in told
    assert "No requests were counted in this time" in told
    assert code == 0
    assert "not counted: Contributor Insights and --key-traffic are off" in advice


def test_the_attributes_that_scans_compare_are_counted(served):
    filters = ("v = :v AND w > :v", ":v = v", "v = :v OR w = :v", "NOT v = :v")
    with closing(WireClient(served.server.endpoint)) as wire:
        for condition in filters:
            request = {"TableName": "Idle", "FilterExpression": condition}
            wire("Scan", request | {"ExpressionAttributeValues": {":v": {"S": "a"}}})
    with urlopen(f"http://127.0.0.1:{served.port}/insights/use?table=Idle") as answer:
        use = json.load(answer)["uses"][""]

    # Filters with OR and NOT don't count, because they allow more than one value.
    assert use["scanned_for"].keys() == {"v"}
    assert use["scans"] == len(filters)
    assert use["scanned_for"]["v"] == use["scan_units"] / 2
