"""Table backups of an earlier version can be restored."""

from __future__ import annotations

from pathlib import Path

from tests.support.databases.table_backups import wait_until_available
from tests.support.servers.upgraded import Upgraded, Written, check_whole, upgraded
from tests.support.tables.tables import wait_until_indexes_active


def test_all_backups_are_listed(opened: Upgraded, written: Written):
    listed = opened.wire("ListBackups", {})["BackupSummaries"]
    assert {each["BackupName"]: each["BackupArn"] for each in listed} == {
        name: backup["BackupArn"] for name, backup in written.backups.items()
    }


def test_each_backup_restores_its_table(written: Written, directory: Path):
    with upgraded(written, directory) as server:
        for name, backup in written.backups.items():
            described = wait_until_available(server.wire, backup["BackupArn"])
            source = described["SourceTableDetails"]
            assert source["TableName"] == backup["TableName"]
            assert source["ItemCount"] == len(backup["items"])
            target = f"restored-{name}"
            request = {"TargetTableName": target, "BackupArn": backup["BackupArn"]}
            server.wire("RestoreTableFromBackup", request)
            wait_until_indexes_active(server.wire, target)
            check_whole(server.wire, target, backup["request"], backup["items"])
        # A backup can't be deleted during its restore.
        wait_until_indexes_active(server.wire, "Restoring")
        for backup in written.backups.values():
            server.wire("DeleteBackup", {"BackupArn": backup["BackupArn"]})
        assert server.wire("ListBackups", {})["BackupSummaries"] == []
