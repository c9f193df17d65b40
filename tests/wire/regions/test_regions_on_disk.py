"""A data directory keeps the tables of each region, and the option for separate regions."""

from __future__ import annotations

import re
from pathlib import Path
from time import time

import pytest

from tests.support.clients.regional import RegionalClient, regional_clients
from tests.support.servers.admin import admin_port, ask, server_with_clock
from tests.support.servers.server import (
    Server,
    ServerDidNotStart,
    run_command,
    running_server,
)
from tests.support.tables.tables import definition, global_index

pytestmark = pytest.mark.ours_alone("servers are started and ended here")

EAST, WEST = "us-east-1", "us-west-2"
APART = ("--regions", "apart")
NAME = "kept"


def create(client: RegionalClient) -> None:
    index = global_index("by-n", "n")
    table = definition("pk:S", "n:S", KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}])
    client("CreateTable", {**table, "TableName": NAME, "GlobalSecondaryIndexes": [index]})


def fill(client: RegionalClient, count: int) -> None:
    for number in range(count):
        item = {"pk": {"S": f"{client.region} {number}"}, "n": {"S": "n"}}
        client("PutItem", {"TableName": NAME, "Item": item})


def keys(client: RegionalClient) -> set[str]:
    return {item["pk"]["S"] for item in client("Scan", {"TableName": NAME})["Items"]}


def entries(client: RegionalClient) -> int:
    query = {
        "TableName": NAME,
        "IndexName": "by-n",
        "KeyConditionExpression": "n = :n",
        "ExpressionAttributeValues": {":n": {"S": "n"}},
    }
    count: int = client("Query", query)["Count"]
    return count


def fill_both(server: Server) -> None:
    with regional_clients(server.endpoint, EAST, WEST) as clients:
        for count, client in enumerate(clients, 3):
            create(client)
            fill(client, count)


@pytest.mark.parametrize("end", [Server.kill, Server.stop])
def test_both_regions_have_their_tables_after_a_restart(tmp_path: Path, end):
    with running_server(*APART, data_dir=tmp_path) as server:
        fill_both(server)
        end(server)
    # The first start sets the home region; later options don't change it.
    for region in (EAST, "eu-west-1"):
        options = (*APART, "--region", region, "--gsi-lag", "awaited")
        with (
            running_server(*options, data_dir=tmp_path) as server,
            regional_clients(server.endpoint, EAST, WEST, "eu-west-1") as (east, west, other),
        ):
            assert keys(east) == {f"{EAST} {number}" for number in range(3)}
            assert keys(west) == {f"{WEST} {number}" for number in range(4)}
            assert (entries(east), entries(west)) == (3, 4)
            assert other("ListTables", {})["TableNames"] == []
            server.stop()


def refusal(data_dir: Path, *options: str) -> str:
    with pytest.raises(ServerDidNotStart) as failed, running_server(*options, data_dir=data_dir):
        pass
    return str(failed.value)


def test_a_start_that_would_share_the_tables_of_regions_is_refused(tmp_path: Path):
    with running_server(*APART, data_dir=tmp_path) as server:
        fill_both(server)
        server.stop()
    assert (
        "dynactor: The data has tables for each region: give --regions apart, or choose another "
        "directory." in refusal(tmp_path)
    )
    with (
        running_server(*APART, data_dir=tmp_path) as server,
        regional_clients(server.endpoint, WEST) as (west,),
    ):
        assert len(keys(west)) == 4


def test_tables_that_were_shared_become_those_of_the_configured_region(tmp_path: Path):
    with (
        running_server(data_dir=tmp_path) as server,
        regional_clients(server.endpoint, WEST) as (client,),
    ):
        create(client)
        fill(client, 2)
        server.stop()
    with (
        running_server(*APART, "--region", "eu-west-1", data_dir=tmp_path) as server,
        regional_clients(server.endpoint, "eu-west-1", WEST) as (home, west),
    ):
        assert home("DescribeTable", {"TableName": NAME})["Table"]["TableArn"].startswith(
            "arn:aws:dynamodb:eu-west-1:"
        )
        assert len(keys(home)) == 2
        assert west("ListTables", {})["TableNames"] == []


