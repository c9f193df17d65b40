"""Writes the files of an export into its bucket."""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from typing import Final

from msgspec import structs

from dynactor.actors.followers.changes_copy import decoded
from dynactor.actors.followers.outside import Outlet
from dynactor.actors.runtime.clock import Clock
from dynactor.actors.transfers import manifests
from dynactor.actors.transfers.bucket_use import BucketUse
from dynactor.actors.transfers.export_writer import ExportedFile, open_file, write_manifests
from dynactor.actors.transfers.manifests import DataFile
from dynactor.model.files.ion_text import record_line
from dynactor.model.transfers.item_filter import item_filter
from dynactor.model.transfers.table_export import TableExport
from dynactor.model.values import item as items
from dynactor.model.values.stored_item import StoredItem
from dynactor.storage import codec
from dynactor.storage.buckets.bucket import Bucket
from dynactor.storage.buckets.open_buckets import Buckets
from dynactor.storage.store import Row
from dynactor.streams.change_record import ChangeRecord

_NAME_CHARACTERS: Final = 26
_LINE: Final = b'{"Item":%b}\n'
_CHANGE: Final = b'{"Metadata":{"WriteTimestampMicros":{"N":"%d"}},"Keys":%b%b%b}\n'
_OLD: Final = b',"OldImage":%b'
_NEW: Final = b',"NewImage":%b'


class ExportFiles(BucketUse, Outlet):
    """Writes at least one file for each partition, in the order of the positions.

    ``export`` has the counts and the time of the end after ``finish``.
    """

    def __init__(self, export: TableExport, table_arn: str, buckets: Buckets, clock: Clock) -> None:
        self.export = export
        self._table_arn = table_arn
        self._buckets = buckets
        self._clock = clock
        specification = export.request.get("FilterSpecification")
        self._filter = None if specification is None else item_filter(specification)
        self._ends = export.starts[1:]
        self._partition = 0
        self._files: list[DataFile] = []
        self._file: ExportedFile | None = None

    @cached_property
    def _bucket(self) -> Bucket:
        return self._buckets.named(self.export.request["S3Bucket"], self.export.grant)

    async def begin(self) -> None:
        """Check that the bucket can be written, as DynamoDB does, with an empty object."""
        self.export = structs.replace(self.export, item_count=0, billed_size_bytes=0)
        self._partition = 0
        self._files = []
        with self._failing():
            await self._bucket.put(f"{self.export.folder}/{manifests.STARTED}", b"")

    async def write(self, rows: Sequence[Row]) -> None:
        """Append the items of a page to the files of their partitions."""
        with self._failing():
            begin = 0
            while self._partition < len(self._ends):
                end = self._first_from(rows, begin, self._ends[self._partition])
                await self._append(rows[begin:end])
                if end == len(rows):
                    return
                await self._close_file()
                self._partition += 1
                begin = end
            await self._append(rows[begin:])

    @staticmethod
    def _first_from(rows: Sequence[Row], begin: int, position: bytes) -> int:
        """The place of the first row at or after a position."""
        if not rows[begin:] or rows[-1].key < position:
            return len(rows)
        while rows[begin].key < position:
            begin += 1
        return begin

    async def _append(self, rows: Sequence[Row]) -> None:
        if not rows:
            return
        # A larger partition is written into several files.
        if self._file is not None and self._file.size_bytes >= self._bucket.most_object_bytes:
            await self._close_file()
        file = self._file or await self._open_file()
        lines, size_bytes = self._lines(rows)
        await file.write(lines)
        self.export = structs.replace(
            self.export,
            item_count=self.export.item_count + len(lines),
            billed_size_bytes=self.export.billed_size_bytes + size_bytes,
        )

    def _lines(self, rows: Sequence[Row]) -> tuple[list[bytes], int]:
        """The lines of items or changes, and the size of the images in them."""
        period = self.export.period
        if period is None:
            stored = codec.decode_all([row.value for row in rows])
            wanted = [data for data in map(self._wanted, stored) if data is not None]
            # The size of the whole table is billed.
            return list(map(self._line, wanted)), sum(item.size_bytes for item in stored)
        has_old = period["ExportViewType"] == "NEW_AND_OLD_IMAGES"
        lines = []
        size_bytes = 0
        for record in decoded(rows):
            billed = (record.old if has_old else None, record.new)
            size_bytes += sum(image.size_bytes for image in billed if image is not None)
            # An image that the filter leaves out counts as missing, so an item that no longer
            # matches has the record of a deleted one.
            old = None if record.old is None else self._wanted(record.old)
            new = None if record.new is None else self._wanted(record.new)
            if old is not None or new is not None:
                lines.append(self._change(record, old if has_old else None, new))
        return lines, size_bytes

    def _wanted(self, stored: StoredItem) -> bytes | None:
        """The JSON of an item's attributes to export; None if the filter leaves the item out."""
        return stored.data if self._filter is None else self._filter.exported_data(stored)

    def _line(self, data: bytes) -> bytes:
        return record_line(Item=items.decode(data)) if self.export.is_ion else _LINE % data

    def _change(self, record: ChangeRecord, old: bytes | None, new: bytes | None) -> bytes:
        """The line of a change, with the JSON of these images."""
        time_us = record.commit_time_us
        if not self.export.is_ion:
            return _CHANGE % (
                time_us,
                record.keys,
                b"" if old is None else _OLD % old,
                b"" if new is None else _NEW % new,
            )
        images = {"OldImage": old, "NewImage": new}
        return record_line(
            Metadata=f"{{WriteTimestampMicros:{time_us}.}}",
            Keys=record.key,
            **{name: items.decode(data) for name, data in images.items() if data is not None},
        )

    async def _open_file(self) -> ExportedFile:
        # The same name after a restart, so that a repeated export leaves no other files behind.
        number = len(self._files)
        digest = sha256(f"{self.export.export_id} {number}".encode()).digest()
        name = b32encode(digest).decode().lower()[:_NAME_CHARACTERS]
        ending = "ion" if self.export.is_ion else "json"
        key = f"{self.export.data_folder}/{name}.{ending}.gz"
        self._file = await open_file(self._bucket, key)
        return self._file

    async def _close_file(self) -> None:
        """Complete the file of the partition, also if the partition is empty."""
        file = self._file or await self._open_file()
        self._files.append(await file.close())
        self._file = None

    async def finish(self) -> None:
        """Complete the last files, and write the manifests."""
        with self._failing():
            while self._partition <= len(self._ends):
                await self._close_file()
                self._partition += 1
            self.export = structs.replace(
                self.export, ended_epoch_seconds=self._clock.now_epoch_seconds()
            )
            await write_manifests(
                self._bucket, self.export.folder, self._files, self.export, self._table_arn
            )

    async def abort(self) -> None:
        """Drop the file that is not complete."""
        file, self._file = self._file, None
        if file is not None:
            await file.abort()
