"""TagResource."""

from __future__ import annotations

from dynactor.actors.table.messages import UpdateTable
from dynactor.api.access import asks
from dynactor.api.execution.operation import Location, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import TagResourceInput
from dynactor.api.requests.resource_arn import no_such_resource, tagged_table_name
from dynactor.model.errors import ResourceNotFoundException, ValidationException
from dynactor.model.tables.table_edits import TableEdit


async def handle(call: Call[TagResourceInput]) -> bytes:
    """Add tags to a table, or replace the values of its tags. The answer has no body."""
    request = call.request
    name = tagged_table_name(request.ResourceArn)
    if not request.Tags:
        raise ValidationException("Atleast one Tag needs to be provided as Input.")
    edit = TableEdit(tags_to_add=tuple((tag.Key, tag.Value) for tag in request.Tags))
    try:
        await call.database.ask(UpdateTable(name, edit))
    except ResourceNotFoundException:
        raise no_such_resource(request.ResourceArn) from None
    return b""


OPERATION = Operation(TagResourceInput, handle, asks=asks.tagged_resource, location=Location.HOME)
