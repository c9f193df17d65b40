"""Tables in transition: CREATING, UPDATING and DELETING for the configured time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients.clients import WireClient, boto3_client
from tests.support.databases.table_backups import back_up
from tests.support.servers.server import running_server
from tests.support.tables.tables import (
    definition,
    global_index,
    unique_name,
    wait_until_active,
    wait_until_indexes_active,
)

pytestmark = pytest.mark.ours_alone("only here a transition's length is a setting")

KEY = {"pk": {"S": "a"}}
AN_HOUR = "3600"
TO_BE_UPDATED = "to-be-updated"
TO_BE_DELETED = "to-be-deleted"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server whose tables have slow transitions."""
    with running_server("--table-transition-seconds", "0.3") as server:
        yield server.endpoint


@pytest.fixture(scope="module")
def slow(endpoint: str) -> Iterator[WireClient]:
    with closing(WireClient(endpoint)) as client:
        yield client


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WireClient]:
    """A server on which changes of tables never complete; two tables were created before."""
    data_dir = tmp_path_factory.mktemp("data")
    with running_server(data_dir=data_dir) as server, closing(WireClient(server.endpoint)) as wire:
        for name in (TO_BE_UPDATED, TO_BE_DELETED):
            wire("CreateTable", definition("pk:S", name=name))
            wait_until_active(wire, name)
            wire("PutItem", {"TableName": name, "Item": KEY})
        assert server.stop() == 0, server.log
    with (
        running_server("--table-transition-seconds", AN_HOUR, data_dir=data_dir) as server,
        closing(WireClient(server.endpoint)) as wire,
    ):
        yield wire


def status(wire: WireClient, name: str) -> Any:
    return wire("DescribeTable", {"TableName": name})["Table"]["TableStatus"]


def updating(name: str) -> dict[str, Any]:
    throughput = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    return {"TableName": name, "BillingMode": "PROVISIONED", "ProvisionedThroughput": throughput}


def test_a_table_is_creating_before_it_is_active(held: WireClient):
    request = definition("pk:S")
    name = request["TableName"]
    created = held("CreateTable", request)["TableDescription"]
    assert created["TableStatus"] == "CREATING"
    assert status(held, name) == "CREATING"
    assert name in held("ListTables", {})["TableNames"]
    for operation, members in (("PutItem", {"Item": KEY}), ("GetItem", {"Key": KEY}), ("Scan", {})):
        refusal = held.refused(operation, {"TableName": name, **members})
        assert refusal == ("ResourceNotFoundException", "Requested resource not found")
    assert held.refused("CreateTable", request).type == "ResourceInUseException"


def test_a_table_that_is_not_active_is_in_use(held: WireClient):
    request = definition("pk:S")
    name = request["TableName"]
    held("CreateTable", request)
    for operation, members in (
        ("DeleteTable", {}),
        ("UpdateTable", {"DeletionProtectionEnabled": False}),
    ):
        refusal = held.refused(operation, {"TableName": name, **members})
        assert refusal.type == "ResourceInUseException"


def test_a_table_is_deleting_before_it_is_removed(held: WireClient):
    held("DeleteTable", {"TableName": TO_BE_DELETED})
    assert status(held, TO_BE_DELETED) == "DELETING"
    refusal = held.refused("GetItem", {"TableName": TO_BE_DELETED, "Key": KEY})
    assert refusal.type == "ResourceNotFoundException"
    refusal = held.refused("DeleteTable", {"TableName": TO_BE_DELETED})
    assert refusal.type == "ResourceInUseException"
    assert TO_BE_DELETED in held("ListTables", {})["TableNames"]


def test_an_updated_table_continues_serving(held: WireClient):
    held("UpdateTable", updating(TO_BE_UPDATED))
    other = {"pk": {"S": "b"}}
    held("PutItem", {"TableName": TO_BE_UPDATED, "Item": other})
    for key in (KEY, other):
        assert held("GetItem", {"TableName": TO_BE_UPDATED, "Key": key})["Item"] == key
    assert status(held, TO_BE_UPDATED) == "UPDATING"


