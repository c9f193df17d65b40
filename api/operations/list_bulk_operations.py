"""ListBulkOperations."""

from __future__ import annotations

from typing import Any

from msgspec import json

from dynactor.actors.transfers.bulk_operations import BulkOperations
from dynactor.api.access import asks
from dynactor.api.answers import transfers
from dynactor.api.execution.operation import Effect, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import ListBulkOperationsInput
from dynactor.model.limits import LIST_BULK_OPERATIONS


def handle(call: Call[ListBulkOperationsInput]) -> bytes:
    """A page of the bulk operations, the newest first; the token has the id of the last one."""
    request, database = call.request, call.database
    before = None if request.NextToken is None else transfers.read_token(request.NextToken)
    found = [
        each
        for each in database.part(BulkOperations).operations
        if before is None or each.operation_id < before
    ]
    page = found[: request.MaxResults or LIST_BULK_OPERATIONS]
    answer: dict[str, Any] = {
        "BulkOperationsSummaryList": [
            transfers.bulk_operation_summary(database, each) for each in page
        ]
    }
    if len(page) < len(found):
        answer["NextToken"] = transfers.next_token(page[-1].operation_id)
    return json.encode(answer)


OPERATION = Operation(
    ListBulkOperationsInput, handle, asks=asks.no_resource, effect=Effect.DESCRIBES
)
