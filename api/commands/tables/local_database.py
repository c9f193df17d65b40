"""Reads the tables of a database file of DynamoDB Local, which is an SQLite database.

The layout was read from files of DynamoDB Local 3.3.0: the table ``dm`` has the definitions, ``sm``
the streams, and each other table its items in the column ``ObjectJSON``.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from dynactor.api.commands.tables.transfer_failed import TransferFailed
from dynactor.model.files.records import UNDECODABLE, Fault, Record

_HEADER: Final = b"SQLite format 3\0"
_KEY_COLUMNS: Final = ("hashKey", "rangeKey")
_ON_DEMAND: Final = 1
_PROCESSES: Final = Path("/proc")

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def is_local_database(path: Path) -> bool:
    """Whether a file is an SQLite database."""
    with path.open("rb") as file:
        return file.read(len(_HEADER)) == _HEADER


def creations_in(path: Path) -> list[dict[str, Any]]:
    """The members of CreateTable for each table of a database file; raises ``TransferFailed``."""
    _refuse_open_file(path)
    with _opened(path) as database:
        streams = dict(
            database.execute(
                "SELECT TableName, StreamInfo FROM sm "
                "WHERE StreamStatus = 'ENABLED' AND DeletionDateTime IS NULL"
            )
        )
        rows = database.execute(
            "SELECT TableName, TableInfo, BillingMode, ReadCapacityUnits, WriteCapacityUnits "
            "FROM dm ORDER BY TableName"
        )
        return [_creation(_SqliteRow(*row), streams.get(row[0])) for row in rows]


def records_in(path: Path, table_name: str) -> Iterator[Record | Fault]:
    """The items of a table, with the numbers of their rows as lines; raises ``TransferFailed``."""
    with _opened(path) as database:
        quoted = table_name.replace('"', '""')
        rows = database.execute(f'SELECT ObjectJSON FROM "{quoted}"')  # noqa: S608 - quoted
        for number, (data,) in enumerate(rows, 1):
            try:
                yield Record(number, data, _decode(data))
            except msgspec.MsgspecError as error:
                yield Fault(number, data, UNDECODABLE, f"The row has no item: {error}")


class _SqliteRow(NamedTuple):
    """A row of ``dm``."""

    name: str
    info: bytes
    billing_mode: int
    read_units: int
    write_units: int


def _creation(row: _SqliteRow, stream: bytes | None) -> dict[str, Any]:
    described = _decode(row.info)
    creation: dict[str, Any] = {
        "TableName": row.name,
        "AttributeDefinitions": described["Attributes"],
        "KeySchema": [
            {
                "AttributeName": part["DynamoDBAttribute"]["AttributeName"],
                "KeyType": part["KeyType"],
            }
            # Local indexes have further parts in this list.
            for part in described["UniqueIndexes"]
            if part["SQLiteColumnName"] in _KEY_COLUMNS
        ],
    }
    global_indexes = described.get("GSIList") or []
    if row.billing_mode == _ON_DEMAND:
        creation["BillingMode"] = "PAY_PER_REQUEST"
        for index in global_indexes:
            index.pop("ProvisionedThroughput", None)
    else:
        creation["ProvisionedThroughput"] = {
            "ReadCapacityUnits": row.read_units,
            "WriteCapacityUnits": row.write_units,
        }
    if global_indexes:
        creation["GlobalSecondaryIndexes"] = global_indexes
    if described.get("LSIList"):
        creation["LocalSecondaryIndexes"] = described["LSIList"]
    if stream is not None:
        creation["StreamSpecification"] = {
            "StreamEnabled": True,
            "StreamViewType": _decode(stream)["StreamViewType"],
        }
    return creation


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        uri = f"{path.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as database:
            yield database
    except (sqlite3.Error, msgspec.MsgspecError, KeyError, TypeError) as error:
        raise TransferFailed(
            f"{path} is not a database of DynamoDB Local, or of an unknown version: {error!r}"
        ) from None


def _refuse_open_file(path: Path) -> None:
    """Refuse a file that DynamoDB Local may still change.

    DynamoDB Local holds no lock between its writes. So on Linux the files of all processes are
    compared, and elsewhere only a journal shows that a write is not complete.
    """
    if path.with_name(f"{path.name}-journal").exists():
        raise TransferFailed(
            f"{path} has a journal: a write is not complete. Start and stop DynamoDB Local once"
        )
    file = path.stat()
    for link in _PROCESSES.glob("[0-9]*/fd/*"):
        try:
            found = link.stat()
        except OSError:
            # The process has ended, or belongs to another user.
            continue
        process = link.parts[-3]
        if (found.st_dev, found.st_ino) == (file.st_dev, file.st_ino) and process != str(
            os.getpid()
        ):
            raise TransferFailed(f"{path} is open in process {process}: stop DynamoDB Local first")
