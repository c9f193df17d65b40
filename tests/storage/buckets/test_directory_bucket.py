"""A bucket in a directory has whole objects only, and stays in its directory."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Event
from typing import IO, Any

import pytest

from dynactor.storage.buckets.bucket import BucketError, read_whole
from dynactor.storage.buckets.directory_bucket import DirectoryBucket
from dynactor.storage.buckets.open_buckets import BadBucketUrl, Buckets, open_bucket


def names(directory: Path) -> list[str]:
    return sorted(each.name for each in directory.iterdir())


async def test_objects_are_listed_by_prefix_and_read(tmp_path: Path) -> None:
    bucket = DirectoryBucket(tmp_path)
    for key in ("a/b/2", "a/b/10", "ab", "c"):
        await bucket.put(key, key.encode())
    assert [tuple(each) for each in await bucket.objects("a/b/")] == [("a/b/10", 6), ("a/b/2", 5)]
    # A prefix need not end with a folder, as in S3.
    assert [each.key for each in await bucket.objects("a")] == ["a/b/10", "a/b/2", "ab"]
    assert await read_whole(bucket, "a/b/2") == b"a/b/2"
    await bucket.put("c", b"new")
    assert await read_whole(bucket, "c") == b"new"


async def test_an_object_appears_when_it_is_complete(tmp_path: Path) -> None:
    bucket = DirectoryBucket(tmp_path)
    writer = await bucket.writer("a/b")
    await writer.write(b"12")
    assert await bucket.objects("") == []
    await writer.write(b"3")
    await writer.close()
    await writer.abort()
    assert await read_whole(bucket, "a/b") == b"123"


async def test_nothing_is_left_of_an_aborted_object(tmp_path: Path) -> None:
    bucket = DirectoryBucket(tmp_path)
    writer = await bucket.writer("a")
    await writer.write(b"12")
    await writer.abort()
    assert names(tmp_path) == []


@pytest.mark.parametrize("is_read", [True, False])
async def test_a_file_that_opens_after_its_caller_was_canceled_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_read: bool
) -> None:
    bucket = DirectoryBucket(tmp_path)
    await bucket.put("a", b"1")
    is_opening, may_open = Event(), Event()
    files: list[IO[Any]] = []
    original = Path.open

    def held(path: Path, mode: str) -> IO[Any]:
        is_opening.set()
        may_open.wait()
        files.append(original(path, mode))
        return files[-1]

    monkeypatch.setattr(Path, "open", held)
    caller = asyncio.ensure_future(
        read_whole(bucket, "a") if is_read else bucket.put("b", b"2"),
    )
    await asyncio.to_thread(is_opening.wait)
    caller.cancel()
    # A reader ends at once, and a writer when its file is deleted.
    await asyncio.wait([caller], timeout=0)
    may_open.set()
    await asyncio.wait([caller])
    await asyncio.get_running_loop().shutdown_default_executor()
    assert caller.cancelled()
    assert [file.closed for file in files] == [True]
    assert names(tmp_path) == ["a"]


async def test_an_object_is_written_again_after_a_crash(tmp_path: Path) -> None:
    # A server in a container has the same process id after a restart.
    crashed = await DirectoryBucket(tmp_path).writer("a")
    await crashed.write(b"12")
    await DirectoryBucket(tmp_path).put("a", b"3")
    assert names(tmp_path) == ["a"]
    assert await read_whole(DirectoryBucket(tmp_path), "a") == b"3"
    await crashed.abort()


async def test_an_unfinished_object_is_not_written_through_a_link(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    await asyncio.to_thread(root.mkdir)
    await asyncio.to_thread((root / ".dynactor-unfinished-a").symlink_to, outside)
    await DirectoryBucket(root).put("a", b"1")
    assert not await asyncio.to_thread(outside.exists)


@pytest.mark.parametrize("key", ["../x", "/x", "a/../../x", "a//b", "", "a/.", "link/x"])
async def test_no_key_leaves_the_directory(tmp_path: Path, key: str) -> None:
    root = tmp_path / "root"
    await asyncio.to_thread(root.mkdir)
    await asyncio.to_thread((root / "link").symlink_to, tmp_path)
    bucket = DirectoryBucket(root)
    with pytest.raises(BucketError) as refusal:
        await bucket.put(key, b"")
    assert refusal.value.code == "S3AccessDenied"
    with pytest.raises(BucketError):
        await read_whole(bucket, key)


async def test_a_missing_object_or_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BucketError) as refusal:
        await read_whole(DirectoryBucket(tmp_path), "a")
    assert refusal.value.code == "S3NoSuchKey"
    for bucket in (DirectoryBucket(tmp_path / "missing"),):
        for work in (bucket.objects(""), bucket.put("a", b""), read_whole(bucket, "a")):
            with pytest.raises(BucketError) as refusal:
                await work
            assert refusal.value.code == "S3NoSuchBucket"


def test_only_urls_of_absolute_paths_are_buckets():
    for url in ("s3://", "s3:///a", "s3://a?b", "ftp://a", "file://relative/a", "file:a", "/a", ""):
        with pytest.raises(BadBucketUrl):
            open_bucket(url)
    buckets = Buckets({"a": "file:///x%20y"})
    assert buckets.named("a", None) is buckets.named("a", None)
    with pytest.raises(BucketError):
        buckets.named("b", None)
