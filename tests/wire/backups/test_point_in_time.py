"""Point-in-time recovery: its window, restores of tables, and backups of deleted tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.clients.lanes import LanesClient
from tests.support.databases.table_backups import items_of, restored
from tests.support.tables.tables import (
    definition,
    global_index,
    local_index,
    table,
    unique_name,
    wait_until_active,
)

pytestmark = pytest.mark.differs_from_dynamodb_local("it knows no backups")

UNAVAILABLE = "PointInTimeRecoveryUnavailableException"


@pytest.fixture
def recoverable(wire: WireClient) -> Iterator[str]:
    """A table with indexes, a stream, time to live, tags and recovery, and three items."""
    request = definition(
        "pk:S",
        "sk:S",
        "n:N",
        indexes=(local_index("local", "pk", "n"),),
        GlobalSecondaryIndexes=[global_index("global", "n")],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
        Tags=[{"Key": "team", "Value": "music"}],
    )
    name = request["TableName"]
    wire("CreateTable", request)
    wait_until_active(wire, name)
    ttl = {"Enabled": True, "AttributeName": "expires"}
    wire("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": ttl})
    switch(wire, name)
    for number in range(3):
        put(wire, name, number)
    yield name
    wire("DeleteTable", {"TableName": name})


def put(wire: WireClient, name: str, number: int) -> None:
    item = {"pk": {"S": "p"}, "sk": {"S": f"s{number}"}, "n": {"N": str(number)}}
    wire("PutItem", {"TableName": name, "Item": item})


def switch(wire: WireClient, name: str, *, enabled: bool = True, **members: Any) -> dict[str, Any]:
    """Enable or disable the recovery of a table; returns its description."""
    wanted = {"PointInTimeRecoveryEnabled": enabled, **members}
    request = {"TableName": name, "PointInTimeRecoverySpecification": wanted}
    return described(wire("UpdateContinuousBackups", request))


def described(answer: dict[str, Any]) -> dict[str, Any]:
    description = answer["ContinuousBackupsDescription"]
    assert description["ContinuousBackupsStatus"] == "ENABLED"
    found: dict[str, Any] = description["PointInTimeRecoveryDescription"]
    return found


def wait_restorable(wire: WireClient, name: str) -> float:
    """Poll until the present state can be restored; returns the latest restorable time."""
    begin = None
    while True:
        answer = wire("DescribeContinuousBackups", {"TableName": name})
        latest: float = described(answer)["LatestRestorableDateTime"]
        begin = begin or latest
        if latest > begin:
            return latest


def test_the_header_of_a_past_read_works_on_all_lanes(
    wire: WireClient, lanes: LanesClient, recoverable: str
) -> None:
    epoch_seconds = wait_restorable(wire, recoverable)
    before = items_of(wire, recoverable)
    put(wire, recoverable, 3)
    time = datetime.fromtimestamp(epoch_seconds, tz=UTC).isoformat()
    header = {"X-Dynactor-As-Of": time}
    scan = lanes.send("Scan", {"TableName": recoverable}, header)
    assert (scan.status, scan.headers["X-Dynactor-As-Of"]) == (200, time)
    assert sorted(scan.json["Items"], key=repr) == sorted(before, key=repr)
    write = {"TableName": recoverable, "Key": {"pk": {"S": "p"}, "sk": {"S": "s3"}}}
    assert lanes.send("DeleteItem", write, header).status == 400
    malformed = lanes.send("Scan", {"TableName": recoverable}, {"X-Dynactor-As-Of": "now"})
    assert (malformed.status, malformed.headers["X-Dynactor-As-Of"]) == (400, None)


def restore(wire: WireClient, source: str, **members: Any) -> dict[str, Any]:
    """Restore a table, by default to the latest time; returns the new table's description."""
    request = restore_request(source, **members)
    wire("RestoreTableToPointInTime", request)
    return wait_until_active(wire, request["TargetTableName"])


