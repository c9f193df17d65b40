"""StartBulkPutItems."""

from __future__ import annotations

from msgspec import json

from dynactor.api.answers import transfers
from dynactor.api.requests import shapes, structures
from dynactor.api.requests.operation import Call, Operation
from dynactor.api.requests.source_format import check_ion
from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import ValidationException


class StartBulkPutItemsInput(structures.Shape, frozen=True):
    """The members of StartBulkPutItems."""

    InputS3Configuration: structures.InputS3ConfigurationShape
    OutputS3Configuration: structures.OutputS3ConfigurationShape
    TableName: shapes.ControlTableName
    ClientToken: shapes.ClientToken | None = None
    MaxWriteRequestUnits: shapes.BulkOperationMaxWriteRequestUnits | None = None
    PerformanceTier: shapes.BulkOperationPerformanceTier | None = None


async def handle(call: Call[StartBulkPutItemsInput]) -> bytes:
    """Start to put the items of files into a table."""
    request, database = call.request, call.database
    output = request.OutputS3Configuration
    if output.S3Bucket is None:
        raise ValidationException("OutputS3Configuration.S3Bucket is required")
    if not output.OutputType:
        raise ValidationException("OutputS3Configuration.OutputType must have at least one value")
    if request.InputS3Configuration.InputFormat == "ION":
        check_ion()
    begun = await database.start_bulk_put(
        table_name(request.TableName), transfers.given_members(request), call.bucket_grant
    )
    description = transfers.bulk_operation_description(database, begun)
    return json.encode({"BulkOperationDescription": description})


OPERATION = Operation("StartBulkPutItems", StartBulkPutItemsInput, handle)
