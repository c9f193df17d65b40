"""The command ``dynactor export``: its options, output and exit codes."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import anyio
from cyclopts import Parameter
from cyclopts.types import PositiveFloat, PositiveInt

from dynactor.api.clients.client import Endpoint, RequestFailed, RetryingEndpoint
from dynactor.api.clients.reach import CannotCall
from dynactor.api.commands.tables import table_copy
from dynactor.api.commands.tables.anonymizer import AnonymizeOptions
from dynactor.api.commands.tables.export_run import ExportRun, unfinished
from dynactor.api.commands.tables.parquet_files import require_pyarrow, write_parquet
from dynactor.api.commands.tables.table_address import TableAddress, open_endpoint
from dynactor.api.commands.tables.table_files import TIME_TO_LIVE
from dynactor.api.commands.tables.table_reader import TableReader
from dynactor.api.commands.tables.terminal_progress import TerminalProgress
from dynactor.api.commands.tables.transfer_failed import TransferFailed
from dynactor.model.throttling.steady_rate import SteadyRate
from dynactor.model.transfers.transfer_names import transfer_id
from dynactor.storage.buckets.bucket import BucketError

DONE: Final = 0
TROUBLE: Final = 1

_MILLISECONDS: Final = 1_000


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """The endpoint, and the pace."""

    endpoint: str = "http://127.0.0.1:8000"
    """Address of the server, or of another server with DynamoDB's API."""

    region: str | None = None
    """Region of the table. Default: AWS_REGION or AWS_DEFAULT_REGION, else us-east-1."""

    segments: PositiveInt = 4
    """Number of parallel scan segments."""

    rate: PositiveFloat | None = None
    """Items to read per second at most."""

    resume: Annotated[bool, Parameter(negative=())] = False
    """Continue an interrupted export of the table in this directory."""

    format: Literal["dynamodb-json", "parquet"] = "dynamodb-json"
    """Format of the data. parquet adds Parquet files beside those of DynamoDB JSON, and needs the
    extra dynactor[parquet]."""

    doubles: Annotated[bool, Parameter(negative=())] = False
    """Write numbers in Parquet as doubles, which rounds them, instead of exact decimals."""

    privacy: AnonymizeOptions = field(default_factory=AnonymizeOptions)


def export(table: str, directory: Path, /, *, options: ExportOptions | None = None) -> int:
    """Run the command; returns its exit code.

    Parameters
    ----------
    table
        Table to export.
    directory
        Directory that gets the folder AWSDynamoDB/EXPORTID.
    """
    try:
        return anyio.run(_run, table, directory, options or ExportOptions())
    except (TransferFailed, RequestFailed, CannotCall, BucketError, OSError) as error:
        sys.stderr.write(f"dynactor: {error}\n")
    return TROUBLE


async def _run(table: str, directory: Path, options: ExportOptions) -> int:
    address = TableAddress(options.endpoint, options.endpoint, table, options.region or "")
    lines = TerminalProgress()
    if options.format == "parquet":
        require_pyarrow()
    async with open_endpoint(address, os.environ) as endpoint:
        folder = await export_table(endpoint, table, directory, options, lines)
    if options.format == "parquet":
        folder = await write_parquet(folder, doubles=options.doubles)
    sys.stdout.write(f"{folder}\n")
    return DONE


async def export_table(
    endpoint: Endpoint,
    table: str,
    directory: Path,
    options: ExportOptions,
    lines: TerminalProgress,
    *,
    pause: Callable[[float], Awaitable[None]] = anyio.sleep,
) -> Path:
    """Export a table; returns the folder of the export.

    Raises ``TransferFailed`` if there is no such table, ``RequestFailed``, ``CannotCall``,
    ``BucketError`` or ``OSError``.
    """
    brief = RetryingEndpoint(endpoint)
    description = await table_copy.describe(brief, table)
    if description is None:
        raise TransferFailed(f"There is no table {table}")
    _make(directory)
    patient = RetryingEndpoint(endpoint, pause, lines.say)
    folder = unfinished(directory, description) if options.resume else None
    key_types = {name: type_name for name, _, type_name in table_copy.key_types(description)}
    anonymizer = options.privacy.anonymizer(key_types)
    run = ExportRun(
        TableReader(patient, table, list(key_types), pause),
        description,
        directory,
        lines.show,
        anonymizer,
    )
    if folder is None:
        creation = table_copy.creation_request(
            description, table, await table_copy.tags(patient, description["TableArn"]) or []
        )
        creation |= await _time_to_live(patient, table, lines)
        milliseconds = int(time.time() * _MILLISECONDS)
        export_id = transfer_id(milliseconds, secrets.token_hex(4))
        await run.start(export_id, creation, options.segments)
    else:
        run.resume(folder)
    rate = None if options.rate is None else SteadyRate(options.rate)
    exported = await run.finish(rate)
    if anonymizer is not None:
        lines.say(f"unchanged attributes: {', '.join(anonymizer.unnamed) or 'none'}")
    return exported


async def _time_to_live(
    endpoint: Endpoint, table: str, lines: TerminalProgress
) -> dict[str, dict[str, Any]]:
    """The member of ``table.json`` with the time to live of a table."""
    try:
        attribute = await table_copy.time_to_live_attribute(endpoint, table)
    except RequestFailed as error:
        if error.error_type not in table_copy.UNREADABLE:
            raise
        lines.say(f"the time to live of {table} can't be read: {error}")
        return {}
    if attribute is None:
        return {}
    return {TIME_TO_LIVE: {"Enabled": True, "AttributeName": attribute}}


def _make(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
