"""The command ``dynactor import``: its options, output and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec
from cyclopts import Parameter
from cyclopts.types import PositiveFloat
from msgspec import Struct

from dynactor.api.admin_api.upload_messages import UploadAnswer
from dynactor.api.clients.admin_client import AdminRequestFailed
from dynactor.api.clients.client import Endpoint, RequestFailed, RetryingEndpoint
from dynactor.api.clients.reach import CannotCall
from dynactor.api.clients.tables_address import TablesAddress
from dynactor.api.commands.tables import table_copy
from dynactor.api.commands.tables.anonymizer import AnonymizeOptions, Anonymizer
from dynactor.api.commands.tables.batch_writer import BatchWriter
from dynactor.api.commands.tables.bulk_door import BulkDoor
from dynactor.api.commands.tables.import_run import Counts, ImportRun, Place
from dynactor.api.commands.tables.table_address import TableAddress, open_endpoint
from dynactor.api.commands.tables.table_files import (
    CsvOptions,
    InputFormat,
    SourceFile,
    TableFiles,
    check_sums,
    new_definition,
    tables_in,
)
from dynactor.api.commands.tables.table_pieces import TablePieces
from dynactor.api.commands.tables.terminal_progress import TerminalProgress
from dynactor.api.commands.tables.transfer_failed import TransferFailed
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.files.csv_columns import COLUMN_TYPES, csv_types
from dynactor.model.files.item_reader import ItemReader
from dynactor.model.files.records import Fault
from dynactor.model.throttling.steady_rate import SteadyRate
from dynactor.storage.data_directory import write_durably

DONE: Final = 0
SOME_REFUSED: Final = 1
TROUBLE: Final = 2

_SHOWN_FAULTS: Final = 10_000
_POLL_SECONDS: Final = 0.5


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """The table, the format of the files, and the pace."""

    table: str | None = None
    """Table to import into. Default: the tables of the table.json beside the files."""

    endpoint: str = "http://127.0.0.1:8000"
    """Address of the server, or of another server with DynamoDB's API."""

    admin_endpoint: str | None = None
    """Address of the admin port, if the command can't use the one that the server gives."""

    region: str | None = None
    """Region of the tables. Default: AWS_REGION or AWS_DEFAULT_REGION, else us-east-1."""

    create: Annotated[bool, Parameter(negative=())] = False
    """Create missing tables as table.json says."""

    format: InputFormat = "auto"
    """Format of the files; auto finds it by their names and first bytes. JSON lines have one item
    in each line. A JSON document is the output of aws dynamodb scan, or an array of items."""

    delimiter: str = ","
    """Delimiter of the columns in CSV files."""

    column_type: Annotated[tuple[str, ...], Parameter(negative=())] = ()
    """Type of a column in CSV files, as COLUMN=N. Types are those of DynamoDB, and JSON for values
    with their types. Default: the type in the header, of the key, or S."""

    rate: PositiveFloat | None = None
    """Items to write per second at most."""

    resume: Annotated[bool, Parameter(negative=())] = False
    """Continue after the items that an interrupted import has written."""

    state: Path | None = None
    """File that keeps the progress. Default: dynactor-import-TABLE.json in the current
    directory."""

    dry_run: Annotated[bool, Parameter(negative=())] = False
    """Write nothing: only list the items that would be refused, and why."""

    privacy: AnonymizeOptions = field(default_factory=AnonymizeOptions)


def import_(paths: list[Path], /, *, options: ImportOptions | None = None) -> int:
    """Run the command; returns its exit code.

    Parameters
    ----------
    paths
        Directories and files: exports, CSV, JSON lines, output of aws dynamodb scan, also
        compressed; database files of DynamoDB Local.
    """
    try:
        return anyio.run(_run, paths, options or ImportOptions())
    except (TransferFailed, RequestFailed, CannotCall, AdminRequestFailed, OSError) as error:
        sys.stderr.write(f"dynactor: {error}\n")
    return TROUBLE


