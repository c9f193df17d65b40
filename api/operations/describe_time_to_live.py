"""DescribeTimeToLive."""

from __future__ import annotations

from msgspec import json

from dynactor.api.access import asks
from dynactor.api.answers.table_description import time_to_live_description
from dynactor.api.execution.operation import Effect, Location, Operation
from dynactor.api.requests.call import Call
from dynactor.api.requests.inputs import DescribeTimeToLiveInput
from dynactor.api.requests.table_arn import table_name
from dynactor.model.errors import ValidationException


async def handle(call: Call[DescribeTimeToLiveInput]) -> bytes:
    """Show the state of a table's time to live, and the attribute unless the state is DISABLED."""
    definition = (await call.database.describe(table_name(call.request.TableName))).definition
    if definition.status in ("CREATING", "DELETING"):
        raise ValidationException(
            "Cannot describe time to live while table is in "
            f"{definition.status} state: {definition.name}"
        )
    description = time_to_live_description(call.database, definition)
    return json.encode({"TimeToLiveDescription": description})


OPERATION = Operation(
    DescribeTimeToLiveInput,
    handle,
    asks=asks.table,
    effect=Effect.DESCRIBES,
    location=Location.HOME,
)
