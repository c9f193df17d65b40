"""ListBackups: filters by table, time and type, and pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.clients.clients import WireClient
from tests.support.databases.table_backups import back_up
from tests.support.tables.tables import table, unique_name

pytestmark = pytest.mark.differs_from_dynamodb_local("it knows no backups")


@pytest.fixture(scope="module")
def backups(wire: WireClient) -> Iterator[tuple[str, list[str]]]:
    """A table and its five backups, oldest first, and one backup of another table."""
    with table(wire, "pk:S") as name, table(wire, "pk:S") as other:
        other_arn = back_up(wire, other)
        arns = [back_up(wire, name, f"number-{number}") for number in range(5)]
        yield name, arns
        for arn in (*arns, other_arn):
            wire("DeleteBackup", {"BackupArn": arn})


def listed(wire: WireClient, **members: Any) -> list[str]:
    answer = wire("ListBackups", members)
    assert "LastEvaluatedBackupArn" not in answer
    return [backup["BackupArn"] for backup in answer["BackupSummaries"]]


def test_a_tables_backups_are_listed(wire: WireClient, backups: tuple[str, list[str]]):
    name, arns = backups
    assert sorted(listed(wire, TableName=name)) == sorted(arns)


def test_the_backups_of_all_tables_are_listed(wire: WireClient, backups: tuple[str, list[str]]):
    found: list[str] = []
    request: dict[str, Any] = {}
    while True:
        page = wire("ListBackups", request)
        found += [backup["BackupArn"] for backup in page["BackupSummaries"]]
        if "LastEvaluatedBackupArn" not in page:
            break
        request = {"ExclusiveStartBackupArn": page["LastEvaluatedBackupArn"]}
    assert set(backups[1]) < set(found)
    assert len(set(found)) == len(found)


def test_a_table_may_be_named_by_its_arn(wire: WireClient, backups: tuple[str, list[str]]):
    name, arns = backups
    arn = wire("DescribeTable", {"TableName": name})["Table"]["TableArn"]
    assert len(listed(wire, TableName=arn)) == len(arns)


def test_a_summary_describes_the_backup(wire: WireClient, backups: tuple[str, list[str]]):
    name, arns = backups
    [first] = [
        each
        for each in wire("ListBackups", {"TableName": name})["BackupSummaries"]
        if each["BackupArn"] == arns[0]
    ]
    described = wire("DescribeBackup", {"BackupArn": arns[0]})["BackupDescription"]
    source = {
        member: described["SourceTableDetails"][member]
        for member in ("TableName", "TableId", "TableArn")
    }
    assert first == described["BackupDetails"] | source


@pytest.mark.parametrize("limit", [1, 2, 4, 5])
def test_pages_together_list_all_backups_once(
    wire: WireClient, backups: tuple[str, list[str]], limit: int
):
    name, arns = backups
    found: list[str] = []
    request = {"TableName": name, "Limit": limit}
    while True:
        page = wire("ListBackups", request)
        assert len(page["BackupSummaries"]) <= limit
        found += [backup["BackupArn"] for backup in page["BackupSummaries"]]
        if "LastEvaluatedBackupArn" not in page:
            break
        assert page["LastEvaluatedBackupArn"] == found[-1]
        request["ExclusiveStartBackupArn"] = found[-1]
    assert sorted(found) == sorted(arns)
    assert len(found) == len(arns)


def test_a_page_continues_after_a_backup_that_was_deleted(wire: WireClient):
    with table(wire, "pk:S") as name:
        arns = [back_up(wire, name) for _ in range(3)]
        page = wire("ListBackups", {"TableName": name, "Limit": 1})
        last = page["LastEvaluatedBackupArn"]
        wire("DeleteBackup", {"BackupArn": last})
        left = listed(wire, TableName=name, ExclusiveStartBackupArn=last)
        assert sorted(left) == sorted(set(arns) - {last})
        for arn in left:
            wire("DeleteBackup", {"BackupArn": arn})


def test_the_lower_time_bound_is_inclusive_and_the_upper_is_exclusive(
    wire: WireClient, backups: tuple[str, list[str]]
):
    name, _ = backups
    summaries = wire("ListBackups", {"TableName": name})["BackupSummaries"]
    times = sorted(each["BackupCreationDateTime"] for each in summaries)
    for lower, upper in ((times[1], times[3]), (times[0], times[4]), (times[2], times[2])):
        expected = [
            each["BackupArn"]
            for each in summaries
            if lower <= each["BackupCreationDateTime"] < upper
        ]
        between = {"TimeRangeLowerBound": lower, "TimeRangeUpperBound": upper}
        assert listed(wire, TableName=name, **between) == expected


@pytest.mark.parametrize(
    ("kind", "count"), [("USER", 5), ("ALL", 5), ("SYSTEM", 0), ("AWS_BACKUP", 0)]
)
def test_all_backups_have_the_type_user(
    wire: WireClient, backups: tuple[str, list[str]], kind: str, count: int
):
    assert len(listed(wire, TableName=backups[0], BackupType=kind)) == count


def test_a_table_that_never_existed_has_no_backups(wire: WireClient):
    assert listed(wire, TableName=unique_name()) == []


@pytest.mark.parametrize(
    ("members", "named"),
    [
        ({"Limit": 0}, "limit"),
        ({"Limit": 101}, "limit"),
        ({"ExclusiveStartBackupArn": "short"}, "exclusiveStartBackupArn"),
        ({"BackupType": "MINE"}, "backupType"),
    ],
)
def test_invalid_requests_are_refused(wire: WireClient, members: dict[str, Any], named: str):
    refusal = wire.refused("ListBackups", members)
    assert refusal.type == "ValidationException"
    assert f"'{named}' failed to satisfy constraint" in refusal.message


def test_a_start_arn_of_no_backup_is_refused(wire: WireClient):
    arn = "arn:aws:dynamodb:us-east-1:123456789012:table/Thread"
    refusal = wire.refused("ListBackups", {"ExclusiveStartBackupArn": arn})
    assert refusal.type == "ValidationException"