async def _run(paths: list[Path], options: ImportOptions) -> int:
    lines = TerminalProgress()
    address = TableAddress(options.endpoint, options.endpoint, "", options.region or "")
    async with open_endpoint(address, os.environ) as endpoint:
        door = await _bulk_door(options, lines)
        return await ImportCommand(endpoint, options, lines, door=door).run(paths)


async def _bulk_door(options: ImportOptions, lines: TerminalProgress) -> BulkDoor | None:
    """The uploads of a server of dynactor; None for another server."""
    if options.dry_run:
        return None
    address = TablesAddress(
        endpoint=options.endpoint, admin_endpoint=options.admin_endpoint, region=options.region
    )
    try:
        admin = await anyio.to_thread.run_sync(address.admin_client)
    except CannotCall:
        return None
    door = BulkDoor(admin, anyio.sleep, lines.say)
    return door if await door.is_open() else None


class _ImportState(Struct):
    """The progress of an import, its files, its table, and the rules that anonymize its items."""

    paths: list[str]
    place: Place
    counts: Counts
    table_id: str = ""
    anonymized: str = ""
    upload_id: str = ""


def _new_state(
    table: TableFiles, anonymizer: Anonymizer | None, table_id: str = ""
) -> _ImportState:
    return _ImportState(
        [str(file.path.resolve()) for file in table.files],
        Place(),
        Counts(),
        table_id,
        "" if anonymizer is None else anonymizer.fingerprint,
    )


