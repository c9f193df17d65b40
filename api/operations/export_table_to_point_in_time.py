"""ExportTableToPointInTime."""

from __future__ import annotations

from msgspec import json

from dynactor.api.answers import transfers
from dynactor.api.requests import shapes, structures
from dynactor.api.requests.operation import Call, Operation
from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import ValidationException


class ExportTableToPointInTimeInput(structures.Shape, frozen=True):
    """The members of ExportTableToPointInTime."""

    TableArn: shapes.ControlTableName
    S3Bucket: shapes.S3Bucket
    ExportTime: shapes.Timestamp | None = None
    ClientToken: shapes.ClientToken | None = None
    S3BucketOwner: shapes.S3BucketOwner | None = None
    S3Prefix: shapes.S3Prefix | None = None
    S3SseAlgorithm: shapes.S3SseAlgorithm | None = None
    S3SseKmsKeyId: shapes.S3SseKmsKeyId | None = None
    ExportFormat: shapes.ExportFormat | None = None
    ExportType: shapes.ExportType | None = None
    IncrementalExportSpecification: structures.IncrementalExportSpecificationShape | None = None
    FilterSpecification: structures.FilterSpecificationShape | None = None


async def handle(call: Call[ExportTableToPointInTimeInput]) -> bytes:
    """Start an export of a table as it is now; point-in-time recovery need not be enabled."""
    request, database = call.request, call.database
    name = table_name(request.TableArn)
    _refuse_unsupported(request)
    export = await database.export_table(name, transfers.given_members(request))
    description = transfers.export_description(database, export)
    return json.encode({"ExportDescription": description})


def _refuse_unsupported(request: ExportTableToPointInTimeInput) -> None:
    if request.ExportType == "INCREMENTAL_EXPORT" or request.IncrementalExportSpecification:
        raise ValidationException("Incremental exports are not supported yet")
    if request.ExportFormat == "ION":
        raise ValidationException("ExportFormat ION is not supported yet")
    if request.FilterSpecification is not None:
        raise ValidationException("FilterSpecification is not supported yet")


OPERATION = Operation("ExportTableToPointInTime", ExportTableToPointInTimeInput, handle)
