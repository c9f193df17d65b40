"""Imports and exports beside BatchWriteItem: ``python -m tests.load.transfers --help``."""

from __future__ import annotations

import argparse
import asyncio
import gzip
import shutil
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final, NamedTuple

from msgspec import json
from rich.console import Console

from tests.load.footprint import call, connections, disk_megabytes, load
from tests.load.generator import percentile
from tests.load.index_requests import OpenLoop, Plan, Report
from tests.load.index_tables import make_table, wait_quiet
from tests.load.items import create_table, table_item
from tests.load.servers import Server, cpu_seconds, directory_on, dynactor, resident_megabytes
from tests.support.servers.server import PROJECT

BUCKET: Final = "transfers"
# The table of the requests that are timed meanwhile.
PROBED: Final = "probed"
_PROBED_ITEMS: Final = 20_000
_WRITERS: Final = 64
# The folder of the files that this process makes, and the items of each.
_MADE: Final = "made"
_FILE_ITEMS: Final = 100_000
_POLL_SECONDS: Final = 0.25
_SHOW_SECONDS: Final = 10.0
# The table, its copy for the export, the compressed files, and the engine's log.
_BYTES_PER_ITEM: Final = 800

_DESCRIPTION: Final = f"""Imports and exports beside BatchWriteItem with {_WRITERS} connections.

Each round writes a table by BatchWriteItem, exports it into a directory, imports the files by
ImportTable, and imports them by `dynactor import` into a new table. Gets and puts of another table
are timed meanwhile.

With --written, BatchWriteItem writes only that many items. Then all items come from files that this
process makes: ImportTable imports them, the export reads that table, and the files of the export
are imported. The made files are in no order of keys, so the server looks up whether each item is a
duplicate.

The processor time and the memory include the process that decodes imports, and the memory is that
above the server at rest. The disk space is that of all files. The directory needs
{_BYTES_PER_ITEM} bytes for each item, so 8 GB for 10 million items. At the end everything is
deleted.
"""


class Measured(NamedTuple):
    """One transfer: its rate, processor time, memory and disk space, and the requests meanwhile."""

    name: str
    items_per_second: float
    cpu_microseconds: float
    memory_megabytes: float
    disk_megabytes: float
    requests: Report