def test_a_virtual_clock_does_not_go_back_behind_the_data_of_any_region(tmp_path: Path):
    before = time()
    with (
        running_server(*APART, data_dir=tmp_path) as server,
        regional_clients(server.endpoint, WEST) as (west,),
    ):
        create(west)
        server.stop()
    with server_with_clock("2020-01-01T00:00:00Z", *APART, data_dir=tmp_path) as (_, clock):
        assert clock.now() >= before


def test_all_regions_have_one_virtual_clock():
    with (
        server_with_clock("2030-01-01T00:00:00Z", *APART) as (server, clock),
        regional_clients(server.endpoint, EAST, WEST) as clients,
    ):
        clock.step(3600)
        for client in clients:
            create(client)
            made = client("DescribeTable", {"TableName": NAME})["Table"]
            assert made["CreationDateTime"] == clock.now()


@pytest.mark.embedded_store("dynactor check reads a data directory")
def test_a_check_names_the_region_of_each_table(tmp_path: Path):
    with running_server(*APART, data_dir=tmp_path) as server:
        fill_both(server)
        server.stop()
    done = run_command("check", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert f"  {NAME}: 3 items, 3 index entries\n" in done.stdout
    assert f"  {NAME} in {WEST}: 4 items, 4 index entries\n" in done.stdout


def test_a_reset_forgets_all_regions_and_keeps_them_apart():
    with (
        running_server(*APART, "--admin-port", "0") as server,
        regional_clients(server.endpoint, EAST, WEST) as clients,
    ):
        fill_both(server)
        assert ask(admin_port(server), "/reset", "POST", {}).status == 200
        for client in clients:
            assert client("ListTables", {})["TableNames"] == []
        create(clients[0])
        assert clients[1]("ListTables", {})["TableNames"] == []


def test_a_reset_directory_still_keeps_its_regions_apart(tmp_path: Path):
    options = (*APART, "--admin-port", "0", "--allow-reset")
    with running_server(*options, data_dir=tmp_path) as server:
        assert ask(admin_port(server), "/reset", "POST", {}).status == 200
        fill_both(server)
        server.kill()
    assert "give --regions apart" in refusal(tmp_path)


def test_a_snapshot_brings_back_all_regions():
    with (
        running_server(*APART, "--admin-port", "0") as server,
        regional_clients(server.endpoint, EAST, WEST) as (east, west),
    ):
        fill_both(server)
        port = admin_port(server)
        assert ask(port, "/snapshots", "POST", {"name": "full"}).status == 201
        west("DeleteTable", {"TableName": NAME})
        fill(east, 9)
        assert ask(port, "/snapshots/full/restore", "POST", {}).status == 200
        assert (len(keys(east)), len(keys(west))) == (3, 4)


def test_metrics_and_commands_name_the_region():
    with running_server(*APART, "--admin-port", "0") as server:
        fill_both(server)
        with regional_clients(server.endpoint, WEST) as (west,):
            west.refused("DeleteTable", {"TableName": "missing"})
        metrics = ask(admin_port(server), "/metrics").body.decode()
        partitions = re.findall(r"^dynactor_partitions\{(.*?)\} \S+$", metrics, re.MULTILINE)
        assert f'index="",region="{EAST}",table="{NAME}"' in partitions
        assert f'index="",region="{WEST}",table="{NAME}"' in partitions
        assert metrics.count("# TYPE dynactor_partitions gauge") == 1
        errors = (
            'dynactor_user_errors_total{code="ResourceNotFoundException",operation="DeleteTable"'
        )
        assert f'{errors},region="{WEST}"}} 1.0' in metrics
        latency = "dynactor_successful_request_latency_seconds_count"
        for region, puts in ((EAST, 3), (WEST, 4)):
            assert f'{latency}{{operation="PutItem",region="{region}"}} {puts}.0' in metrics
        insights = ("insights", "--endpoint", server.endpoint, "--table", NAME)
        in_west = run_command(*insights, "--region", WEST)
        assert "4 write units" in in_west.stdout + in_west.stderr
        by_variable = run_command(*insights, AWS_REGION=EAST)
        assert "3 write units" in by_variable.stdout + by_variable.stderr
        elsewhere = run_command(*insights, "--region", "eu-west-1")
        assert elsewhere.stderr == "dynactor: There are no tables in that region\n"
        find = ("violations", "--endpoint", server.endpoint, "--table", NAME, "--index", "by-n")
        assert run_command(*find, "--region", WEST).returncode == 0
        assert run_command(*find, "--region", "eu-west-1").returncode == 2
