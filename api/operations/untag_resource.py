"""UntagResource."""

from __future__ import annotations

from dynactor.actors.table.messages import UpdateTable
from dynactor.api.access import asks
from dynactor.api.execution.operation import Location, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import UntagResourceInput
from dynactor.api.requests.resource_arn import tagged_table_name
from dynactor.model.errors import ResourceNotFoundException, ValidationException
from dynactor.model.tables.table_edits import TableEdit


async def handle(call: Call[UntagResourceInput]) -> bytes:
    """Remove tags from a table. The answer has no body."""
    request = call.request
    name = tagged_table_name(request.ResourceArn)
    if not request.TagKeys:
        raise ValidationException("Atleast one Tag Key needs to be provided as Input.")
    try:
        await call.database.ask(
            UpdateTable(name, TableEdit(tag_keys_to_remove=tuple(request.TagKeys)))
        )
    except ResourceNotFoundException:
        # The message has no ARN, unlike in the other tag operations (dynalite, measured on AWS).
        raise ResourceNotFoundException("Requested resource not found") from None
    return b""


OPERATION = Operation(UntagResourceInput, handle, asks=asks.tagged_resource, location=Location.HOME)
