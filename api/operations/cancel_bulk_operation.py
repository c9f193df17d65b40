"""CancelBulkOperation."""

from __future__ import annotations

from msgspec import json

from dynactor.actors.transfers.bulk_operations import CancelBulkOperation
from dynactor.api.access import asks
from dynactor.api.answers import transfers
from dynactor.api.execution.operation import Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import CancelBulkOperationInput


async def handle(call: Call[CancelBulkOperationInput]) -> bytes:
    """Stop a bulk operation; the answer has the last status if the operation is over."""
    database = call.database
    found = transfers.find_bulk_operation(database, call.request.BulkOperationArn)
    canceled = await database.ask(CancelBulkOperation(found.operation_id))
    return json.encode(
        {
            "BulkOperationArn": transfers.bulk_operation_arn(database, canceled),
            "BulkOperationStatus": canceled.status,
        }
    )


OPERATION = Operation(CancelBulkOperationInput, handle, asks=asks.member("BulkOperationArn"))
