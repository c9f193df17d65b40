"""Metrics of a running server that belong to no table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from socket import create_connection

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.clients.clients import WireClient
from tests.support.servers.admin import admin_port, ask
from tests.support.servers.server import Server, running_server
from tests.support.stores.power_loss import PowerLoss

TABLE = {
    "TableName": "Thread",
    "AttributeDefinitions": [{"AttributeName": "forum", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "forum", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data_dir = tmp_path_factory.mktemp("data")
    with running_server("--admin-port", "0", data_dir=data_dir) as server:
        yield server


@pytest.fixture(scope="module")
def wire(server: Server) -> Iterator[WireClient]:
    with closing(WireClient(server.endpoint)) as client:
        client("CreateTable", TABLE)
        yield client


def sample(server: Server, name: str, **labels: str) -> float:
    """The value of a sample; 0 if missing."""
    text = ask(admin_port(server), "/metrics").body.decode()
    for family in text_string_to_metric_families(text):
        for each in family.samples:
            if each.name == f"dynactor_{name}" and each.labels == labels:
                return each.value
    return 0.0


def put(wire: WireClient) -> None:
    wire("PutItem", {"TableName": "Thread", "Item": {"forum": {"S": "EC2"}}})


def test_a_request_that_succeeds_is_in_the_latencies_of_its_operation(
    server: Server, wire: WireClient
) -> None:
    name, of_puts = "successful_request_latency_seconds", {"operation": "PutItem"}
    counted = sample(server, f"{name}_count", **of_puts)
    seconds = sample(server, f"{name}_sum", **of_puts)
    put(wire)
    assert sample(server, f"{name}_count", **of_puts) == counted + 1
    assert sample(server, f"{name}_bucket", **of_puts, le="+Inf") == counted + 1
    assert sample(server, f"{name}_sum", **of_puts) > seconds


def test_a_request_that_is_refused_is_counted_by_its_error(
    server: Server, wire: WireClient
) -> None:
    labels = {"operation": "GetItem", "code": "ResourceNotFoundException"}
    counted = sample(server, "user_errors_total", **labels)
    latencies = sample(server, "successful_request_latency_seconds_count", operation="GetItem")
    wire.refused("GetItem", {"TableName": "None", "Key": {"a": {"S": "b"}}})
    assert sample(server, "user_errors_total", **labels) == counted + 1
    assert (
        sample(server, "successful_request_latency_seconds_count", operation="GetItem") == latencies
    )


def test_an_unknown_operation_is_counted_without_its_name(server: Server, wire: WireClient) -> None:
    labels = {"operation": "", "code": "UnknownOperationException"}
    counted = sample(server, "user_errors_total", **labels)
    wire.refused("PutItems", {})
    assert sample(server, "user_errors_total", **labels) == counted + 1


def test_each_write_waits_for_a_sync(server: Server, wire: WireClient) -> None:
    counted = sample(server, "sync_seconds_count")
    put(wire)
    assert sample(server, "sync_seconds_count") > counted
    assert sample(server, "sync_seconds_sum") > 0


def test_sizes_of_the_store_are_shown(server: Server, wire: WireClient) -> None:
    put(wire)
    assert sample(server, "store_bytes", kind="log") > 0
    assert sample(server, "store_bytes", kind="memtable") > 0
    assert sample(server, "disk_free_bytes") > 0
    assert sample(server, "store_refuses_writes", reason="Full") == 0


def test_open_connections_are_counted(server: Server) -> None:
    before = sample(server, "connections")
    host, _, port = server.endpoint.removeprefix("http://").partition(":")
    with closing(create_connection((host, int(port)))) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(10_000)
        assert sample(server, "connections") == before + 1


def test_the_lag_of_the_event_loop_is_counted_each_second(server: Server) -> None:
    counted = sample(server, "event_loop_lag_seconds_count")
    while sample(server, "event_loop_lag_seconds_count") == counted:
        pass


def test_the_memory_and_processor_time_of_the_process_are_shown(server: Server) -> None:
    text = ask(admin_port(server), "/metrics").body.decode()
    for name in ("cpu_seconds_total", "resident_memory_bytes", "open_fds", "start_time_seconds"):
        assert f"\nprocess_{name} " in text


def test_commits_that_a_full_disk_refuses_are_counted(tmp_path: Path) -> None:
    power = PowerLoss(tmp_path / "power", tmp_path / "data")
    with running_server(
        "--admin-port", "0", data_dir=tmp_path / "data", environment=power.environment()
    ) as server:
        assert sample(server, "full_disk_refusals_total") == 0
        power.fill_disk()
        with closing(WireClient(server.endpoint)) as wire:
            assert wire.send("CreateTable", TABLE).status == 500
        assert sample(server, "full_disk_refusals_total") > 0
        assert sample(server, "store_refuses_writes", reason="Full") == 1