def restore_request(source: str, **members: Any) -> dict[str, Any]:
    request = {"SourceTableName": source, "TargetTableName": unique_name("restored")} | members
    if "RestoreDateTime" not in request:
        request.setdefault("UseLatestRestorableTime", True)
    return request


def test_a_window_is_described(wire: WireClient, recoverable: str):
    found = switch(wire, recoverable, RecoveryPeriodInDays=7)
    assert found["PointInTimeRecoveryStatus"] == "ENABLED"
    assert found["RecoveryPeriodInDays"] == 7
    assert found["EarliestRestorableDateTime"] <= found["LatestRestorableDateTime"]
    restored = restore(wire, recoverable, RestoreDateTime=found["EarliestRestorableDateTime"])
    assert restored["TableStatus"] == "ACTIVE"
    assert switch(wire, recoverable)["RecoveryPeriodInDays"] == 35
    assert switch(wire, recoverable, enabled=False) == {"PointInTimeRecoveryStatus": "DISABLED"}


@pytest.mark.ours_alone("on AWS the latest time is minutes ago")
def test_a_table_is_restored_to_a_time(wire: WireClient, recoverable: str):
    latest = wait_restorable(wire, recoverable)
    put(wire, recoverable, 3)
    description = restore(wire, recoverable, RestoreDateTime=latest)
    name = description["TableName"]
    assert len(items_of(wire, name)) == 3
    for index in ("local", "global"):
        assert len(items_of(wire, name, IndexName=index)) == 3
    assert "RestoreSummary" not in description
    wire("DeleteTable", {"TableName": name})


@pytest.mark.ours_alone("on AWS the latest time is minutes ago")
def test_settings_beside_the_table_are_not_restored(wire: WireClient, recoverable: str):
    arn = wire("DescribeTable", {"TableName": recoverable})["Table"]["TableArn"]
    request = restore_request(recoverable) | {"SourceTableArn": arn}
    del request["SourceTableName"]
    wire("RestoreTableToPointInTime", request)
    name = request["TargetTableName"]
    description = wait_until_active(wire, name)
    assert len(items_of(wire, name)) == 3
    assert "StreamSpecification" not in description
    ttl = wire("DescribeTimeToLive", {"TableName": name})["TimeToLiveDescription"]
    assert ttl == {"TimeToLiveStatus": "DISABLED"}
    assert wire("ListTagsOfResource", {"ResourceArn": description["TableArn"]})["Tags"] == []
    answer = wire("DescribeContinuousBackups", {"TableName": name})
    assert described(answer) == {"PointInTimeRecoveryStatus": "DISABLED"}
    wire("DeleteTable", {"TableName": name})


@pytest.mark.ours_alone("on AWS the latest time is minutes ago")
def test_settings_can_be_overridden(wire: WireClient, recoverable: str):
    units = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6}
    description = restore(
        wire,
        recoverable,
        BillingModeOverride="PROVISIONED",
        ProvisionedThroughputOverride=units,
        GlobalSecondaryIndexOverride=[],
        LocalSecondaryIndexOverride=[],
        SSESpecificationOverride={"Enabled": False},
    )
    assert description["ProvisionedThroughput"].items() > units.items()
    assert "GlobalSecondaryIndexes" not in description
    assert "LocalSecondaryIndexes" not in description
    assert len(items_of(wire, description["TableName"])) == 3
    wire("DeleteTable", {"TableName": description["TableName"]})


def test_a_table_without_recovery_is_not_restored(wire: WireClient):
    with table(wire, "pk:S") as name:
        assert wire.refused("RestoreTableToPointInTime", restore_request(name)) == (
            UNAVAILABLE,
            f"Point in time recovery is not enabled for table '{name}'",
        )


def test_a_missing_table_is_not_restored(wire: WireClient):
    name = unique_name()
    assert wire.refused("RestoreTableToPointInTime", restore_request(name)) == (
        "TableNotFoundException",
        f"Table not found: {name}",
    )


