"""Buckets in a real S3-compatible server: objects, exports, imports, and a server that is away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dynactor.storage.buckets.bucket import BucketError, read_whole
from dynactor.storage.buckets.s3_bucket import S3Bucket
from tests.actors.transfers.s3.conftest import S3Server
from tests.support.databases.databases import running_database
from tests.support.databases.transferred import BUCKET, KEYS, Transfers
from tests.support.servers.in_process import InProcessClient


@asynccontextmanager
async def transferring(url: str, directory: Path) -> AsyncIterator[Transfers]:
    """A database with a bucket at a URL."""
    async with running_database(buckets={BUCKET: url}) as database:
        yield Transfers(InProcessClient(database), directory)


async def code_of(work: Any) -> str:
    """The code of the error of a bucket."""
    with pytest.raises(BucketError) as refusal:
        await work
    return refusal.value.code


async def test_objects_are_listed_by_prefix_and_read(s3: S3Server) -> None:
    bucket = S3Bucket(s3.new_bucket())
    for key in ("a/b/2", "a/b/10", "ab", "c"):
        await bucket.put(key, key.encode())
    assert [tuple(each) for each in await bucket.objects("a/b/")] == [("a/b/10", 6), ("a/b/2", 5)]
    assert [each.key for each in await bucket.objects("a")] == ["a/b/10", "a/b/2", "ab"]
    assert await read_whole(bucket, "a/b/2") == b"a/b/2"
    await bucket.put("c", b"new")
    assert await read_whole(bucket, "c") == b"new"


async def test_keys_are_below_the_prefix_of_the_url(s3: S3Server) -> None:
    name = s3.new_bucket()
    bucket = S3Bucket(name, "/teams/music/")
    await bucket.put("a", b"1")
    assert s3.keys(name) == ["teams/music/a"]
    assert await bucket.objects("") == [("a", 1)]
    assert await read_whole(bucket, "a") == b"1"


async def test_an_object_appears_when_it_is_complete(s3: S3Server) -> None:
    name = s3.new_bucket()
    bucket = S3Bucket(name)
    content = bytes(range(256)) * 4096 * 12
    for is_complete in (False, True):
        writer = await bucket.writer("a")
        for at in range(0, len(content), 1 << 20):
            await writer.write(content[at : at + (1 << 20)])
        assert s3.keys(name) == []
        if is_complete:
            assert len(await writer.close()) == 32
        await writer.abort()
    assert await read_whole(bucket, "a") == content
    assert s3.uploads(name) == []


async def test_errors_have_codes(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    name = s3.new_bucket()
    assert await code_of(read_whole(S3Bucket(name), "missing")) == "S3NoSuchKey"
    assert await code_of(S3Bucket("there-is-none").put("a", b"")) == "S3NoSuchBucket"
    assert await code_of(S3Bucket("there-is-none").objects("")) == "S3NoSuchBucket"
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    assert await code_of(S3Bucket(name).put("a", b"")) == "S3AccessDenied"


async def test_a_table_goes_through_a_bucket(s3: S3Server, tmp_path: Path) -> None:
    name = s3.new_bucket()
    async with transferring(f"s3://{name}/dynamodb", tmp_path) as call:
        await call.create(items=80)
        found = await call.export(S3Prefix="daily")
        assert found["ExportStatus"] == "COMPLETED", found
        assert f"dynamodb/{found['ExportManifest']}" in s3.keys(name)
        imported = await call.import_(
            S3BucketSource={"S3Bucket": BUCKET, "S3KeyPrefix": "daily/"},
            InputCompressionType="GZIP",
            TableCreationParameters={"TableName": "Imported", **KEYS},
        )
        assert imported["ImportStatus"] == "COMPLETED", imported
        assert imported["ImportedItemCount"] == 80
        assert await call.items("Imported") == await call.items("Thread")
    assert s3.uploads(name) == []


async def test_an_export_fails_while_the_bucket_is_away(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynactor.storage.buckets.s3_bucket._RETRIES", 0)
    name = s3.new_bucket()
    async with transferring(f"s3://{name}", tmp_path) as call:
        await call.create(items=3)
        s3.process.kill()
        s3.process.wait()
        found = await call.export()
        assert found["ExportStatus"] == "FAILED"
        assert found["FailureCode"] == "S3InternalError"
        assert "ExportManifest" not in found
        # The copy of the table is gone, too.
        await call("DeleteTable", TableName="Thread")
