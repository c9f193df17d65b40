"""Writes the data files and the manifests of an export into a bucket."""

from __future__ import annotations

from collections.abc import Sequence

from anyio import CancelScope

from dynactor.actors.transfers import manifests
from dynactor.actors.transfers.manifests import DataFile
from dynactor.model.transfers.table_export import TableExport
from dynactor.storage.buckets.bucket import Bucket, ObjectWriter
from dynactor.storage.buckets.gzip_object import GzipObject


class ExportedFile:
    """A data file that is being written, with a line for each item or change."""

    def __init__(self, key: str, writer: ObjectWriter) -> None:
        self.size_bytes = 0
        self._key = key
        self._object = GzipObject(writer)
        self._line_count = 0

    async def write(self, lines: Sequence[bytes]) -> None:
        """Append lines."""
        data = b"".join(lines)
        await self._object.write(data)
        self._line_count += len(lines)
        self.size_bytes += len(data)

    async def close(self) -> DataFile:
        """Complete the file; returns its line in the manifest."""
        written = await self._object.close()
        return DataFile(self._line_count, written.md5_checksum, written.etag, self._key)

    async def abort(self) -> None:
        """Delete the file, which is not complete."""
        await self._object.abort()


async def open_file(bucket: Bucket, key: str) -> ExportedFile:
    """Begin a data file."""
    # An open file must not be lost by a cancellation.
    with CancelScope(shield=True):
        writer = await bucket.writer(key)
    return ExportedFile(key, writer)


async def write_manifests(
    bucket: Bucket, folder: str, files: list[DataFile], export: TableExport, table_arn: str
) -> None:
    """Write the manifests of an export whose files are complete."""
    await _put(bucket, f"{folder}/{manifests.FILES}", manifests.files_manifest(files))
    # The summary comes last: readers take an export with a summary for complete.
    summary = manifests.summary_manifest(export, table_arn)
    await _put(bucket, f"{folder}/{manifests.SUMMARY}", summary)


async def _put(bucket: Bucket, name: str, data: bytes) -> None:
    await bucket.put(f"{name}.md5", manifests.checksum(data).encode())
    await bucket.put(f"{name}.json", data)
