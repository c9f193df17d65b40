"""Creates and lists imports. Their tables go through the phases of restored tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import structlog
from msgspec import structs

from dynactor.actors.parts.long_work import Pieces
from dynactor.actors.parts.part import Part, Parts
from dynactor.actors.phases.table_changes import TableChanges
from dynactor.actors.runtime.mailbox import Message
from dynactor.actors.runtime.randomness import random_uuid
from dynactor.actors.table.table import Table
from dynactor.actors.transfers.import_rows import ImportedRows, log_key
from dynactor.actors.transfers.kept_transfers import KeptTransfers
from dynactor.actors.transfers.transfer_buckets import TransferBuckets
from dynactor.actors.transfers.uploads import Uploads
from dynactor.model.access.bucket_grant import BucketGrant
from dynactor.model.definitions.table import Restoration, TableDefinition
from dynactor.model.errors import (
    ImportConflictException,
    InternalServerError,
    LimitExceededException,
    ResourceNotFoundException,
)
from dynactor.model.limits import IMPORTS
from dynactor.model.transfers.table_import import TableImport
from dynactor.storage import transfers
from dynactor.storage.buckets.bucket import BucketError, read_whole
from dynactor.storage.buckets.directory_bucket import DirectoryBucket
from dynactor.storage.catalog import Catalog, PartitionHead
from dynactor.storage.store import Row

# The failure of an import whose table is complete but for faulty items.
_FAULTY_ITEMS: Final = "ItemValidationError"

_log = structlog.get_logger("actors")


class ImportTable(Message[TableImport], frozen=True):
    """Import files into a new table, which is ACTIVE once it is complete.

    The actor fills in the same attributes of ``definition`` as for ``CreateTable``. ``request`` has
    the members of the request, with their wire names. ``grant`` has the objects that the caller may
    use; None without policies. Raises ``ResourceInUseException`` if the name is in use,
    ``ImportConflictException`` if the client token was used for another import. Raises
    ``LimitExceededException`` if too many imports are in progress, or ``InternalServerError`` if
    the files of an upload can't be stored.
    """

    definition: TableDefinition
    request: dict[str, Any]
    grant: BucketGrant | None = None


def uploaded_import(definition: TableDefinition, creation: dict[str, Any]) -> ImportTable:
    """An import of files that a client uploads; the pieces go to ``TableImports.uploads``.

    ``creation`` has the members of CreateTable.
    """
    request = {
        "InputFormat": "DYNAMODB_JSON",
        "InputCompressionType": "GZIP",
        "TableCreationParameters": creation,
    }
    return ImportTable(definition, request)


class TableImports(Part):
    """Creates and lists imports. Invariant: every import in memory is durable."""

    is_leaders = True

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._randomness = parts.environment.randomness
        self._table_changes = parts[TableChanges]
        self._buckets = parts[TransferBuckets].buckets
        uploads, logs = self._settings.upload_directory, self._settings.import_log_directory
        self.uploads = Uploads(None if uploads is None else Path(uploads))
        self._log_directory = None if logs is None else DirectoryBucket(Path(logs))
        self.handlers = {ImportTable: self._import}
        self._imports: KeptTransfers[TableImport] = KeptTransfers(
            self._clock,
            self._randomness,
            key=transfers.import_key,
            since=self._since,
        )
        self._is_adopted = False
        # The readers of files of imports in progress.
        self._rows: dict[str, ImportedRows] = {}

    # -- for requests -----------------------------------------------------------------------

    def find(self, import_id: str) -> TableImport | None:
        """The import with this id, with its present counts; None if it was forgotten."""
        found = self._imports.find(import_id)
        return None if found is None else self._present(found)

    @property
    def imports(self) -> Sequence[TableImport]:
        """The imports of the last 90 days, the newest first."""
        return list(map(self._present, self._imports.listed))

    def _present(self, found: TableImport) -> TableImport:
        if found.status != "IN_PROGRESS":
            return found
        rows = self._rows.get(found.import_id)
        if self._tables.same(found.table_name, found.table_id) is None:
            # A failed import is noted soon after its table is deleted.
            is_failing = rows is not None and rows.failure is not None
            return found if is_failing else structs.replace(found, status="CANCELLED")
        return found if rows is None else structs.replace(found, counts=rows.counts)

    def _since(self, found: TableImport) -> float | None:
        if self._present(found).status == "IN_PROGRESS":
            return None
        return found.ended_epoch_seconds or found.began_epoch_seconds

    async def error_log(self, import_id: str) -> bytes:
        """The error log of an import of uploaded files, maybe empty; raises ``BucketError``."""
        try:
            return await read_whole(self._log_directory or self.uploads.bucket, log_key(import_id))
        except BucketError as error:
            if error.code == "S3NoSuchKey":
                return b""
            raise

    # -- for the database's actor -------------------------------------------------------------

    async def load(self, _loaded: Catalog) -> None:
        """Load the stored imports, before the phases of their tables are resumed."""
        stored = await transfers.load_imports(self._store.latest)
        self._imports.load((each.import_id, each) for each in stored)
        is_first, self._is_adopted = not self._is_adopted, True
        if is_first:
            uploads = [each for each in stored if each.is_upload and each.status == "IN_PROGRESS"]
            await self.uploads.adopt([each.import_id for each in uploads])

    async def keep(self, _now_epoch_seconds: float) -> Pieces:
        """Delete the records of imports that ended more than 90 days ago."""
        await self._imports.forget_old(self._owner)
        yield

    async def close(self) -> None:
        """Stop the uploads."""
        await self.uploads.close()

    async def _import(self, message: ImportTable) -> TableImport:
        begun = await self._begin(message)
        table = self._tables.same(begun.table_name, begun.table_id)
        if table is not None:
            await self._parts.resume(table)
        return begun

    async def _begin(self, message: ImportTable) -> TableImport:
        """Create the table, still empty, unless the request is a repetition."""
        conflict = "Import conflict: Duplicate request detected with conflicting parameters"
        same = self._imports.with_same_token(message.request, ImportConflictException(conflict))
        if same is not None:
            return self._present(same)
        if sum(each.status == "IN_PROGRESS" for each in self.imports) >= IMPORTS:
            raise LimitExceededException(
                f"Subscriber limit exceeded: Only {IMPORTS} tables can be imported simultaneously"
            )
        import_id, now = self._imports.new_id()
        if self._is_imported(message):
            return await self._lose(message, import_id, now)
        if "S3BucketSource" not in message.request:
            try:
                await self.uploads.begin(import_id)
            except BucketError as error:
                raise InternalServerError(f"Files can't be stored: {error.message}") from error
        begun: list[TableImport] = []

        def rows(definition: TableDefinition) -> list[Row]:
            begun.append(
                TableImport(
                    import_id,
                    definition.name,
                    definition.table_id,
                    definition.uuid,
                    message.request,
                    now,
                    grant=message.grant,
                )
            )
            return [transfers.import_row(begun[-1])]

        is_created = False
        try:
            await self._table_changes.create(
                structs.replace(
                    message.definition,
                    restoration=Restoration("", "", 0, now, import_id=import_id),
                    global_indexes=tuple(
                        structs.replace(index, status="CREATING", backfilling=False)
                        for index in message.definition.global_indexes
                    ),
                ),
                also=rows,
            )
            is_created = True
        finally:
            if not is_created:
                await self.forget_files(import_id)
        self._imports[import_id] = begun[-1]
        return begun[-1]

    def _is_imported(self, message: ImportTable) -> bool:
        """Whether another import fills a table of this name; an upload is refused then."""
        table = self._tables.get(message.definition.name)
        restoration = None if table is None else table.definition.restoration
        if restoration is None or restoration.import_id is None:
            return False
        return restoration.phase != "DONE" and "S3BucketSource" in message.request

    async def _lose(self, message: ImportTable, import_id: str, now: float) -> TableImport:
        """Accept an import whose name another import uses, and let it fail, as the service does."""
        name = message.definition.name
        uuid = str(random_uuid(self._randomness))
        accepted = TableImport(import_id, name, 0, uuid, message.request, now, grant=message.grant)
        failed = structs.replace(
            accepted,
            status="FAILED",
            ended_epoch_seconds=now,
            failure_code="TableAlreadyExists",
            failure_message=f"Table already exists: {name}",
        )
        await self._owner.change(puts=[transfers.import_row(failed)])
        self.remember(failed)
        return accepted

    # -- for the phases of the table ------------------------------------------------------------

    def reader(self, table: Table) -> ImportedRows:
        """A new reader of the files of a table's import."""
        found = self._of(table)
        rows = self._rows[found.import_id] = ImportedRows(
            found,
            table.record,
            self._store,
            self._buckets,
            uploads=self.uploads,
            log_directory=self._log_directory,
        )
        return rows

    def is_upload(self, table: Table) -> bool:
        """Whether a client uploads the files of a table's import."""
        return self._of(table).is_upload

    async def forget_files(self, import_id: str) -> None:
        """Delete the uploaded files of an import that is over, if there are any; never raises."""
        if self.uploads.find(import_id) is not None:
            await self.uploads.delete(import_id)

    def cancel(self, definition: TableDefinition) -> None:
        """Note that DeleteTable has deleted the table of an import, if it was one.

        The import may have failed just before. Then it is canceled as well, because without its
        table nothing stores the failure.
        """
        restoration = definition.restoration
        if restoration is not None and restoration.import_id is not None:
            self._rows.pop(restoration.import_id, None)

    def heads(self, table: Table) -> dict[int, PartitionHead]:
        """The counts of the partitions of a table whose items are loaded."""
        return self._rows[self._of(table).import_id].heads

    def loaded(self, table: Table) -> list[Row]:
        """The rows to store when all items are loaded."""
        found = self._of(table)
        loaded = structs.replace(found, counts=self._rows[found.import_id].counts)
        return [transfers.import_row(loaded)]

    def completed(self, table: Table) -> TableImport:
        """The import to store when the table becomes ACTIVE."""
        completed = structs.replace(
            self._present(self._of(table)),
            status="COMPLETED",
            ended_epoch_seconds=self._clock.now_epoch_seconds(),
        )
        if completed.is_upload or not completed.counts.errors:
            return completed
        # The table is usable, but the service calls such an import failed.
        return structs.replace(
            completed,
            status="FAILED",
            failure_code=_FAULTY_ITEMS,
            failure_message="Some of the items failed validation checks and were not imported. "
            "Please check CloudWatch error logs for more details.",
        )

    def failed(self, table: Table, reason: str) -> TableImport:
        """The import to store before the table is deleted."""
        found = self._present(self._of(table))
        failure = self._rows[found.import_id].failure
        return structs.replace(
            found,
            status="FAILED",
            ended_epoch_seconds=self._clock.now_epoch_seconds(),
            failure_code="InternalServerError" if failure is None else failure.code,
            failure_message=reason,
        )

    def canceled(self, import_id: str) -> TableImport:
        """The import to store before its table is deleted, or the import as it is if it is over.

        Raises ``ResourceNotFoundException`` if the import does not exist, or was forgotten.
        """
        found = self.find(import_id)
        if found is None:
            raise ResourceNotFoundException(f"There is no import {import_id}")
        if found.status != "IN_PROGRESS":
            return found
        return structs.replace(
            found,
            status="CANCELLED",
            ended_epoch_seconds=self._clock.now_epoch_seconds(),
            failure_code="ImportCancelled",
            failure_message="An operator canceled the import",
        )

    def remember(self, over: TableImport) -> None:
        """Keep an import that is stored as over."""
        self._imports[over.import_id] = over
        self._rows.pop(over.import_id, None)
        counts = over.counts
        places = {"table": over.table_name, "import_id": over.import_id}
        if over.status == "COMPLETED" or over.failure_code == _FAULTY_ITEMS:
            _log.info(
                "table_imported",
                **places,
                items=counts.imported_items,
                errors=counts.errors,
                duplicates=counts.duplicates,
            )
        elif over.status == "CANCELLED":
            _log.info("table_import_canceled", **places)
        else:
            _log.error(
                "table_import_failed",
                **places,
                code=over.failure_code,
                reason=over.failure_message,
            )

    def _of(self, table: Table) -> TableImport:
        restoration = table.definition.restoration
        assert restoration is not None
        assert restoration.import_id is not None
        return self._imports[restoration.import_id]
