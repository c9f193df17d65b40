"""StartBulkPutItems."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import json

from dynactor.actors.transfers.bulk_operations import StartBulkPutItems
from dynactor.api.access import asks, bucket_asks
from dynactor.api.access.ask import Ask, Asking
from dynactor.api.answers import transfers
from dynactor.api.execution.operation import Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import StartBulkPutItemsInput
from dynactor.api.requests.source_format import check_ion
from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import ValidationException


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
    begun = await database.ask(
        StartBulkPutItems(
            table_name(request.TableName), transfers.given_members(request), call.bucket_grant
        )
    )
    description = transfers.bulk_operation_description(database, begun)
    return json.encode({"BulkOperationDescription": description})


def _asks(asking: Asking) -> Iterator[Ask]:
    yield from asks.table(asking)
    yield bucket_asks.list_source(asking, asking.request.InputS3Configuration)


def _objects(request: StartBulkPutItemsInput) -> Iterator[bucket_asks.Objects]:
    yield bucket_asks.read_objects(request.InputS3Configuration)
    output = request.OutputS3Configuration
    # The operation refuses a request without an output bucket.
    if output.S3Bucket is not None:
        yield bucket_asks.written_objects(output.S3Bucket, output.S3KeyPrefix)


OPERATION = Operation(StartBulkPutItemsInput, handle, asks=_asks, objects=_objects)
