"""The reader of a file's records."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import BinaryIO

import pytest

from dynactor.actors.transfers.import_files import ImportFile
from dynactor.actors.transfers.source_records import SourceRecords
from dynactor.model.transfers.records import JsonLines
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
    async with aclosing(source.parts(JsonLines())) as parts:
        await anext(parts)
        assert [file.closed for file in files] == [False]
    assert [file.closed for file in files] == [True]