class Bench:
    """A server with a bucket, whose memory at rest is known."""

    def __init__(self, server: Server, bucket: Path, options: argparse.Namespace) -> None:
        self._server = server
        self._bucket = bucket
        self._options = options
        self._at_rest_megabytes = resident_megabytes(server.pid)

    async def _call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        # The server closes a connection that is idle during a long transfer.
        async with connections(self._server, 1) as (connection,):
            return await call(connection, operation, request)

    async def _make(self, name: str) -> None:
        async with connections(self._server, 1) as (connection,):
            await make_table(connection, name, 0)

    def _plan(self) -> Plan:
        server, options = self._server, self._options
        return Plan(
            server.host,
            server.port,
            PROBED,
            options.puts_per_second,
            options.gets_per_second,
            _PROBED_ITEMS,
        )

    async def alone(self) -> Report:
        """The requests without a transfer."""
        await wait_quiet(self._server)
        requests = await OpenLoop.start(self._plan())
        await asyncio.sleep(self._options.alone_seconds)
        return await requests.stop()

    async def measure(
        self, name: str, transfer: Callable[[], Awaitable[None]], items: int
    ) -> Measured:
        """One transfer of this many items, with requests meanwhile."""
        await wait_quiet(self._server)
        requests = await OpenLoop.start(self._plan())
        cpu_before, begin = cpu_seconds(self._server.pid), perf_counter()
        peaks: list[tuple[float, float]] = []
        watching = asyncio.ensure_future(self._watch(name, peaks))
        try:
            await transfer()
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
        seconds = perf_counter() - begin
        cpu = cpu_seconds(self._server.pid) - cpu_before
        return Measured(
            name,
            items / seconds,
            cpu / items * 1e6,
            max(memory for memory, _ in peaks) - self._at_rest_megabytes,
            max(disk for _, disk in peaks),
            await requests.stop(),
        )

    async def _watch(self, name: str, peaks: list[tuple[float, float]]) -> None:
        """Sample the memory and the disk space, and show that the transfer is still running."""
        begin = shown_at = perf_counter()
        while True:
            disk = await asyncio.to_thread(disk_megabytes, self._bucket.parent)
            peaks.append((resident_megabytes(self._server.pid), disk))
            now = perf_counter()
            if now - shown_at > _SHOW_SECONDS:
                shown_at = now
                print(
                    f"  {name}: {now - begin:.0f} s, {peaks[-1][0]:,.0f} MB resident, "
                    f"{disk:,.0f} MB on disk",
                    file=sys.stderr,
                    flush=True,
                )
            await asyncio.sleep(_POLL_SECONDS)

    async def round(self) -> list[Measured]:
        """Write, export and import the items once."""
        items, written = self._options.items, self._options.written
        measured = [
            await self.measure("BatchWriteItem", self._write, items if written is None else written)
        ]
        if written is None:
            measured.append(await self.measure("export", self._export, items))
        else:
            await self._drop("written")
            await asyncio.to_thread(make_files, self._bucket / _MADE, items)
            measured.append(await self.measure("ImportTable made", self._import_made, items))
            await asyncio.to_thread(shutil.rmtree, self._bucket / _MADE)
            measured.append(await self.measure("export", self._export, items))
        # The exported table is needed no longer, and would take disk space.
        await self._drop("written")
        measured.append(await self.measure("ImportTable", self._import, items))
        await self._drop("imported")
        if self._options.upload:
            measured.append(await self.measure("dynactor import", self._copy, items))
            await self._drop("copied")
        await asyncio.to_thread(shutil.rmtree, self._bucket / "AWSDynamoDB")
        return measured

    async def _write(self) -> None:
        await self._make("written")
        count = self._options.items if self._options.written is None else self._options.written
        await load(self._server, "written", count, connection_count=_WRITERS)

    async def _export(self) -> None:
        request = {
            "TableArn": "arn:aws:dynamodb:us-east-1:000000000000:table/written",
            "S3Bucket": BUCKET,
        }
        begun = await self._call("ExportTableToPointInTime", request)
        arn = {"ExportArn": begun["ExportDescription"]["ExportArn"]}
        found = await self._ended("DescribeExport", arn, "ExportDescription", "ExportStatus")
        assert found["ItemCount"] == self._options.items, found

    async def _import(self) -> None:
        await self._import_files("imported", "AWSDynamoDB")

    async def _import_made(self) -> None:
        await self._import_files("written", _MADE)

    async def _import_files(self, name: str, folder: str) -> None:
        definition = create_table(name, indexed=False)
        request = {
            "S3BucketSource": {"S3Bucket": BUCKET, "S3KeyPrefix": f"{folder}/"},
            "InputFormat": "DYNAMODB_JSON",
            "InputCompressionType": "GZIP",
            "TableCreationParameters": definition,
        }
        begun = await self._call("ImportTable", request)
        arn = {"ImportArn": begun["ImportTableDescription"]["ImportArn"]}
        found = await self._ended("DescribeImport", arn, "ImportTableDescription", "ImportStatus")
        assert found["ImportedItemCount"] == self._options.items, found

    async def _ended(
        self, operation: str, request: dict[str, Any], member: str, status: str
    ) -> dict[str, Any]:
        while True:
            found: dict[str, Any] = (await self._call(operation, request))[member]
            if found[status] == "COMPLETED":
                return found
            assert found[status] == "IN_PROGRESS", found
            await asyncio.sleep(_POLL_SECONDS)

    async def _copy(self) -> None:
        definition = create_table("copied", indexed=False)
        (self._bucket / "table.json").write_bytes(json.encode(definition))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "dynactor", "import", str(self._bucket), "--create"),
            *("--endpoint", f"http://{self._server.host}:{self._server.port}"),
            *("--state", str(self._bucket.with_suffix(".state"))),
            cwd=PROJECT,
            stdin=DEVNULL,
            stderr=DEVNULL,
        )
        try:
            assert await process.wait() == 0, "dynactor import failed"
        finally:
            if process.returncode is None:
                process.kill()

    async def _drop(self, name: str) -> None:
        await self._call("DeleteTable", {"TableName": name})


