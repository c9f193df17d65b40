"""Exports, imports and bulk operations: look-up by ARN, lists, and their descriptions."""

from __future__ import annotations

import re
from typing import Any, Final, Literal, TypeAlias
from uuid import NAMESPACE_URL, uuid5

from msgspec import Struct, to_builtins

from dynactor.actors.database.database import Database
from dynactor.actors.transfers.bulk_operations import BulkOperations
from dynactor.actors.transfers.table_exports import TableExports
from dynactor.actors.transfers.table_imports import TableImports
from dynactor.api.answers.table_description import table_arn, wire_time
from dynactor.api.requests.foreign_arns import check_account
from dynactor.model.errors import (
    ExportNotFoundException,
    ImportNotFoundException,
    ResourceNotFoundException,
    ValidationException,
)
from dynactor.model.limits import NAME_CHARACTER, TABLE_NAME_CHARACTERS
from dynactor.model.transfers.bulk_operation import BulkOperation
from dynactor.model.transfers.table_export import TableExport
from dynactor.model.transfers.table_import import TableImport

_FEWEST, _MOST = TABLE_NAME_CHARACTERS
_ARN: Final = re.compile(
    r"arn:aws[a-z-]*:dynamodb:[^:]+:[0-9]+:"
    rf"table/({NAME_CHARACTER}{{{_FEWEST},{_MOST}}})/(export|import|bulk-operation)/([0-9a-f-]+)\Z",
    re.ASCII,
)
_Kind: TypeAlias = Literal["export", "import", "bulk-operation"]
_MEMBERS: Final[dict[_Kind, str]] = {
    "export": "ExportArn",
    "import": "ImportArn",
    "bulk-operation": "BulkOperationArn",
}
# A token is hexadecimal, in groups of 16 digits; that of an import has at least 7 of them.
_TOKEN_BYTES: Final = 56
# Members of a request that the description of an import or export repeats.
_IMPORT_MEMBERS: Final = (
    "ClientToken",
    "InputFormat",
    "InputFormatOptions",
    "TableCreationParameters",
)
_BULK_OPERATION_MEMBERS: Final = (
    "ClientToken",
    "InputS3Configuration",
    "OutputS3Configuration",
    "MaxWriteRequestUnits",
)
_EXPORT_MEMBERS: Final = (
    "ClientToken",
    "S3Bucket",
    "S3BucketOwner",
    "S3Prefix",
    "S3SseKmsKeyId",
    "ExportType",
    "FilterSpecification",
)


def given_members(shape: Struct) -> dict[str, Any]:
    """The members in a request, also in nested structures."""
    members: dict[str, Any] = _without_none(to_builtins(shape))
    return members


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_none(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_none(each) for each in value]
    return value


def next_token(last_id: str) -> str:
    """The NextToken of a page that ends with this import or bulk operation."""
    return last_id.encode().ljust(_TOKEN_BYTES, b"\x00").hex()


def read_token(token: str) -> str:
    """The id in a NextToken; raises ``ValidationException``."""
    text = bytes.fromhex(token).rstrip(b"\x00")
    if not text.isascii() or not text.replace(b"-", b"").isalnum():
        raise ValidationException("Invalid NextToken")
    return text.decode()


def export_arn(database: Database, export: TableExport) -> str:
    """The ARN that the server shows for an export."""
    return f"{table_arn(database, export.table_name)}/export/{export.export_id}"


def find_export(database: Database, arn: str) -> TableExport:
    """The export with this ARN; the region is ignored.

    Raises ``ValidationException``, ``ActionDeniedException`` for another account, or
    ``ExportNotFoundException``.
    """
    table_name, export_id = _arn_parts(database, arn, "export")
    export = database.part(TableExports).find(export_id)
    if export is None or export.table_name != table_name:
        raise ExportNotFoundException(f"Export not found: {arn}")
    return export


def _arn_parts(database: Database, arn: str, kind: _Kind) -> tuple[str, str]:
    """The table's name and the id in the ARN of an export, import or bulk operation."""
    match = _ARN.match(arn)
    if match is None or match[2] != kind:
        raise ValidationException(f"Invalid {_MEMBERS[kind]}")
    check_account(database, arn)
    return match[1], match[3]


def export_summary(database: Database, export: TableExport) -> dict[str, Any]:
    """An export as ListExports shows it."""
    return {
        "ExportArn": export_arn(database, export),
        "ExportStatus": export.status,
        "ExportType": export.export_type,
    }


def export_description(database: Database, export: TableExport) -> dict[str, Any]:
    """The ExportDescription of an export; members that do not apply are left out."""
    request = export.request
    description: dict[str, Any] = {
        "ExportArn": export_arn(database, export),
        "ExportStatus": export.status,
        "StartTime": wire_time(export.began_epoch_seconds),
        "TableArn": table_arn(database, export.table_name),
        "TableId": export.table_uuid,
        **_export_times(export),
        **{name: request[name] for name in _EXPORT_MEMBERS if name in request},
        "S3SseAlgorithm": request.get("S3SseAlgorithm", "AES256"),
        "ExportFormat": request.get("ExportFormat", "DYNAMODB_JSON"),
    }
    if export.ended_epoch_seconds is not None:
        description["EndTime"] = wire_time(export.ended_epoch_seconds)
    if export.status == "COMPLETED":
        description["ExportManifest"] = export.manifest_key
        description["BilledSizeBytes"] = export.billed_size_bytes
        description["ItemCount"] = export.item_count
    return description | _failure(export)


def _export_times(export: TableExport) -> dict[str, Any]:
    if export.period is not None:
        return {"IncrementalExportSpecification": export.period}
    return {"ExportTime": wire_time(export.exported_epoch_seconds)}


