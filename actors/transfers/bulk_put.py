"""Puts the items of files into a table, through its partitions, as PutItem does.

The writes of a page are in flight together, and each page has an item only once. So the last of
several records with one key wins. A throttled write is repeated until it succeeds. A write whose
outcome is unknown ends the operation, because its repetition could overwrite a later write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, NamedTuple

from msgspec import json, structs

from dynactor.actors.catalog.tables import Tables
from dynactor.actors.followers.pacing import Pacing
from dynactor.actors.partition.messages import Written
from dynactor.actors.runtime.cancellation import outcomes
from dynactor.actors.runtime.clock import Clock
from dynactor.actors.table.table import Table
from dynactor.actors.transfers.error_log import ErrorLog
from dynactor.actors.transfers.import_files import (
    DAMAGED,
    OTHER_COMPRESSION,
    ImportFile,
    listed_files,
)
from dynactor.actors.transfers.source_records import SourceRecords, lines_or_ion, reporting
from dynactor.model import capacity, limits
from dynactor.model.back_off import BackOff
from dynactor.model.capacity import ItemWrite, Receipt
from dynactor.model.definitions.table import TableDefinition
from dynactor.model.errors import (
    ConditionalCheckFailedException,
    DynamoDBError,
    InternalServerError,
    ItemCollectionSizeLimitExceededException,
    SerializationException,
    Throttled,
    TransactionConflictException,
    ValidationException,
)
from dynactor.model.files.item_reader import ItemReader
from dynactor.model.files.records import Fault, Record
from dynactor.model.throttling.steady_rate import SteadyRate
from dynactor.model.transfers.bulk_operation import BulkOperation, BulkProgress, BulkUsage
from dynactor.model.transfers.record_condition import put_condition
from dynactor.model.writes.write import Put
from dynactor.storage.buckets.bucket import Bucket, BucketError
from dynactor.storage.buckets.open_buckets import Buckets

# A page is full with this number of records. Large pages wait less often for the disk. Small ones
# delay requests less.
_PAGE_RECORDS: Final = 256
_BUSY_PAGE_RECORDS: Final = 32
# A page is full with these write units, too. They are fewer than the smallest rate of an operation.
_PAGE_UNITS: Final = 256
# A page is full with this number of writes that may return an existing item. The returned items of
# a page are in memory together.
_PAGE_EXISTING: Final = 16 * limits.MIB // limits.ITEM_SIZE_BYTES
# Requests wait while a turn's records are checked.
_TURN_RECORDS: Final = 32
_FIRST_RETRY_SECONDS: Final = 0.05
_LONGEST_RETRY_SECONDS: Final = 1.0
# The failed conditions of one output object.
_OBJECT_BYTES: Final = 4 * 1024 * 1024
_INVALID: Final = (
    ValidationException,
    SerializationException,
    ItemCollectionSizeLimitExceededException,
)


class BulkFailed(Exception):
    """The operation can't continue."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class _Canceled(Exception):
    """The operation was canceled."""


class _Line(NamedTuple):
    """A write of a record."""

    key: str
    record: Record
    put: Put
    parts: tuple[bytes, bytes]


