"""GetResourcePolicy."""

from __future__ import annotations

from typing import NoReturn

from dynactor.actors.catalog.database import Database
from dynactor.api.requests import shapes, stream_arn, structures
from dynactor.api.requests.operation import Call, Operation
from dynactor.api.requests.resource_arn import no_such_resource, tagged_table_name
from dynactor.model.errors import PolicyNotFoundException, ResourceNotFoundException


class GetResourcePolicyInput(structures.Shape, frozen=True):
    """The members of GetResourcePolicy."""

    ResourceArn: shapes.ResourceArn


async def handle(call: Call[GetResourcePolicyInput]) -> NoReturn:
    """Answer that the resource has no policy, because policies are not implemented."""
    arn = call.request.ResourceArn
    await _find(call.database, arn)
    raise PolicyNotFoundException(
        f"Resource-based policy not found for the provided ResourceArn: {arn}"
    )


async def _find(database: Database, arn: str) -> None:
    if "/stream/" in arn:
        stream_arn.find_stream(database, arn)
        return
    name = tagged_table_name(arn)
    try:
        await database.describe(name)
    except ResourceNotFoundException:
        raise no_such_resource(arn) from None


OPERATION = Operation("GetResourcePolicy", GetResourcePolicyInput, handle)
