"""Loads the items of an import into the rows of its table.

The rows go under the numbers of the table's partitions, with counter 0: they precede the first
change of each partition. ``heads`` has the counts that the partitions must have afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from itertools import islice
from typing import Any, Final

import structlog
from msgspec import structs

from dynactor.actors.derived.outside import Inlet, TransferFailed
from dynactor.actors.partition.partition_map import PartitionMap
from dynactor.actors.transfers.bucket_use import BucketUse
from dynactor.actors.transfers.error_log import ErrorLog
from dynactor.actors.transfers.import_files import ImportFile, files_of
from dynactor.actors.transfers.source_records import SourceRecords, lines_or_ion, reporting
from dynactor.model.errors import SerializationException, ValidationException
from dynactor.model.transfers.item_reader import ItemReader
from dynactor.model.transfers.records import Csv, Fault, Format, Records
from dynactor.model.transfers.table_import import ImportCounts, TableImport
from dynactor.storage import codec, key_layout
from dynactor.storage.buckets.bucket import Bucket, BucketError
from dynactor.storage.buckets.open_buckets import Buckets
from dynactor.storage.catalog import PartitionHead, TableRecord
from dynactor.storage.store import Store
from dynactor.streams.sequence_number import SequenceNumber

DUPLICATE: Final = "DuplicateKey"

# Requests wait while a turn's records are decoded.
_TURN_RECORDS: Final = 64
# Many records share a commit, because each commit waits for the disk.
_COMMIT_RECORDS: Final = 1_024
_TABLE: Final = 0

_Rows = Sequence[tuple[bytes, bytes]]

_log = structlog.get_logger("actors")


class ImportedRows(BucketUse, Inlet):
    """Reads the files of an import one after another."""

    def __init__(
        self,
        table_import: TableImport,
        record: TableRecord,
        store: Store,
        buckets: Buckets,
        log_directory: Bucket | None,
    ) -> None:
        """``log_directory`` gets the error log; without it, the bucket of the files."""
        self.counts = ImportCounts()
        self._import_id = table_import.import_id
        self._request = table_import.request
        self._store = store
        self._buckets = buckets
        self._log_directory = log_directory
        self._reader = ItemReader(record.definition)
        self._types = {each.name: each.type for each in record.definition.attribute_definitions}
        self._prefix = key_layout.row_prefix(record.definition.table_id)
        self._table_id = record.definition.table_id
        self._partitions = PartitionMap(record.partitions)
        self._sizes: dict[int, list[int]] = {}
        self._errors = ErrorLog()
        self._pages: AsyncGenerator[_Rows, None] | None = None

    @property
    def target(self) -> tuple[bytes, bytes]:
        """All rows of the table."""
        return key_layout.table_range(self._table_id)

    @property
    def heads(self) -> dict[int, PartitionHead]:
        """The item counts and sizes of the table's partitions, by number."""
        return {
            number: PartitionHead(item_counts={_TABLE: count}, sizes_bytes={_TABLE: size_bytes})
            for number, (count, size_bytes) in self._sizes.items()
        }

    async def open(self) -> None:
        """Begin with the first file."""
        self.counts = ImportCounts()
        self._sizes = {each.number: [0, 0] for each in self._partitions.ranges}
        self._errors = ErrorLog()
        self._pages = self._read()

    async def rows(self) -> _Rows | None:
        """The rows of the next items."""
        assert self._pages is not None
        try:
            with self._failing():
                rows = await anext(self._pages, None)
        except TransferFailed:
            await self._store_errors()
            raise
        if rows is None:
            await self._store_errors()
        return rows

    async def close(self) -> None:
        """Close the file."""
        pages, self._pages = self._pages, None
        if pages is not None:
            await pages.aclose()

    # -- files --------------------------------------------------------------------------------

    async def _read(self) -> AsyncGenerator[_Rows, None]:
        source = self._request["S3BucketSource"]
        bucket = self._buckets.named(source["S3Bucket"])
        prefix = source.get("S3KeyPrefix", "")
        for file in await files_of(bucket, prefix, self._request["InputFormat"]):
            async with aclosing(self._read_file(bucket, file)) as pages:
                async for page in pages:
                    yield page

    async def _read_file(self, bucket: Bucket, file: ImportFile) -> AsyncGenerator[_Rows, None]:
        reading = SourceRecords(bucket, file, self._request.get("InputCompressionType", "NONE"))
        before = self.counts.processed_items
        with reporting(file.key):
            async with aclosing(reading.parts(self._format())) as parts:
                async for records in parts:
                    async for page in self._pages_of(file.key, records):
                        yield page
        self._add(processed_bytes=reading.size_bytes)
        reading.check(self.counts.processed_items - before)

    def _format(self) -> Format:
        if self._request["InputFormat"] != "CSV":
            return lines_or_ion(self._request["InputFormat"])
        options: dict[str, Any] = self._request.get("InputFormatOptions", {}).get("Csv", {})
        return Csv(self._types, options.get("Delimiter", ","), options.get("HeaderList"))

    # -- records ------------------------------------------------------------------------------

    async def _pages_of(self, key: str, records: Records) -> AsyncIterator[_Rows]:
        is_more = True
        while is_more:
            found: dict[bytes, tuple[bytes, int, int]] = {}
            for _ in range(0, _COMMIT_RECORDS, _TURN_RECORDS):
                is_more = self._decode(key, islice(records, _TURN_RECORDS), found)
                if not is_more:
                    break
                # Let other tasks run, because a page is too much work for one turn of the loop.
                await asyncio.sleep(0)
            if found:
                yield await self._placed(key, found)

    def _decode(
        self, key: str, records: Records, found: dict[bytes, tuple[bytes, int, int]]
    ) -> bool:
        """Decode some records; False if there are no more.

        ``found`` gets the row, the size and the line of each item, by its row's key.
        """
        read, prefix, place_of = self._reader.read, self._prefix, self._partitions.number_of
        processed = errors = 0
        for record in records:
            processed += 1
            if isinstance(record, Fault):
                errors += 1
                self._errors.add(key, record)
                continue
            try:
                item = read(record.item)
            except (ValidationException, SerializationException) as error:
                errors += 1
                name = type(error).__name__
                self._errors.add(key, Fault(record.line, record.text, name, error.message))
                continue
            version = SequenceNumber(place_of(item.position), 0).packed()
            row_key = prefix + item.position
            if row_key in found:
                self._count_duplicate(key, found[row_key][2])
            row = codec.pack(version, item.size_bytes, item.data)
            found[row_key] = row, item.size_bytes, record.line
        self._add(processed_items=processed, errors=errors)
        return processed == _TURN_RECORDS

    async def _placed(self, key: str, found: dict[bytes, tuple[bytes, int, int]]) -> _Rows:
        """Count the items that are new, and those that replace an earlier item."""
        stored = await self._store.latest.load(list(found))
        skipped, number_of = len(self._prefix), self._partitions.number_of
        new = 0
        rows = []
        for old, (row_key, (row, size_bytes, line)) in zip(stored, found.items(), strict=True):
            sizes = self._sizes[number_of(row_key[skipped:])]
            sizes[1] += size_bytes
            if old is None:
                new += 1
                sizes[0] += 1
            else:
                sizes[1] -= codec.size_bytes(old)
                self._count_duplicate(key, line)
            rows.append((row_key, row))
        self._add(imported_items=new)
        return rows

    def _count_duplicate(self, key: str, line: int) -> None:
        self._add(duplicates=1)
        message = "An item with this key occurs more than once"
        self._errors.add(key, Fault(line, b"", DUPLICATE, message))

    def _add(self, **counts: int) -> None:
        self.counts = structs.replace(
            self.counts, **{name: getattr(self.counts, name) + n for name, n in counts.items()}
        )

    # -- errors -------------------------------------------------------------------------------

    async def _store_errors(self) -> None:
        """Write the log of errors, if there are any."""
        if self.failure is not None:
            self._errors.add_failure(self.failure.code, self.failure.message)
        data = self._errors.data
        if not data:
            return
        key = f"imports/{self._import_id}/errors.jsonl"
        try:
            if self._log_directory is not None:
                await self._log_directory.put(key, data)
            else:
                bucket = self._request["S3BucketSource"]["S3Bucket"]
                await self._buckets.named(bucket).put(key, data)
        except BucketError as error:
            _log.warning("import_errors_not_stored", key=key, reason=error.message)
