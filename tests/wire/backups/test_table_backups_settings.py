"""The settings of a restored table: those of its source, or overrides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.databases.table_backups import back_up, restored
from tests.support.tables.tables import global_index, table, unique_name

pytestmark = pytest.mark.differs_from_dynamodb_local("it knows no backups")


def units(reads: int, writes: int) -> dict[str, int]:
    return {"ReadCapacityUnits": reads, "WriteCapacityUnits": writes}


@pytest.fixture(scope="module")
def provisioned(wire: WireClient) -> Iterator[str]:
    """A backup of a deleted provisioned table with every setting."""
    members: dict[str, Any] = {
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": units(7, 5),
        "GlobalSecondaryIndexes": [global_index("of-n", "n", ProvisionedThroughput=units(3, 2))],
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        "SSESpecification": {"Enabled": True, "SSEType": "KMS"},
        "TableClass": "STANDARD_INFREQUENT_ACCESS",
        "Tags": [{"Key": "team", "Value": "storage"}],
    }
    with table(wire, "pk:S", "sk:S", "n:N", **members) as name:
        protected = {"TableName": name, "DeletionProtectionEnabled": True}
        wire("UpdateTable", protected)
        arn = back_up(wire, name)
        wire("UpdateTable", protected | {"DeletionProtectionEnabled": False})
    yield arn
    wire("DeleteBackup", {"BackupArn": arn})


@pytest.fixture(scope="module")
def on_demand(wire: WireClient) -> Iterator[str]:
    """A backup of a deleted on-demand table with an index and limits."""
    limits = {"MaxReadRequestUnits": 300, "MaxWriteRequestUnits": 200}
    members = {
        "GlobalSecondaryIndexes": [global_index("of-n", "n", OnDemandThroughput=limits)],
        "OnDemandThroughput": limits,
    }
    with table(wire, "pk:S", "sk:S", "n:N", **members) as name:
        arn = back_up(wire, name)
    yield arn
    wire("DeleteBackup", {"BackupArn": arn})


def described(wire: WireClient, name: str) -> dict[str, Any]:
    answer: dict[str, Any] = wire("DescribeTable", {"TableName": name})["Table"]
    return answer


def throughput_of(resource: dict[str, Any]) -> dict[str, int]:
    shown = resource["ProvisionedThroughput"]
    return units(shown["ReadCapacityUnits"], shown["WriteCapacityUnits"])


def test_throughput_and_encryption_are_restored_without_the_table_class(
    wire: WireClient, provisioned: str
):
    with restored(wire, provisioned) as name:
        whole = described(wire, name)
        assert throughput_of(whole) == units(7, 5)
        [index] = whole["GlobalSecondaryIndexes"]
        assert throughput_of(index) == units(3, 2)
        assert whole["SSEDescription"]["SSEType"] == "KMS"
        assert "TableClassSummary" not in whole


def test_streams_tags_and_protection_are_not_restored(wire: WireClient, provisioned: str):
    with restored(wire, provisioned) as name:
        whole = described(wire, name)
        assert "StreamSpecification" not in whole
        assert "LatestStreamArn" not in whole
        assert whole["DeletionProtectionEnabled"] is False
        tags = wire("ListTagsOfResource", {"ResourceArn": whole["TableArn"]})["Tags"]
        assert tags == []


def test_time_to_live_is_not_restored_but_is_shown_for_the_backup(wire: WireClient):
    with table(wire, "pk:S") as name:
        settings = {"AttributeName": "at", "Enabled": True}
        wire("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": settings})
        arn = back_up(wire, name)
    features = wire("DescribeBackup", {"BackupArn": arn})["BackupDescription"]
    shown = features["SourceTableFeatureDetails"]["TimeToLiveDescription"]
    assert shown == {"AttributeName": "at", "TimeToLiveStatus": "ENABLED"}
    with restored(wire, arn) as other:
        answer = wire("DescribeTimeToLive", {"TableName": other})
        assert answer == {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}
    wire("DeleteBackup", {"BackupArn": arn})


def test_the_sources_settings_are_described_with_the_backup(wire: WireClient, provisioned: str):
    backup = wire("DescribeBackup", {"BackupArn": provisioned})["BackupDescription"]
    assert backup["SourceTableDetails"]["BillingMode"] == "PROVISIONED"
    assert backup["SourceTableDetails"]["ProvisionedThroughput"] == units(7, 5)
    features = backup["SourceTableFeatureDetails"]
    [index] = features["GlobalSecondaryIndexes"]
    assert index["ProvisionedThroughput"] == units(3, 2)
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    assert features["StreamDescription"] == stream
    assert features["SSEDescription"]["Status"] == "ENABLED"


def test_throughput_can_be_overridden(wire: WireClient, provisioned: str):
    index = global_index("of-n", "n", ProvisionedThroughput=units(11, 12))
    with restored(
        wire,
        provisioned,
        ProvisionedThroughputOverride=units(9, 8),
        GlobalSecondaryIndexOverride=[index],
    ) as name:
        whole = described(wire, name)
        assert throughput_of(whole) == units(9, 8)
        assert throughput_of(whole["GlobalSecondaryIndexes"][0]) == units(11, 12)


def test_an_index_selected_without_throughput_has_the_sources_throughput(
    wire: WireClient, provisioned: str
):
    with restored(
        wire, provisioned, GlobalSecondaryIndexOverride=[global_index("of-n", "n")]
    ) as name:
        [index] = described(wire, name)["GlobalSecondaryIndexes"]
        assert throughput_of(index) == units(3, 2)


def test_a_provisioned_table_can_be_restored_as_an_on_demand_table(
    wire: WireClient, provisioned: str
):
    with restored(wire, provisioned, BillingModeOverride="PAY_PER_REQUEST") as name:
        whole = described(wire, name)
        assert whole["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
        assert throughput_of(whole) == units(0, 0)
        assert throughput_of(whole["GlobalSecondaryIndexes"][0]) == units(0, 0)


def test_an_on_demand_table_keeps_its_limits(wire: WireClient, on_demand: str):
    with restored(wire, on_demand) as name:
        whole = described(wire, name)
        limits = {"MaxReadRequestUnits": 300, "MaxWriteRequestUnits": 200}
        assert whole["OnDemandThroughput"] == limits
        assert whole["GlobalSecondaryIndexes"][0]["OnDemandThroughput"] == limits


def test_limits_can_be_overridden(wire: WireClient, on_demand: str):
    limits = {"MaxReadRequestUnits": 20, "MaxWriteRequestUnits": 10}
    with restored(wire, on_demand, OnDemandThroughputOverride=limits) as name:
        assert described(wire, name)["OnDemandThroughput"] == limits


def test_an_on_demand_table_can_be_restored_as_a_provisioned_table(
    wire: WireClient, on_demand: str
):
    index = global_index("of-n", "n", ProvisionedThroughput=units(1, 1))
    with restored(
        wire,
        on_demand,
        BillingModeOverride="PROVISIONED",
        ProvisionedThroughputOverride=units(2, 2),
        GlobalSecondaryIndexOverride=[index],
    ) as name:
        whole = described(wire, name)
        assert throughput_of(whole) == units(2, 2)
        assert throughput_of(whole["GlobalSecondaryIndexes"][0]) == units(1, 1)
        assert "OnDemandThroughput" not in whole


def test_encryption_can_be_overridden(wire: WireClient, provisioned: str):
    with restored(wire, provisioned, SSESpecificationOverride={"Enabled": False}) as name:
        assert "SSEDescription" not in described(wire, name)


@pytest.mark.parametrize(
    ("source", "override"),
    [
        ("provisioned", {"BillingModeOverride": "PAY_PER_REQUEST",
                         "ProvisionedThroughputOverride": units(1, 1)}),
        ("provisioned", {"SSESpecificationOverride": {"Enabled": True, "SSEType": "AES256"}}),
        ("on_demand", {"BillingModeOverride": "PROVISIONED"}),
        ("on_demand", {"BillingModeOverride": "PROVISIONED",
                       "ProvisionedThroughputOverride": units(1, 1)}),
        ("on_demand", {"ProvisionedThroughputOverride": units(1, 1)}),
        ("on_demand", {"BillingModeOverride": "SOMETIMES"}),
        ("provisioned", {"ProvisionedThroughputOverride": units(0, 1)}),
    ],
)  # fmt: skip
def test_invalid_settings_are_refused(
    wire: WireClient, source: str, override: dict[str, Any], request: pytest.FixtureRequest
):
    name = unique_name()
    asked = {"TargetTableName": name, "BackupArn": request.getfixturevalue(source), **override}
    assert wire.refused("RestoreTableFromBackup", asked).type == "ValidationException"
    missing = wire.refused("DescribeTable", {"TableName": name})
    assert missing.type == "ResourceNotFoundException"
