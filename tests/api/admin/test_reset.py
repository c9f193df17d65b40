"""Reset, snapshots and settings of a running server, over the admin port."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.clients.clients import STREAMS_TARGET_PREFIX, WireClient
from tests.support.servers.admin import admin_port, ask
from tests.support.servers.server import Server, running_server
from tests.support.tables.tables import definition, global_index

NOON = 1_896_091_200
CLOCK = ("--virtual-clock", "2030-01-31T12:00:00Z")
THROTTLED = "ProvisionedThroughputExceededException"
KEY = {"pk": {"S": "1"}}


class Served:
    """A server, its clients and its admin port."""

    def __init__(self, server: Server) -> None:
        self.call = WireClient(server.endpoint)
        self.streams = WireClient(server.endpoint, STREAMS_TARGET_PREFIX)
        self.server = server
        self.port = admin_port(server)

    def reset(self) -> None:
        self.admin("POST", "/reset", {})

    def admin(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        answer = ask(self.port, path, method, body)
        assert answer.status == status, answer.body
        return answer.json

    def make(self, name: str = "Thread", **members: Any) -> None:
        self.call("CreateTable", {**definition("pk:S"), "TableName": name, **members})

    def put(self, name: str = "Thread", **attributes: Any) -> None:
        self.call("PutItem", {"TableName": name, "Item": {**KEY, **attributes}})

    def close(self) -> None:
        self.call.close()
        self.streams.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[Served]:
    with (
        running_server("--admin-port", "0", *CLOCK, "--throttling", "auto") as server,
        closing(Served(server)) as served,
    ):
        yield served


@pytest.fixture
def served(shared: Served) -> Served:
    shared.reset()
    for each in shared.admin("GET", "/snapshots")["snapshots"]:
        shared.admin("DELETE", f"/snapshots/{each['name']}")
    return shared


def test_a_reset_leaves_no_tables_streams_tokens_and_backups(served: Served):
    served.make(
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        **global_index_members(),
    )
    transaction = {
        "TransactItems": [{"Put": {"TableName": "Thread", "Item": KEY}}],
        "ClientRequestToken": "token",
    }
    served.call("TransactWriteItems", transaction)
    served.call("CreateBackup", {"TableName": "Thread", "BackupName": "backup"})
    served.reset()
    assert served.call("ListTables", {})["TableNames"] == []
    assert served.streams("ListStreams", {})["Streams"] == []
    assert served.call("ListBackups", {})["BackupSummaries"] == []
    served.make()
    assert served.call("Scan", {"TableName": "Thread"})["Count"] == 0
    # If the server still had the client token, another transaction with it would be refused.
    transaction["TransactItems"][0]["Put"]["Item"] = {"pk": {"S": "2"}}
    served.call("TransactWriteItems", transaction)
    assert served.call("Scan", {"TableName": "Thread"})["Items"] == [{"pk": {"S": "2"}}]


def global_index_members() -> dict[str, Any]:
    """The members of CreateTable that define a global index."""
    return {
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "kind")
        ],
        "GlobalSecondaryIndexes": [global_index("by-kind", "kind")],
    }


def test_a_reset_restores_the_clock_and_the_settings(served: Served):
    before = served.admin("GET", "/settings")
    served.admin("POST", "/clock/step", {"seconds": 3600})
    served.admin("PUT", "/clock", {"speed": 60})
    served.admin("PATCH", "/settings", {"gsi_lag": "fixed:1", "throttling": "off"})
    served.reset()
    assert served.admin("GET", "/clock") == {
        "now": NOON,
        "now_iso": "2030-01-31T12:00:00.000Z",
        "speed": 0,
    }
    assert served.admin("GET", "/settings") == before


def test_a_reset_restores_burst_capacity(served: Served):
    units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    for _ in range(2):
        served.make(BillingMode="PROVISIONED", ProvisionedThroughput=units)
        # The burst of a new table is 300 units.
        served.put(text={"S": "x" * 299 * 1024})
        large = {"TableName": "Thread", "Item": {**KEY, "text": {"S": "x" * 2048}}}
        assert served.call.refused("PutItem", large).type == THROTTLED
        served.reset()


def test_metrics_after_a_reset_are_of_the_new_database(served: Served):
    served.make("Before")
    served.reset()
    served.make("Later")
    metrics = ask(served.port, "/metrics").body.decode()
    assert 'table="Later"' in metrics
    assert 'table="Before"' not in metrics


def test_a_snapshot_restores_tables_items_indexes_and_the_clock(served: Served):
    served.make(**global_index_members())
    served.put(kind={"S": "a"})
    served.admin("POST", "/clock/step", {"seconds": 60})
    made = served.admin("POST", "/snapshots", {"name": "seed"}, 201)
    assert made["name"] == "seed"
    served.admin("POST", "/clock/step", {"seconds": 3600})
    for _ in range(2):
        served.put(kind={"S": "b"})
        served.make("Another")
        served.admin("POST", "/snapshots/seed/restore", {})
        assert served.call("ListTables", {})["TableNames"] == ["Thread"]
        query = {
            "TableName": "Thread",
            "IndexName": "by-kind",
            "KeyConditionExpression": "kind = :a",
            "ExpressionAttributeValues": {":a": {"S": "a"}},
        }
        assert served.call("Query", query)["Items"] == [{**KEY, "kind": {"S": "a"}}]
        assert served.admin("GET", "/clock")["now"] == NOON + 60


def test_a_snapshot_keeps_a_tables_unused_capacity(served: Served):
    units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    served.make(BillingMode="PROVISIONED", ProvisionedThroughput=units)
    served.put(text={"S": "x" * 290 * 1024})
    served.admin("POST", "/snapshots", {"name": "seed"}, 201)
    served.reset()
    served.admin("POST", "/snapshots/seed/restore", {})
    # 9 of 300 units are left. The last accepted write may take more units than are left.
    puts = [
        {"TableName": "Thread", "Item": {"pk": {"S": f"{key}"}, "text": {"S": "x" * 7 * 1024}}}
        for key in "234"
    ]
    served.call("PutItem", puts[0])
    served.call("PutItem", puts[1])
    assert served.call.refused("PutItem", puts[2]).type == THROTTLED


def test_snapshots_are_listed_deleted_and_limited_in_number(served: Served):
    for number in range(20):
        served.admin("POST", "/snapshots", {"name": f"s{number}"}, 201)
    message = served.admin("POST", "/snapshots", {"name": "one-more"}, 409)["message"]
    assert message == "There are 20 snapshots already: delete one"
    served.admin("POST", "/snapshots", {"name": "s1"}, 409)
    served.admin("DELETE", "/snapshots/s1")
    names = [each["name"] for each in served.admin("GET", "/snapshots")["snapshots"]]
    assert names == ["s0", *(f"s{number}" for number in range(2, 20))]
    served.admin("DELETE", "/snapshots/s1", status=404)
    served.admin("POST", "/snapshots/s1/restore", {}, 404)
    served.admin("POST", "/snapshots", {"name": "../x"}, 400)


def test_changed_settings_apply_to_existing_tables(served: Served):
    served.make(**global_index_members())
    served.put(kind={"S": "a"})
    query = {
        "TableName": "Thread",
        "IndexName": "by-kind",
        "KeyConditionExpression": "kind = :b",
        "ExpressionAttributeValues": {":b": {"S": "b"}},
    }
    served.admin("PATCH", "/settings", {"gsi_lag": "fixed:30"})
    served.put(kind={"S": "b"})
    assert served.call("Query", query)["Count"] == 0
    shown = served.admin("PATCH", "/settings", {"gsi_lag": "awaited"})
    assert shown["gsi_lag"] == "awaited"
    assert served.call("Query", query)["Count"] == 1
    served.admin("PATCH", "/settings", {"table_transition_seconds": 600})
    served.call("DeleteTable", {"TableName": "Thread"})
    state = served.call("DescribeTable", {"TableName": "Thread"})["Table"]["TableStatus"]
    assert state == "DELETING"


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"gsi_lag": "long"}, "--gsi-lag long is not understood"),
        ({"throttling": "never"}, "Invalid enum value"),
        ({"initial_burst_seconds": 301}, "<= 300"),
        ({"table_transition_seconds": -1}, ">= 0"),
        ({"region": "eu-west-1"}, "unknown field"),
    ],
)
def test_an_unknown_setting_is_refused_and_changes_nothing(
    served: Served, setting: dict[str, Any], words: str
):
    before = served.admin("GET", "/settings")
    assert words in served.admin("PATCH", "/settings", setting, 400)["message"]
    assert served.admin("GET", "/settings") == before


def test_requests_that_come_during_resets_are_answered(served: Served):
    ended = threading.Event()
    unexpected: list[Any] = []
    answered = 0

    def use() -> None:
        nonlocal answered
        with closing(WireClient(served.server.endpoint)) as call:
            while not ended.is_set():
                for operation, request in (
                    ("CreateTable", {**definition("pk:S"), "TableName": "Thread"}),
                    ("PutItem", {"TableName": "Thread", "Item": KEY}),
                    ("Scan", {"TableName": "Thread"}),
                ):
                    answer = call.send(operation, request)
                    answered += 1
                    if answer.status != 200 and b"Resource" not in answer.body:
                        unexpected.append(answer.body)

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(30):
            served.reset()
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert unexpected == []
    assert answered > 30
    assert "error" not in served.server.log.lower()


def test_data_on_disk_is_not_reset_without_the_option(tmp_path: Path):
    with (
        running_server("--admin-port", "0", data_dir=tmp_path / "data") as server,
        closing(Served(server)) as served,
    ):
        served.make()
        for method, path in (
            ("POST", "/reset"),
            ("PATCH", "/settings"),
            ("POST", "/snapshots"),
            ("POST", "/snapshots/seed/restore"),
        ):
            assert "--allow-reset" in served.admin(method, path, {}, 403)["message"]
        assert served.call("ListTables", {})["TableNames"] == ["Thread"]


def test_data_on_disk_is_reset_and_restored_with_the_option(tmp_path: Path):
    options = ("--admin-port", "0", "--allow-reset")
    with (
        running_server(*options, data_dir=tmp_path / "data") as server,
        closing(Served(server)) as served,
    ):
        served.make()
        served.put()
        served.admin("POST", "/snapshots", {"name": "seed"}, 201)
        served.reset()
        assert served.call("ListTables", {})["TableNames"] == []
        served.admin("POST", "/snapshots/seed/restore", {})
        served.put(later={"S": "x"})
        server.stop()
    with (
        running_server(data_dir=tmp_path / "data") as server,
        closing(WireClient(server.endpoint)) as call,
    ):
        assert call("Scan", {"TableName": "Thread"})["Items"] == [{**KEY, "later": {"S": "x"}}]


def test_a_web_page_cannot_reset_a_server(served: Served):
    assert ask(served.port, "/reset", "POST", "{}", content_type="text/plain").status == 415
    assert ask(served.port, "/reset", "GET").status == 405
    assert ask(served.port, "/reset", "POST", {}, host="evil.example.com").status == 403


def test_a_reset_costs_a_small_part_of_what_filling_the_tables_costs(served: Served):
    server = psutil.Process(served.server.process.pid)
    filling, resetting = 0.0, 0.0
    for _ in range(30):
        began = processor_seconds(server)
        for number in range(10):
            name = f"Thread{number}"
            served.make(name)
            for start in range(0, 100, 25):
                puts = [
                    {"PutRequest": {"Item": {"pk": {"S": str(start + each)}}}} for each in range(25)
                ]
                served.call("BatchWriteItem", {"RequestItems": {name: puts}})
        filled = processor_seconds(server)
        served.reset()
        filling += filled - began
        resetting += processor_seconds(server) - filled
    assert resetting < filling / 4


def processor_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def test_resets_leak_no_memory(served: Served):
    server = psutil.Process(served.server.process.pid)
    sizes = []
    for _ in range(3):
        for _ in range(150):
            served.make()
            served.reset()
        sizes.append(server.memory_info().rss)
    # A database and its engine use more than 100 KB, so leaked ones would add up to more.
    assert sizes[2] - sizes[1] < 8 * 1024 * 1024
