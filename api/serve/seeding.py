"""Fills missing tables from a directory before the server answers its first request.

A table is created with a tag that is removed when the table is full. A table with that tag is from
a start that was interrupted, so the next start makes it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.lowlevel
import msgspec
import structlog

from dynactor.actors.database.database import Database
from dynactor.api.access.sender import TrustedCaller
from dynactor.api.clients.client import RequestFailed
from dynactor.api.commands.tables import table_copy
from dynactor.api.commands.tables.batch_writer import BatchWriter
from dynactor.api.commands.tables.import_run import DUPLICATE, Counts, ImportRun, Place
from dynactor.api.commands.tables.table_files import (
    DEFINITION,
    CsvOptions,
    SourceFile,
    TableFiles,
    check_sums,
    new_definition,
    tables_in,
)
from dynactor.api.commands.tables.transfer_failed import TransferFailed
from dynactor.api.http.protocol import JSON_1_0, Answer, Protocol, Request
from dynactor.api.registry import NOT_IMPLEMENTED, OPERATIONS
from dynactor.api.requests.call import DYNAMODB
from dynactor.model.files.csv_columns import csv_types
from dynactor.model.files.item_reader import ItemReader
from dynactor.model.files.records import Fault
from dynactor.model.tables.tag_rules import THROTTLING_TAG

SEED_TAG: Final = "dynactor:seed"

_POLL_SECONDS: Final = 0.02
# A table takes longer only with a clock that stands still.
_DEADLINE_SECONDS: Final = 60.0

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_log = structlog.get_logger(__name__)


class DatabaseEndpoint:
    """Calls operations of a database without HTTP, signatures and policies."""

    def __init__(self, database: Database) -> None:
        self._protocol = Protocol(database, OPERATIONS.values(), NOT_IMPLEMENTED)

    async def call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request; raises ``RequestFailed``."""
        target, body = f"{DYNAMODB}.{operation}", _encode(request)
        answer = self._protocol.answer(
            Request(target, JSON_1_0, "", "", "localhost", "", "", body, trusted=TrustedCaller())
        )
        if not isinstance(answer, Answer):
            answer = await answer
        answered = _decode(answer.body or b"{}")
        if answer.status != 200:  # noqa: PLR2004 - HTTP's
            error_type = answered["__type"].rpartition("#")[2]
            raise RequestFailed(error_type, answered.get("message", answered.get("Message", "")))
        return answered


async def seed(database: Database, directory: Path) -> None:
    """Fill the tables of a directory that do not exist.

    All files are checked first, so a faulty file leaves no table. Raises ``TransferFailed`` if a
    file is damaged or has an item that PutItem would refuse, or a folder has no ``table.json``.
    """
    endpoint = DatabaseEndpoint(database)
    missing = []
    for table in await tables_in([directory]):
        if table.creation is None:
            raise TransferFailed(f"{directory} has no {DEFINITION} with the members of CreateTable")
        if await _is_missing(endpoint, table):
            await _read(table, None)
            missing.append(table)
    for table in missing:
        await _fill(endpoint, table)


async def _is_missing(endpoint: DatabaseEndpoint, table: TableFiles) -> bool:
    """Whether a table must be filled; deletes a table that an interrupted start has left."""
    assert table.name is not None
    described = await table_copy.describe(endpoint, table.name)
    if described is None:
        return True
    tags = await table_copy.tags(endpoint, described["TableArn"]) or []
    if not any(tag["Key"] == SEED_TAG for tag in tags):
        return False
    await _wait_until_settled(endpoint, table.name)
    update = {"TableName": table.name, "DeletionProtectionEnabled": False}
    if described["DeletionProtectionEnabled"]:
        await endpoint.call("UpdateTable", update)
        await _wait_until_settled(endpoint, table.name)
    await endpoint.call("DeleteTable", {"TableName": table.name})
    await _wait_until_settled(endpoint, table.name)
    return True


async def _fill(endpoint: DatabaseEndpoint, table: TableFiles) -> None:
    assert table.name is not None
    assert table.creation is not None
    tags = {tag["Key"]: tag["Value"] for tag in table.creation.get("Tags") or ()}
    # The table's own limits would throttle its items.
    marked = tags | {SEED_TAG: "unfinished", THROTTLING_TAG: "off"}
    creation = {**table.creation, "Tags": _members(marked)}
    answer = await endpoint.call("CreateTable", creation)
    await _wait_until_settled(endpoint, table.name)
    if table.time_to_live is not None:
        await table_copy.enable_time_to_live(endpoint, table.name, table.time_to_live)
    counts = await _read(table, BatchWriter(endpoint, table.name, anyio.sleep))
    arn = {"ResourceArn": answer["TableDescription"]["TableArn"]}
    if THROTTLING_TAG in tags:
        kept = _members({THROTTLING_TAG: tags[THROTTLING_TAG]})
        await endpoint.call("TagResource", {**arn, "Tags": kept})
    surplus = [key for key in (THROTTLING_TAG, SEED_TAG) if key not in tags]
    await endpoint.call("UntagResource", {**arn, "TagKeys": surplus})
    _log.info("table_seeded", table=table.name, items=counts.written)


async def _read(table: TableFiles, writer: BatchWriter | None) -> Counts:
    """Check the items of a table, and write them if there is a writer."""
    assert table.creation is not None
    await check_sums(table.files)
    definition = new_definition(table.creation, str(table.name))
    run = ImportRun(ItemReader(definition), writer, _Refusing(), turn=anyio.lowlevel.checkpoint)
    await run.read(table.files, "auto", CsvOptions(csv_types(definition)), Place())
    return run.counts


class _Refusing:
    """Ends the seeding at the first faulty item."""

    def fault(self, file: SourceFile, fault: Fault) -> None:
        """Raise an error that names the item."""
        if fault.code != DUPLICATE:
            raise TransferFailed(f"{file.path}:{fault.line}: {fault.code}: {fault.message}")

    def progress(self, counts: Counts, place: Place) -> None:
        """Show nothing."""


async def _wait_until_settled(endpoint: DatabaseEndpoint, name: str) -> None:
    with _deadline(name):
        while True:
            described = await table_copy.describe(endpoint, name)
            if described is None or described["TableStatus"] == "ACTIVE":
                return
            await anyio.sleep(_POLL_SECONDS)


@contextmanager
def _deadline(name: str) -> Iterator[None]:
    """Give up a table that takes too long."""
    try:
        with anyio.fail_after(_DEADLINE_SECONDS):
            yield
    except TimeoutError:
        raise TransferFailed(
            f"The table {name} did not change its state within {_DEADLINE_SECONDS:.0f} seconds"
        ) from None


def _members(tags: dict[str, str]) -> Sequence[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]
