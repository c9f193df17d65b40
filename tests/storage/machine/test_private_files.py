"""Only the owner may read the data directory and its files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import structlog

from dynactor.storage.data_directory import open_data_directory, open_existing_directory
from tests.support.clients.clients import boto3_client
from tests.support.servers.server import running_server


def modes(directory: Path) -> dict[str, int]:
    """The permissions of everything in a directory, by paths."""
    return {
        path.relative_to(directory).as_posix(): path.lstat().st_mode & 0o777
        for path in (directory, *directory.rglob("*"))
        if not path.is_symlink()
    }


def test_a_new_directory_is_private(tmp_path: Path):
    with structlog.testing.capture_logs() as logged:
        open_data_directory(tmp_path / "data").close()
    assert logged == []
    found = modes(tmp_path / "data")
    assert found == {".": 0o700, "rocksdb": 0o700, "lock": 0o600, "format": 0o600}


def test_an_existing_directory_is_mended_at_its_start(tmp_path: Path):
    data, other = tmp_path / "data", tmp_path / "other"
    open_data_directory(data).close()
    other.write_text("not of the data")
    other.chmod(0o644)
    (data / "rocksdb" / "1.sst").touch()
    (data / "link").symlink_to(other)
    for path, mode in ((data, 0o755), (data / "rocksdb", 0o775), (data / "rocksdb/1.sst", 0o640)):
        path.chmod(mode)
    open_existing_directory(data).close()
    assert modes(data)["."] == 0o755
    with structlog.testing.capture_logs() as logged:
        open_data_directory(data).close()
        open_data_directory(data).close()
    assert logged == [
        {
            "event": "permissions_restricted",
            "log_level": "info",
            "path": str(data),
            "files": 3,
        }
    ]
    found = modes(data)
    assert (found["."], found["rocksdb"], found["rocksdb/1.sst"]) == (0o700, 0o700, 0o600)
    assert other.stat().st_mode & 0o777 == 0o644


def test_a_directory_of_another_owner_is_used_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    data = tmp_path / "data"
    open_data_directory(data).close()
    data.chmod(0o770)
    (data / "format").chmod(0o644)
    chmod = Path.chmod

    def refusing(path: Path, mode: int) -> None:
        if path == data:
            raise PermissionError(1, "Operation not permitted", str(path))
        chmod(path, mode)

    monkeypatch.setattr(Path, "chmod", refusing)
    with structlog.testing.capture_logs() as logged:
        open_data_directory(data).close()
    assert [line["event"] for line in logged] == [
        "permissions_not_restricted",
        "permissions_restricted",
    ]
    assert (modes(data)["."], modes(data)["format"]) == (0o770, 0o600)


def test_files_of_a_running_server_are_private_and_exports_have_its_umask(tmp_path: Path):
    data, exports = tmp_path / "data", tmp_path / "exports"
    exports.mkdir()
    bucket = f"exports=file://{exports}"
    keys = {
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    with running_server("--bucket", bucket, data_dir=data) as server:
        client = boto3_client(server.endpoint)
        created = client.create_table(TableName="Notes", **keys)["TableDescription"]
        client.put_item(TableName="Notes", Item={"pk": {"S": "a"}})
        begun = client.export_table_to_point_in_time(
            TableArn=created["TableArn"], S3Bucket="exports"
        )
        arn = begun["ExportDescription"]["ExportArn"]
        status = "IN_PROGRESS"
        while status == "IN_PROGRESS":
            status = client.describe_export(ExportArn=arn)["ExportDescription"]["ExportStatus"]
        assert status == "COMPLETED"
        found = modes(data)
        assert len(found) > 10
        assert set(found.values()) == {0o700, 0o600}
    umask = os.umask(0)
    os.umask(umask)
    exported = {path: mode for path, mode in modes(exports).items() if path != "."}
    assert set(exported.values()) == {0o777 & ~umask, 0o666 & ~umask}
