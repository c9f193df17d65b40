"""Tables on their way: CREATING, UPDATING and DELETING, as long as they are told to last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.support.clients import WireClient, boto3_client
from tests.support.server import running_server
from tests.support.tables import definition, unique_name, wait_until_active

pytestmark = pytest.mark.ours_alone("only here a transition's length is a setting")

KEY = {"pk": {"S": "a"}}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server whose tables take their time."""
    with running_server("--table-transition-seconds", "0.3") as server:
        yield server.endpoint


@pytest.fixture(scope="module")
def slow(endpoint: str) -> Iterator[WireClient]:
    with closing(WireClient(endpoint)) as client:
        yield client


def status(slow: WireClient, name: str) -> Any:
    return slow("DescribeTable", {"TableName": name})["Table"]["TableStatus"]


def test_a_table_is_created_before_it_is_active(slow: WireClient):
    request = definition("pk:S")
    name = request["TableName"]
    created = slow("CreateTable", request)["TableDescription"]
    assert created["TableStatus"] == "CREATING"
    assert status(slow, name) == "CREATING"
    assert name in slow("ListTables", {})["TableNames"]
    for operation, members in (("PutItem", {"Item": KEY}), ("GetItem", {"Key": KEY}), ("Scan", {})):
        refusal = slow.refused(operation, {"TableName": name, **members})
        assert refusal == ("ResourceNotFoundException", "Requested resource not found")
    assert slow.refused("CreateTable", request).type == "ResourceInUseException"
    wait_until_active(slow, name)
    slow("PutItem", {"TableName": name, "Item": KEY})


def test_a_table_that_is_not_active_is_in_use(slow: WireClient):
    request = definition("pk:S")
    name = request["TableName"]
    slow("CreateTable", request)
    for operation, members in (
        ("DeleteTable", {}),
        ("UpdateTable", {"DeletionProtectionEnabled": False}),
    ):
        refusal = slow.refused(operation, {"TableName": name, **members})
        assert refusal.type == "ResourceInUseException"
    wait_until_active(slow, name)
    slow("DeleteTable", {"TableName": name})


def test_a_table_is_deleted_before_it_is_gone(slow: WireClient):
    request = definition("pk:S")
    name = request["TableName"]
    slow("CreateTable", request)
    wait_until_active(slow, name)
    slow("PutItem", {"TableName": name, "Item": KEY})
    slow("DeleteTable", {"TableName": name})
    assert status(slow, name) == "DELETING"
    refusal = slow.refused("GetItem", {"TableName": name, "Key": KEY})
    assert refusal.type == "ResourceNotFoundException"
    assert slow.refused("DeleteTable", {"TableName": name}).type == "ResourceInUseException"
    while slow.send("DescribeTable", {"TableName": name}).status == 200:
        pass
    assert name not in slow("ListTables", {})["TableNames"]


def test_an_updated_table_goes_on_serving(slow: WireClient):
    request = definition("pk:S")
    name = request["TableName"]
    slow("CreateTable", request)
    wait_until_active(slow, name)
    throughput = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    update = {
        "TableName": name,
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": throughput,
    }
    updated = slow("UpdateTable", update)["TableDescription"]
    assert updated["TableStatus"] == "UPDATING"
    slow("PutItem", {"TableName": name, "Item": KEY})
    assert slow("GetItem", {"TableName": name, "Key": KEY})["Item"] == KEY
    described = wait_until_active(slow, name)
    assert described["ProvisionedThroughput"]["ReadCapacityUnits"] == 1


def test_boto3s_waiters_wait(endpoint: str):
    with closing(boto3_client(endpoint)) as client:
        name = unique_name()
        client.create_table(**definition("pk:S", name=name))
        quick = {"Delay": 1, "MaxAttempts": 30}
        client.get_waiter("table_exists").wait(TableName=name, WaiterConfig=quick)
        client.put_item(TableName=name, Item=KEY)
        client.delete_table(TableName=name)
        client.get_waiter("table_not_exists").wait(TableName=name, WaiterConfig=quick)
