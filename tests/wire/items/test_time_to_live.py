"""UpdateTimeToLive and DescribeTimeToLive, and items that expire, over HTTP and by boto3."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.clients.clients import WireClient, boto3_client
from tests.support.servers.clocked_server import Clocked, clocked_server
from tests.support.servers.server import running_server
from tests.support.tables.tables import definition, table, unique_name, wait_until_active
from tests.support.tables.ttl import found, put_all, specification, status, switch, wait_until

START = 1_700_000_000
HOUR = 60 * 60
MULTIPLE_TIMES = "Time to live has been modified multiple times within a fixed interval"
SPECIFICATION = "timeToLiveSpecification"
NOT_NULL = "failed to satisfy constraint: Member must not be null"
LENGTH = "failed to satisfy constraint: Member must have length"


def refused(client: Any, name: str, attribute_name: str, *, enabled: bool) -> tuple[str, str]:
    with pytest.raises(ClientError) as refusal:
        client.update_time_to_live(
            TableName=name,
            TimeToLiveSpecification=specification(attribute_name, enabled=enabled),
        )
    error = refusal.value.response["Error"]
    return error["Code"], error["Message"]


def test_time_to_live_is_enabled_and_described(client, wire: WireClient):
    with table(wire, "pk:S") as name:
        answer = client.update_time_to_live(
            TableName=name, TimeToLiveSpecification=specification("expires")
        )
        assert answer["TimeToLiveSpecification"] == {"Enabled": True, "AttributeName": "expires"}
        described = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        assert described == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"}


@pytest.mark.ours_alone("the interval between two changes is a setting only here")
def test_time_to_live_is_enabled_and_disabled_at_once():
    with (
        running_server("--ttl-change-interval-seconds", "0") as server,
        closing(WireClient(server.endpoint)) as wire,
        table(wire, "pk:S") as name,
    ):
        now = int(time.time())
        put_all(wire, name, *[{"pk": {"S": str(number)}} for number in range(200)])
        put_all(wire, name, {"pk": {"S": "expired"}, "expires": {"N": str(now - 60)}})
        for enabled in (True, False, True):
            asked = specification("expires", enabled=enabled)
            wire("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": asked})
            assert described(wire, name) == (
                {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"}
                if enabled
                else {"TimeToLiveStatus": "DISABLED"}
            )
        wait_until(lambda: found(wire, name, {"pk": {"S": "expired"}}) is None)
        assert len(wire("Scan", {"TableName": name})["Items"]) == 200


def test_a_table_is_named_by_its_arn_too(wire: WireClient):
    with table(wire, "pk:S") as name:
        arn = wire("DescribeTable", {"TableName": name})["Table"]["TableArn"]
        switch(wire, arn, "expires")
        assert status(wire, name) == "ENABLED"


def test_a_change_without_effect_is_refused(client, wire: WireClient):
    with table(wire, "pk:S") as name:
        off = refused(client, name, "expires", enabled=False)
        assert off == ("ValidationException", "TimeToLive is already disabled")
        switch(wire, name, "expires")
        on = refused(client, name, "expires", enabled=True)
        assert on == ("ValidationException", "TimeToLive is already enabled")


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.differs_from_dynamodb_local("it leaves out the name")
def test_another_attribute_than_the_active_one_is_refused(client, wire: WireClient, enabled: bool):
    with table(wire, "pk:S") as name:
        switch(wire, name, "expires")
        assert refused(client, name, "other", enabled=enabled) == (
            "ValidationException",
            "TimeToLive is active on a different AttributeName: current AttributeName is expires",
        )


def test_a_second_change_within_an_hour_is_refused(client, wire: WireClient):
    with table(wire, "pk:S") as name:
        switch(wire, name, "expires")
        assert refused(client, name, "expires", enabled=False) == (
            "ValidationException",
            MULTIPLE_TIMES,
        )


def test_an_unknown_table_is_not_found(client):
    name = unique_name()
    assert refused(client, name, "expires", enabled=True) == (
        "ResourceNotFoundException",
        f"Requested resource not found: Table: {name} not found",
    )


@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        (None, f"null at '{SPECIFICATION}' {NOT_NULL}"),
        ({"Enabled": True}, f"null at '{SPECIFICATION}.attributeName' {NOT_NULL}"),
        ({"AttributeName": "expires"}, f"null at '{SPECIFICATION}.enabled' {NOT_NULL}"),
        (
            {"Enabled": True, "AttributeName": ""},
            f"'' at '{SPECIFICATION}.attributeName' {LENGTH} greater than or equal to 1",
        ),
        (
            {"Enabled": True, "AttributeName": "a" * 256},
            f"'{'a' * 256}' at '{SPECIFICATION}.attributeName' {LENGTH} less than or equal to 255",
        ),
    ],
)
def test_a_broken_specification_is_refused_before_the_table_is_searched(
    wire: WireClient, asked: dict[str, Any] | None, fault: str
):
    request = {"TableName": unique_name(), "TimeToLiveSpecification": asked}
    assert wire.refused("UpdateTimeToLive", request) == (
        "ValidationException",
        f"1 validation error detected: Value {fault}",
    )


def test_expired_items_are_deleted_and_others_kept(wire: WireClient):
    with table(wire, "pk:S") as name:
        now = int(time.time())
        before = [{"pk": {"S": "before"}, "expires": {"N": str(now - 60)}}]
        stay = [
            {"pk": {"S": "later"}, "expires": {"N": str(now + HOUR)}},
            {"pk": {"S": "text"}, "expires": {"S": str(now - 60)}},
        ]
        put_all(wire, name, *before, *stay)
        switch(wire, name, "expires")
        wait_until(lambda: found(wire, name, {"pk": {"S": "before"}}) is None)
        after = {"pk": {"S": "after"}, "expires": {"N": str(now - 30)}}
        put_all(wire, name, after)
        wait_until(lambda: found(wire, name, {"pk": {"S": "after"}}) is None)
        scanned = wire("Scan", {"TableName": name})["Items"]
        assert sorted(scanned, key=str) == sorted(stay, key=str)


@pytest.fixture(scope="module")
def clocked() -> Iterator[Clocked]:
    """A server with slow transitions, so that tests can see the transitional states."""
    options = (
        *("--ttl-delay-seconds", "0", "--ttl-transition-seconds", "1"),
        *("--table-transition-seconds", "0.3", "--copy-messages"),
    )
    with clocked_server(START, *options) as clocked:
        yield clocked


@pytest.fixture(scope="module")
def there(clocked: Clocked) -> Iterator[WireClient]:
    with closing(WireClient(clocked.endpoint)) as there:
        yield there


def described(wire: WireClient, name: str) -> dict[str, str]:
    answer = wire("DescribeTimeToLive", {"TableName": name})
    description: dict[str, str] = answer["TimeToLiveDescription"]
    return description


@pytest.mark.ours_alone("no other server has a clock to set")
def test_the_states_of_time_to_live_are_shown_and_allow_the_documented_changes(tmp_path: Path):
    """The transitions of the first server never end; the next server ends them."""

    @contextmanager
    def served(seconds: str) -> Iterator[tuple[Clocked, WireClient, Any]]:
        options = ("--ttl-transition-seconds", seconds, "--copy-messages")
        with (
            clocked_server(START, *options, data_dir=tmp_path) as clocked,
            closing(WireClient(clocked.endpoint)) as wire,
            closing(boto3_client(clocked.endpoint)) as client,
        ):
            yield clocked, wire, client
            assert clocked.server.stop() == 0, clocked.server.log

    def switch_only(wire: WireClient, *, enabled: bool) -> None:
        asked = specification("expires", enabled=enabled)
        wire("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": asked})

    def wait_swept(wire: WireClient) -> None:
        """Wait until an expired item is deleted, because then the transition has ended."""
        key = {"pk": {"S": unique_name("expired")}}
        put_all(wire, name, key | {"expires": {"N": str(START - HOUR)}})
        wait_until(lambda: found(wire, name, key) is None)

    name = unique_name()
    with served("3600") as (_, wire, client):
        wire("CreateTable", definition("pk:S", name=name))
        wait_until_active(wire, name)
        switch_only(wire, enabled=True)
        assert refused(client, name, "expires", enabled=False)[1] == MULTIPLE_TIMES
        assert described(wire, name) == {"TimeToLiveStatus": "ENABLING", "AttributeName": "expires"}
    with served("0") as (clocked, wire, client):
        assert status(wire, name) == "ENABLED"
        wait_swept(wire)
        clocked.set(START + HOUR - 1)
        assert refused(client, name, "expires", enabled=False)[1] == MULTIPLE_TIMES
        clocked.set(START + HOUR)
    with served("3600") as (_, wire, client):
        switch_only(wire, enabled=False)
        assert refused(client, name, "expires", enabled=True)[1] == MULTIPLE_TIMES
        assert described(wire, name) == {
            "TimeToLiveStatus": "DISABLING",
            "AttributeName": "expires",
        }
    with served("0") as (clocked, wire, client):
        assert described(wire, name) == {"TimeToLiveStatus": "DISABLED"}
        clocked.set(START + 2 * HOUR)
        switch(wire, name, "other")
        assert described(wire, name)["AttributeName"] == "other"


@pytest.mark.ours_alone("no other server has a clock to set")
def test_no_item_is_deleted_once_time_to_live_is_disabled(clocked: Clocked, there: WireClient):
    with table(there, "pk:S") as name, table(there, "pk:S") as other:
        switch(there, name, "expires")
        switch(there, other, "expires")
        clocked.set(clocked.now + HOUR)
        for each in (name, other):
            put_all(there, each, {"pk": {"S": "a"}, "expires": {"N": str(clocked.now + 1)}})
        off = specification("expires", enabled=False)
        there("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": off})
        clocked.set(clocked.now + 2)
        wait_until(lambda: found(there, other, {"pk": {"S": "a"}}) is None)
        assert found(there, name, {"pk": {"S": "a"}}) is not None
        wait_until(lambda: status(there, name) == "DISABLED")
        assert found(there, name, {"pk": {"S": "a"}}) is not None


@pytest.mark.ours_alone("states of tables last as long as its options say")
def test_a_table_that_is_being_created_is_in_use_and_one_that_is_deleted_is_not(tmp_path: Path):
    in_use = (
        "ResourceInUseException",
        "Time to live cannot be configured when table is in CREATING or DELETING state",
    )
    name = unique_name()
    with running_server(data_dir=tmp_path) as server, closing(WireClient(server.endpoint)) as wire:
        wire("CreateTable", definition("pk:S", name="before"))
        wait_until_active(wire, "before")
        assert server.stop() == 0, server.log
    # On this server, no transition ends during the test.
    options = ("--table-transition-seconds", "3600")
    with (
        running_server(*options, data_dir=tmp_path) as server,
        closing(WireClient(server.endpoint)) as wire,
        closing(boto3_client(server.endpoint)) as client,
    ):
        wire("CreateTable", definition("pk:S", name=name))
        assert refused(client, name, "expires", enabled=True) == in_use
        wire("DeleteTable", {"TableName": "before"})
        expires = {"AttributeName": "expires", "Enabled": True}
        wire("UpdateTimeToLive", {"TableName": "before", "TimeToLiveSpecification": expires})


def test_a_table_made_again_has_no_time_to_live(wire: WireClient):
    with table(wire, "pk:S") as name:
        switch(wire, name, "expires")
    with table(wire, "pk:S", name=name):
        assert status(wire, name) == "DISABLED"
        put_all(wire, name, {"pk": {"S": "a"}, "expires": {"N": str(int(time.time()) - 60)}})
        assert found(wire, name, {"pk": {"S": "a"}}) is not None
