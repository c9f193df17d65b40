"""An export has the items of one moment, in the layout that DynamoDB documents."""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections.abc import Sequence
from hashlib import md5
from pathlib import Path

import pytest
from msgspec import json

from dynactor.actors.transfers.table_exports import TableExports
from dynactor.storage import transfers
from dynactor.storage.store import Group, Store
from tests.support.databases.backed_up import CURSORS
from tests.support.databases.databases import SetClock
from tests.support.databases.recovered import record_times, trim
from tests.support.databases.transferred import (
    BUCKET,
    THREAD,
    exported_items,
    item,
    transferring,
    unknown_members,
)
from tests.support.stores.faulty_store import FaultyStore
from tests.support.stores.store import kept_store, memory_store

KEY_OF_FIRST = {name: item(0)[name] for name in ("pk", "n")}
DATE = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def base64_md5(data: bytes) -> str:
    return b64encode(md5(data, usedforsecurity=False).digest()).decode()


def files_below(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


async def test_an_export_has_all_items_and_the_documented_layout(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create(items=60)
        found = await call.export(S3Prefix="daily/", ClientToken="t")
        export_id = found["ExportArn"].rpartition("/")[2]
        folder = f"daily/AWSDynamoDB/{export_id}"
        root = call.directory / folder
        assert re.fullmatch(r"\d{14}-[0-9a-f]{8}", export_id)
        assert found["ExportStatus"] == "COMPLETED"
        assert found["ExportManifest"] == f"{folder}/manifest-summary.json"
        assert found["ItemCount"] == 60
        assert exported_items(call.directory, found) == await call.items("Thread")
        summary = json.decode((root / "manifest-summary.json").read_bytes())
        assert re.fullmatch(DATE, summary["endTime"])
        table_arn = "arn:aws:dynamodb:us-east-1:000000000000:table/Thread"
        assert summary == {
            "version": "2020-06-30",
            "exportArn": found["ExportArn"],
            "startTime": summary["startTime"],
            "endTime": summary["endTime"],
            "tableArn": table_arn,
            "tableId": found["TableId"],
            "exportTime": summary["startTime"],
            "s3Bucket": BUCKET,
            "s3Prefix": "daily/",
            "s3SseAlgorithm": "AES256",
            "s3SseKmsKeyId": None,
            "manifestFilesS3Key": f"{folder}/manifest-files.json",
            "billedSizeBytes": found["BilledSizeBytes"],
            "itemCount": 60,
            "outputFormat": "DYNAMODB_JSON",
            "exportType": "FULL_EXPORT",
        }
        files = [
            json.decode(line) for line in (root / "manifest-files.json").read_bytes().splitlines()
        ]
        assert sum(each["itemCount"] for each in files) == 60
        # One file for each of the four partitions.
        assert len(files) == 4
        for each in files:
            assert each.keys() == {"itemCount", "md5Checksum", "etag", "dataFileS3Key"}
            data = (call.directory / each["dataFileS3Key"]).read_bytes()
            assert each["md5Checksum"] == base64_md5(data)
            assert re.fullmatch(rf"{folder}/data/[a-z0-9]{{26}}\.json\.gz", each["dataFileS3Key"])
        for name in ("manifest-summary", "manifest-files"):
            data = (root / f"{name}.json").read_bytes()
            assert (root / f"{name}.md5").read_text() == base64_md5(data)
        assert sorted(path.name for path in root.iterdir()) == [
            "_started",
            "data",
            "manifest-files.json",
            "manifest-files.md5",
            "manifest-summary.json",
            "manifest-summary.md5",
        ]


async def test_an_empty_table_is_exported_with_a_file_for_each_partition(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create()
        found = await call.export()
        assert (found["ItemCount"], found["BilledSizeBytes"]) == (0, 0)
        data = (call.directory / found["ExportManifest"]).parent / "data"
        assert len(list(data.iterdir())) == 4
        assert exported_items(call.directory, found) == []


async def test_writes_after_the_answer_are_not_exported(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create(items=20)
        before = await call.items("Thread")
        begun = await call("ExportTableToPointInTime", TableArn=THREAD, S3Bucket=BUCKET)
        arn = begun["ExportDescription"]["ExportArn"]
        assert begun["ExportDescription"]["ExportStatus"] == "IN_PROGRESS"
        await call("PutItem", TableName="Thread", Item=item(99))
        await call("DeleteItem", TableName="Thread", Key=KEY_OF_FIRST)
        found = await call.exported(arn)
        assert exported_items(call.directory, found) == before


class WaitingCopies(FaultyStore):
    """A store where copies of tables wait until ``copy`` is set."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.copy = asyncio.Event()

    async def commit(self, groups: Sequence[Group]) -> asyncio.Future[None]:
        if any(group.head_key[:1] == CURSORS for group in groups):
            await self.copy.wait()
        return await super().commit(groups)


async def test_changes_recorded_for_an_export_are_deleted_afterwards(tmp_path: Path) -> None:
    async with (
        memory_store() as inner,
        transferring(tmp_path / "b", store := WaitingCopies(inner)) as call,
    ):
        await call.create(items=20)
        database = call.client.database
        begun = await call("ExportTableToPointInTime", TableArn=THREAD, S3Bucket=BUCKET)
        await call("PutItem", TableName="Thread", Item=item(99))
        assert await record_times(store, database.table("Thread"))
        store.copy.set()
        await call.exported(begun["ExportDescription"]["ExportArn"])
        await trim(database)
        assert await record_times(store, database.table("Thread")) == []


@pytest.mark.parametrize(
    ("bucket", "prefix", "code"),
    [
        ("unknown", "", "S3NoSuchBucket"),
        (BUCKET, "../outside", "S3AccessDenied"),
        (BUCKET, "a\0b", "S3InternalError"),
    ],
)
async def test_an_export_whose_bucket_fails_has_no_manifest(
    tmp_path: Path, bucket: str, prefix: str, code: str
) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create(items=3)
        found = await call.export(S3Bucket=bucket, S3Prefix=prefix)
        assert (found["ExportStatus"], found["FailureCode"]) == ("FAILED", code)
        assert "ExportManifest" not in found
        assert files_below(tmp_path) == []
        # Its copy of the table is gone, so the table can be deleted.
        await call("DeleteTable", TableName="Thread")


async def test_a_client_token_starts_one_export(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create()
        first = await call.export(ClientToken="t")
        again = await call(
            "ExportTableToPointInTime", TableArn=THREAD, S3Bucket=BUCKET, ClientToken="t"
        )
        assert again["ExportDescription"] == first
        refusal = await call.refused(
            "ExportTableToPointInTime", TableArn=THREAD, S3Bucket="other", ClientToken="t"
        )
        assert refusal[0] == "ExportConflictException"


async def test_a_client_token_is_free_after_8_hours(tmp_path: Path) -> None:
    clock = SetClock()
    async with transferring(tmp_path / "b", clock=clock) as call:
        await call.create()
        first = await call.export(ClientToken="t")
        clock.step(8 * 60 * 60)
        again = await call.export(ClientToken="t")
        assert again["ExportArn"] != first["ExportArn"]


@pytest.mark.parametrize(
    ("seconds", "error"),
    [
        (-6, "PointInTimeRecoveryUnavailableException"),
        (-1, None),
        (1, "InvalidExportTimeException"),
    ],
)
async def test_only_the_present_of_a_table_without_recovery_can_be_exported(
    tmp_path: Path, seconds: int, error: str | None
) -> None:
    clock = SetClock()
    async with transferring(tmp_path / "b", clock=clock) as call:
        await call.create()
        wanted = {
            "TableArn": THREAD,
            "S3Bucket": BUCKET,
            "ExportTime": clock.now_epoch_seconds() + seconds,
        }
        if error is not None:
            refusal = await call.refused("ExportTableToPointInTime", **wanted)
            assert refusal[0] == error
        else:
            await call.export(ExportTime=wanted["ExportTime"])


async def test_a_table_with_recovery_is_exported_as_it_was(tmp_path: Path) -> None:
    clock = SetClock()
    async with transferring(tmp_path / "b", clock=clock) as call:
        await call.create(items=10)
        recovery = {"PointInTimeRecoveryEnabled": True}
        await call(
            "UpdateContinuousBackups",
            TableName="Thread",
            PointInTimeRecoverySpecification=recovery,
        )
        enabled_at = clock.now_epoch_seconds()
        before = await call.items("Thread")
        clock.step(3_600)
        for number in range(5, 15):
            key = {name: item(number)[name] for name in ("pk", "n")}
            await call("DeleteItem", TableName="Thread", Key=key)
            await call("PutItem", TableName="Thread", Item=item(number + 100))
        found = await call.export(ExportTime=enabled_at)
        assert found["ExportTime"] == pytest.approx(enabled_at)
        assert exported_items(call.directory, found) == before
        clock.step(1)
        refusal = await call.refused(
            "ExportTableToPointInTime",
            TableArn=THREAD,
            S3Bucket=BUCKET,
            ExportTime=enabled_at - 1,
        )
        assert refusal[0] == "InvalidExportTimeException"


async def test_unknown_tables_and_exports_are_not_found(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        refusal = await call.refused("ExportTableToPointInTime", TableArn=THREAD, S3Bucket=BUCKET)
        assert refusal == ("TableNotFoundException", f"Table not found: {THREAD}")
        arn = "arn:aws:dynamodb:us-east-1:000000000000:table/Thread/export/1-a"
        refusal = await call.refused("DescribeExport", ExportArn=arn)
        assert refusal[0] == "ExportNotFoundException"
        denied = arn.replace("000000000000", "123456789012")
        refusal = await call.refused("DescribeExport", ExportArn=denied)
        assert refusal == ("AccessDeniedException", "Access is denied")
        refusal = await call.refused("DescribeExport", ExportArn=arn.replace("export", "other_"))
        assert refusal == ("ValidationException", "Invalid ExportArn")


async def test_exports_are_listed_page_by_page_and_forgotten_after_90_days(tmp_path: Path) -> None:
    clock = SetClock()
    async with transferring(tmp_path / "b", clock=clock) as call:
        await call.create()
        await call.create("Other")
        arns = []
        for name in ("Thread", "Other", "Thread"):
            arns.append((await call.export(name))["ExportArn"])
            clock.step(1)
        first = await call("ListExports", MaxResults=2)
        second = await call("ListExports", NextToken=first["NextToken"])
        listed = [
            each["ExportArn"] for each in first["ExportSummaries"] + second["ExportSummaries"]
        ]
        assert listed == sorted(arns, reverse=True, key=lambda arn: arn.rpartition("/")[2])
        of_thread = await call("ListExports", TableArn=THREAD)
        assert [each["ExportArn"] for each in of_thread["ExportSummaries"]] == [arns[2], arns[0]]
        assert unknown_members("ListExports", first) == []
        described = await call("DescribeExport", ExportArn=arns[0])
        assert unknown_members("DescribeExport", described) == []
        clock.step(90 * 24 * 60 * 60 - 60)
        database = call.client.database
        await trim(database)
        assert await transfers.load_exports(database._store.latest)
        clock.step(60)
        assert (await call("ListExports"))["ExportSummaries"] == []
        await trim(database)
        assert await transfers.load_exports(database._store.latest) == []
        assert not list(database.part(TableExports)._exports)


async def test_an_export_is_no_backup_for_clients(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create(items=2)
        await call("ExportTableToPointInTime", TableArn=THREAD, S3Bucket=BUCKET)
        assert (await call("ListBackups"))["BackupSummaries"] == []


async def test_an_export_continues_after_a_restart(tmp_path: Path) -> None:
    async with kept_store(tmp_path / "data") as store, transferring(tmp_path / "b", store) as call:
        await call.create(items=5)
        begun = await call("ExportTableToPointInTime", TableArn=THREAD, S3Bucket=BUCKET)
    async with kept_store(tmp_path / "data") as store, transferring(tmp_path / "b", store) as call:
        found = await call.exported(begun["ExportDescription"]["ExportArn"])
        assert found["ExportStatus"] == "COMPLETED"
        assert exported_items(call.directory, found) == await call.items("Thread")
        # No copy of the table and no unfinished file is left.
        await call("DeleteTable", TableName="Thread")
        assert not any(path.name.startswith(".") for path in files_below(call.directory))


async def test_an_export_has_the_items_and_attributes_of_its_filter(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create(items=60)
        wanted = {
            "KeyConditionExpression": "pk = :pk AND n > :n",
            "FilterExpression": "contains(#text, :x)",
            "ProjectionExpression": "n, #text, #map.#list[0]",
            "ExpressionAttributeNames": {"#text": "text", "#map": "map", "#list": "list"},
            "ExpressionAttributeValues": {
                ":pk": {"S": "p3"},
                ":n": {"N": "20"},
                ":x": {"S": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},
            },
        }
        found = await call.export(FilterSpecification=wanted)
        numbers = [n for n in range(60) if n % 7 == 3 and n > 20 and n % 50 >= 30]
        assert len(numbers) > 1
        assert found["ItemCount"] == len(numbers)
        assert found["FilterSpecification"] == wanted
        assert unknown_members("DescribeExport", {"ExportDescription": found}) == []
        assert exported_items(call.directory, found) == sorted(
            (
                {
                    "n": {"N": str(n)},
                    "text": item(n)["text"],
                    "map": {"M": {"list": {"L": [{"N": "1.5"}]}}},
                }
                for n in numbers
            ),
            key=repr,
        )


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"FilterExpression": "a ="}, "Invalid FilterExpression: Syntax error"),
        ({"FilterExpression": "a = :a"}, "used in expression is not defined"),
        ({"KeyConditionExpression": "pk > pk"}, "Invalid"),
        ({"FilterExpression": "attribute_exists(pk.a)"}, "Key attributes must be scalars"),
        (
            {
                "KeyConditionExpression": "n = :a",
                "ExpressionAttributeValues": {":a": {"N": "1"}},
            },
            "Query condition missed key schema element: pk",
        ),
        (
            {
                "KeyConditionExpression": "pk = :a",
                "FilterExpression": "attribute_exists(n)",
                "ExpressionAttributeValues": {":a": {"S": "1"}},
            },
            "can only contain non-primary key attributes",
        ),
        (
            {"ProjectionExpression": "a", "ExpressionAttributeNames": {"#a": "a"}},
            "unused in expressions",
        ),
    ],
)
async def test_a_wrong_filter_is_refused(
    tmp_path: Path, wanted: dict[str, object], message: str
) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create()
        refusal = await call.refused(
            "ExportTableToPointInTime",
            TableArn=THREAD,
            S3Bucket=BUCKET,
            FilterSpecification=wanted,
        )
        assert refusal[0] == "ValidationException"
        assert message in refusal[1]


async def test_a_table_survives_ion(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create(items=60)
        found = await call.export(ExportFormat="ION", S3Prefix="in")
        assert found["ExportFormat"] == "ION"
        summary = json.decode((call.directory / found["ExportManifest"]).read_bytes())
        assert summary["outputFormat"] == "ION"
        assert list(call.directory.rglob("data/*.ion.gz"))
        imported = await call.import_(InputFormat="ION", InputCompressionType="GZIP")
        assert imported["ImportStatus"] == "COMPLETED", imported
        assert await call.items("Imported") == await call.items("Thread")


@pytest.mark.parametrize(
    ("members", "name", "message"),
    [
        ({"TableArn": "Thread"}, "ValidationException", "ARNs must start with 'arn:'"),
        (
            {"TableArn": THREAD.replace("000000000000", "123456789012")},
            "AccessDeniedException",
            "Access is denied",
        ),
        (
            {"S3SseKmsKeyId": "a-key"},
            "ValidationException",
            "KMS Key Id is not supported for this encryption type",
        ),
        (
            {"S3SseAlgorithm": "AES256", "S3SseKmsKeyId": "a-key"},
            "ValidationException",
            "KMS Key Id is not supported for this encryption type",
        ),
    ],
)
async def test_other_exports_are_refused(
    tmp_path: Path, members: dict[str, str], name: str, message: str
) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create()
        request = {"TableArn": THREAD, "S3Bucket": BUCKET, **members}
        assert await call.refused("ExportTableToPointInTime", **request) == (name, message)


async def test_an_export_has_the_type_of_its_request_and_an_encryption(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        await call.create()
        found = await call.export()
        assert "ExportType" not in found
        assert found["S3SseAlgorithm"] == "AES256"
        found = await call.export(
            ExportType="FULL_EXPORT", S3SseAlgorithm="KMS", S3SseKmsKeyId="a-key"
        )
        assert found["ExportType"] == "FULL_EXPORT"
        assert (found["S3SseAlgorithm"], found["S3SseKmsKeyId"]) == ("KMS", "a-key")