@pytest.mark.parametrize("seconds", [-100, 3_600])
def test_only_times_of_the_window_are_restored(wire: WireClient, recoverable: str, seconds: int):
    found = described(wire("DescribeContinuousBackups", {"TableName": recoverable}))
    edge = "Earliest" if seconds < 0 else "Latest"
    wanted = found[f"{edge}RestorableDateTime"] + seconds
    request = restore_request(recoverable, RestoreDateTime=wanted)
    refusal = wire.refused("RestoreTableToPointInTime", request)
    assert refusal.type == "InvalidRestoreTimeException"
    assert refusal.message == (
        "An invalid restore time was specified. RestoreDateTime must be between "
        "EarliestRestorableDateTime and LatestRestorableDateTime."
    )


def test_a_name_in_use_is_refused(wire: WireClient, recoverable: str):
    request = restore_request(recoverable, TargetTableName=recoverable)
    assert wire.refused("RestoreTableToPointInTime", request) == (
        "TableAlreadyExistsException",
        f"Table already exists: {recoverable}",
    )


@pytest.mark.ours_alone("the messages are ours")
@pytest.mark.parametrize(
    "members",
    [
        {"RestoreDateTime": 1, "UseLatestRestorableTime": True},
        {"UseLatestRestorableTime": False},
        {"SourceTableArn": "arn:aws:dynamodb:us-east-1:000000000000:table/another"},
        {"VectorIndexOverride": [{"IndexName": "vectors"}]},
    ],
)
def test_contradictory_requests_are_refused(
    wire: WireClient, recoverable: str, members: dict[str, Any]
):
    request = restore_request(recoverable, **members)
    assert wire.refused("RestoreTableToPointInTime", request).type == "ValidationException"


@pytest.mark.ours_alone("on AWS such a backup takes minutes")
def test_a_deleted_table_with_recovery_leaves_a_backup(wire: WireClient):
    request = definition("pk:S")
    name = request["TableName"]
    wire("CreateTable", request)
    wait_until_active(wire, name)
    switch(wire, name)
    wire("PutItem", {"TableName": name, "Item": {"pk": {"S": "p"}}})
    wire("DeleteTable", {"TableName": name})
    for kind in ("SYSTEM", "ALL"):
        (backup,) = listed(wire, name, BackupType=kind)
        assert backup["BackupType"] == "SYSTEM"
        assert backup["BackupName"] == f"{name}$DeletedTableBackup"
        assert re.search(r"/backup/[0-9]{14}-00000000$", backup["BackupArn"])
        days = (backup["BackupExpiryDateTime"] - backup["BackupCreationDateTime"]) / 86_400
        assert days == pytest.approx(35)
    assert listed(wire, name) == []
    with restored(wire, backup["BackupArn"]) as copy:
        assert items_of(wire, copy) == [{"pk": {"S": "p"}}]
    assert wire.refused("DeleteBackup", {"BackupArn": backup["BackupArn"]}) == (
        "ValidationException",
        f"User is not allowed to delete the system backup: {backup['BackupArn']}",
    )


def test_a_period_of_recovery_that_is_disabled_is_refused(wire: WireClient, simple: str):
    wanted = {"PointInTimeRecoveryEnabled": False, "RecoveryPeriodInDays": 7}
    request = {"TableName": simple, "PointInTimeRecoverySpecification": wanted}
    assert wire.refused("UpdateContinuousBackups", request) == (
        "ValidationException",
        (
            "One or more parameter values were invalid: RecoveryPeriodInDays cannot be specified "
            "when PointInTimeRecoveryEnabled is false"
        ),
    )


def test_a_source_named_twice_is_refused(wire: WireClient, recoverable: str):
    arn = wire("DescribeTable", {"TableName": recoverable})["Table"]["TableArn"]
    request = restore_request(recoverable) | {"SourceTableArn": arn}
    refusal = wire.refused("RestoreTableToPointInTime", request)
    assert refusal == (
        "ValidationException",
        "Exactly one of SourceTableName and SourceTableArn must be specified",
    )


def listed(wire: WireClient, name: str, **members: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = wire("ListBackups", {"TableName": name, **members})[
        "BackupSummaries"
    ]
    return found