def make_files(folder: Path, count: int) -> None:
    """Write items as files of DynamoDB JSON."""
    folder.mkdir()
    for start in range(0, count, _FILE_ITEMS):
        with gzip.open(folder / f"{start:010}.json.gz", "wb", compresslevel=1) as file:
            for number in range(start, min(start + _FILE_ITEMS, count)):
                file.write(json.encode({"Item": table_item(number)}) + b"\n")
        print(f"  files: {start:,} items made", file=sys.stderr, flush=True)


async def run(server: Server, bucket: Path, options: argparse.Namespace) -> None:
    """Measure all rounds, and print the medians."""
    async with connections(server, 1) as (connection,):
        await make_table(connection, PROBED, 0)
    await load(server, PROBED, _PROBED_ITEMS)
    await wait_quiet(server)
    bench = Bench(server, bucket, options)
    alone = await bench.alone()
    rounds = []
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
        rounds.append(await bench.round())
    _print(alone, [list(same) for same in zip(*rounds, strict=True)])


def _print(alone: Report, measured: list[list[Measured]]) -> None:
    console = Console(width=130, highlight=False)
    console.print(
        f"{'':16}{'items/s':>10}{'of BatchWriteItem':>19}{'CPU µs/item':>13}"
        f"{'memory MB':>11}{'disk MB':>9}"
        f"{'get p50':>9}{'get p99':>9}{'put p50':>9}{'put p99':>9}{'errors':>8}   (ms)"
    )
    console.print(f"{'requests alone':16}{'':62}{_latencies([alone])}")
    written = median(each.items_per_second for each in measured[0])
    for same in measured:
        rate = median(each.items_per_second for each in same)
        console.print(
            f"{same[0].name:16}{rate:10,.0f}{rate / written:19.2f}"
            f"{median(each.cpu_microseconds for each in same):13.1f}"
            f"{max(each.memory_megabytes for each in same):11,.0f}"
            f"{max(each.disk_megabytes for each in same):9,.0f}"
            f"{_latencies([each.requests for each in same])}"
        )


def _latencies(reports: list[Report]) -> str:
    times = [
        median(percentile(getattr(each, kind), share) / 1e3 for each in reports)
        for kind in ("gets", "puts")
        for share in (0.5, 0.99)
    ]
    return "".join(f"{time:9.1f}" for time in times) + f"{sum(each.errors for each in reports):8}"


def main() -> None:
    """Parse the options and run."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.load.transfers",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--items", type=int, default=200_000, help="of 300 bytes")
    parser.add_argument("--written", type=int, help="items of BatchWriteItem; else all")
    parser.add_argument(
        "--without-upload", dest="upload", action="store_false", help="leave `dynactor import` out"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gets-per-second", type=float, default=500)
    parser.add_argument("--puts-per-second", type=float, default=100)
    parser.add_argument("--alone-seconds", type=float, default=5, help="of requests alone")
    parser.add_argument("--directory", type=Path, help="on the disk to measure; else temporary")
    options = parser.parse_args()
    with directory_on(options.directory) as temporary:
        needed_bytes = options.items * _BYTES_PER_ITEM
        if shutil.disk_usage(temporary).free < needed_bytes:
            sys.exit(f"{temporary} needs {needed_bytes / 1e9:.1f} GB of free disk space")
        bucket = temporary / "bucket"
        bucket.mkdir()
        arguments = ("--bucket", f"{BUCKET}=file://{bucket}", "--cache-mib", "64")
        with dynactor(temporary / "data", *arguments) as server:
            asyncio.run(run(server, bucket, options))


if __name__ == "__main__":
    main()
