"""DescribeBulkOperation."""

from __future__ import annotations

from msgspec import json

from dynactor.api.access import asks
from dynactor.api.answers import transfers
from dynactor.api.execution.operation import Effect, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import DescribeBulkOperationInput


def handle(call: Call[DescribeBulkOperationInput]) -> bytes:
    """Show a bulk operation, with the counts of this moment."""
    found = transfers.find_bulk_operation(call.database, call.request.BulkOperationArn)
    description = transfers.bulk_operation_description(call.database, found)
    return json.encode({"BulkOperationDescription": description})


OPERATION = Operation(
    DescribeBulkOperationInput,
    handle,
    asks=asks.member("BulkOperationArn"),
    effect=Effect.DESCRIBES,
)
