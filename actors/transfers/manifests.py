"""The manifests of exports, as DynamoDB writes them.

Source: Developer Guide, "DynamoDB table export output format". The page names checksum files
``.checksum``; exports in real buckets have ``.md5``. This module writes the second.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from hashlib import md5
from typing import Any, Final

import msgspec
from msgspec import Struct, json

from dynactor.model.transfers.table_export import TableExport

STARTED: Final = "_started"
SUMMARY: Final = "manifest-summary"
FILES: Final = "manifest-files"
CHECKSUMS: Final = (".md5", ".checksum")

_VERSION: Final = "2020-06-30"
_INCREMENTAL_VERSION: Final = "2023-08-01"


class DataFile(Struct, frozen=True, rename="camel"):
    """One line of the list of data files."""

    item_count: int
    md5_checksum: str
    etag: str = ""
    # The service writes S3 in capitals.
    data_file_s3_key: str = msgspec.field(name="dataFileS3Key", default="")


class ExportSummary(Struct, frozen=True, rename="camel"):
    """The members of a summary that an import reads."""

    item_count: int
    output_format: str
    export_type: str = "FULL_EXPORT"
    output_view: str | None = None


def files_manifest(files: list[DataFile]) -> bytes:
    """The list of data files: one JSON object in each line."""
    return b"".join(json.encode(each) + b"\n" for each in files)


def summary_manifest(export: TableExport, table_arn: str) -> bytes:
    """The summary of a completed export."""
    assert export.ended_epoch_seconds is not None
    request = export.request
    return json.encode(
        {
            "version": _VERSION if export.period is None else _INCREMENTAL_VERSION,
            "exportArn": f"{table_arn}/export/{export.export_id}",
            "startTime": wire_date(export.began_epoch_seconds),
            "endTime": wire_date(export.ended_epoch_seconds),
            "tableArn": table_arn,
            "tableId": export.table_uuid,
            **_times(export),
            "s3Bucket": request["S3Bucket"],
            "s3Prefix": request.get("S3Prefix"),
            "s3SseAlgorithm": request.get("S3SseAlgorithm", "AES256"),
            "s3SseKmsKeyId": request.get("S3SseKmsKeyId"),
            "manifestFilesS3Key": f"{export.folder}/{FILES}.json",
            "billedSizeBytes": export.billed_size_bytes,
            "itemCount": export.item_count,
            "outputFormat": request.get("ExportFormat", "DYNAMODB_JSON"),
            "exportType": export.export_type,
        }
    )


def _times(export: TableExport) -> dict[str, Any]:
    period = export.period
    if period is None:
        return {"exportTime": wire_date(export.exported_epoch_seconds)}
    return {
        "exportFromTime": wire_date(period["ExportFromTime"]),
        "exportToTime": wire_date(period["ExportToTime"]),
        "outputView": period["ExportViewType"],
    }


def read_files_manifest(data: bytes) -> list[DataFile]:
    """The data files of an export; raises ``MsgspecError``."""
    return [json.decode(line, type=DataFile) for line in data.splitlines() if line.strip()]


def read_summary(data: bytes) -> ExportSummary:
    """The summary of an export; raises ``MsgspecError``."""
    return json.decode(data, type=ExportSummary)


def checksum(data: bytes) -> str:
    """Base64 of the MD5 of a manifest."""
    return b64encode(md5(data, usedforsecurity=False).digest()).decode()


def wire_date(epoch_seconds: float) -> str:
    """A time in a manifest: ISO 8601 with milliseconds."""
    moment = datetime.fromtimestamp(epoch_seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
