"""A large import is decoded in another process, with the same outcome as a small one."""

from __future__ import annotations

import asyncio
import gzip
import sys
from asyncio.subprocess import PIPE
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from dynactor.actors.transfers import decoded_files, import_rows
from dynactor.actors.transfers.decoded_files import DecodingProcess
from dynactor.actors.transfers.decoding_process import Begin, FilePart, Job, framed
from dynactor.api.commands.tables.table_files import new_definition
from dynactor.storage.buckets.bucket import BucketError
from dynactor.storage.buckets.directory_bucket import DirectoryBucket
from dynactor.storage.catalog import PartitionRange, TableRecord
from tests.support.databases.transferred import (
    KEYS,
    Transfers,
    import_request,
    item,
    lines,
    transferring,
)
from tests.support.stores.store import kept_store

TWO_PAGES = 1_000
REQUEST = {"InputFormat": "DYNAMODB_JSON"}


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_rows, "_PROCESS_BYTES", 0)


def write(call: Transfers) -> None:
    refused = b"no JSON\n" + lines({"pk": {"S": "p"}, "n": {"S": "1"}})
    call.write("in/a", lines(*map(item, range(TWO_PAGES)), item(3)) + refused)
    # The last record has no line end.
    call.write("in/b", lines(*map(item, range(TWO_PAGES - 10, TWO_PAGES + 90)))[:-1])


async def test_a_process_imports_the_same_items_with_the_same_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with transferring(tmp_path / "b") as call:
        write(call)
        small = await call.import_(table="Small")
        monkeypatch.setattr(import_rows, "_PROCESS_BYTES", 0)
        found = await call.import_(table="Large")
        for member in ("ProcessedItemCount", "ImportedItemCount", "ErrorCount"):
            assert found[member] == small[member]
        assert found["ProcessedSizeBytes"] == small["ProcessedSizeBytes"]
        assert found["ImportedItemCount"] == TWO_PAGES + 90
        assert call.errors(found["ImportArn"]) == call.errors(small["ImportArn"])
        assert await call.items("Large") == await call.items("Small")


@pytest.mark.usefixtures("large")
async def test_a_damaged_file_of_a_large_import_ends_it_without_a_table(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        call.write("in/a", b"\x1f\x8b no gzip")
        found = await call.import_(InputCompressionType="GZIP")
        assert (found["ImportStatus"], found["FailureCode"]) == ("FAILED", "SourceDamaged")
        assert "in/a: the gzip data is damaged" in found["FailureMessage"]
        assert (await call("ListTables"))["TableNames"] == []


async def test_a_killed_process_fails_the_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The process can't end before it is killed, because nobody reads its rows.
    monkeypatch.setattr(decoded_files, "_AHEAD_BYTES", 1024)
    (tmp_path / "a").write_bytes(lines(*map(item, range(2 * TWO_PAGES))))
    definition = new_definition({"TableName": "table", **KEYS}, "test")
    stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    record = TableRecord(definition, (PartitionRange(1, b""),))
    decoding = DecodingProcess(record, REQUEST, stopped)
    pages = decoding.rows(DirectoryBucket(tmp_path), "a", "NONE")
    try:
        async with aclosing(pages):
            await anext(pages)
            assert decoding._process is not None
            decoding._process.kill()
            with pytest.raises(BucketError, match="process that decodes the files has ended"):
                async for _ in pages:
                    pass
    finally:
        await decoding.close()


async def test_the_process_ends_with_the_server_also_within_a_part() -> None:
    definition = new_definition({"TableName": "table", **KEYS}, "test")
    record = TableRecord(definition, (PartitionRange(1, b""),))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dynactor.actors.transfers.decoding_process"),
        stdin=PIPE,
        stdout=PIPE,
        limit=1024,
    )
    assert process.stdin is not None
    # The process can't end by itself, because nobody reads its rows.
    part = gzip.compress(lines(*map(item, range(20 * TWO_PAGES))))
    for message in (Job(record, REQUEST), Begin("a", "GZIP"), FilePart(part)):
        process.stdin.write(framed(message))
    await process.stdin.drain()
    process.stdin.close()
    try:
        with anyio.fail_after(60):
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_a_small_compressed_file_is_decoded_in_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with transferring(tmp_path / "b") as call:
        monkeypatch.delattr(import_rows, "DecodingHere")
        call.write("in/a", gzip.compress(lines(item(1))))
        found = await call.import_(InputCompressionType="GZIP")
        assert found["ImportedItemCount"] == 1


@pytest.mark.usefixtures("large")
async def test_a_server_stops_while_the_process_gives_no_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = tmp_path / "silent"
    started = tmp_path / "started"
    silent.write_text(f"#!/bin/sh\ntouch {started}\nexec sleep 600\n")
    silent.chmod(0o700)
    with anyio.fail_after(60):
        async with (
            kept_store(tmp_path / "data") as store,
            transferring(tmp_path / "b", store) as call,
        ):
            call.write("in/a", lines(item(1)))
            with monkeypatch.context() as patched:
                patched.setattr(sys, "executable", str(silent))
                begun = await call("ImportTable", **import_request())
                arn = begun["ImportTableDescription"]["ImportArn"]
                while not await asyncio.to_thread(started.exists):
                    await asyncio.sleep(0)
    async with kept_store(tmp_path / "data") as store, transferring(tmp_path / "b", store) as call:
        assert (await call.imported(arn))["ImportStatus"] == "COMPLETED"


async def test_a_long_stretch_without_records_ends_an_import(tmp_path: Path) -> None:
    async with transferring(tmp_path / "b") as call:
        call.write("in/a", gzip.compress(lines(item(1)) + b"\n" * (33 * 1024 * 1024)))
        found = await call.import_(InputCompressionType="GZIP")
        assert (found["ImportStatus"], found["FailureCode"]) == ("FAILED", "SourceDamaged")
        message = "in/a: 33,554,432 bytes have no record, after the one at line 1"
        assert found["FailureMessage"] == message
