"""ExportTableToPointInTime."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import json

from dynactor.actors.transfers.table_exports import ExportTable
from dynactor.api.access import asks, bucket_asks
from dynactor.api.answers import continuous_backups, transfers
from dynactor.api.execution.operation import Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.foreign_arns import BACKUP_ARN_ERRORS
from dynactor.api.requests.inputs import ExportTableToPointInTimeInput
from dynactor.api.requests.table_arn import NO_ARN, table_name
from dynactor.model.errors import ValidationException
from dynactor.model.transfers.item_filter import item_filter


async def handle(call: Call[ExportTableToPointInTimeInput]) -> bytes:
    """Start an export; one of the present state needs no point-in-time recovery."""
    request, database = call.request, call.database
    if not request.TableArn.startswith("arn:"):
        raise ValidationException(NO_ARN)
    name = table_name(request.TableArn)
    if request.S3SseKmsKeyId is not None and request.S3SseAlgorithm != "KMS":
        raise ValidationException("KMS Key Id is not supported for this encryption type")
    _check_period(request)
    if request.FilterSpecification is not None:
        wanted = item_filter(transfers.given_members(request.FilterSpecification))
        wanted.check(continuous_backups.source_table(database, name, request.TableArn).definition)
    export = await database.ask(
        ExportTable(name, transfers.given_members(request), call.bucket_grant)
    )
    description = transfers.export_description(database, export)
    return json.encode({"ExportDescription": description})


def _check_period(request: ExportTableToPointInTimeInput) -> None:
    period = request.IncrementalExportSpecification
    if (request.ExportType == "INCREMENTAL_EXPORT") != (period is not None):
        raise ValidationException(
            "IncrementalExportSpecification must be specified if and only if ExportType is "
            "INCREMENTAL_EXPORT"
        )
    if period is not None and period.ExportFromTime is None:
        raise ValidationException("ExportFromTime must be specified for an incremental export")
    if period is not None and request.ExportTime is not None:
        raise ValidationException("ExportTime can't be specified for an incremental export")


def _objects(request: ExportTableToPointInTimeInput) -> Iterator[bucket_asks.Objects]:
    yield bucket_asks.written_objects(request.S3Bucket, request.S3Prefix)


OPERATION = Operation(
    ExportTableToPointInTimeInput,
    handle,
    asks=asks.member("TableArn"),
    arn_errors=BACKUP_ARN_ERRORS,
    objects=_objects,
)
