"""``--compat dynamodb-local`` and ``dynactor local``: features that DynamoDB Local's users need."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.regional import RegionalClient
from tests.support.servers.admin import admin_port, ask
from tests.support.servers.server import (
    Server,
    ServerDidNotStart,
    run_command,
    running,
    running_server,
)
from tests.support.tables.tables import definition, global_index, unique_name

pytestmark = pytest.mark.ours_alone("the server is started with an option of its own")

COMPAT = ("--compat", "dynamodb-local")
UNUSED = {"AttributeName": "unused", "AttributeType": "N"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server(*COMPAT, "--admin-port", "0", "--copy-messages") as server:
        yield server


def client(server: Server, region: str = "us-east-1", key_id: str = "test") -> RegionalClient:
    return RegionalClient(server.endpoint, region, key_id)


def local(*flags: str) -> list[str]:
    return [sys.executable, "-m", "dynactor", "local", "-port", "0", *flags]


def test_each_access_key_has_tables_of_its_own(server: Server):
    places = [("us-east-1", "one"), ("us-east-1", "other"), ("eu-west-1", "one")]
    for place in places:
        with closing(client(server, *place)) as call:
            assert call("ListTables", {})["TableNames"] == []
            call("CreateTable", definition("pk:S", name="mine"))
            item = {"pk": {"S": "a"}, "place": {"S": "/".join(place)}}
            call("PutItem", {"TableName": "mine", "Item": item})
    for place in places:
        with closing(client(server, *place)) as call:
            assert [
                item["place"]["S"] for item in call("Scan", {"TableName": "mine"})["Items"]
            ] == ["/".join(place)]


def test_metrics_and_insights_name_the_access_key(server: Server):
    name = unique_name()
    with closing(client(server, "sa-east-1", "AKIAMETRICS")) as call:
        call("CreateTable", definition("pk:S", name=name))
        call("PutItem", {"TableName": name, "Item": {"pk": {"S": "a"}}})
    metrics = ask(admin_port(server), "/metrics").body.decode()
    labels = f'access_key_id="AKIAMETRICS",index="",region="sa-east-1",table="{name}"'
    assert f"dynactor_partitions{{{labels}}}" in metrics
    labels = 'access_key_id="AKIAMETRICS",operation="PutItem",region="sa-east-1"'
    assert f"dynactor_successful_request_latency_seconds_count{{{labels}}} 1.0" in metrics
    insights = ("insights", "--endpoint", server.endpoint, "--table", name, "--region", "sa-east-1")
    assert run_command(*insights, AWS_ACCESS_KEY_ID="AKIAMETRICS").returncode == 0
    report = run_command("doctor", "--endpoint", server.endpoint)
    assert "dynactor_partitions" in report.stdout
    assert "AKIAMETRICS" not in report.stdout
    other = run_command(*insights, AWS_ACCESS_KEY_ID="AKIAOTHER")
    assert other.stderr == "dynactor: There are no tables in that region\n"


def test_unused_attribute_definitions_are_dropped(server: Server):
    with closing(client(server)) as call:
        for index in ((), (global_index("by-n", "n"),)):
            table = definition("pk:S", "sk:S")
            if index:
                table["GlobalSecondaryIndexes"] = list(index)
                table["AttributeDefinitions"].append({"AttributeName": "n", "AttributeType": "S"})
            used = len(table["AttributeDefinitions"])
            table["AttributeDefinitions"].append(UNUSED)
            made = call("CreateTable", table)["TableDescription"]
            assert len(made["AttributeDefinitions"]) == used
            assert UNUSED not in made["AttributeDefinitions"]


def test_tables_and_indexes_are_active_at_once(server: Server):
    name = unique_name()
    with closing(client(server)) as call:
        table = definition("pk:S", name=name)
        table["GlobalSecondaryIndexes"] = [global_index("by-n", "n")]
        table["AttributeDefinitions"].append({"AttributeName": "n", "AttributeType": "S"})
        made = call("CreateTable", table)["TableDescription"]
        assert made["TableStatus"] == "ACTIVE"
        assert made["GlobalSecondaryIndexes"][0]["IndexStatus"] == "ACTIVE"
        stream = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
        changed = call("UpdateTable", {"TableName": name, "StreamSpecification": stream})
        assert changed["TableDescription"]["TableStatus"] == "ACTIVE"
        gone = call("DeleteTable", {"TableName": name})["TableDescription"]
        assert gone["TableStatus"] == "ACTIVE"
        assert gone["GlobalSecondaryIndexes"][0]["IndexName"] == "by-n"


def test_a_table_stays_active_while_an_index_is_added_and_deleted(server: Server):
    name = unique_name()
    adding = {"Create": {**global_index("by-n", "n")}}
    with closing(client(server)) as call:
        table = definition("pk:S", name=name)
        call("CreateTable", table)
        for number in range(10):
            item = {"pk": {"S": str(number)}, "n": {"S": "n"}}
            call("PutItem", {"TableName": name, "Item": item})
        n = {"AttributeName": "n", "AttributeType": "S"}
        for definitions, update in (
            ([*table["AttributeDefinitions"], n], adding),
            (table["AttributeDefinitions"], {"Delete": {"IndexName": "by-n"}}),
        ):
            request = {"TableName": name, "GlobalSecondaryIndexUpdates": [update]}
            request["AttributeDefinitions"] = definitions
            shown = call("UpdateTable", request)["TableDescription"]
            assert shown["GlobalSecondaryIndexes"][0]["IndexStatus"] in ("CREATING", "DELETING")
            while True:
                assert shown["TableStatus"] == "ACTIVE"
                indexes = shown.get("GlobalSecondaryIndexes", ())
                if all(index["IndexStatus"] == "ACTIVE" for index in indexes):
                    break
                shown = call("DescribeTable", {"TableName": name})["Table"]


def test_an_index_shows_a_write_at_once(server: Server):
    name = unique_name()
    with closing(client(server)) as call:
        table = definition("pk:S", name=name)
        table["GlobalSecondaryIndexes"] = [global_index("by-n", "n")]
        table["AttributeDefinitions"].append({"AttributeName": "n", "AttributeType": "S"})
        call("CreateTable", table)
        query = {
            "TableName": name,
            "IndexName": "by-n",
            "KeyConditionExpression": "n = :n",
            "ExpressionAttributeValues": {":n": {"S": "n"}},
        }
        for number in range(1, 30):
            item = {"pk": {"S": str(number)}, "n": {"S": "n"}}
            call("PutItem", {"TableName": name, "Item": item})
            assert call("Query", query)["Count"] == number


def test_a_shared_database_has_the_tables_of_all_keys():
    with running_server(*COMPAT, "--shared-db") as server:
        with closing(client(server, "us-east-1", "one")) as one:
            one("CreateTable", definition("pk:S", name="shared"))
        with closing(client(server, "eu-west-1", "other")) as other:
            assert other("ListTables", {})["TableNames"] == ["shared"]


@pytest.mark.parametrize("end", [Server.kill, Server.stop])
def test_local_keeps_shared_tables_and_others_beside_each_other(tmp_path: Path, end):
    path = ("-dbPath", str(tmp_path))
    for flags, region in ((path, "us-east-1"), ((*path, "-sharedDb"), "eu-west-1")):
        with running(local(*flags)) as server:
            with closing(client(server, region)) as call:
                assert call("ListTables", {})["TableNames"] == []
                call("CreateTable", definition("pk:S", name=f"of-{region}"))
            end(server)
    with running(local(*path)) as server, closing(client(server)) as call:
        assert call("ListTables", {})["TableNames"] == ["of-us-east-1"]
        with closing(client(server, key_id="other")) as other:
            assert other("ListTables", {})["TableNames"] == []
        server.stop()
    with running(local(*path, "-sharedDb")) as server, closing(client(server)) as call:
        assert call("ListTables", {})["TableNames"] == ["of-eu-west-1"]


def test_tables_of_no_access_key_are_not_overlooked(tmp_path: Path):
    with running_server(data_dir=tmp_path) as server:
        with closing(WireClient(server.endpoint)) as call:
            call("CreateTable", definition("pk:S", name="shared"))
        server.stop()
    with (
        pytest.raises(ServerDidNotStart, match="The data has tables for all regions together"),
        running_server(*COMPAT, data_dir=tmp_path),
    ):
        pass
    with (
        running_server(*COMPAT, "--shared-db", data_dir=tmp_path) as server,
        closing(client(server, "eu-west-1")) as call,
    ):
        assert call("ListTables", {})["TableNames"] == ["shared"]


def test_local_delays_statuses_on_request():
    for flags, status in ((("-delayTransientStatuses",), "CREATING"), ((), "ACTIVE")):
        with running(local("-inMemory", *flags)) as server, closing(client(server)) as call:
            made = call("CreateTable", definition("pk:S"))["TableDescription"]
            assert made["TableStatus"] == status
