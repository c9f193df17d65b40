"""Compressed objects are read whole, or refused."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from dynactor.storage.buckets.decompression import (
    PIECE_BYTES,
    BadFile,
    Compression,
    OtherCompression,
    ReadObject,
)
from dynactor.storage.buckets.directory_bucket import DirectoryBucket
from dynactor.storage.buckets.gzip_object import GzipObject

# More than a piece; the second half compresses well.
CONTENT = bytes(range(256)) * 5_000 + b"x" * 3_000_000


async def read(bucket: DirectoryBucket, data: bytes, compression: Compression) -> bytes:
    await bucket.put("a", data)
    reading = ReadObject(bucket, "a", compression)
    content = b"".join([part async for part in reading.parts()])
    assert reading.size_bytes == len(data)
    return content


async def test_gzip_of_several_members_is_read(tmp_path: Path) -> None:
    bucket = DirectoryBucket(tmp_path)
    data = gzip.compress(CONTENT) + gzip.compress(b"more")
    assert await read(bucket, data, "GZIP") == CONTENT + b"more"


async def test_zstd_of_several_frames_is_read(tmp_path: Path) -> None:
    bucket = DirectoryBucket(tmp_path)
    data = zstandard.compress(CONTENT) + zstandard.compress(b"more")
    assert await read(bucket, data, "ZSTD") == CONTENT + b"more"


@pytest.mark.parametrize(
    ("compression", "compress"), [("GZIP", gzip.compress), ("ZSTD", zstandard.compress)]
)
async def test_truncated_and_foreign_data_is_refused(
    tmp_path: Path, compression: Compression, compress: object
) -> None:
    assert callable(compress)
    bucket = DirectoryBucket(tmp_path)
    data = compress(b"some content")
    with pytest.raises(BadFile, match="truncated"):
        await read(bucket, data[:-1], compression)
    with pytest.raises(BadFile, match="damaged"):
        await read(bucket, data[:4] + b"no such data" * 9, compression)
    with pytest.raises(OtherCompression, match=f"file is NONE, but .* is {compression}"):
        await read(bucket, b"plain text, not compressed", compression)
    with pytest.raises(OtherCompression, match=f"file is {compression}, but .* is NONE"):
        await read(bucket, data, "NONE")


async def test_a_written_object_is_read_again_with_its_checksum(tmp_path: Path) -> None:
    bucket = DirectoryBucket(tmp_path)
    file = GzipObject(await bucket.writer("a"))
    for at in range(0, len(CONTENT), 100_000):
        await file.write(CONTENT[at : at + 100_000])
    written = await file.close()
    reading = ReadObject(bucket, "a", "GZIP")
    assert b"".join([part async for part in reading.parts()]) == CONTENT
    assert reading.md5_checksum == written.md5_checksum


@pytest.mark.parametrize(
    ("compression", "compress"), [("GZIP", gzip.compress), ("ZSTD", zstandard.compress)]
)
async def test_the_pieces_of_a_small_object_with_a_large_content_are_bounded(
    tmp_path: Path, compression: Compression, compress: Callable[[bytes], bytes]
) -> None:
    bucket = DirectoryBucket(tmp_path)
    content_bytes = 256 * 1024 * 1024
    await bucket.put("a", compress(bytes(content_bytes)))
    tracemalloc.start()
    try:
        sizes = [len(part) async for part in ReadObject(bucket, "a", compression).parts()]
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(sizes) == content_bytes
    assert max(sizes) <= PIECE_BYTES
    assert most_bytes < 16 * 1024 * 1024
