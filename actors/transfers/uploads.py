"""Files that clients upload for imports into new tables.

The pieces of an upload are objects in a directory until its import is over, because an import
begins again after a crash.
"""

from __future__ import annotations

import asyncio
import shutil
from asyncio import Future
from collections.abc import AsyncIterator, Collection
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import structlog

from dynactor.actors.transfers.import_files import ImportFile
from dynactor.storage.buckets.bucket import Bucket, BucketError, read_whole
from dynactor.storage.buckets.directory_bucket import DirectoryBucket

_END: Final = "end"
_DIGITS: Final = 6
# Pieces leave this much of the disk to the tables, more than the reserve of the storage engine.
_FREE_BYTES: Final = 1024 * 1024 * 1024
_FREE_SHARE: Final = 10

_log = structlog.get_logger("actors")


class UploadConflict(Exception):
    """The upload is in another state than the request expects; the message is for clients."""


class PieceBusy(UploadConflict):
    """The piece is being received on another connection, which may be broken. Try again."""


class Upload:
    """The pieces of one upload. ``count`` is their number, None before the end of the upload."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.count: int | None = None
        # The pieces that are being received.
        self.receiving: set[int] = set()
        self._changed: Future[None] | None = None

    @property
    def first_gap(self) -> int:
        """The number of the first piece that is not there."""
        return next(number for number in count() if number not in self.sizes)

    def changed(self) -> Future[None]:
        """A future that completes with the next piece, or with the end."""
        if self._changed is None:
            self._changed = asyncio.get_running_loop().create_future()
        return self._changed

    def notify(self) -> None:
        """Complete the future."""
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set_result(None)


class Uploads:
    """The uploads of imports in progress, by the ids of the imports."""

    def __init__(self, directory: Path | None) -> None:
        """Without a directory, a temporary one is made, which ends with the server."""
        self._given = directory
        self._temporary: Path | None = None
        self._uploads: dict[str, Upload] = {}

    @property
    def bucket(self) -> Bucket:
        """The bucket of the pieces."""
        return DirectoryBucket(self._directory)

    @property
    def _directory(self) -> Path:
        if self._given is not None:
            return self._given
        if self._temporary is None:
            self._temporary = Path(mkdtemp(prefix="dynactor-uploads-"))
        return self._temporary

    def find(self, upload_id: str) -> Upload | None:
        """The upload with this id."""
        return self._uploads.get(upload_id)

    async def begin(self, upload_id: str) -> None:
        """Begin an upload, or continue a stored one; raises ``BucketError``."""
        if upload_id in self._uploads:
            return
        try:
            folder = self._directory / upload_id
            await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        except OSError as error:
            raise BucketError("S3InternalError", str(error)) from error
        upload = Upload()
        for key, size_bytes in await self.bucket.objects(f"{upload_id}/"):
            name = key.rpartition("/")[2]
            if name == _END:
                upload.count = int(await read_whole(self.bucket, key))
            else:
                upload.sizes[int(name)] = size_bytes
        self._uploads[upload_id] = upload

    async def receive(self, upload_id: str, number: int, parts: AsyncIterator[bytes]) -> None:
        """Store a piece durably; a repetition replaces it, unless the upload has ended.

        Raises ``UploadConflict`` if there is no such open upload, or the piece is being received.
        Raises ``BucketError`` if the piece can't be stored, or the disk is almost full.
        """
        upload = self._open(upload_id)
        if number in upload.receiving:
            raise PieceBusy(f"Piece {number} is being received on another connection")
        upload.receiving.add(number)
        try:
            await asyncio.to_thread(_check_space, self._directory)
            writer = await self.bucket.writer(_key(upload_id, number))
            size_bytes = 0
            try:
                async for part in parts:
                    size_bytes += len(part)
                    await writer.write(part)
                # The import may have ended meanwhile, and its directory is deleted.
                if self._uploads.get(upload_id) is not upload:
                    raise UploadConflict("The import has ended")
                await writer.close()
            finally:
                await writer.abort()
            upload.sizes[number] = size_bytes
            upload.notify()
        finally:
            upload.receiving.discard(number)

    async def end(self, upload_id: str, pieces: int) -> None:
        """End an upload that has all its pieces; may be repeated.

        Raises ``UploadConflict`` if pieces or the upload are missing, or ``BucketError``.
        """
        upload = self._uploads.get(upload_id)
        if upload is not None and upload.count == pieces:
            return
        upload = self._open(upload_id)
        if upload.receiving or len(upload.sizes) != pieces or upload.first_gap != pieces:
            raise UploadConflict(f"The upload has {upload.first_gap} pieces, not {pieces}")
        try:
            await self.bucket.put(f"{upload_id}/{_END}", str(pieces).encode())
        except BucketError as error:
            if self._uploads.get(upload_id) is not upload:
                # The import has failed meanwhile, and its directory is deleted.
                raise UploadConflict("The import has ended") from error
            raise
        upload.count = pieces
        upload.notify()

    def _open(self, upload_id: str) -> Upload:
        upload = self._uploads.get(upload_id)
        if upload is None:
            raise UploadConflict(f"There is no upload {upload_id}")
        if upload.count is not None:
            raise UploadConflict("The upload has ended")
        return upload

    async def file(self, upload_id: str, number: int, stopped: Future[None]) -> ImportFile | None:
        """The piece with this number, when it is there; None after the last, or when stopped.

        Raises ``BucketError`` if the pieces are lost.
        """
        upload = self._uploads.get(upload_id)
        if upload is None:
            raise BucketError("UploadLost", "The uploaded files do not exist any more")
        while number not in upload.sizes:
            if upload.count is not None or stopped.done():
                return None
            await asyncio.wait([upload.changed(), stopped], return_when=asyncio.FIRST_COMPLETED)
        return ImportFile(_key(upload_id, number), upload.sizes[number])

    async def delete(self, upload_id: str) -> None:
        """Delete the pieces of an upload; never raises."""
        self._uploads.pop(upload_id, None)
        await asyncio.to_thread(shutil.rmtree, self._directory / upload_id, ignore_errors=True)

    async def close(self) -> None:
        """Delete a temporary directory; never raises."""
        if self._temporary is not None:
            await asyncio.to_thread(shutil.rmtree, self._temporary, ignore_errors=True)

    async def adopt(self, upload_ids: Collection[str]) -> None:
        """Continue the stored uploads among these, and delete all others."""
        if self._given is None:
            return
        for name in await asyncio.to_thread(_names, self._given):
            if name not in upload_ids:
                await self.delete(name)
                continue
            try:
                await self.begin(name)
            except BucketError as error:
                # The import ends when it asks for the first piece.
                _log.error("upload_unreadable", import_id=name, reason=error.message)


def _key(upload_id: str, number: int) -> str:
    return f"{upload_id}/{number:0{_DIGITS}}"


def _names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()] if directory.is_dir() else []


def _check_space(directory: Path) -> None:
    """Raise ``BucketError`` if the disk is almost full."""
    disk = shutil.disk_usage(directory)
    if disk.free < min(_FREE_BYTES, disk.total // _FREE_SHARE):
        raise BucketError("DiskFull", f"The disk has only {disk.free:,} bytes left for the tables")
