"""Folders with the files of tables, and the records in these files.

A folder of a table has ``table.json`` beside its data files: the members of CreateTable, and
optionally ``TimeToLiveSpecification`` as in UpdateTimeToLive. The data files are those of an
export, or any CSV and JSON files. Other folders and single files have no definition.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from hashlib import md5
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from dynactor.actors.transfers import manifests
from dynactor.actors.transfers.import_files import listed_files
from dynactor.actors.transfers.manifests import DataFile
from dynactor.api.commands.tables.local_database import (
    creations_in,
    is_local_database,
    records_in,
)
from dynactor.api.commands.tables.transfer_failed import TransferFailed
from dynactor.api.operations.create_table import new_table
from dynactor.api.requests.inputs import CreateTableInput, TimeToLiveSpecificationShape
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import DynamoDBError
from dynactor.model.files.csv_columns import CsvTypes
from dynactor.model.files.json_records import JsonDocument, MixedJsonLines
from dynactor.model.files.records import BOM, BadContent, Csv, Fault, Format, Record
from dynactor.model.tables.table_rules import define
from dynactor.storage.buckets.bucket import BucketError
from dynactor.storage.buckets.decompression import (
    BadFile,
    ReadObject,
    ZstdMissing,
    detect_compression,
)
from dynactor.storage.buckets.directory_bucket import DirectoryBucket
from dynactor.storage.buckets.ion_records import IonDecoder, IonMissing

DEFINITION: Final = "table.json"
# Its member that is not one of CreateTable.
TIME_TO_LIVE: Final = "TimeToLiveSpecification"

InputFormat: TypeAlias = Literal["auto", "csv", "ion", "json-lines", "json-document"]

_ENDINGS: Final = (".csv", ".ion", ".json", ".jsonl", ".ndjson")
_COMPRESSED: Final = (".gz", ".zst")
_HEAD_BYTES: Final = 4096
# The members of a scan's output, before or after its items.
_DOCUMENT: Final = re.compile(
    r'\s*(\[|\{\s*"(Items|Count|ScannedCount|ConsumedCapacity|LastEvaluatedKey|NextToken)")'
)


class SourceFile(NamedTuple):
    """A file to read.

    ``listed`` is its line in an export's manifest. ``local_table`` is the table to read from a
    database file of DynamoDB Local.
    """

    path: Path
    listed: DataFile | None = None
    local_table: str | None = None


class TableFiles(NamedTuple):
    """The files of one table, and the members of CreateTable if they are known.

    ``time_to_live`` is the attribute with the expiry times of its items.
    """

    name: str | None
    creation: dict[str, Any] | None
    files: Sequence[SourceFile]
    time_to_live: str | None = None


class CsvOptions(NamedTuple):
    """The types of the columns, and their delimiter."""

    types: CsvTypes = CsvTypes()
    delimiter: str = ","


async def tables_in(paths: Sequence[Path]) -> list[TableFiles]:
    """The tables of these files and directories, each once; raises ``TransferFailed``."""
    found = []
    single: list[SourceFile] = []
    for path in paths:
        if path.is_file() and is_local_database(path):
            found += _local_tables(path)
        elif path.is_file():
            single.append(SourceFile(path))
        elif path.is_dir():
            folders = sorted({each.parent for each in path.rglob(DEFINITION)})
            found += [await _table_in(folder) for folder in folders or [path]]
        else:
            raise TransferFailed(f"{path} does not exist")
    names = [table.name for table in found]
    for name in names:
        if names.count(name) > 1 and name is not None:
            raise TransferFailed(f"{names.count(name)} folders have the table {name}: give one")
    if single:
        found.append(TableFiles(None, None, single))
    return found


def _local_tables(path: Path) -> list[TableFiles]:
    found = []
    for creation in creations_in(path):
        name = creation["TableName"]
        new_definition(creation, f"{path}: {name}")
        found.append(TableFiles(name, creation, [SourceFile(path, local_table=name)]))
    return found


async def _table_in(folder: Path) -> TableFiles:
    creation = attribute = None
    if (folder / DEFINITION).is_file():
        creation, attribute = _creation(folder / DEFINITION)
    name = None if creation is None else str(creation["TableName"])
    if _has(folder, f"{manifests.FILES}.json"):
        try:
            listed = await listed_files(DirectoryBucket(folder), "", _export_format(folder))
        except BucketError as error:
            raise TransferFailed(f"{folder}: {error.message}") from None
        files = [SourceFile(folder / each.key, each.listed) for each in listed]
    elif _has(folder, manifests.STARTED):
        raise TransferFailed(f"{folder} has an export that is not complete")
    else:
        files = _data_files(folder)
    if not files:
        raise TransferFailed(f"{folder} has no data files: their names end with .json or .csv")
    return TableFiles(name, creation, files, attribute)


def _export_format(folder: Path) -> str:
    """The format of the export in a folder; its manifest is checked later."""
    for path in folder.rglob(f"{manifests.SUMMARY}.json"):
        with suppress(OSError, msgspec.MsgspecError):
            return manifests.read_summary(path.read_bytes()).output_format
    return "DYNAMODB_JSON"


def _has(folder: Path, name: str) -> bool:
    return any(True for _ in folder.rglob(name))


def _data_files(folder: Path) -> list[SourceFile]:
    return [SourceFile(path) for path in sorted(folder.rglob("*")) if _is_data(path)]


def _is_data(path: Path) -> bool:
    name = path.name
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return path.is_file() and name.endswith(_ENDINGS) and path.name != DEFINITION


def _creation(path: Path) -> tuple[dict[str, Any], str | None]:
    """The members of CreateTable in a file, and the attribute of the time to live."""
    try:
        creation = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        specification = creation.pop(TIME_TO_LIVE, None)
        given = msgspec.convert(specification, TimeToLiveSpecificationShape | None)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise TransferFailed(f"{path} can't be read: {error}") from None
    new_definition(creation, str(path))
    return creation, given.AttributeName if given is not None and given.Enabled else None


def new_definition(creation: Mapping[str, Any], place: str) -> TableDefinition:
    """The definition of a table that CreateTable makes; ``TransferFailed`` names ``place``."""
    try:
        request = msgspec.convert(creation, CreateTableInput)
        return define(new_table(request.TableName, request, 0.0))
    except (DynamoDBError, msgspec.ValidationError) as error:
        raise TransferFailed(f"{place} does not define a table: {error}") from None


async def check_sums(files: Sequence[SourceFile]) -> None:
    """Compare the checksums of an export before anything is written; raises ``TransferFailed``."""
    for file in files:
        if file.listed is None:
            continue
        digest = md5(usedforsecurity=False)
        try:
            async for part in DirectoryBucket(file.path.parent).read(file.path.name):
                digest.update(part)
        except BucketError as error:
            raise TransferFailed(f"{file.path}: {error}") from None
        if b64encode(digest.digest()).decode() != file.listed.md5_checksum:
            raise TransferFailed(f"{file.path}: the checksum is not that of the manifest")


async def read_records(
    file: SourceFile, input_format: InputFormat, options: CsvOptions
) -> AsyncIterator[Record | Fault]:
    """The records of a file; raises ``TransferFailed`` if it is damaged or unlike its manifest."""
    path = file.path
    if file.local_table is not None:
        for record in records_in(path, file.local_table):
            yield record
        return
    count = 0
    try:
        with path.open("rb") as opened:
            head = opened.read(_HEAD_BYTES)
        # A bucket refuses links out of its directory, so it gets the place of the file itself.
        place = path.resolve()
        reading = ReadObject(DirectoryBucket(place.parent), place.name, detect_compression(head))
        decoder: Format | None = None
        async for part in reading.parts():
            decoder = decoder or _decoder(path, part, input_format, options)
            for record in decoder.feed(part):
                count += 1
                yield record
        if decoder is not None:
            for record in decoder.end():
                count += 1
                yield record
    except ZstdMissing:
        raise TransferFailed(f"{path}: install dynactor[zstd] to read ZSTD") from None
    except IonMissing:
        raise TransferFailed(f"{path}: install dynactor[ion] to read Ion") from None
    except (BadContent, BadFile, BucketError, OSError) as error:
        raise TransferFailed(f"{path}: {error}") from None
    if file.listed is not None and file.listed.item_count != count:
        raise TransferFailed(
            f"{path} has {count:,} items, the manifest says {file.listed.item_count:,}"
        )


def _decoder(path: Path, head: bytes, input_format: InputFormat, options: CsvOptions) -> Format:
    if input_format == "auto":
        if ".csv" in path.suffixes:
            input_format = "csv"
        elif ".ion" in path.suffixes:
            input_format = "ion"
        else:
            text = head.removeprefix(BOM).decode("latin-1")
            input_format = "json-document" if _DOCUMENT.match(text) else "json-lines"
    match input_format:
        case "csv":
            return Csv(options.types, options.delimiter, None)
        case "ion":
            return IonDecoder()
        case "json-document":
            return JsonDocument()
        case _:
            return MixedJsonLines()
