"""Loads the items of an import into the rows of its table.

The rows go under the numbers of the table's partitions, with counter 0: they precede the first
change of each partition. ``heads`` has the counts that the partitions must have afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from operator import lt
from typing import Final, TypeAlias

import structlog
from msgspec import structs

from dynactor.actors.followers.outside import Inlet, LoadedRows, OutsideFailed
from dynactor.actors.transfers.bucket_use import BucketUse
from dynactor.actors.transfers.decoded_files import DecodingHere, DecodingProcess, FileDecoding
from dynactor.actors.transfers.error_log import ErrorLog
from dynactor.actors.transfers.import_files import OTHER_COMPRESSION, ImportFile, listed_files
from dynactor.actors.transfers.row_decoder import DecodedRows, duplicate
from dynactor.actors.transfers.source_records import check_listed
from dynactor.actors.transfers.uploads import Uploads
from dynactor.model.files.records import Fault
from dynactor.model.transfers.table_import import ImportCounts, TableImport
from dynactor.storage import codec, key_layout
from dynactor.storage.buckets.bucket import Bucket, BucketError
from dynactor.storage.buckets.open_buckets import Buckets
from dynactor.storage.catalog import PartitionHead, TableRecord
from dynactor.storage.partition_map import PartitionMap
from dynactor.storage.store import Store

_TABLE: Final = 0
# Larger files, and all that are compressed, are decoded in another process. It takes a fifth of a
# second to start.
_PROCESS_BYTES: Final = 1024 * 1024

_Rows: TypeAlias = Sequence[tuple[bytes, bytes]]

_log = structlog.get_logger("actors")


def log_key(import_id: str) -> str:
    """The key of the error log of an import."""
    return f"imports/{import_id}/errors.jsonl"


class ImportedRows(BucketUse, Inlet):
    """Reads the files of an import one after another."""

    def __init__(
        self,
        table_import: TableImport,
        record: TableRecord,
        store: Store,
        buckets: Buckets,
        *,
        uploads: Uploads,
        log_directory: Bucket | None,
    ) -> None:
        """``log_directory`` gets the error log; without it, the bucket of the files."""
        self.counts = ImportCounts()
        self._import_id = table_import.import_id
        self._request = table_import.request
        self._grant = table_import.grant
        self._compression = self._request.get("InputCompressionType", "NONE")
        self._store = store
        self._buckets = buckets
        self._uploads = uploads
        self._log_directory = log_directory
        self._record = record
        self._prefix = key_layout.row_prefix(record.definition.table_id)
        self._table_id = record.definition.table_id
        self._partitions = PartitionMap(record.partitions)
        self._sizes: dict[int, list[int]] = {}
        self._errors = ErrorLog()
        # The highest key of the rows so far.
        self._last_key = b""
        self._pages: AsyncGenerator[LoadedRows, None] | None = None

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

    async def open(self, stopped: asyncio.Future[None]) -> None:
        """Begin with the first file."""
        self._stopped = stopped
        self.counts = ImportCounts()
        self._sizes = {each.number: [0, 0] for each in self._partitions.ranges}
        self._errors = ErrorLog()
        self._last_key = b""
        self._pages = self._read()

    async def rows(self) -> LoadedRows | None:
        """The rows of the next items."""
        assert self._pages is not None
        try:
            with self._failing():
                rows = await anext(self._pages, None)
        except OutsideFailed:
            if self._stopped.done():
                # The process that decodes the files was ended.
                self.failure = None
                return None
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

    async def _read(self) -> AsyncGenerator[LoadedRows, None]:
        decoding: FileDecoding | None = None
        try:
            async with aclosing(self._files()) as files:
                async for bucket, file, size_bytes in files:
                    is_large = size_bytes > _PROCESS_BYTES or self._compression != "NONE"
                    if is_large and not isinstance(decoding, DecodingProcess):
                        decoding = DecodingProcess(self._record, self._request, self._stopped)
                    elif decoding is None:
                        decoding = DecodingHere(self._record, self._request)
                    try:
                        async with aclosing(self._read_file(decoding, bucket, file)) as pages:
                            async for page in pages:
                                yield page
                    except BucketError as error:
                        if error.code != OTHER_COMPRESSION:
                            raise
                        # The service counts such a file as faulty items.
                        self._errors.add(file.key, Fault(0, b"", error.code, error.message))
                        self._add(processed_items=1, errors=1)
                        await decoding.close()
        finally:
            if decoding is not None:
                await decoding.close()

    async def _files(self) -> AsyncGenerator[tuple[Bucket, ImportFile, int], None]:
        """The files, each with the bytes of all files, or of those uploaded up to it."""
        source = self._request.get("S3BucketSource")
        if source is not None:
            bucket = self._buckets.named(source["S3Bucket"], self._grant)
            prefix = source.get("S3KeyPrefix", "")
            files = await listed_files(bucket, prefix, self._request["InputFormat"])
            size_bytes = sum(file.size_bytes for file in files)
            for file in files:
                yield bucket, file, size_bytes
            return
        number = size_bytes = 0
        while piece := await self._uploads.file(self._import_id, number, self._stopped):
            size_bytes += piece.size_bytes
            yield self._uploads.bucket, piece, size_bytes
            number += 1

    async def _read_file(
        self, decoding: FileDecoding, bucket: Bucket, file: ImportFile
    ) -> AsyncGenerator[LoadedRows, None]:
        time = asyncio.get_running_loop().time
        before = self.counts.processed_items
        asked = time()
        async with aclosing(decoding.rows(bucket, file.key, self._compression)) as pages:
            async for decoded in pages:
                # Only decoding in this process keeps it busy.
                began = asked if decoding.runs_here else time()
                rows = await self._placed(file.key, decoded)
                yield LoadedRows(rows, time() - began)
                asked = time()
        file_sum = decoding.file_sum
        self._add(processed_bytes=file_sum.size_bytes)
        check_listed(file, file_sum.md5_checksum, self.counts.processed_items - before)

    # -- rows ---------------------------------------------------------------------------------

    async def _placed(self, key: str, decoded: DecodedRows) -> _Rows:
        """Count the items that are new, and those that replace an earlier item."""
        for fault in decoded.faults:
            self._errors.add(key, fault)
        for number, (count, size_bytes) in decoded.sizes.items():
            sizes = self._sizes[number]
            sizes[0] += count
            sizes[1] += size_bytes
        rows = decoded.rows
        replaced = 0
        if not self._are_new(rows):
            stored = await self._store.latest.load([row_key for row_key, _ in rows])
            for old, (row_key, _), line in zip(stored, rows, decoded.lines, strict=True):
                if old is not None:
                    sizes = self._sizes[self._partitions.number_at(row_key[len(self._prefix) :])]
                    sizes[0] -= 1
                    sizes[1] -= codec.size_bytes(old)
                    replaced += 1
                    self._errors.add(key, duplicate(line))
        self._add(
            processed_items=decoded.processed,
            imported_items=len(rows) - replaced,
            errors=decoded.errors,
            duplicates=decoded.duplicates + replaced,
        )
        return rows

    def _are_new(self, rows: _Rows) -> bool:
        """Whether the order of the keys shows that the rows replace none; notes the last key.

        The files of an export are in the order of the keys, so their rows need not be looked up.
        """
        keys = [row_key for row_key, _ in rows]
        last = self._last_key
        self._last_key = max([last, *keys])
        return all(map(lt, [last, *keys], keys))

    def _add(self, **counts: int) -> None:
        self.counts = structs.replace(
            self.counts, **{name: getattr(self.counts, name) + n for name, n in counts.items()}
        )

    # -- errors -------------------------------------------------------------------------------

    async def _store_errors(self) -> None:
        if self.failure is not None:
            self._errors.add_failure(self.failure.code, self.failure.message)
        data = self._errors.data
        if not data:
            return
        key = log_key(self._import_id)
        try:
            if self._log_directory is not None:
                await self._log_directory.put(key, data)
            elif "S3BucketSource" in self._request:
                bucket = self._request["S3BucketSource"]["S3Bucket"]
                await self._buckets.named(bucket, self._grant).put(key, data)
            else:
                await self._uploads.bucket.put(key, data)
        except BucketError as error:
            _log.warning("import_errors_not_stored", key=key, reason=error.message)