def test_new_units_are_shown_when_the_update_is_complete(slow: WireClient):
    members = {
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "a")
        ],
        "BillingMode": "PROVISIONED",
        **units(1),
        "GlobalSecondaryIndexes": [global_index("by-a", "a", **units(1))],
    }
    request = definition("pk:S") | members
    name = request["TableName"]
    slow("CreateTable", request)
    wait_until_active(slow, name)
    both = {"TableName": name, **units(2), "GlobalSecondaryIndexUpdates": [CHANGE]}
    for description in (
        slow("UpdateTable", both)["TableDescription"],
        slow("DescribeTable", {"TableName": name})["Table"],
    ):
        (index,) = description["GlobalSecondaryIndexes"]
        assert (description["TableStatus"], index["IndexStatus"]) == ("UPDATING", "UPDATING")
        assert read_units(description) == read_units(index) == 1
    described = wait_until_indexes_active(slow, name)
    (index,) = described["GlobalSecondaryIndexes"]
    assert (read_units(described), read_units(index)) == (2, 3)
    again = {"TableName": name, "GlobalSecondaryIndexUpdates": [CHANGE_AGAIN]}
    assert slow("UpdateTable", again)["TableDescription"]["TableStatus"] == "ACTIVE"
    assert slow.refused("DeleteTable", {"TableName": name}).type == "ResourceInUseException"
    wait_until_indexes_active(slow, name)
    slow("DeleteTable", {"TableName": name})


def units(read: int) -> dict[str, Any]:
    return {"ProvisionedThroughput": {"ReadCapacityUnits": read, "WriteCapacityUnits": 1}}


def read_units(description: dict[str, Any]) -> Any:
    return description["ProvisionedThroughput"]["ReadCapacityUnits"]


CHANGE = {"Update": {"IndexName": "by-a", **units(3)}}
CHANGE_AGAIN = {"Update": {"IndexName": "by-a", **units(4)}}


def test_every_change_is_completed(slow: WireClient):
    request = definition("pk:S")
    name = request["TableName"]
    created = slow("CreateTable", request)["TableDescription"]
    assert created["TableStatus"] == "CREATING"
    wait_until_active(slow, name)
    slow("PutItem", {"TableName": name, "Item": KEY})

    updated = slow("UpdateTable", updating(name))["TableDescription"]
    assert updated["TableStatus"] == "UPDATING"
    described = wait_until_active(slow, name)
    assert described["ProvisionedThroughput"]["ReadCapacityUnits"] == 1

    deleted = slow("DeleteTable", {"TableName": name})["TableDescription"]
    assert deleted["TableStatus"] == "DELETING"
    while slow.send("DescribeTable", {"TableName": name}).status == 200:
        pass
    assert name not in slow("ListTables", {})["TableNames"]


def test_boto3s_waiters_wait_for_transitions(endpoint: str):
    with closing(boto3_client(endpoint)) as client:
        name = unique_name()
        client.create_table(**definition("pk:S", name=name))
        quick = {"Delay": 1, "MaxAttempts": 30}
        client.get_waiter("table_exists").wait(TableName=name, WaiterConfig=quick)
        client.put_item(TableName=name, Item=KEY)
        client.delete_table(TableName=name)
        client.get_waiter("table_not_exists").wait(TableName=name, WaiterConfig=quick)
        assert name not in client.list_tables()["TableNames"]


def test_time_to_live_of_a_table_in_transition_is_not_described(tmp_path: Path):
    specification = {"Enabled": True, "AttributeName": "at"}
    data_dir = str(tmp_path / "data")
    with (
        running_server("--table-transition-seconds", AN_HOUR, data_dir=data_dir) as server,
        closing(WireClient(server.endpoint)) as wire,
    ):
        request = definition("pk:S")
        name = request["TableName"]
        wire("CreateTable", request)
        assert wire.refused("DescribeTimeToLive", {"TableName": name}) == (
            "ValidationException",
            f"Cannot describe time to live while table is in CREATING state: {name}",
        )
        backup = wire.refused("CreateBackup", {"TableName": name, "BackupName": "early"})
        assert backup == ("TableNotFoundException", f"Table not found: {name}")
    with (
        running_server("--table-transition-seconds", "0", data_dir=data_dir) as server,
        closing(WireClient(server.endpoint)) as wire,
    ):
        wait_until_active(wire, name)
        arn = back_up(wire, name)
    with (
        running_server("--table-transition-seconds", AN_HOUR, data_dir=data_dir) as server,
        closing(WireClient(server.endpoint)) as wire,
    ):
        wire("DeleteTable", {"TableName": name})
        assert wire.refused("DescribeTimeToLive", {"TableName": name}) == (
            "ValidationException",
            f"Cannot describe time to live while table is in DELETING state: {name}",
        )
        change = {"TableName": name, "TimeToLiveSpecification": specification}
        assert wire("UpdateTimeToLive", change) == {"TimeToLiveSpecification": specification}
        restore = {"TargetTableName": name, "BackupArn": arn}
        assert wire.refused("RestoreTableFromBackup", restore) == (
            "TableAlreadyExistsException",
            f"Table already exists: {name}",
        )
