"""Exports a table by scanning it, in the layout of AWS's full exports.

A scan shows no single moment: items that change meanwhile are exported before or after the change.
Each completed file is noted with the key after it, so an interrupted export continues there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
from anyio import CancelScope
from msgspec import Struct

from dynactor.actors.transfers import manifests
from dynactor.actors.transfers.export_writer import ExportedFile, open_file, write_manifests
from dynactor.actors.transfers.manifests import DataFile
from dynactor.api.clients.unit_rate import wait_after
from dynactor.api.commands.tables.anonymizer import Anonymizer
from dynactor.api.commands.tables.concurrent_calls import concurrent_calls
from dynactor.api.commands.tables.mirror_state import Segment
from dynactor.api.commands.tables.table_copy import Description, table_id
from dynactor.api.commands.tables.table_files import DEFINITION
from dynactor.api.commands.tables.table_reader import TableReader
from dynactor.api.commands.tables.transfer_failed import TransferFailed
from dynactor.model.throttling.steady_rate import SteadyRate
from dynactor.model.transfers.table_export import TableExport
from dynactor.model.values import item as items
from dynactor.storage.buckets.directory_bucket import DirectoryBucket
from dynactor.storage.data_directory import write_durably

_PROGRESS: Final = "_progress.json"
# An interrupted export repeats at most this much of each segment.
_FILE_BYTES: Final = 64_000_000

_encode = msgspec.json.Encoder().encode


class _ExportProgress(Struct):
    """The completed files, and the key after the last one of each segment."""

    export_id: str
    table_id: str
    began_epoch_seconds: float
    segments: list[Segment]
    files: list[DataFile]
    billed_size_bytes: int = 0
    # The fingerprint of the rules that anonymize the items.
    anonymized: str = ""


def unfinished(directory: Path, description: Description) -> Path | None:
    """The folder of an interrupted export of a table."""
    for path in sorted(directory.glob(f"AWSDynamoDB/*/{_PROGRESS}")):
        if _load(path).table_id == table_id(description):
            return path.parent
    return None


def _load(path: Path) -> _ExportProgress:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_ExportProgress)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise TransferFailed(f"{path} is not the state of an export: {error}") from None


class ExportRun:
    """One export into a directory."""

    def __init__(
        self,
        reader: TableReader,
        description: Description,
        directory: Path,
        show: Callable[[str], None],
        anonymizer: Anonymizer | None = None,
    ) -> None:
        self._reader = reader
        self._description = description
        self._directory = directory
        self._bucket = DirectoryBucket(directory)
        self._show = show
        self._anonymizer = anonymizer
        self._progress = _ExportProgress("", "", 0.0, [], [])
        self._items = 0

    async def start(self, export_id: str, creation: dict[str, Any], segments: int) -> None:
        """Begin an export."""
        self._progress = _ExportProgress(
            export_id,
            table_id(self._description),
            time.time(),
            [Segment() for _ in range(segments)],
            [],
            anonymized=self._fingerprint,
        )
        await self._bucket.put(f"{self._prefix}/{manifests.STARTED}", b"")
        await self._bucket.put(f"{self._prefix}/{DEFINITION}", _encode(creation))
        # The progress comes last, because a resumed export does not write these files.
        self._save()

    def resume(self, folder: Path) -> None:
        """Continue an interrupted export; raises ``TransferFailed`` if anonymized otherwise."""
        self._progress = _load(folder / _PROGRESS)
        if self._progress.anonymized != self._fingerprint:
            raise TransferFailed(
                f"{folder} was started with other values of --anonymize and --seed: repeat them"
            )
        self._items = sum(file.item_count for file in self._progress.files)

    @property
    def _fingerprint(self) -> str:
        return "" if self._anonymizer is None else self._anonymizer.fingerprint

    @property
    def _prefix(self) -> str:
        return f"AWSDynamoDB/{self._progress.export_id}"

    async def finish(self, rate: SteadyRate | None) -> Path:
        """Export the rest of the table; returns the folder of the export.

        Raises ``RequestFailed``, ``CannotCall`` or ``BucketError``.
        """
        async with concurrent_calls() as group:
            for number, segment in enumerate(self._progress.segments):
                if not segment.has_ended:
                    group.start_soon(self._write_segment, number, segment, rate)
        progress = self._progress
        files = sorted(progress.files, key=lambda file: file.data_file_s3_key)
        ended = time.time()
        export = TableExport(
            export_id=progress.export_id,
            table_name=self._description["TableName"],
            table_uuid=progress.table_id,
            rows_id=0,
            request={"S3Bucket": self._directory.resolve().name},
            began_epoch_seconds=progress.began_epoch_seconds,
            exported_epoch_seconds=progress.began_epoch_seconds,
            backup_label="",
            starts=(),
            phase="COMPLETED",
            ended_epoch_seconds=ended,
            item_count=sum(file.item_count for file in files),
            billed_size_bytes=progress.billed_size_bytes,
        )
        arn = self._description["TableArn"]
        await write_manifests(self._bucket, self._prefix, files, export, arn)
        folder = self._directory / self._prefix
        (folder / _PROGRESS).unlink()
        return folder

    async def _write_segment(self, number: int, segment: Segment, rate: SteadyRate | None) -> None:
        """Write the rest of a segment into files, at least one."""
        pages = self._reader.pages(number, len(self._progress.segments), after=segment.after)
        file: ExportedFile | None = None
        size_bytes = 0
        try:
            async for page in pages:
                if file is None:
                    key = f"{self._prefix}/data/{self._name(number)}.json.gz"
                    file = await open_file(self._bucket, key)
                    size_bytes = 0
                size_bytes += sum(map(items.check, page.items))
                exported = page.items
                if self._anonymizer is not None:
                    exported = [self._anonymizer.changed(item) for item in exported]
                await file.write([b'{"Item":%b}\n' % _encode(item) for item in exported])
                self._items += len(page.items)
                self._show(f"{self._items:,} items exported")
                if file.size_bytes >= _FILE_BYTES or page.after is None:
                    self._progress.files.append(await file.close())
                    file = None
                    self._progress.billed_size_bytes += size_bytes
                    segment.after, segment.has_ended = page.after, page.after is None
                    self._save()
                if rate is not None:
                    await wait_after(rate, len(page.items))
        finally:
            if file is not None:
                with CancelScope(shield=True):
                    await file.abort()

    def _name(self, number: int) -> str:
        """The name of a segment's next file, the same if the export repeats it."""
        segment = f"{number:04}-"
        keys = [Path(file.data_file_s3_key).name for file in self._progress.files]
        return f"{segment}{sum(key.startswith(segment) for key in keys):05}"

    def _save(self) -> None:
        write_durably(self._directory / self._prefix / _PROGRESS, _encode(self._progress))
