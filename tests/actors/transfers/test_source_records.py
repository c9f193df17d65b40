"""The reader of a file's records."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import BinaryIO

import pytest

from dynactor.actors.transfers.import_files import ImportFile
from dynactor.actors.transfers.source_records import SourceRecords
from dynactor.model.files.records import BadContent, Fault, JsonLines, Record
from dynactor.storage.buckets.directory_bucket import DirectoryBucket


async def test_the_file_is_closed_with_its_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = DirectoryBucket(tmp_path)
    await bucket.put("a", b"content")
    files: list[BinaryIO] = []
    original = bucket._open

    def noting(key: str) -> BinaryIO:
        files.append(original(key))
        return files[-1]

    monkeypatch.setattr(bucket, "_open", noting)
    source = SourceRecords(bucket, ImportFile("a", 7), "NONE")
    async with aclosing(source.batches(JsonLines())) as batches:
        await anext(batches)
        assert [file.closed for file in files] == [False]
    assert [file.closed for file in files] == [True]


async def test_records_are_decoded_outside_of_the_event_loop(tmp_path: Path) -> None:
    threads: set[int] = set()

    class Noting(JsonLines):
        def record(self, number: int, text: bytes) -> Record | Fault:
            threads.add(threading.get_ident())
            return super().record(number, text)

    bucket = DirectoryBucket(tmp_path)
    await bucket.put("a", b'{"Item":{}}\n' * 100 + b'{"Item":{}}')
    source = SourceRecords(bucket, ImportFile("a", 1), "NONE")
    async with aclosing(source.batches(Noting())) as batches:
        assert [len(batch) async for batch in batches] == [64, 36, 1]
    assert threading.get_ident() not in threads


async def test_records_before_bad_content_count(tmp_path: Path) -> None:
    bucket = DirectoryBucket(tmp_path)
    await bucket.put("a", b"a,b\n1,2\n")

    class Failing(JsonLines):
        def feed(self, data: bytes) -> Iterator[Record | Fault]:
            yield from super().feed(data)
            raise BadContent("no more")

    source = SourceRecords(bucket, ImportFile("a", 1), "NONE")
    batches = source.batches(Failing())
    assert len(await anext(batches)) == 2
    with pytest.raises(BadContent):
        await anext(batches)
