"""ListTagsOfResource."""

from __future__ import annotations

from msgspec import json

from dynactor.api.access import asks
from dynactor.api.execution.operation import Effect, Location, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import ListTagsOfResourceInput
from dynactor.api.requests.resource_arn import no_such_resource, tagged_table_name
from dynactor.model.errors import ResourceNotFoundException


async def handle(call: Call[ListTagsOfResourceInput]) -> bytes:
    """All tags of a table: at most 50, so there is never a second page."""
    request = call.request
    name = tagged_table_name(request.ResourceArn)
    try:
        state = await call.database.describe(name)
    except ResourceNotFoundException:
        raise no_such_resource(request.ResourceArn) from None
    tags = [{"Key": key, "Value": value} for key, value in state.definition.tags]
    return json.encode({"Tags": tags})


OPERATION = Operation(
    ListTagsOfResourceInput,
    handle,
    asks=asks.member("ResourceArn"),
    effect=Effect.DESCRIBES,
    location=Location.HOME,
)