def import_arn(database: Database, found: TableImport) -> str:
    """The ARN that the server shows for an import."""
    return f"{table_arn(database, found.table_name)}/import/{found.import_id}"


def find_import(database: Database, arn: str) -> TableImport:
    """The import with this ARN; the region is ignored.

    Raises ``ValidationException``, ``ActionDeniedException`` for another account, or
    ``ImportNotFoundException``.
    """
    table_name, import_id = _arn_parts(database, arn, "import")
    found = database.part(TableImports).find(import_id)
    if found is None or found.table_name != table_name:
        raise ImportNotFoundException(f"Import not found: {arn}")
    return found


def import_summary(database: Database, found: TableImport) -> dict[str, Any]:
    """An import as ListImports shows it."""
    return {
        "ImportArn": import_arn(database, found),
        "ImportStatus": found.status,
        "TableArn": table_arn(database, found.table_name),
        **_bucket_source(database, found),
        "CloudWatchLogGroupArn": _log_group_arn(database),
        "InputFormat": found.request["InputFormat"],
        **_times(found),
    }


def _bucket_source(database: Database, found: TableImport) -> dict[str, Any]:
    """The source with the owner of its bucket; an upload has no bucket."""
    if found.is_upload:
        return {}
    owner = {"S3BucketOwner": database.settings.account_id}
    return {"S3BucketSource": owner | found.request["S3BucketSource"]}


def import_description(database: Database, found: TableImport) -> dict[str, Any]:
    """The ImportTableDescription of an import; members that do not apply are left out."""
    request, counts = found.request, found.counts
    return {
        "ImportArn": import_arn(database, found),
        "ImportStatus": found.status,
        "TableArn": table_arn(database, found.table_name),
        "TableId": found.table_uuid,
        **_bucket_source(database, found),
        # AWS chooses a token, too.
        "ClientToken": str(uuid5(NAMESPACE_URL, import_arn(database, found))),
        **{name: request[name] for name in _IMPORT_MEMBERS if name in request},
        "InputCompressionType": request.get("InputCompressionType", "NONE"),
        "ErrorCount": counts.errors,
        "CloudWatchLogGroupArn": _log_group_arn(database),
        "ProcessedSizeBytes": counts.processed_bytes,
        "ProcessedItemCount": counts.processed_items,
        "ImportedItemCount": counts.imported_items,
        **_times(found),
        **_failure(found),
    }


def bulk_operation_arn(database: Database, found: BulkOperation) -> str:
    """The ARN that the server shows for a bulk operation."""
    return f"{table_arn(database, found.table_name)}/bulk-operation/{found.operation_id}"


def find_bulk_operation(database: Database, arn: str) -> BulkOperation:
    """The bulk operation with this ARN; the region is ignored.

    Raises ``ValidationException``, ``ActionDeniedException`` for another account, or
    ``ResourceNotFoundException``.
    """
    table_name, operation_id = _arn_parts(database, arn, "bulk-operation")
    found = database.part(BulkOperations).find(operation_id)
    if found is None or found.table_name != table_name:
        raise ResourceNotFoundException(
            f"Requested resource not found: Bulk operation: {arn} not found"
        )
    return found


def bulk_operation_summary(database: Database, found: BulkOperation) -> dict[str, Any]:
    """A bulk operation as ListBulkOperations shows it."""
    return {
        "BulkOperationArn": bulk_operation_arn(database, found),
        "BulkOperationStatus": found.status,
        **_times(found),
    }


def bulk_operation_description(database: Database, found: BulkOperation) -> dict[str, Any]:
    """The BulkOperationDescription; members that do not apply are left out."""
    request, progress = found.request, found.progress
    description: dict[str, Any] = {
        **bulk_operation_summary(database, found),
        "TableDetails": [{"TableName": found.table_name, "TableId": found.table_uuid}],
        **{name: request[name] for name in _BULK_OPERATION_MEMBERS if name in request},
        "PerformanceTier": request.get("PerformanceTier", "STANDARD"),
        "ProcessedItemCount": progress.processed_items,
        "FailedItemCount": progress.failed_items,
        "ProcessedInputBytes": progress.processed_bytes,
        "BulkOperationUsage": [_bulk_usage(found)],
    }
    if progress.total_bytes is not None:
        description["TotalInputBytes"] = progress.total_bytes
    return description | _failure(found)


def _bulk_usage(found: BulkOperation) -> dict[str, Any]:
    usage = found.progress.usage
    index_bytes = (usage.local_index_bytes, usage.global_index_bytes)
    members: dict[str, Any] = {
        "TableName": found.table_name,
        "BulkPutBytes": usage.table_bytes + sum(sum(sizes.values()) for sizes in index_bytes),
        "Table": {"BulkPutBytes": usage.table_bytes},
    }
    for name, sizes in zip(
        ("LocalSecondaryIndexes", "GlobalSecondaryIndexes"), index_bytes, strict=True
    ):
        if sizes:
            members[name] = {index: {"BulkPutBytes": size} for index, size in sizes.items()}
    return members


def _failure(found: TableExport | TableImport | BulkOperation) -> dict[str, Any]:
    if found.failure_code is None:
        return {}
    return {"FailureCode": found.failure_code, "FailureMessage": found.failure_message}


def _times(found: TableImport | BulkOperation) -> dict[str, float]:
    times = {"StartTime": wire_time(found.began_epoch_seconds)}
    if found.ended_epoch_seconds is not None:
        times["EndTime"] = wire_time(found.ended_epoch_seconds)
    return times


def _log_group_arn(database: Database) -> str:
    """An ARN in the form of AWS's; the errors are in a file."""
    settings = database.settings
    return f"arn:aws:logs:{settings.region}:{settings.account_id}:log-group:/aws-dynamodb/imports:*"