class ImportCommand:
    """One run of the command against an endpoint."""

    def __init__(
        self,
        endpoint: Endpoint,
        options: ImportOptions,
        lines: TerminalProgress,
        pause: Callable[[float], Awaitable[None]] = anyio.sleep,
        door: BulkDoor | None = None,
    ) -> None:
        """``door`` takes the items of new tables."""
        # Only requests to existing tables wait for the server, because the address may be wrong.
        self._endpoint = RetryingEndpoint(endpoint)
        self._patient = RetryingEndpoint(endpoint, pause, lines.say)
        self._door = door
        self._options = options
        self._lines = lines
        self._pause = pause

    async def run(self, paths: list[Path]) -> int:
        """Import the files; returns the exit code.

        Raises ``TransferFailed``, ``RequestFailed`` or ``CannotCall``.
        """
        refused = 0
        tables = await tables_in(paths)
        if self._options.table is not None and len(tables) > 1:
            tables = [each for each in tables if each.name in (None, self._options.table)]
            if not tables:
                raise TransferFailed(f"The files have no table {self._options.table}")
        if self._options.state is not None and len(tables) > 1:
            raise TransferFailed("--state is for one table: select it with --table")
        names = [self._name(table) for table in tables]
        if not self._options.resume:
            await self._refuse_interrupted(names)
            # Otherwise a later --resume would continue from the state of an earlier import.
            self._delete_states(names)
        for name, table in zip(names, tables, strict=True):
            refused += await self._import(name, table)
        # Until here, --resume skips the complete tables.
        self._delete_states(names)
        return SOME_REFUSED if refused else DONE

    def _name(self, table: TableFiles) -> str:
        name = self._options.table or table.name
        if name is None:
            raise TransferFailed("The files have no table.json: give --table NAME")
        return name

    def _state_path(self, name: str) -> Path:
        # The last part of an ARN is the name of its table.
        return self._options.state or Path(f"dynactor-import-{name.rpartition('/')[2]}.json")

    async def _refuse_interrupted(self, names: Iterable[str]) -> None:
        """Refuse tables that an earlier upload still fills, before its progress is forgotten."""
        for name in names:
            if self._door is not None and await self._door.find_upload(name) is not None:
                raise TransferFailed(
                    f"An interrupted import fills the table {name}: continue it with --resume, or "
                    "delete the table"
                )

    def _delete_states(self, names: Iterable[str]) -> None:
        if not self._options.dry_run:
            for name in names:
                self._state_path(name).unlink(missing_ok=True)

    async def _import(self, name: str, table: TableFiles) -> int:
        """Import the files of one table; returns the number of refused items."""
        await check_sums(table.files)
        if self._door is not None and table.creation is not None:
            refused = await self._upload(self._door, name, table, table.creation)
            if refused is not None:
                return refused
        definition, table_id = await self._definition(name, table)
        anonymizer = self._anonymizer(definition)
        path = self._state_path(name)
        state = _new_state(table, anonymizer, table_id)
        is_dry = self._options.dry_run
        if self._options.resume and not is_dry:
            state = self._stored(path, state)
        report = _ImportReport(self._lines, None if is_dry else path, state)
        run = ImportRun(
            ItemReader(definition),
            None if is_dry else BatchWriter(self._patient, name, self._pause),
            report,
            change=anonymizer,
            rate=None if self._options.rate is None else SteadyRate(self._options.rate),
            turn=anyio.lowlevel.checkpoint,
        )
        run.counts = state.counts
        await run.read(
            table.files,
            self._options.format,
            self._csv_options(definition),
            state.place,
        )
        counts = run.counts
        self._say_imported(name, counts, anonymizer)
        return counts.refused

    async def _upload(
        self, door: BulkDoor, name: str, table: TableFiles, creation: dict[str, Any]
    ) -> int | None:
        """Import the files into a new table; returns the number of refused items.

        None if the table exists, or can't be uploaded: then its items are written.
        """
        creation = {**creation, "TableName": name}
        definition = new_definition(creation, name)
        if definition.local_indexes or definition.stream is not None:
            return None
        anonymizer = self._anonymizer(definition)
        path = self._state_path(name)
        state = _new_state(table, anonymizer)
        begun = await door.find_upload(name)
        if self._options.resume:
            state = self._stored(path, state)
            if state.upload_id:
                begun = await self._continued(door, name, state.upload_id)
            elif state.table_id:
                return None
        if begun is None:
            if not self._options.create or self._options.rate is not None:
                return None
            if await table_copy.describe(self._endpoint, name) is not None:
                return None
            try:
                begun = await door.begin(creation)
            except AdminRequestFailed as error:
                self._lines.say(f"{name}: BatchWriteItem writes the items, because {error}")
                return None
        elif begun.id != state.upload_id:
            raise TransferFailed(f"Another import fills the table {name}")
        state.upload_id = begun.id
        write_durably(path, msgspec.json.encode(state))
        report = _ImportReport(self._lines, None, state)
        pieces = TablePieces(
            self._options.format,
            self._csv_options(definition),
            ItemReader(definition),
            anonymizer,
            report.fault,
        )
        ended = await self._send(door, begun, pieces, table, report)
        if table.time_to_live is not None:
            await table_copy.enable_time_to_live(self._endpoint, name, table.time_to_live)
        refused = pieces.counts.refused + ended.errors
        counts = Counts(written=ended.imported, refused=refused, replaced=ended.duplicates)
        self._say_imported(name, counts, anonymizer)
        return refused

    def _csv_options(self, definition: TableDefinition) -> CsvOptions:
        chosen = dict(map(_column_type, self._options.column_type))
        return CsvOptions(csv_types(definition, chosen), self._options.delimiter)

    def _anonymizer(self, definition: TableDefinition) -> Anonymizer | None:
        key_types = {each.name: each.type for each in definition.key_schema.attributes}
        return self._options.privacy.anonymizer(key_types)

    def _say_imported(self, name: str, counts: Counts, anonymizer: Anonymizer | None) -> None:
        verb = "would be written" if self._options.dry_run else "written"
        self._lines.say(
            f"{name}: {counts.written:,} items {verb}, {counts.refused:,} refused, "
            f"{counts.replaced:,} replaced by later items with the same key"
        )
        if anonymizer is not None:
            self._lines.say(f"unchanged attributes: {', '.join(anonymizer.unnamed) or 'none'}")

    async def _continued(self, door: BulkDoor, name: str, upload_id: str) -> UploadAnswer | None:
        """The upload to continue; None if it begins again."""
        found = await door.find(upload_id)
        if found is not None and found.status in ("IN_PROGRESS", "COMPLETED"):
            return found
        self._lines.say(f"{name}: the earlier upload has ended without a table, and begins again")
        return None

    async def _send(
        self,
        door: BulkDoor,
        begun: UploadAnswer,
        pieces: TablePieces,
        table: TableFiles,
        report: _ImportReport,
    ) -> UploadAnswer:
        """Upload the pieces that the server does not have; returns when all are imported."""
        sources: dict[int, SourceFile] = {}
        number = 0
        async for piece in pieces.of(table.files):
            if piece.file is not None:
                sources[number] = piece.file
            if number >= begun.pieces and not begun.ended:
                await door.send(begun.id, number, piece.content)
            number += 1
            self._lines.show(f"{number:,} pieces uploaded")
        if not begun.ended:
            await door.end(begun.id, number)
        ended = await door.wait_imported(
            begun.id, lambda found: self._lines.show(f"{found.imported:,} items imported")
        )
        if ended.errors or ended.duplicates:
            for fault in await door.faults(begun.id):
                if fault.piece in sources:
                    known = Fault(fault.line, b"", fault.code, fault.message)
                    report.fault(sources[fault.piece], known)
        return ended

    @staticmethod
    def _stored(path: Path, started: _ImportState) -> _ImportState:
        """The stored progress of the same import; else the given one."""
        try:
            state = msgspec.json.decode(path.read_bytes(), type=_ImportState)
        except FileNotFoundError:
            return started
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise TransferFailed(f"{path} is not the state of an import: {error}") from None
        if state.paths != started.paths:
            raise TransferFailed(f"{path} belongs to an import of other files")
        if state.table_id != started.table_id and started.table_id:
            raise TransferFailed(f"{path} belongs to an import into another table")
        if state.upload_id and started.table_id:
            raise TransferFailed(f"{path} belongs to an import over the admin port")
        if state.anonymized != started.anonymized:
            raise TransferFailed(
                f"{path} belongs to an import with other values of --anonymize and --seed: repeat "
                "them"
            )
        return state

    async def _definition(self, name: str, files: TableFiles) -> tuple[TableDefinition, str]:
        """The definition and the id of the table, which is created if that is allowed."""
        options, creation = self._options, files.creation
        if options.dry_run and creation is not None:
            return new_definition({**creation, "TableName": name}, name), ""
        described = await table_copy.describe(self._endpoint, name)
        is_new = described is None
        if described is None:
            if creation is None or not options.create:
                hint = "create it first" if creation is None else "add --create"
                raise TransferFailed(f"There is no table {name}: {hint}")
            await self._endpoint.call("CreateTable", {**creation, "TableName": name})
        while described is None or described["TableStatus"] == "CREATING":
            await self._pause(_POLL_SECONDS)
            described = await table_copy.describe(self._endpoint, name)
        if is_new and files.time_to_live is not None:
            await table_copy.enable_time_to_live(self._endpoint, name, files.time_to_live)
        creation = table_copy.creation_request(described, name, [])
        return new_definition(creation, name), table_copy.table_id(described)


def _column_type(text: str) -> tuple[str, str]:
    column, _, type_name = text.rpartition("=")
    if not column or type_name not in COLUMN_TYPES:
        raise TransferFailed(
            f"--column-type {text} is not understood: give COLUMN={'|'.join(COLUMN_TYPES)}"
        )
    return column, type_name


class _ImportReport:
    """Prints the faults, and stores the progress."""

    def __init__(self, lines: TerminalProgress, path: Path | None, state: _ImportState) -> None:
        self._lines = lines
        self._path = path
        self._state = state
        self._shown = 0

    def fault(self, file: SourceFile, fault: Fault) -> None:
        """Print a record that is not written, with its place."""
        self._shown += 1
        if self._shown <= _SHOWN_FAULTS:
            sys.stdout.write(f"{file.path}:{fault.line}: {fault.code}: {fault.message}\n")

    def progress(self, counts: Counts, place: Place) -> None:
        self._lines.show(f"{counts.records:,} items read, {counts.refused:,} refused")
        if self._path is not None:
            self._state.place, self._state.counts = place, counts
            write_durably(self._path, msgspec.json.encode(self._state))