class BulkPut:
    """The work of one bulk operation.

    ``is_over`` stays false if the work crashes. ``failure`` is the error that ended it.
    """

    def __init__(
        self, operation: BulkOperation, tables: Tables, buckets: Buckets, clock: Clock
    ) -> None:
        self.progress = BulkProgress()
        self.is_over = False
        self.failure: BulkFailed | None = None
        self._operation = operation
        self._request = operation.request
        self._tables = tables
        self._buckets = buckets
        self._clock = clock
        # Completed by a request to cancel the operation.
        self._canceled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._outputs: list[str] = operation.request["OutputS3Configuration"]["OutputType"]
        self._errors = ErrorLog()
        self._conditions: list[bytes] = []
        self._condition_bytes = self._condition_objects = 0
        self._page: dict[bytes, _Line] = {}
        self._page_records = self._page_units = self._page_existing = 0
        self._most_records = _BUSY_PAGE_RECORDS
        self._reader: tuple[TableDefinition, ItemReader] | None = None
        self._read_before_bytes = 0
        self._source: SourceRecords | None = None
        most_units = self._request.get("MaxWriteRequestUnits")
        self._rate = None if most_units is None else SteadyRate(most_units)
        self._own_units = 0.0
        self._pacing = Pacing(lambda: tables.consumed_units() - self._own_units)

    @property
    def is_canceled(self) -> bool:
        """Whether a request has canceled the operation."""
        return self._canceled.done()

    def cancel(self) -> None:
        """Stop once no write is in flight."""
        if not self.is_canceled:
            self._canceled.set_result(None)

    async def run(self) -> None:
        """Put all items, and write the output objects."""
        try:
            name = self._request["OutputS3Configuration"]["S3Bucket"]
            output = self._buckets.named(name, self._operation.grant)
            try:
                await self._put_files(output)
            except _Canceled:
                pass
            except BulkFailed as failure:
                self.failure = failure
            await self._store_outputs(output)
        except BucketError as error:
            self.failure = self.failure or BulkFailed(error.code, error.message)
        self.is_over = True

    # -- files --------------------------------------------------------------------------------

    async def _put_files(self, output: Bucket) -> None:
        source = self._request["InputS3Configuration"]
        bucket = self._buckets.named(source["S3Bucket"], self._operation.grant)
        try:
            prefix = source.get("S3KeyPrefix", "")
            files = await listed_files(bucket, prefix, source["InputFormat"])
            if not files:
                raise BulkFailed("S3NoSuchKey", f"No object has the prefix {prefix!r}")
            total_bytes = sum(file.size_bytes for file in files)
            self.progress = structs.replace(self.progress, total_bytes=total_bytes)
            for file in files:
                await self._put_file(bucket, file, output)
        except BucketError as error:
            raise BulkFailed(error.code, error.message) from error

    async def _put_file(self, bucket: Bucket, file: ImportFile, output: Bucket) -> None:
        given = self._request["InputS3Configuration"]
        source = SourceRecords(bucket, file, given.get("InputCompressionType", "NONE"))
        self._source = source
        count = 0
        try:
            with reporting(file.key):
                decoded = lines_or_ion(given["InputFormat"])
                async with aclosing(source.batches(decoded)) as batches:
                    async for batch in batches:
                        for record in batch:
                            count += 1
                            await self._take(file.key, record, output)
            source.check(count)
        except BucketError as error:
            if error.code not in (DAMAGED, OTHER_COMPRESSION):
                raise
            # The other objects can still be processed.
            self._fail(file.key, Fault(0, b"", error.code, error.message))
        await self._write_page(output)
        self._read_before_bytes += source.size_bytes
        self._source = None

    # -- records ------------------------------------------------------------------------------

    async def _take(self, key: str, record: Record | Fault, output: Bucket) -> None:
        """Check a record, and add its write to the page."""
        self._page_records += 1
        if isinstance(record, Fault):
            self._fail(key, record)
        else:
            try:
                line = self._line(key, record)
            except _INVALID as error:
                self._refuse(key, record, error)
            else:
                position = b"".join(line.parts)
                if position in self._page:
                    # The page's write of this item comes first.
                    await self._write_page(output)
                self._page[position] = line
                self._page_units += capacity.write_units(line.put.size_bytes)
                self._page_existing += line.put.return_item_on_failure
        if self._page_records % _TURN_RECORDS == 0:
            # Let other tasks run.
            await asyncio.sleep(0)
        if (
            self._page_records >= self._most_records
            or self._page_units >= _PAGE_UNITS
            or self._page_existing >= _PAGE_EXISTING
        ):
            await self._write_page(output)

    def _line(self, key: str, record: Record) -> _Line:
        definition = self._table().definition
        if self._reader is None or self._reader[0] is not definition:
            self._reader = definition, ItemReader(definition, fills_indexes=False)
        size_bytes, parts = self._reader[1].check(record.item)
        condition = put_condition(definition, record.members)
        shows_item = condition is not None and "CONDITION_CHECK_FAILURE" in self._outputs
        put = Put(record.item, size_bytes, condition, return_item_on_failure=shows_item)
        return _Line(key, record, put, parts)

    def _table(self) -> Table:
        operation = self._operation
        table = self._tables.same(operation.table_name, operation.table_id)
        if table is None or table.definition.status == "DELETING":
            raise BulkFailed("ResourceNotFoundException", "The table was deleted")
        return table

    # -- writes -------------------------------------------------------------------------------

    async def _write_page(self, output: Bucket) -> None:
        self._check_canceled()
        page, units = list(self._page.values()), self._page_units
        self._page = {}
        self._page_records = self._page_units = self._page_existing = 0
        await self._wait_for_rate(units)
        loop = asyncio.get_running_loop()
        began = loop.time()
        back_off = BackOff(_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS)
        while page := await self._write(self._table(), page):
            await self._pause(back_off.pause_seconds())
        if self._condition_bytes >= _OBJECT_BYTES:
            await self._store_conditions(output)
        pause_seconds = self._pacing.seconds_after(loop.time() - began)
        self._most_records = _BUSY_PAGE_RECORDS if pause_seconds else _PAGE_RECORDS
        if pause_seconds:
            await self._pause(pause_seconds)

    async def _write(self, table: Table, lines: Sequence[_Line]) -> list[_Line]:
        """Write these items; returns those to write again.

        Raises ``BulkFailed`` if an outcome is unknown, or the table is deleted.
        """
        sent = [_submit(table, line) for line in lines]
        results = await outcomes(sent)
        again: list[_Line] = []
        receipts: list[Receipt] = []
        failure: DynamoDBError | None = None
        processed = 0
        for line, result in zip(lines, results, strict=True):
            match result:
                case Written():
                    processed += 1
                    receipts.append(result.receipt)
                case ConditionalCheckFailedException():
                    processed += 1
                    self._own_units += result.receipt.write_units
                    self._note_condition(line, result.item)
                case Throttled() | TransactionConflictException():
                    again.append(line)
                case InternalServerError(wrote_nothing=True):
                    again.append(line)
                case ValidationException() | ItemCollectionSizeLimitExceededException():
                    self._refuse(line.key, line.record, result)
                case DynamoDBError():
                    failure = result
                case BaseException():
                    raise result
        self._add(processed_items=processed)
        self._count(receipts)
        if failure is not None:
            self._table()
            raise BulkFailed(failure.name, failure.message)
        return again

    def _count(self, receipts: Sequence[Receipt]) -> None:
        """Count the units and bytes of successful writes."""
        usage = self.progress.usage
        table_bytes = usage.table_bytes
        by_kind = {
            "LocalSecondaryIndexes": dict(usage.local_index_bytes),
            "GlobalSecondaryIndexes": dict(usage.global_index_bytes),
        }
        for receipt in receipts:
            self._own_units += receipt.write_units
            for work in receipt.work:
                assert isinstance(work, ItemWrite)
                table_bytes += work.new_bytes or 0
                for entry in work.entries:
                    sizes = by_kind[entry.kind]
                    sizes[entry.name] = sizes.get(entry.name, 0) + (entry.new_bytes or 0)
                    if entry.kind == "LocalSecondaryIndexes":
                        self._own_units += entry.write_units
        self.progress = structs.replace(
            self.progress, usage=BulkUsage(table_bytes, *by_kind.values())
        )

    def _add(self, processed_items: int = 0, failed_items: int = 0) -> None:
        progress = self.progress
        read_bytes = 0 if self._source is None else self._source.size_bytes
        self.progress = structs.replace(
            progress,
            processed_items=progress.processed_items + processed_items,
            failed_items=progress.failed_items + failed_items,
            processed_bytes=self._read_before_bytes + read_bytes,
        )

    # -- waiting ------------------------------------------------------------------------------

    async def _wait_for_rate(self, units: int) -> None:
        if self._rate is None or not units:
            return
        due = self._clock.wait_until(self._rate.free_at_seconds)
        await asyncio.wait((due, self._canceled), return_when=asyncio.FIRST_COMPLETED)
        due.cancel()
        self._check_canceled()
        self._rate.take(units, self._clock.now_epoch_seconds())

    async def _pause(self, seconds: float) -> None:
        await asyncio.wait((self._canceled,), timeout=seconds)
        self._check_canceled()

    def _check_canceled(self) -> None:
        if self.is_canceled:
            raise _Canceled

    # -- outputs ------------------------------------------------------------------------------

    def _refuse(self, key: str, record: Record, error: DynamoDBError) -> None:
        self._fail(key, Fault(record.line, record.text, error.name, error.message))

    def _fail(self, key: str, fault: Fault) -> None:
        """Count and log a record that can't be processed."""
        self._add(processed_items=1, failed_items=1)
        if "ERROR" in self._outputs:
            self._errors.add(key, fault)

    def _note_condition(self, line: _Line, existing: Mapping[str, Any] | None) -> None:
        """Keep a write whose condition is false for the output."""
        if "CONDITION_CHECK_FAILURE" in self._outputs:
            found = {"key": line.key, "line": line.record.line, "attemptedItem": line.put.item}
            if existing is not None:
                found["existingItem"] = existing
            self._conditions.append(json.encode(found) + b"\n")
            self._condition_bytes += len(self._conditions[-1])

    async def _store_conditions(self, output: Bucket) -> None:
        if not self._conditions:
            return
        data, self._conditions, self._condition_bytes = b"".join(self._conditions), [], 0
        self._condition_objects += 1
        name = f"condition-check-failures/{self._condition_objects:05}.jsonl"
        await output.put(f"{self._operation.output_folder}/{name}", data)

    async def _store_outputs(self, output: Bucket) -> None:
        await self._store_conditions(output)
        if self.failure is not None and "ERROR" in self._outputs:
            self._errors.add_failure(self.failure.code, self.failure.message)
        if data := self._errors.data:
            await output.put(f"{self._operation.output_folder}/errors.jsonl", data)


def _submit(table: Table, line: _Line) -> asyncio.Future[Written]:
    """Send a write; an immediate refusal is in the future, too."""
    try:
        return table.submit(line.put, line.parts)
    except DynamoDBError as error:
        refused: asyncio.Future[Written] = asyncio.get_running_loop().create_future()
        refused.set_exception(error)
        return refused
