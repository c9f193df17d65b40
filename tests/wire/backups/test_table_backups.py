"""A backup of a table has all earlier acknowledged writes, and can be restored."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.databases.table_backups import back_up, items_of, restored, wait_until_available
from tests.support.tables.tables import definition, table, unique_name, wait_until_active

pytestmark = pytest.mark.differs_from_dynamodb_local("it knows no backups")


def put(call: WireClient, name: str, sort: str, **attributes: Any) -> None:
    item = {"pk": {"S": "EC2"}, "sk": {"S": sort}, **attributes}
    call("PutItem", {"TableName": name, "Item": item})


def test_a_restored_table_has_the_items_at_the_time_of_the_backup(wire: WireClient):
    with table(wire, "pk:S", "sk:S") as name:
        for sort in "abc":
            put(wire, name, sort, tags={"SS": ["x", "y"]}, at={"N": "1.50"}, none={"NULL": True})
        before = items_of(wire, name)
        arn = back_up(wire, name)
        put(wire, name, "d")
        put(wire, name, "a", replaced={"BOOL": True})
        wire("DeleteItem", {"TableName": name, "Key": {"pk": {"S": "EC2"}, "sk": {"S": "b"}}})
        with restored(wire, arn) as other:
            assert items_of(wire, other) == before
            put(wire, other, "e")
            assert len(items_of(wire, other)) == 4
        assert len(items_of(wire, name)) == 3
        wire("DeleteBackup", {"BackupArn": arn})


def test_a_requested_backup_is_described(wire: WireClient):
    with table(wire, "pk:S", "sk:S") as name:
        put(wire, name, "a")
        source = wire("DescribeTable", {"TableName": name})["Table"]
        asked = wire("CreateBackup", {"TableName": name, "BackupName": "nightly"})["BackupDetails"]
        assert asked.pop("BackupStatus") in ("CREATING", "AVAILABLE")
        assert asked.pop("BackupSizeBytes") >= 0
        arn = asked["BackupArn"]
        assert arn.startswith(f"{source['TableArn']}/backup/")
        label = arn.rpartition("/")[2]
        assert re.fullmatch("[0-9]{14}-[0-9a-f]{8}", label)
        assert int(label[:14]) == pytest.approx(asked["BackupCreationDateTime"] * 1000, abs=1)
        assert asked == {
            "BackupArn": arn,
            "BackupName": "nightly",
            "BackupType": "USER",
            "BackupCreationDateTime": asked["BackupCreationDateTime"],
        }
        described = wait_until_available(wire, arn)
        wire("DeleteBackup", {"BackupArn": arn})
    details = described["BackupDetails"]
    assert details == asked | {"BackupStatus": "AVAILABLE", "BackupSizeBytes": 8}
    assert described["SourceTableDetails"] == {
        "TableName": name,
        "TableId": source["TableId"],
        "TableArn": source["TableArn"],
        "TableSizeBytes": 8,
        "KeySchema": source["KeySchema"],
        "TableCreationDateTime": source["CreationDateTime"],
        "ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0},
        "ItemCount": 1,
        "BillingMode": "PAY_PER_REQUEST",
    }
    assert described["SourceTableFeatureDetails"] == {}


def test_a_backup_exists_after_its_table_is_deleted(wire: WireClient):
    with table(wire, "pk:S", "sk:S") as name:
        put(wire, name, "a")
        arn = back_up(wire, name)
        before = items_of(wire, name)
    with restored(wire, arn) as other:
        assert items_of(wire, other) == before
    wire("DeleteBackup", {"BackupArn": arn})


def test_a_table_is_restored_under_its_own_name_once_the_table_is_deleted(wire: WireClient):
    with table(wire, "pk:S", "sk:S") as name:
        put(wire, name, "a")
        arn = back_up(wire, name)
        uuid = wire("DescribeTable", {"TableName": name})["Table"]["TableId"]
        wire("DeleteTable", {"TableName": name})
        asked = {"TargetTableName": name, "BackupArn": arn}
        while True:
            answer = wire.send("RestoreTableFromBackup", asked)
            if answer.status == 200:
                break
            assert "TableInUseException" in answer.json["__type"]
        assert wait_until_active(wire, name)["TableId"] != uuid
        assert len(items_of(wire, name)) == 1
    wire("DeleteBackup", {"BackupArn": arn})


def test_the_description_of_a_restored_table_names_its_source(wire: WireClient):
    with table(wire, "pk:S", "sk:S") as name:
        put(wire, name, "a")
        arn = back_up(wire, name)
        other = unique_name("restored")
        asked = {"TargetTableName": other, "BackupArn": arn}
        begun = wire("RestoreTableFromBackup", asked)["TableDescription"]
        assert begun["TableName"] == other
        assert begun["TableStatus"] == "CREATING"
        source_arn = wire("DescribeTable", {"TableName": name})["Table"]["TableArn"]
        summary = begun["RestoreSummary"]
        assert summary == {
            "SourceBackupArn": arn,
            "SourceTableArn": source_arn,
            "RestoreDateTime": summary["RestoreDateTime"],
            "RestoreInProgress": True,
        }
        assert summary["RestoreDateTime"] == pytest.approx(begun["CreationDateTime"], abs=1)
        whole = wait_until_active(wire, other)
        assert "RestoreSummary" not in whole
        assert whole["ItemCount"] == 1
        assert whole["TableSizeBytes"] == 8
        wire("DeleteTable", {"TableName": other})
        wire("DeleteBackup", {"BackupArn": arn})


def test_delete_backup_describes_the_backup_and_later_requests_do_not_find_it(wire: WireClient):
    with table(wire, "pk:S", "sk:S") as name:
        put(wire, name, "a")
        arn = back_up(wire, name)
        described = wire("DescribeBackup", {"BackupArn": arn})["BackupDescription"]
        deleted = wire("DeleteBackup", {"BackupArn": arn})["BackupDescription"]
        described["BackupDetails"]["BackupStatus"] = "DELETED"
        assert deleted == described
        refusal = ("BackupNotFoundException", f"Backup not found: {arn}")
        for operation in ("DescribeBackup", "DeleteBackup"):
            assert wire.refused(operation, {"BackupArn": arn}) == refusal
        asked = {"TargetTableName": unique_name(), "BackupArn": arn}
        assert wire.refused("RestoreTableFromBackup", asked) == refusal


def test_a_missing_table_cannot_be_backed_up(wire: WireClient):
    name = unique_name()
    refusal = wire.refused("CreateBackup", {"TableName": name, "BackupName": "nightly"})
    assert refusal == ("TableNotFoundException", f"Table not found: {name}")


def test_a_table_may_be_named_by_its_arn(wire: WireClient):
    with table(wire, "pk:S", "sk:S") as name:
        arn_of_table = wire("DescribeTable", {"TableName": name})["Table"]["TableArn"]
        arn = back_up(wire, arn_of_table)
        assert arn.startswith(f"{arn_of_table}/backup/")
        wire("DeleteBackup", {"BackupArn": arn})


def test_a_table_is_not_restored_over_another(wire: WireClient):
    with table(wire, "pk:S", "sk:S") as name:
        arn = back_up(wire, name)
        refusal = wire.refused(
            "RestoreTableFromBackup", {"TargetTableName": name, "BackupArn": arn}
        )
        assert refusal == ("TableAlreadyExistsException", f"Table already exists: {name}")
        wire("DeleteBackup", {"BackupArn": arn})


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:dynamodb:us-east-1:000000000000:table/Thread/index/by-posts",
        "a text that is no name of any resource whatsoever",
    ],
)
def test_an_arn_of_no_backup_is_refused(wire: WireClient, arn: str):
    assert wire.refused("DescribeBackup", {"BackupArn": arn}) == (
        "ValidationException",
        (
            "One or more parameter values were invalid: Invalid BackupArn: Invalid ResourceArn "
            f"provided as input {arn}"
        ),
    )


@pytest.mark.parametrize("name", ["ab", "x" * 256, "no blanks", "no/slash"])
def test_an_invalid_backup_name_is_refused(wire: WireClient, simple: str, name: str):
    refusal = wire.refused("CreateBackup", {"TableName": simple, "BackupName": name})
    assert refusal.type == "ValidationException"
    assert "'backupName' failed to satisfy constraint" in refusal.message


def test_two_backups_may_have_the_same_name(wire: WireClient):
    with table(wire, "pk:S", "sk:S") as name:
        arns = {back_up(wire, name, "same") for _ in range(2)}
        assert len(arns) == 2
        for arn in arns:
            wire("DeleteBackup", {"BackupArn": arn})


def test_an_empty_table_is_backed_up_and_restored(wire: WireClient):
    with table(wire, "pk:S", "sk:S") as name:
        arn = back_up(wire, name)
    with restored(wire, arn) as other:
        assert items_of(wire, other) == []
    wire("DeleteBackup", {"BackupArn": arn})


def test_a_restored_table_can_be_backed_up_itself(wire: WireClient):
    with table(wire, "pk:S", "sk:S") as name:
        put(wire, name, "a")
        first = back_up(wire, name)
    with restored(wire, first) as other:
        before = items_of(wire, other)
        second = back_up(wire, other)
    wire("DeleteBackup", {"BackupArn": first})
    with restored(wire, second) as third:
        assert items_of(wire, third) == before
    wire("DeleteBackup", {"BackupArn": second})


def test_items_with_number_and_binary_keys_are_restored(wire: WireClient):
    request = definition("pk:N", "sk:B")
    name = request["TableName"]
    wire("CreateTable", request)
    wait_until_active(wire, name)
    for number in ("-1E-130", "0", "12", "9.99E+125"):
        for binary in ("AA==", "AAEA", "/w=="):
            key = {"pk": {"N": number}, "sk": {"B": binary}}
            wire("PutItem", {"TableName": name, "Item": key})
    before = items_of(wire, name)
    arn = back_up(wire, name)
    wire("DeleteTable", {"TableName": name})
    with restored(wire, arn) as other:
        assert items_of(wire, other) == before
        for item in before:
            assert wire("GetItem", {"TableName": other, "Key": item})["Item"] == item
    wire("DeleteBackup", {"BackupArn": arn})


def test_boto3_creates_lists_and_restores_backups(client: Any, wire: WireClient):
    with table(wire, "pk:S", "sk:S") as name:
        put(wire, name, "a")
        made = client.create_backup(TableName=name, BackupName="nightly")["BackupDetails"]
        arn = made["BackupArn"]
        wait_until_available(wire, arn)
        day = timedelta(days=1)
        listed = client.list_backups(
            TableName=name,
            TimeRangeLowerBound=made["BackupCreationDateTime"] - day,
            TimeRangeUpperBound=made["BackupCreationDateTime"] + day,
        )["BackupSummaries"]
        assert [backup["BackupArn"] for backup in listed] == [arn]
        later = made["BackupCreationDateTime"] + day
        empty = client.list_backups(TableName=name, TimeRangeLowerBound=later)
        assert empty["BackupSummaries"] == []
        other = unique_name("restored")
        client.restore_table_from_backup(TargetTableName=other, BackupArn=arn)
        client.get_waiter("table_exists").wait(TableName=other, WaiterConfig={"Delay": 1})
        assert client.scan(TableName=other)["Count"] == 1
        client.delete_table(TableName=other)
        client.delete_backup(BackupArn=arn)
        with pytest.raises(client.exceptions.BackupNotFoundException):
            client.describe_backup(BackupArn=arn)
