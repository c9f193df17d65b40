"""Exports and imports by commands: exact copies, refused items, damaged files, and resumption."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dynactor.api.clients.client import RequestFailed
from dynactor.api.commands.tables import export_run, import_command
from dynactor.api.commands.tables.anonymizer import AnonymizeOptions
from dynactor.api.commands.tables.export_command import ExportOptions, export_table
from dynactor.api.commands.tables.import_command import (
    DONE,
    SOME_REFUSED,
    ImportCommand,
    ImportOptions,
)
from dynactor.api.commands.tables.terminal_progress import TerminalProgress
from dynactor.api.commands.tables.transfer_failed import TransferFailed
from dynactor.storage import data_directory
from dynactor.storage.buckets.directory_bucket import DirectoryBucket
from tests.support.clients.database_endpoint import DatabaseEndpoint, no_pause
from tests.support.databases.databases import running_database
from tests.support.databases.transferred import KEYS, transferring

ITEMS = 40
ENABLED = ("ENABLING", "ENABLED")
CREATION: dict[str, Any] = {
    "TableName": "music",
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "n", "AttributeType": "N"},
    ],
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "n", "KeyType": "RANGE"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
}


class Moves:
    """An endpoint with the table ``music``, and another endpoint without tables."""

    def __init__(self, source: DatabaseEndpoint, other: DatabaseEndpoint, path: Path) -> None:
        self.source = source
        self.other = other
        self.path = path

    async def export(self, **options: Any) -> Path:
        """Export the table."""
        chosen = ExportOptions(**{"segments": 2, **options})
        lines = TerminalProgress()
        return await export_table(
            self.source, "music", self.path / "out", chosen, lines, pause=no_pause
        )

    async def import_(self, *paths: Path, **options: Any) -> int:
        """Import files into the other endpoint."""
        chosen = ImportOptions(**{"create": True, "state": self.path / "state.json", **options})
        command = ImportCommand(self.other, chosen, TerminalProgress(), no_pause)
        return await command.run(list(paths))

    def write(self, name: str, text: str) -> Path:
        """Write a file into the folder of a table."""
        folder = self.path / "in"
        folder.mkdir(exist_ok=True)
        (folder / "table.json").write_bytes(msgspec.json.encode(CREATION))
        (folder / name).write_text(text)
        return folder


@asynccontextmanager
async def moving(tmp_path: Path) -> AsyncIterator[Moves]:
    async with running_database() as source, running_database() as other:
        moves = Moves(DatabaseEndpoint(source), DatabaseEndpoint(other), tmp_path)
        await moves.source.call("CreateTable", CREATION)
        for number in range(ITEMS):
            item = {"pk": {"S": f"song {number}"}, "n": {"N": "7"}, "b": {"BS": ["AAE="]}}
            await moves.source.call("PutItem", {"TableName": "music", "Item": item})
        yield moves


def data_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("data/*.json.gz"))


async def test_an_exported_table_is_imported_with_its_definition(tmp_path: Path):
    async with moving(tmp_path) as moves:
        folder = await moves.export()
        assert not (folder / "_progress.json").exists()
        assert await moves.import_(tmp_path / "out", dry_run=True) == DONE
        assert await moves.other.call("ListTables", {}) == {"TableNames": []}
        assert await moves.import_(tmp_path / "out") == DONE
        assert await moves.other.items("music") == await moves.source.items("music")
        assert not (tmp_path / "state.json").exists()


async def test_the_time_to_live_is_exported_and_imported(tmp_path: Path):
    async with moving(tmp_path) as moves:
        asked = {"AttributeName": "expires", "Enabled": True}
        request = {"TableName": "music", "TimeToLiveSpecification": asked}
        await moves.source.call("UpdateTimeToLive", request)
        folder = await moves.export()
        exported = msgspec.json.decode((folder / "table.json").read_bytes())
        assert exported["TimeToLiveSpecification"] == asked
        assert await moves.import_(tmp_path / "out", dry_run=True) == DONE
        assert await moves.import_(tmp_path / "out") == DONE
        answer = await moves.other.call("DescribeTimeToLive", {"TableName": "music"})
        found = answer["TimeToLiveDescription"]
        assert (found["AttributeName"], found["TimeToLiveStatus"] in ENABLED) == ("expires", True)
        # A table that exists keeps its own time to live.
        await moves.other.call("CreateTable", {**CREATION, "TableName": "other"})
        assert await moves.import_(tmp_path / "out", table="other") == DONE
        answer = await moves.other.call("DescribeTimeToLive", {"TableName": "other"})
        assert answer["TimeToLiveDescription"] == {"TimeToLiveStatus": "DISABLED"}


@pytest.mark.parametrize("wrong", [{"Enabled": True}, {"AttributeName": "", "Enabled": True}, 1])
async def test_a_malformed_time_to_live_is_refused(tmp_path: Path, wrong: object):
    async with moving(tmp_path) as moves:
        folder = moves.write("items.json", "{}")
        creation = {**CREATION, "TimeToLiveSpecification": wrong}
        (folder / "table.json").write_bytes(msgspec.json.encode(creation))
        with pytest.raises(TransferFailed, match=r"table\.json can't be read"):
            await moves.import_(folder)


async def test_an_endpoint_without_time_to_live_is_exported(tmp_path: Path):
    async with moving(tmp_path) as moves:

        async def refuse(operation: str) -> None:
            if operation == "DescribeTimeToLive":
                raise RequestFailed("UnknownOperationException", "")

        moves.source.before = refuse
        exported = msgspec.json.decode((await moves.export() / "table.json").read_bytes())
        assert "TimeToLiveSpecification" not in exported


async def test_an_interrupted_export_continues_after_its_complete_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(export_run, "_FILE_BYTES", 1)
    async with moving(tmp_path) as moves:

        async def stop(operation: str) -> None:
            if operation == "Scan" and moves.source.calls.count("Scan") == 2:
                raise OSError("stopped")

        moves.source.before = stop
        with pytest.raises(OSError, match="stopped"):
            await moves.export(segments=2)
        moves.source.before = None
        (incomplete,) = (tmp_path / "out" / "AWSDynamoDB").iterdir()
        with pytest.raises(TransferFailed, match="not complete"):
            await moves.import_(tmp_path / "out")
        assert await moves.export(resume=True) == incomplete
        assert await moves.import_(tmp_path / "out") == DONE
        assert await moves.other.items("music") == await moves.source.items("music")


async def test_a_damaged_export_writes_nothing(tmp_path: Path):
    async with moving(tmp_path) as moves:
        folder = await moves.export()
        await moves.other.call("CreateTable", CREATION)
        file = data_files(folder)[0]
        whole = file.read_bytes()
        for damaged in (whole[:-9], gzip.compress(gzip.decompress(whole) + b"\n", 1)):
            file.write_bytes(damaged)
            with pytest.raises(TransferFailed, match=file.name):
                await moves.import_(folder)
        file.write_bytes(whole)
        (folder / "manifest-summary.json").write_bytes(b"{}")
        with pytest.raises(TransferFailed, match="checksum"):
            await moves.import_(folder)
        assert await moves.other.items("music") == []


async def test_refused_items_are_listed_with_their_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    async with moving(tmp_path) as moves:
        folder = moves.write(
            "a.csv", f"pk,n,v\nx,1,first\nx,one,\ny,2\nx,1,last\nz,3,{'v' * 410_000}\n"
        )
        capsys.readouterr()
        assert await moves.import_(folder, dry_run=True) == SOME_REFUSED
        dry = [line.partition(":")[2] for line in capsys.readouterr().out.splitlines()]
        assert [line.split(":")[:2] for line in dry] == [
            ["3", " ValidationException"],
            ["4", " InvalidRecord"],
            ["2", " DuplicateKey"],
            ["6", " ValidationException"],
        ]
        assert "The parameter cannot be converted to a numeric value" in dry[0]
        assert "Item size has exceeded" in dry[3]
        assert await moves.import_(folder) == SOME_REFUSED
        last = {"pk": {"S": "x"}, "n": {"N": "1"}, "v": {"S": "last"}}
        assert await moves.other.items("music") == [last]


async def test_columns_of_csv_are_strings_unless_a_type_is_chosen(tmp_path: Path):
    async with moving(tmp_path) as moves:
        folder = moves.write("a.csv", "pk,n,version,price\na,1,1.10,1.50\n")
        assert await moves.import_(folder, column_type=("price=N",)) == DONE
        assert await moves.other.items("music") == [
            {"pk": {"S": "a"}, "n": {"N": "1"}, "version": {"S": "1.10"}, "price": {"N": "1.5"}}
        ]
        for wrong in ("price", "price=X", "=N"):
            with pytest.raises(TransferFailed, match=f"--column-type {wrong} is not understood"):
                await moves.import_(folder, column_type=(wrong,))
        with pytest.raises(TransferFailed, match=r"a\.csv: the header has no column prize"):
            await moves.import_(folder, column_type=("prize=N",))


async def test_an_interrupted_import_continues_after_the_written_items(tmp_path: Path):
    async with moving(tmp_path) as moves:
        folder = moves.write(
            "a.jsonl", "".join(f'{{"pk": "{at}", "n": 1}}\n' for at in range(2500))
        )

        async def stop(operation: str) -> None:
            if operation == "BatchWriteItem" and moves.other.calls.count(operation) == 60:
                raise OSError("stopped")

        moves.other.before = stop
        with pytest.raises(OSError, match="stopped"):
            await moves.import_(folder)
        moves.other.before = None
        moves.other.calls.clear()
        assert await moves.import_(folder, resume=True) == DONE
        # The first 1,000 of 2,500 items were complete.
        assert moves.other.calls.count("BatchWriteItem") == 60
        assert len(await moves.other.items("music")) == 2500
        with pytest.raises(TransferFailed, match="There is no table other: create it first"):
            await moves.import_(folder / "a.jsonl", table="other")
        with pytest.raises(TransferFailed, match="give --table"):
            await moves.import_(folder / "a.jsonl")
        with pytest.raises(TransferFailed, match="does not exist"):
            await moves.import_(folder / "b.jsonl")


async def test_an_export_and_an_import_anonymize_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    async with moving(tmp_path) as moves:
        privacy = AnonymizeOptions(anonymize=("pk=fake:email",), seed="secret")
        exported = await moves.export(privacy=privacy)
        assert b"song" not in b"".join(
            gzip.decompress(f.read_bytes()) for f in data_files(exported)
        )
        assert await moves.import_(exported) == DONE
        first = await moves.other.items("music")
        assert len(first) == ITEMS
        await moves.other.call("DeleteTable", {"TableName": "music"})
        whole = await moves.export()
        assert await moves.import_(whole, privacy=privacy) == DONE
        assert await moves.other.items("music") == first
        assert "unchanged attributes: n, b" in capsys.readouterr().err


async def test_the_operations_of_aws_read_and_write_the_same_files(tmp_path: Path):
    bucket = tmp_path / "bucket"
    _make(bucket)
    async with transferring(bucket) as call:
        await call.create("Thread", ITEMS)
        endpoint = DatabaseEndpoint(call.client.database)
        lines = TerminalProgress()
        options = ExportOptions(segments=2)
        folder = await export_table(endpoint, "Thread", bucket, options, lines, pause=no_pause)
        prefix = f"{folder.relative_to(bucket)}/"
        imported = await call.import_(prefix=prefix, table="Again", InputCompressionType="GZIP")
        assert imported["ImportStatus"] == "COMPLETED"
        assert await call.items("Again") == await call.items("Thread")
        export = await call.export()
        whole = bucket / Path(export["ExportManifest"]).parent
        await call("CreateTable", TableName="Third", **KEYS)
        chosen = ImportOptions(table="Third", state=tmp_path / "state.json")
        assert await ImportCommand(endpoint, chosen, lines, no_pause).run([whole]) == DONE
        assert await call.items("Third") == await call.items("Thread")
        export = await call.export(ExportFormat="ION")
        whole = bucket / Path(export["ExportManifest"]).parent
        await call("CreateTable", TableName="Fourth", **KEYS)
        chosen = ImportOptions(table="Fourth", state=tmp_path / "state.json")
        assert await ImportCommand(endpoint, chosen, lines, no_pause).run([whole]) == DONE
        assert await call.items("Fourth") == await call.items("Thread")


@pytest.mark.parametrize("text", ['{"pk": "a", "n": 1}\n', '{"Items": [{"pk": "a", "n": 1}]}'])
async def test_a_byte_order_mark_and_a_link_to_the_file_are_accepted(tmp_path: Path, text: str):
    async with moving(tmp_path) as moves:
        await moves.other.call("CreateTable", CREATION)
        file = moves.write("a.json", f"\ufeff{text}") / "a.json"
        link = tmp_path / "link.json"
        link.symlink_to(file)
        assert await moves.import_(link, table="music") == DONE
        assert await moves.other.items("music") == [{"pk": {"S": "a"}, "n": {"N": "1"}}]


async def stop_at(endpoint: DatabaseEndpoint, operation: str, count: int) -> None:
    """Fail at this call of an operation."""

    async def stop(called: str) -> None:
        if called == operation and endpoint.calls.count(operation) == count:
            endpoint.before = None
            raise OSError("stopped")

    endpoint.calls.clear()
    endpoint.before = stop


async def test_a_resumed_export_has_the_same_pseudonyms(tmp_path: Path):
    async with moving(tmp_path) as moves:
        privacy = AnonymizeOptions(anonymize=("pk=hash", "n=hash"), seed="secret")
        await stop_at(moves.source, "Scan", 2)
        with pytest.raises(OSError, match="stopped"):
            await moves.export(privacy=privacy)
        for other in (
            AnonymizeOptions(),
            AnonymizeOptions(anonymize=privacy.anonymize, seed="other"),
        ):
            with pytest.raises(TransferFailed, match="--anonymize"):
                await moves.export(privacy=other, resume=True)
        again = AnonymizeOptions(anonymize=privacy.anonymize[::-1], seed="secret")
        folder = await moves.export(privacy=again, resume=True)
        data = b"".join(gzip.decompress(file.read_bytes()) for file in data_files(folder))
        assert data.count(b"\n") == ITEMS
        assert b"song" not in data


async def test_an_export_that_stopped_at_its_start_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def put(*_: Any) -> None:
        raise OSError("stopped")

    async with moving(tmp_path) as moves:
        with monkeypatch.context() as patch:
            patch.setattr(DirectoryBucket, "put", put)
            with pytest.raises(OSError, match="stopped"):
                await moves.export()
        assert _names(await moves.export(resume=True), "table.json")


async def test_the_names_of_data_files_do_not_depend_on_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(export_run, "_FILE_BYTES", 1)
    async with moving(tmp_path) as moves:
        # A page of a scan has at most 1 MB.
        for number in range(6):
            item = {"pk": {"S": "large"}, "n": {"N": str(number)}, "v": {"S": "v" * 390_000}}
            await moves.source.call("PutItem", {"TableName": "music", "Item": item})
        names = [file.name for file in data_files(await moves.export(segments=1))]
        assert names == ["0000-00000.json.gz", "0000-00001.json.gz", "0000-00002.json.gz"]


async def test_an_import_is_resumed_into_the_same_table_in_the_same_way(tmp_path: Path):
    async with moving(tmp_path) as moves:
        lines = [f'{{"pk": "{at}", "n": 1}}\n' for at in range(1500)]
        folder = moves.write("a.jsonl", "".join(lines))
        await stop_at(moves.other, "BatchWriteItem", 45)
        with pytest.raises(OSError, match="stopped"):
            await moves.import_(folder)
        privacy = AnonymizeOptions(anonymize=("pk=hash",), seed="secret")
        with pytest.raises(TransferFailed, match="--anonymize"):
            await moves.import_(folder, resume=True, privacy=privacy)
        await moves.other.call("DeleteTable", {"TableName": "music"})
        with pytest.raises(TransferFailed, match="another table"):
            await moves.import_(folder, resume=True)


def _make_tables(folder: Path, rows: int) -> None:
    """Make the folders of two tables with this number of items each."""
    for name in ("first", "second"):
        _make(folder / name)
        creation = {**CREATION, "TableName": name}
        (folder / name / "table.json").write_bytes(msgspec.json.encode(creation))
        lines = [f'{{"pk": "{at}", "n": 1}}\n' for at in range(rows)]
        (folder / name / "a.jsonl").write_text("".join(lines))


async def test_a_resumed_import_skips_the_complete_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    async with moving(tmp_path) as moves:
        folder = tmp_path / "tables"
        _make_tables(folder, rows=1)
        with pytest.raises(TransferFailed, match="--state is for one table"):
            await moves.import_(folder)
        await stop_at(moves.other, "BatchWriteItem", 2)
        with pytest.raises(OSError, match="stopped"):
            await moves.import_(folder, state=None)
        moves.other.calls.clear()
        assert await moves.import_(folder, state=None, resume=True) == DONE
        assert moves.other.calls.count("BatchWriteItem") == 1
        assert len(await moves.other.items("second")) == 1
        assert _names(tmp_path, "*.json") == []


async def test_an_import_that_is_not_resumed_forgets_earlier_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    async with moving(tmp_path) as moves:
        folder = tmp_path / "tables"
        _make_tables(folder, rows=1500)
        # The second table's state stays behind.
        await stop_at(moves.other, "BatchWriteItem", 60 + 45)
        with pytest.raises(OSError, match="stopped"):
            await moves.import_(folder, state=None)
        assert len(_names(tmp_path, "*.json")) == 2
        await moves.other.call("DeleteTable", {"TableName": "second"})
        await moves.other.call("CreateTable", {**CREATION, "TableName": "second"})
        await stop_at(moves.other, "BatchWriteItem", 1)
        with pytest.raises(OSError, match="stopped"):
            await moves.import_(folder, state=None)
        assert await moves.import_(folder, state=None, resume=True) == DONE
        for name in ("first", "second"):
            assert len(await moves.other.items(name)) == 1500


async def test_two_exports_of_a_table_are_refused(tmp_path: Path):
    async with moving(tmp_path) as moves:
        folder = await moves.export()
        await moves.export()
        with pytest.raises(TransferFailed, match="2 folders have the table music"):
            await moves.import_(tmp_path / "out")
        assert await moves.import_(folder) == DONE


async def test_the_progress_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    synced: list[str] = []

    def write_durably(path: Path, content: bytes) -> None:
        synced.append(path.name)
        data_directory.write_durably(path, content)

    for module in (export_run, import_command):
        monkeypatch.setattr(module, "write_durably", write_durably)
    async with moving(tmp_path) as moves:
        folder = await moves.export()
        assert set(synced) == {"_progress.json"}
        assert await moves.import_(folder) == DONE
        assert set(synced) == {"_progress.json", "state.json"}


def _names(directory: Path, pattern: str) -> list[str]:
    return [path.name for path in directory.glob(pattern)]


def _make(directory: Path) -> None:
    directory.mkdir(parents=True)
