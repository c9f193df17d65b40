"""Enabling, describing and listing Contributor Insights of tables and global indexes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.servers.server import Server, running_server
from tests.support.tables.tables import (
    definition,
    global_index,
    table,
    unique_name,
    wait_until_active,
)

pytestmark = pytest.mark.differs_from_dynamodb_local("it does not know these operations")

BY_STATUS = "by-status"
ALL = "ACCESSED_AND_THROTTLED_KEYS"
THROTTLED = "THROTTLED_KEYS"


@pytest.fixture
def name(wire: WireClient) -> Iterator[str]:
    """A table with a sort key, and with a global index that has no sort key."""
    index = global_index(BY_STATUS, "status")
    with table(wire, "pk:S", "sk:S", "status:S", GlobalSecondaryIndexes=[index]) as name:
        yield name


def settled(client: Any, name: str, **index: str) -> dict[str, Any]:
    """Wait until all transitions have ended; return the description."""
    while True:
        shown = client.describe_contributor_insights(TableName=name, **index)
        del shown["ResponseMetadata"]
        if shown["ContributorInsightsStatus"] in ("ENABLED", "DISABLED"):
            return shown


def update(client: Any, name: str, action: str, **members: str) -> dict[str, Any]:
    shown = client.update_contributor_insights(
        TableName=name, ContributorInsightsAction=action, **members
    )
    del shown["ResponseMetadata"]
    return shown


def kinds(shown: dict[str, Any]) -> list[str]:
    return [rule.split("-")[1] for rule in shown["ContributorInsightsRuleList"]]


def test_contributor_insights_of_a_new_table_are_disabled(client, name):
    assert settled(client, name) == {
        "TableName": name,
        "ContributorInsightsStatus": "DISABLED",
    }
    assert settled(client, name, IndexName=BY_STATUS)["ContributorInsightsStatus"] == "DISABLED"
    summaries = client.list_contributor_insights(TableName=name)["ContributorInsightsSummaries"]
    assert summaries == []


def test_contributor_insights_are_enabled_and_disabled(client, name):
    began = time.time()

    switched = update(client, name, "ENABLE")
    on = settled(client, name)

    assert switched == {
        "TableName": name,
        "ContributorInsightsStatus": "ENABLING",
        "ContributorInsightsMode": ALL,
    }
    assert on["ContributorInsightsStatus"] == "ENABLED"
    assert on["ContributorInsightsMode"] == ALL
    # The server's clock may differ by 2 seconds.
    assert began <= on["LastUpdateDateTime"].timestamp() + 2
    assert on["LastUpdateDateTime"].timestamp() <= time.time() + 2
    assert kinds(on) == ["PKC", "SKC", "PKT", "SKT"]
    assert all(
        rule.startswith("DynamoDBContributorInsights-") and f"-{name}-" in rule
        for rule in on["ContributorInsightsRuleList"]
    )

    switched = update(client, name, "DISABLE")
    off = settled(client, name)

    assert switched["ContributorInsightsStatus"] == "DISABLING"
    assert off["ContributorInsightsStatus"] == "DISABLED"
    assert "ContributorInsightsRuleList" not in off
    assert off["LastUpdateDateTime"] >= on["LastUpdateDateTime"]


def test_contributor_insights_of_an_index_are_separate(client, name):
    switched = update(client, name, "ENABLE", IndexName=BY_STATUS)

    assert switched["IndexName"] == BY_STATUS
    on = settled(client, name, IndexName=BY_STATUS)
    assert (on["TableName"], on["IndexName"]) == (name, BY_STATUS)
    assert on["ContributorInsightsStatus"] == "ENABLED"
    # The index has no sort key, so there are no rules for items.
    assert kinds(on) == ["PKC", "PKT"]
    assert settled(client, name)["ContributorInsightsStatus"] == "DISABLED"


def test_insights_can_be_limited_to_throttled_keys(client, name):
    switched = update(client, name, "ENABLE", ContributorInsightsMode=THROTTLED)

    assert switched["ContributorInsightsMode"] == THROTTLED
    on = settled(client, name)
    assert on["ContributorInsightsMode"] == THROTTLED
    assert kinds(on) == ["PKT", "SKT"]
    assert update(client, name, "ENABLE", ContributorInsightsMode=ALL)[
        "ContributorInsightsStatus"
    ] == ("ENABLING")
    assert kinds(settled(client, name)) == ["PKC", "SKC", "PKT", "SKT"]


def test_a_change_without_effect_is_answered(client, name):
    assert update(client, name, "DISABLE") == {
        "TableName": name,
        "ContributorInsightsStatus": "DISABLED",
    }
    update(client, name, "ENABLE")
    on = settled(client, name)
    assert update(client, name, "ENABLE")["ContributorInsightsStatus"] == "ENABLED"
    assert settled(client, name) == on


def test_tables_and_indexes_are_listed_page_by_page(client, name):
    update(client, name, "ENABLE")
    update(client, name, "ENABLE", IndexName=BY_STATUS, ContributorInsightsMode=THROTTLED)
    update(client, name, "DISABLE", IndexName=BY_STATUS)
    settled(client, name)
    settled(client, name, IndexName=BY_STATUS)

    first = client.list_contributor_insights(TableName=name, MaxResults=1)
    second = client.list_contributor_insights(
        TableName=name, MaxResults=1, NextToken=first["NextToken"]
    )

    assert first["ContributorInsightsSummaries"] == [
        {
            "TableName": name,
            "ContributorInsightsStatus": "ENABLED",
            "ContributorInsightsMode": ALL,
        }
    ]
    assert second["ContributorInsightsSummaries"] == [
        {
            "TableName": name,
            "IndexName": BY_STATUS,
            "ContributorInsightsStatus": "DISABLED",
            "ContributorInsightsMode": THROTTLED,
        }
    ]
    assert "NextToken" not in second


def test_all_tables_are_listed(client, wire, name):
    with table(wire, "pk:S") as other:
        update(client, name, "ENABLE")
        update(client, other, "ENABLE")

        listed = []
        pages = {"MaxResults": 1}
        while True:
            page = client.list_contributor_insights(**pages)
            listed += [each["TableName"] for each in page["ContributorInsightsSummaries"]]
            if "NextToken" not in page:
                break
            pages["NextToken"] = page["NextToken"]

    assert {name, other} <= set(listed)
    assert listed == sorted(listed)


def test_a_table_may_be_named_by_its_arn(client, wire, name):
    arn = wire("DescribeTable", {"TableName": name})["Table"]["TableArn"]

    assert update(client, arn, "ENABLE")["TableName"] == name
    assert settled(client, arn)["TableName"] == name
    assert client.list_contributor_insights(TableName=arn)["ContributorInsightsSummaries"]


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("UpdateContributorInsights", {"ContributorInsightsAction": "ENABLE"}),
        ("DescribeContributorInsights", {}),
        ("ListContributorInsights", {}),
    ],
)
def test_a_missing_table_is_reported(wire, operation, members):
    nowhere = unique_name("nowhere")

    refused = wire.refused(operation, {"TableName": nowhere, **members})

    assert refused.type == "ResourceNotFoundException"
    assert refused.message == f"Requested resource not found: Table: {nowhere} not found"


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("UpdateContributorInsights", {"ContributorInsightsAction": "ENABLE"}),
        ("UpdateContributorInsights", {"ContributorInsightsAction": "DISABLE"}),
        ("DescribeContributorInsights", {}),
    ],
)
def test_a_missing_index_is_reported(wire, name, operation, members):
    refused = wire.refused(operation, {"TableName": name, "IndexName": "nowhere", **members})

    assert refused.type == "ResourceNotFoundException"
    assert "Index: nowhere" in refused.message


@pytest.mark.parametrize(
    ("operation", "members", "words"),
    [
        (
            "UpdateContributorInsights",
            {"ContributorInsightsAction": "on"},
            "Member must satisfy enum value set: [ENABLE, DISABLE]",
        ),
        ("UpdateContributorInsights", {}, "Member must not be null"),
        (
            "UpdateContributorInsights",
            {"ContributorInsightsAction": "ENABLE", "ContributorInsightsMode": "ALL"},
            "Member must satisfy enum value set: [ACCESSED_AND_THROTTLED_KEYS, THROTTLED_KEYS]",
        ),
        ("DescribeContributorInsights", {"IndexName": "i"}, "IndexName must be at least 3"),
        ("ListContributorInsights", {"MaxResults": 101}, "less than or equal to 100"),
        ("ListContributorInsights", {"MaxResults": 0}, "MaxResults must be at least 1"),
        ("ListContributorInsights", {"NextToken": "x"}, "NextToken is not one of"),
    ],
)
def test_an_invalid_request_is_refused(wire, name, operation, members, words):
    refused = wire.refused(operation, {"TableName": name, **members})

    assert refused.type == "ValidationException"
    assert words in refused.message


@pytest.mark.ours_alone("the server is started and ended here")
def test_contributor_insights_are_still_enabled_after_a_crash(tmp_path: Path):
    index = global_index(BY_STATUS, "status")
    request = definition("pk:S", "status:S", GlobalSecondaryIndexes=[index], name="kept")
    request["KeySchema"] = [{"AttributeName": "pk", "KeyType": "HASH"}]
    on = {"TableName": "kept", "ContributorInsightsAction": "ENABLE"}
    with running_server(data_dir=tmp_path) as server, closing(WireClient(server.endpoint)) as wire:
        wire("CreateTable", request)
        wire("UpdateContributorInsights", on | {"ContributorInsightsMode": THROTTLED})
        wire("UpdateContributorInsights", on | {"IndexName": BY_STATUS})
        before = wire("ListContributorInsights", {})
        rules = wire("DescribeContributorInsights", {"TableName": "kept"})
        server.kill()
    with running_server(data_dir=tmp_path) as server, closing(WireClient(server.endpoint)) as wire:
        assert wire("ListContributorInsights", {}) == before
        assert wire("DescribeContributorInsights", {"TableName": "kept"}) == rules
    told = [each["ContributorInsightsStatus"] for each in before["ContributorInsightsSummaries"]]
    assert told == ["ENABLED", "ENABLED"]


@pytest.mark.ours_alone("no other server's tables change so slowly")
def test_a_change_of_insights_takes_the_transition_time_of_tables(tmp_path: Path):
    on = {"TableName": "slow", "ContributorInsightsAction": "ENABLE"}

    def served(seconds: str) -> AbstractContextManager[Server]:
        return running_server("--table-transition-seconds", seconds, data_dir=tmp_path)

    with served("3600") as server, closing(WireClient(server.endpoint)) as wire:
        wire("CreateTable", definition("pk:S", name="slow"))
        assert wire.refused("UpdateContributorInsights", on).type == "ResourceNotFoundException"
        server.kill()
    with served("0") as server, closing(WireClient(server.endpoint)) as wire:
        wait_until_active(wire, "slow")
        server.kill()
    with served("3600") as server, closing(WireClient(server.endpoint)) as wire:
        wire("UpdateContributorInsights", on)
        assert status_of_slow(wire) == "ENABLING"
    with served("0.3") as server, closing(WireClient(server.endpoint)) as wire:
        wire("UpdateContributorInsights", on | {"ContributorInsightsAction": "DISABLE"})
        while status_of_slow(wire) != "DISABLED":
            pass


def status_of_slow(wire: WireClient) -> str:
    answer = wire("DescribeContributorInsights", {"TableName": "slow"})
    status: str = answer["ContributorInsightsStatus"]
    return status
