"""ARNs of other accounts, and of partitions and regions that do not exist."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.tables.tables import definition, unique_name

pytestmark = pytest.mark.differs_from_dynamodb_local("it ignores the owner of an ARN")

DENIED = ("AccessDeniedException", "Access is denied")
PREFIX = "One or more parameter values were invalid: "
TTL = {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": "at"}}
RECOVERY = {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}
ON_TABLES: list[tuple[str, str, dict[str, Any]]] = [
    ("DescribeTable", "TableName", {}),
    ("UpdateTable", "TableName", {"DeletionProtectionEnabled": False}),
    ("DeleteTable", "TableName", {}),
    ("DescribeTimeToLive", "TableName", {}),
    ("UpdateTimeToLive", "TableName", TTL),
    ("CreateBackup", "TableName", {"BackupName": "nightly"}),
    ("DescribeContinuousBackups", "TableName", {}),
    ("UpdateContinuousBackups", "TableName", RECOVERY),
    ("DescribeContributorInsights", "TableName", {}),
    ("ListTagsOfResource", "ResourceArn", {}),
    ("TagResource", "ResourceArn", {"Tags": [{"Key": "a", "Value": "b"}]}),
    ("UntagResource", "ResourceArn", {"TagKeys": ["a"]}),
]
LABEL = "01795271187040-d1dff77b"


def changed(arn: str, **fields: str) -> str:
    """An ARN with another partition, region or account."""
    parts = arn.split(":", 5)
    for name, place in (("partition", 1), ("region", 3), ("account", 4)):
        parts[place] = fields.get(name, parts[place])
    return ":".join(parts)


@pytest.fixture(scope="module")
def arn(wire: WireClient, simple: str) -> str:
    described = wire("DescribeTable", {"TableName": simple})["Table"]
    return str(described["TableArn"])


@pytest.mark.parametrize(("operation", "member", "others"), ON_TABLES)
def test_a_table_of_another_account_is_denied(
    wire: WireClient, arn: str, operation: str, member: str, others: dict[str, Any]
):
    foreign = changed(arn, account="111122223333")
    assert wire.refused(operation, {member: foreign, **others}) == DENIED


@pytest.mark.parametrize("operation", ["DescribeBackup", "DeleteBackup"])
def test_a_backup_of_another_account_is_denied(wire: WireClient, arn: str, operation: str):
    foreign = changed(arn, account="111122223333") + f"/backup/{LABEL}"
    assert wire.refused(operation, {"BackupArn": foreign}) == DENIED


def test_a_restore_from_another_account_is_refused(wire: WireClient, arn: str):
    foreign = changed(arn, account="111122223333")
    target = {"TargetTableName": unique_name()}
    backup = f"{foreign}/backup/{LABEL}"
    assert wire.refused("RestoreTableFromBackup", {"BackupArn": backup, **target}) == (
        "ValidationException",
        f"{PREFIX}Invalid BackupArn: Invalid ResourceArn provided as input {backup}",
    )
    request = {"SourceTableArn": foreign, "UseLatestRestorableTime": True, **target}
    assert wire.refused("RestoreTableToPointInTime", request) == (
        "ValidationException",
        f"{PREFIX}Invalid TableArn: Invalid ResourceArn provided as input {foreign}",
    )


@pytest.mark.parametrize(
    "place", [{"partition": "aws-moon"}, {"region": "xx-nowhere-1"}, {"region": "cn-north-1"}]
)
@pytest.mark.parametrize(
    ("operation", "member"), [("DescribeTable", "TableName"), ("ListTagsOfResource", "ResourceArn")]
)
def test_an_unknown_partition_or_region_is_refused(
    wire: WireClient, arn: str, operation: str, member: str, place: dict[str, str]
):
    foreign = changed(arn, **place)
    assert wire.refused(operation, {member: foreign}) == (
        "ValidationException",
        f"{PREFIX}Invalid TableArn: Invalid ResourceArn provided as input {foreign}",
    )


def test_an_arn_in_capitals_is_not_found(wire: WireClient, arn: str):
    refusal = wire.refused("DescribeTable", {"TableName": arn.upper()})
    assert refusal.type == "ResourceNotFoundException"
    refusal = wire.refused("ListTagsOfResource", {"ResourceArn": arn.upper()})
    assert refusal.type == "ResourceNotFoundException"
    # An ARN with a missing table's name in capitals is one of no table.
    missing = arn.rpartition("/")[0] + "/MISSING"
    refusal = wire.refused("DescribeTable", {"TableName": missing})
    assert refusal.type == "ResourceNotFoundException"


@pytest.mark.ours_alone("on AWS a table of another account needs a policy")
def test_operations_on_items_accept_the_arn_of_any_account(wire: WireClient, arn: str):
    foreign = changed(arn, account="111122223333")
    assert wire("GetItem", {"TableName": foreign, "Key": {"pk": {"S": "none"}}}) == {}


@pytest.mark.parametrize(
    ("operation", "others"),
    [("DescribeTable", {}), ("DeleteTable", {}), ("CreateTable", definition("pk:S"))],
)
def test_a_short_table_name_breaks_its_constraint(
    wire: WireClient, operation: str, others: dict[str, Any]
):
    assert wire.refused(operation, {**others, "TableName": "ab"}) == (
        "ValidationException",
        (
            "1 validation error detected: Value 'ab' at 'tableName' failed to satisfy constraint: "
            "Member must have length greater than or equal to 3"
        ),
    )


@pytest.mark.parametrize("name", ["ab", "a" * 256])
def test_a_wrong_length_of_other_names_is_reported_with_their_member(
    wire: WireClient, arn: str, simple: str, name: str
):
    words = "must be at least 3 characters long and at most 255 characters long"
    backup = {"BackupArn": f"{arn}/backup/{LABEL}", "TargetTableName": name}
    assert wire.refused("RestoreTableFromBackup", backup) == (
        "ValidationException",
        f"TargetTableName {words}",
    )
    index = {"TableName": simple, "IndexName": name}
    assert wire.refused("DescribeContributorInsights", index) == (
        "ValidationException",
        f"IndexName {words}",
    )
